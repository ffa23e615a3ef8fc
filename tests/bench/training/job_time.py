"""A trainer that computes for a while and then exchanges the gradients of each layer, again and again.

Usage: job_time.py ALGORITHMS LAYERS COMPUTE ITERATIONS, with the environment of `gradcube run`, each but the last a
list with commas: the algorithms of the job's lanes, which layers take in turn; the bytes of the layers' gradients,
from the first to the last; seconds of computation per iteration. Computation is slept: trainers that share cores could
not compute at the same time. The gradients, and what is exchanged, are real.

Rank 0 prints one JSON object: for each time of computation the mean of an iteration's seconds.
"""

import json
import os
import sys
import time

import gradcube

PATIENCE = 100  # seconds


def iterate(session, gradients, seconds):
    """The last layer's gradients are ready first. Nothing travels before all are."""
    time.sleep(seconds)
    requests = [session.allreduce_async(array, "average", lane=lane) for lane, array in reversed(gradients)]
    for request in requests:
        request.wait(PATIENCE)


def main():
    algorithms, sizes, computations = (argument.split(",") for argument in sys.argv[1:4])
    iterations = int(sys.argv[4])
    with gradcube.Session(job=os.environ["TORCHELASTIC_RUN_ID"], lanes=algorithms) as session:
        gradients = []
        for place, size in enumerate(sizes):
            array = session.alloc(-(-int(size) // 4))
            array[:] = session.rank
            gradients.append((place % len(algorithms), array))
        iterate(session, gradients, 0)
        means = []
        for seconds in map(float, computations):
            session.barrier(PATIENCE)
            begin = time.perf_counter()
            for _ in range(iterations):
                iterate(session, gradients, seconds)
            means.append((time.perf_counter() - begin) / iterations)
        average = (session.size - 1) / 2
        if not all(abs(array[-1] - average) < 1e-3 for _, array in gradients):
            raise RuntimeError(f"an average is wrong: expected {average}")
        if session.rank == 0:
            print(json.dumps({"seconds": means}))


if __name__ == "__main__":
    main()
