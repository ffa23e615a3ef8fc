"""A rank that trains with DistributedDataParallel where exchanging gradients is nearly all of a step.

Usage: ddp_steps.py BACKEND STEPS [LAYERS], with the environment of torchrun. Rank 0 prints one JSON object: the median
of a step's seconds, and over `gradcube` how many bytes all ranks have copied to shared memory or from it after the
first step.
"""

import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ranks

WARMUP = 3  # DistributedDataParallel makes its buckets anew after the first step
WIDTH = 1024  # a layer has 4.2 MB of gradients, and hardly anything to compute for a single sample
LAYERS = 3


def staged_bytes(backend):
    if backend != "gradcube":
        return 0
    import gradcube.torch

    return sum(kind["staged_bytes"] for kind in gradcube.torch.statistics().values())


def main():
    backend, steps = sys.argv[1], int(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else LAYERS
    ranks.begin(backend)
    torch.manual_seed(1)
    layers = [nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(count)]
    model = DistributedDataParallel(nn.Sequential(*layers), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    samples = torch.randn(1, WIDTH)

    seconds, staged = [], None
    for _ in range(WARMUP + steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        model(samples).square().mean().backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        staged = staged_bytes(backend) if staged is None else staged
    # What is exchanged from here on is no part of the training.
    staged = staged_bytes(backend) - staged
    rows = [None] * dist.get_world_size()
    dist.all_gather_object(rows, staged)
    ranks.end(backend, {"seconds_median": statistics.median(seconds[WARMUP:]), "staged_bytes": sum(rows)})


if __name__ == "__main__":
    main()
