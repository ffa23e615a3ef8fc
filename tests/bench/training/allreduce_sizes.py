"""A rank that makes all-reduces of ordinary tensors, one after the other.

Usage: allreduce_sizes.py BACKEND ITERATIONS BYTES..., with the environment of torchrun. Of the most bytes there are so
many iterations, of fewer ten times as many. Rank 0 prints one JSON object: for each number of bytes the median of an
all-reduce's seconds.
"""

import datetime
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

PATIENCE = datetime.timedelta(seconds=100)
WARMUP = 3


def seconds_of(size, iterations):
    tensor = torch.zeros(size // 4)
    seconds = []
    for _ in range(WARMUP + iterations):
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[WARMUP:])


def main():
    backend, iterations, *sizes = sys.argv[1], *map(int, sys.argv[2:])
    if backend == "gradcube":
        import gradcube.torch  # makes the backend known
    torch.set_num_threads(1)
    dist.init_process_group(backend, timeout=PATIENCE)
    taken = {size: seconds_of(size, iterations if size == max(sizes) else 10 * iterations) for size in sizes}
    if dist.get_rank() == 0:
        print(json.dumps(taken), flush=True)
    dist.barrier()
    if backend == "gloo":
        os._exit(0)  # its destructor sometimes waits for ever
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
