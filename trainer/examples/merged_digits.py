#!/usr/bin/env python3
"""A training with merged gradients (MG-WFBP): a network of convolutions on the UCI handwritten digits.

MergedGradientOptimizer averages gradients while the backward pass goes on, and sends those of adjacent layers together
where this ends the iteration sooner. The script prints how much of the communication was hidden, and writes a timeline
of some iterations for chrome://tracing, Perfetto and `python3 -m gradcube.draw_timeline`. Start one process per rank as
`gradcube run` and torchrun do (docs/mg-wfbp.md).
"""

import argparse
import collections

import torch
import torch.distributed as dist
from ddp_digits import digest_of  # beside this file
from digits import load
from gradcube.torch import MergedGradientOptimizer, Options
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


CHANNELS = 32


def network():
    """As in most networks, the first layers have much to compute, and the last ones most of the parameters."""
    layers = collections.OrderedDict()
    for number in range(1, 7):
        layers[f"conv{number}"] = nn.Conv2d(1 if number == 1 else CHANNELS, CHANNELS, 3, padding=1)
        layers[f"relu{number}"] = nn.ReLU()
    layers["flat"] = nn.Flatten()
    layers["full1"] = nn.Linear(64 * CHANNELS, 128)
    layers["relu7"] = nn.ReLU()
    layers["full2"] = nn.Linear(128, 10)
    return nn.Sequential(layers)


def train(model, optimizer, training, arguments):
    sampler = DistributedSampler(training, seed=arguments.seed, drop_last=True)
    loader = DataLoader(training, batch_size=arguments.batch, sampler=sampler, drop_last=True)
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        if arguments.timeline and epoch == arguments.epochs - 1:  # messages have been planned by then
            optimizer.record(arguments.timeline, iterations=3)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}/{arguments.epochs}  loss {loss.item():.4f}  {optimizer.progress}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
    parser.add_argument("--policy", default="optimal", help="wfbp, synceasgd, mgwfbp or optimal (default: optimal)")
    parser.add_argument("--priority", default="ready", help="ready, or need: first layers first (default: ready)")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the images (default: 5)")
    parser.add_argument("--batch", type=int, default=16, help="images per rank and step (default: 16)")
    parser.add_argument("--lr", type=float, default=0.002, help="learning rate (default: 0.002)")
    parser.add_argument("--seed", type=int, default=1, help="of weights, split and shuffle (default: 1)")
    parser.add_argument("--timeline", metavar="FILE.json", help="write what all ranks do in three iterations")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error(f"--epochs {arguments.epochs}: at least 1 is accepted")

    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    lanes = {"pg_options": Options(lanes=4)} if arguments.backend == "gradcube" else {}
    dist.init_process_group(arguments.backend, **lanes)
    (images, labels), held_out = load(arguments.seed)
    model = network()
    adam = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    optimizer = MergedGradientOptimizer(adam, model, policy=arguments.policy, priority=arguments.priority)
    train(model, optimizer, TensorDataset(images, labels), arguments)

    optimizer.finish_step()  # by need, the last step is yet to be taken
    digests = [None] * dist.get_world_size()
    dist.all_gather_object(digests, digest_of(model))
    if dist.get_rank() == 0:
        with torch.no_grad():
            accuracy = (model(held_out[0]).argmax(1) == held_out[1]).float().mean().item()
        print("all-reduces: " + "; ".join(", ".join(names) for names in optimizer.messages))
        print(f"test accuracy: {accuracy:.1%} of the images held out")
        same = "bit-identical" if len(set(digests)) == 1 else "NOT identical"
        print(f"weights: {same} on all {len(digests)} ranks")
        if arguments.timeline:
            print(f"timeline: {arguments.timeline}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
