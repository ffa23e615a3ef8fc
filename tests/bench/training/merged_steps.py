"""A rank that trains a network of many small layers by each policy of MergedGradientOptimizer, the policies in turn.

Usage: merged_steps.py WIDTH LAYERS ROUNDS, with the environment of `gradcube run`. Layers are WIDTH squared. LAYERS is
a list with commas, from the network's first layer to its last: 8x15 are eight layers, the backward pass of each of
which takes 15 ms. The rank sleeps for so long: ranks that share cores could not compute at the same time. Gradients,
and what is exchanged, are real. Rank 0 prints one JSON object: by policy the median of an iteration's seconds, and the
number of messages; and what the ranks have measured of an all-reduce, in seconds, and seconds per byte.
"""

import json
import statistics
import sys
import time

import gradcube.torch
import torch
import torch.distributed as dist
from torch import nn

POLICIES = ("wfbp", "synceasgd", "mgwfbp", "optimal")
WARMUP = 8  # messages are planned after the sixth iteration
IN_A_ROW = 4


class Pause(torch.autograd.Function):
    """The time of a layer's backward pass."""

    @staticmethod
    def forward(context, numbers, seconds):
        context.seconds = seconds
        return numbers.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(context.seconds)
        return gradient.clone(), None


class SlowLinear(nn.Linear):
    def __init__(self, width, seconds):
        super().__init__(width, width, bias=False)
        self.seconds = seconds

    def forward(self, numbers):
        return Pause.apply(super().forward(numbers), self.seconds)


class Trainer:
    """A network of its own, trained by one policy."""

    def __init__(self, policy, width, layers):
        torch.manual_seed(1)
        self._model = nn.Sequential(*(SlowLinear(width, seconds) for seconds in layers))
        self._samples = torch.randn(1, width)
        optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-3)
        self.optimizer = gradcube.torch.MergedGradientOptimizer(optimizer, self._model, policy)

    def iterate(self):
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        self._model(self._samples).square().mean().backward()
        self.optimizer.step()
        return time.perf_counter() - begin


def seconds_of(layers):
    seconds = []
    for part in layers.split(","):
        number, milliseconds = part.split("x")
        seconds += [float(milliseconds) / 1e3] * int(number)
    return seconds


def main():
    width, layers, rounds = int(sys.argv[1]), seconds_of(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gradcube")
    trainers = {policy: Trainer(policy, width, layers) for policy in POLICIES}
    for trainer in trainers.values():
        for _ in range(WARMUP):
            trainer.iterate()
    seconds = {policy: [] for policy in POLICIES}
    for _ in range(rounds):
        for policy, trainer in trainers.items():
            dist.barrier()
            seconds[policy] += [trainer.iterate() for _ in range(IN_A_ROW)]
    if dist.get_rank() == 0:
        medians = {policy: statistics.median(taken) for policy, taken in seconds.items()}
        messages = {policy: len(trainer.optimizer.messages) for policy, trainer in trainers.items()}
        costs = trainers["optimal"].optimizer.costs
        print(json.dumps({"seconds_median": medians, "messages": messages, "costs": costs}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
