"""How long each layer's part of the backward pass takes, and what an all-reduce costs: what merging goes by.

Both are averages over the ranks of medians, so all ranks have the same numbers. Of a layer they are averages over those
ranks that know its time: it may have had no part in the loss of some.
"""

import collections
import statistics
import time

import torch
import torch.distributed as dist

WINDOW = 5  # iterations of a median
_SHORT = 4 << 10  # bytes
_LONG = 4 << 20
_ROUNDS = 5


def averaged(numbers, group):
    """Over the ranks, the same bits on each: a mean of float64."""
    tensor = torch.tensor(numbers, dtype=torch.float64) / dist.get_world_size(group)
    dist.all_reduce(tensor, group=group)
    return tensor.tolist()


def averaged_where_known(numbers, group):
    """The same of numbers that some ranks do not have (None); 0 where none has."""
    known = [float(number is not None) for number in numbers]
    both = averaged(known + [number or 0.0 for number in numbers], group)
    shares, sums = both[: len(numbers)], both[len(numbers) :]
    return [total / share if share > 0 else 0.0 for total, share in zip(sums, shares)]


def measure_costs(allocate, most, group):
    """(alpha, beta): an all-reduce of M bytes takes alpha + beta * M seconds. ``most``: bytes of the longest."""
    long = max(16 * _SHORT, min(_LONG, most))
    medians = []
    for size in (_SHORT, long):
        memory = allocate(size // 4, torch.float32)
        seconds = []
        for _ in range(_ROUNDS + 1):  # the first is a warm-up
            dist.barrier(group)
            begin = time.perf_counter()
            dist.all_reduce(memory, group=group)
            seconds.append(time.perf_counter() - begin)
        medians.append(statistics.median(seconds[1:]))
    shorter, longer = averaged(medians, group)
    beta = max(0.0, (longer - shorter) / (long - _SHORT))
    return max(0.0, shorter - beta * _SHORT), beta


class BackwardTimes:
    """The times of the last iterations. Layers count in the order in which they are ready, as a rule."""

    def __init__(self, layers):
        self._layers = layers
        self._rows = collections.deque(maxlen=WINDOW)
        self.discard()

    def begin(self):
        """The forward pass has ended."""
        self._begin = self._latest = time.perf_counter()

    def ready(self, layer):
        """This layer's gradients are there. Returns when those before it were, and now."""
        now = time.perf_counter()
        before = now if self._latest is None else self._latest
        self._ready[layer] = self._latest = now
        return before, now

    def finish(self):
        """The iteration has ended. Of a layer that had no part in it, or without a forward pass, it tells nothing."""
        row, before = [], self._begin
        for at in self._ready:
            if at is None or before is None:
                row.append(None)
            else:
                row.append(max(0.0, at - before))
                before = max(before, at)
        self._rows.append(row)
        self.discard()

    def discard(self):
        """The iteration has ended, and does not count."""
        self._begin = self._latest = None
        self._ready = [None] * self._layers

    def medians(self):
        """Of the last iterations; None for a layer that had no part in any of them."""
        columns = ([seconds for seconds in column if seconds is not None] for column in zip(*self._rows))
        return [statistics.median(column) if column else None for column in columns]
