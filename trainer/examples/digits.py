#!/usr/bin/env python3
"""One rank of a data-parallel training: a LeNet-5-style network on the UCI handwritten digits.

Every rank starts with the same weights, takes its share of each global batch, and averages its gradients with
those of the others by one gradcube all-reduce per step. The gradients of all parameters lie in one shared
buffer that PyTorch writes into directly, so nothing is copied on the way to the network. With --hub the servers take
the optimizer's steps instead: each gradient is pushed when it is there, and new weights come back.

Start one process per server (digits_cluster.py does), or simulate N trainers in one process with --alone N.
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys
import time

import numpy
import torch
from sklearn.datasets import load_digits
from torch import nn

try:
    import gradcube
except ImportError:  # run from the source tree
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
    import gradcube
from gradcube._hub_optimizer import HubOptimizer  # gradcube.torch has it, too, beside the backend

HELD_OUT = 0.2  # the share of the images that accuracy is measured on
WAIT_SECONDS = 60
MOMENTUM = 0.9


def lenet():
    """LeNet-5 for images of 8x8 instead of 32x32: the same layers, smaller kernels, and padding."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10),
    )  # fmt: skip


def load(seed):
    """(training images, labels), (held-out images, labels): the same split on every rank."""
    digits = load_digits()
    order = numpy.random.default_rng(seed).permutation(len(digits.target))
    images = torch.from_numpy(digits.images[order].astype("float32") / 16).unsqueeze(1)
    labels = torch.from_numpy(digits.target[order].astype("int64"))
    held_out = int(len(labels) * HELD_OUT)
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


class Group:
    """Averages gradients, and takes each step with an optimizer of its own."""

    def prepare(self, model, lr):
        self.gradients = give_gradients_one_buffer(model, self)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=MOMENTUM)

    def zero_gradients(self):
        self.gradients.zero_()

    def exchange(self):
        self.average(self.gradients)

    def step(self):
        self.optimizer.step()

    def finish(self):
        pass


class Alone(Group):
    """N trainers in one process: the same shards one after the other, and no network."""

    def __init__(self, size):
        self.rank, self.size = 0, size
        self.shards = range(size)

    def buffer(self, count):
        return torch.zeros(count)

    def gather(self):
        pass

    def average(self, gradients):
        gradients /= self.size

    def close(self):
        pass


class Together(Group):
    """One of the trainers of a job."""

    def __init__(self, socket, job):
        self.session = gradcube.Session(socket, job=job)
        self.rank, self.size = self.session.rank, self.session.size
        self.shards = [self.rank]

    def buffer(self, count):
        self.array = self.session.alloc(count, "float32")
        return torch.from_numpy(self.array)

    def gather(self):
        self.session.barrier(timeout=WAIT_SECONDS)

    def average(self, gradients):
        self.session.allreduce(self.array, op="average", timeout=WAIT_SECONDS)

    def close(self):
        self.session.close()


class TogetherByHub(Together):
    """The same, and the servers take the steps."""

    def prepare(self, model, lr):
        names = model.named_parameters()
        options = {"session": self.session, "timeout": WAIT_SECONDS}
        self.optimizer = HubOptimizer(names, "sgd", lr=lr, momentum=MOMENTUM, **options)

    def zero_gradients(self):
        self.optimizer.zero_grad()

    def exchange(self):
        self.optimizer.step()  # gradients were pushed in the backward pass

    def step(self):
        pass

    def finish(self):
        self.optimizer.free(WAIT_SECONDS)


def give_gradients_one_buffer(model, group):
    """Makes every parameter's .grad a view of one buffer, which is returned."""
    parameters = list(model.parameters())
    buffer = group.buffer(sum(p.numel() for p in parameters))
    start = 0
    for p in parameters:
        p.grad = buffer[start : start + p.numel()].view_as(p)
        start += p.numel()
    return buffer


def shards_of_batches(count, epochs, batch, group, seed):
    """For each step: the indices of each shard that this process computes."""
    step_size = batch * group.size
    if count < step_size:
        raise SystemExit(f"a global batch of {step_size} is larger than the {count} training images")
    for epoch in range(epochs):
        order = numpy.random.default_rng([seed, epoch]).permutation(count)
        for start in range(0, count - step_size + 1, step_size):
            yield [order[start + shard * batch : start + (shard + 1) * batch] for shard in group.shards]


def train(arguments, group, say):
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    torch.use_deterministic_algorithms(True)
    model = lenet()
    (images, labels), held_out = load(arguments.seed)
    group.prepare(model, arguments.lr)
    steps = list(shards_of_batches(len(labels), arguments.epochs, arguments.batch, group, arguments.seed))
    if arguments.steps:
        steps = steps[: arguments.steps]

    group.gather()  # so that the first step's time is not that of the slowest start
    records = []
    for number, shards in enumerate(steps, 1):
        begin = time.perf_counter()
        group.zero_gradients()
        losses = []
        for shard in shards:
            loss = nn.functional.cross_entropy(model(images[shard]), labels[shard])
            loss.backward()
            losses.append(loss.item())
        computed = time.perf_counter()
        group.exchange()
        communicated = time.perf_counter()
        group.step()
        record = {
            "loss": sum(losses) / len(losses),
            "seconds": time.perf_counter() - begin,
            "communication_seconds": communicated - computed,
        }
        records.append(record)
        say(number, len(steps), record)
    group.finish()
    return model, held_out, records


def result_of(model, held_out, records, group):
    digest = hashlib.sha256()
    for p in model.parameters():
        digest.update(p.detach().numpy().tobytes())
    result = {
        "rank": group.rank,
        "size": group.size,
        "sha256": digest.hexdigest(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": records,
    }
    if group.rank == 0:
        images, labels = held_out
        with torch.no_grad():
            result["accuracy"] = (model(images).argmax(1) == labels).float().mean().item()
    return result


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--job", default="digits", help="the job's name (default: digits)")
    parser.add_argument("--socket", help="the daemon's socket")
    parser.add_argument("--run-dir", help="the run directory to look for the only socket in")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the images (default: 20)")
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    parser.add_argument("--batch", type=int, default=8, help="images per trainer and step (default: 8)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default: 0.05)")
    parser.add_argument("--seed", type=int, default=1, help="of weights, split and shuffle (default: 1)")
    parser.add_argument("--output", help="write losses, times and the weights' SHA-256 to this JSON file")
    parser.add_argument("--hub", action="store_true", help="the servers take the optimizer's steps")
    parser.add_argument("--alone", type=int, metavar="N", help="simulate N trainers without gradcube")
    arguments = parser.parse_args()
    for name in ("epochs", "batch", "steps", "alone"):
        if (value := getattr(arguments, name)) is not None and value < 1:
            parser.error(f"--{name} {value}: at least 1 is accepted")
    if arguments.alone and arguments.hub:
        parser.error("--alone and --hub: the servers of a cluster have the hub")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.run_dir:
        os.environ["GRADCUBE_RUN"] = arguments.run_dir
    try:
        if arguments.alone:
            group = Alone(arguments.alone)
        else:
            group = (TogetherByHub if arguments.hub else Together)(arguments.socket, arguments.job)
    except gradcube.Error as error:
        print(f"digits: {error}", file=sys.stderr)
        return 1

    def say(number, count, record):
        share = record["communication_seconds"] / record["seconds"]
        print(
            f"step {number}/{count}  loss {record['loss']:.4f}  {record['seconds'] * 1e3:.1f} ms"
            f"  ({share:.0%} communication)",
            flush=True,
        )

    try:
        result = result_of(*train(arguments, group, say), group)
    except gradcube.Error as error:
        print(f"digits: rank {group.rank}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        group.close()
    if arguments.output:
        pathlib.Path(arguments.output).write_text(json.dumps(result))
    if "accuracy" in result:
        print(f"accuracy {result['accuracy']:.4f}  sha256 {result['sha256']}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
