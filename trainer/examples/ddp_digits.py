#!/usr/bin/env python3
"""A plain DistributedDataParallel training: a LeNet-5-style network on the UCI handwritten digits.

Nothing but the import and the backend's name is Gradcube's: with `--backend gloo` the script runs without it. Start one
process per rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, as `gradcube run` and torchrun do (docs/pytorch.md).
"""

import argparse
import hashlib
import math
import statistics
import sys
import time

import torch
import torch.distributed as dist
from digits import lenet, load  # beside this file
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def train(model, training, arguments):
    """Of each step the loss and the seconds."""
    sampler = DistributedSampler(training, seed=arguments.seed, drop_last=True)
    loader = DataLoader(training, batch_size=arguments.batch, sampler=sampler, drop_last=True)
    # More ranks average the gradients of more images, which allows for longer steps.
    rate = arguments.lr if arguments.lr is not None else 0.01 * math.sqrt(dist.get_world_size())
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    if len(loader) == 0:
        raise SystemExit(f"each rank has {len(sampler)} images: not enough for a batch of {arguments.batch}")
    losses, seconds = [], []
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            begin = time.perf_counter()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()  # DDP averages the gradients of all ranks meanwhile
            optimizer.step()
            seconds.append(time.perf_counter() - begin)
            losses.append(loss.item())
        if dist.get_rank() == 0:
            mean = statistics.mean(losses[-len(loader) :])
            print(f"epoch {epoch + 1}/{arguments.epochs}  loss {mean:.4f}", flush=True)
    return losses, seconds


def digest_of(model):
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def draw(path, losses, seconds):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(8, 6), layout="constrained")
    upper.plot(losses, color="tab:blue")
    upper.set(ylabel="training loss of rank 0", title=f"LeNet-5 on handwritten digits, {dist.get_world_size()} ranks")
    lower.plot([1e3 * one for one in seconds], color="tab:gray")
    lower.set(xlabel="step", ylabel="milliseconds", ylim=(0, None))
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the images (default: 20)")
    parser.add_argument("--batch", type=int, default=8, help="images per rank and step (default: 8)")
    parser.add_argument("--lr", type=float, help="learning rate (default: 0.01 times the square root of the ranks)")
    parser.add_argument("--seed", type=int, default=1, help="of weights, split and shuffle (default: 1)")
    parser.add_argument("--picture", metavar="FILE.png", help="draw loss and time of each step")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error(f"--epochs {arguments.epochs}: at least 1 is accepted")
    if arguments.backend == "gradcube":
        import gradcube.torch  # makes the backend known

    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    dist.init_process_group(arguments.backend)
    (images, labels), held_out = load(arguments.seed)
    model = DistributedDataParallel(lenet(), gradient_as_bucket_view=True)
    losses, seconds = train(model, TensorDataset(images, labels), arguments)

    digests = [None] * dist.get_world_size()
    dist.all_gather_object(digests, digest_of(model))
    if dist.get_rank() == 0:
        with torch.no_grad():
            accuracy = (model.module(held_out[0]).argmax(1) == held_out[1]).float().mean().item()
        print(f"test accuracy: {accuracy:.1%} of the images held out")
        print(f"seconds per step: {statistics.median(seconds):.4f} (median)")
        if len(set(digests)) == 1:
            print(f"weights: bit-identical on all {len(digests)} ranks (sha256 {digests[0]})")
        else:
            print(f"weights: NOT identical: {len(set(digests))} versions on {len(digests)} ranks")
        if arguments.picture:
            draw(arguments.picture, losses, seconds)
    dist.destroy_process_group()
    return 0 if len(set(digests)) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
