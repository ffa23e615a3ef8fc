"""A rank that sets the process group's all-reduce beside that of the C library, in one process on one kind of memory.

The process group is called as DistributedDataParallel calls it, without dist.all_reduce()'s checks in Python.

Usage: bucket_cost.py BYTES ROUNDS, with the environment of `gradcube run`. Rank 0 prints one JSON object: the medians
of the seconds of both.
"""

import ctypes
import json
import os
import statistics
import sys
import time

import gradcube
import gradcube.torch
import torch
import torch.distributed as dist
from gradcube import _library
from torch.distributed import distributed_c10d

MILLISECONDS = 60000
IN_A_ROW = 20  # of one kind, before the other has its turn


def main():
    size, rounds = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gradcube")
    with gradcube.torch.shared_memory():
        bucket = torch.zeros(size // 4)
    session = gradcube.Session(job=f"bench-{os.environ['TORCHELASTIC_RUN_ID']}")
    array = session.alloc(size // 4)  # zeros, which stay as they are
    native, handle, number = _library.library(), session._handle.session, ctypes.c_uint64()
    # A kind, a type and an operation of 0 are an all-reduce, float32 and the sum.
    asked = _library.Collective(size=ctypes.sizeof(_library.Collective), buffer=array.ctypes.data, count=array.size)

    def by_library():
        submitted = native.gradcube_submit(handle, ctypes.byref(asked), ctypes.byref(number))
        if submitted != 0 or native.gradcube_wait(handle, number, MILLISECONDS) != 0:
            raise RuntimeError(native.gradcube_last_error(handle).decode())

    group, options = distributed_c10d._get_default_group(), dist.AllreduceOptions()

    def by_torch():
        group.allreduce([bucket], options).wait()

    taken = {by_library: [], by_torch: []}
    for _ in range(rounds):
        for kind, seconds in taken.items():
            session.barrier(60)
            for _ in range(IN_A_ROW):
                begin = time.perf_counter()
                kind()
                seconds.append(time.perf_counter() - begin)
    # Without the first turn, a warm-up.
    medians = {kind: statistics.median(seconds[IN_A_ROW:]) for kind, seconds in taken.items()}
    if dist.get_rank() == 0:
        print(json.dumps({"torch": medians[by_torch], "library": medians[by_library]}))
    session.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
