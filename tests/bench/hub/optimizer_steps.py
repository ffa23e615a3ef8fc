"""A trainer that computes nothing: gradients are there at once, and the weights take a step of AdamW.

Usage: optimizer_steps.py WAY KEYS ITERATIONS, with the environment of `gradcube run`. KEYS: the elements of the keys,
with commas. WAY: how the weights are stepped,

    hub     where the gradients are owned (gradcube.Hub): each server steps its part
    local   one all-reduce of all gradients, then PyTorch's AdamW on each server

Rank 0 prints one JSON object: the median of an iteration's seconds.
"""

import json
import os
import statistics
import sys
import time

import gradcube
import torch

PATIENCE = 100  # seconds
LEARNING_RATE = 1e-3


class Hub:
    def __init__(self, session, sizes):
        self._gradients = {f"{place:03}": session.alloc(size) for place, size in enumerate(sizes)}
        self._weights = {name: torch.ones(len(array)).numpy() for name, array in self._gradients.items()}
        self._hub = gradcube.Hub(session, self._weights, f"adamw:lr={LEARNING_RATE}", timeout=PATIENCE)

    def step(self):
        requests = []
        for name, gradients in self._gradients.items():
            gradients.fill(0.5)
            requests.append(self._hub.push_pull_async(name, gradients, self._weights[name]))
        for request in requests:
            request.wait(PATIENCE)

    def end(self):
        self._hub.free(PATIENCE)


class Local:
    def __init__(self, session, sizes):
        self._session = session
        self._gradients = session.alloc(sum(sizes))
        parameters = [torch.ones(size, requires_grad=True) for size in sizes]
        first = 0
        for parameter in parameters:
            parameter.grad = torch.from_numpy(self._gradients[first : first + len(parameter)])
            first += len(parameter)
        self._optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE)

    def step(self):
        self._gradients.fill(0.5)
        self._session.allreduce(self._gradients, "average", timeout=PATIENCE)
        self._optimizer.step()

    def end(self):
        pass


def main():
    torch.set_num_threads(1)
    way = {"hub": Hub, "local": Local}[sys.argv[1]]
    sizes = [int(size) for size in sys.argv[2].split(",")]
    with gradcube.Session(job=os.environ["TORCHELASTIC_RUN_ID"]) as session:
        trainer = way(session, sizes)
        seconds = []
        for _ in range(int(sys.argv[3]) + 1):
            session.barrier(PATIENCE)
            begin = time.perf_counter()
            trainer.step()
            session.barrier(PATIENCE)
            seconds.append(time.perf_counter() - begin)
        trainer.end()
        if session.rank == 0:
            print(json.dumps({"seconds_median": statistics.median(seconds[1:])}))


if __name__ == "__main__":
    main()
