"""A rank that makes all-reduces, one after the other.

Usage: allreduce_sizes.py BACKEND MEMORY ITERATIONS BYTES..., with the environment of torchrun. MEMORY, where tensors lie:
"ordinary", or with gradcube "shared" with the daemon. Of the most bytes there are so many iterations, of fewer ten times
as many. Rank 0 prints one JSON object: for each number of bytes the median of an all-reduce's seconds.
"""

import contextlib
import statistics
import sys
import time

import torch
import torch.distributed as dist

import ranks

WARMUP = 3


def place(memory):
    if memory == "ordinary":
        return contextlib.nullcontext()
    import gradcube.torch

    return gradcube.torch.shared_memory(dist.group.WORLD)


def seconds_of(size, iterations, memory):
    with place(memory):
        tensor = torch.zeros(size // 4)
    seconds = []
    for _ in range(WARMUP + iterations):
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[WARMUP:])


def main():
    backend, memory, iterations, *sizes = *sys.argv[1:3], *map(int, sys.argv[3:])
    ranks.begin(backend)
    many = 10 * iterations
    taken = {size: seconds_of(size, iterations if size == max(sizes) else many, memory) for size in sizes}
    ranks.end(backend, taken)


if __name__ == "__main__":
    main()
