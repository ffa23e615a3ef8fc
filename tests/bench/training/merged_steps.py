"""A rank that trains a network of many small layers in several ways by MergedGradientOptimizer, the ways in turn.

Usage: merged_steps.py WIDTH LAYERS FORWARD ROUNDS WAY..., with the environment of `gradcube run`. Layers are WIDTH
squared. LAYERS is a list with commas, from the network's first layer to its last: 8x15 are eight layers, the backward
pass of each of which takes 15 ms, and the forward pass FORWARD times as long. The rank sleeps for so long: ranks that
share cores could not compute at the same time. Gradients, and what is exchanged, are real. A WAY is a policy, and
",need" behind it if steps are taken by need. Rank 0 prints one JSON object: by way the median of an iteration's
seconds, and the number of messages; and the costs (alpha, beta) that the ranks have measured, if the way has any.
"""

import json
import statistics
import sys
import time

import gradcube.torch
import torch
import torch.distributed as dist
from torch import nn

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
    def __init__(self, width, seconds, forward):
        super().__init__(width, width, bias=False)
        self.seconds = seconds
        self.forward_seconds = forward * seconds

    def forward(self, numbers):
        if self.forward_seconds > 0:
            time.sleep(self.forward_seconds)
        return Pause.apply(super().forward(numbers), self.seconds)


class Trainer:
    """A network of its own, trained in one way."""

    def __init__(self, way, width, layers, forward):
        torch.manual_seed(1)
        policy, _, priority = way.partition(",")
        self._model = nn.Sequential(*(SlowLinear(width, seconds, forward) for seconds in layers))
        self._samples = torch.randn(1, width)
        optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-3)
        self.optimizer = gradcube.torch.MergedGradientOptimizer(
            optimizer, self._model, policy, priority=priority or "ready"
        )

    def iterate(self, iterations):
        """The seconds of one of them."""
        begin = time.perf_counter()
        for _ in range(iterations):
            self.optimizer.zero_grad()
            self._model(self._samples).square().mean().backward()
            self.optimizer.step()
        self.optimizer.finish_step()
        return (time.perf_counter() - begin) / iterations


def seconds_of(layers):
    seconds = []
    for part in layers.split(","):
        number, milliseconds = part.split("x")
        seconds += [float(milliseconds) / 1e3] * int(number)
    return seconds


def main():
    width, layers, forward, rounds = int(sys.argv[1]), seconds_of(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("gradcube", pg_options=gradcube.torch.Options(lanes=4))
    trainers = {way: Trainer(way, width, layers, forward) for way in sys.argv[5:]}
    for trainer in trainers.values():
        trainer.iterate(WARMUP)
    seconds = {way: [] for way in trainers}
    for _ in range(rounds):
        for way, trainer in trainers.items():
            dist.barrier()
            seconds[way].append(trainer.iterate(IN_A_ROW))
    if dist.get_rank() == 0:
        medians = {way: statistics.median(taken) for way, taken in seconds.items()}
        messages = {way: len(trainer.optimizer.messages) for way, trainer in trainers.items()}
        costs = {way: trainer.optimizer.costs for way, trainer in trainers.items()}
        print(json.dumps({"seconds_median": medians, "messages": messages, "costs": costs}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
