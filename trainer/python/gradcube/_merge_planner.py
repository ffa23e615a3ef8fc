"""Which adjacent pieces of the gradients share an all-reduce, and when to ask that again.

Pieces are layers, or buckets of DistributedDataParallel, and count from 0 in the order in which the backward pass has
them ready. All ranks plan with the same numbers and as often, so all have the same messages.
"""

import math

from ._backward_times import WINDOW, BackwardTimes, averaged_where_known, measure_costs
from ._merging import merge_layers, number_of

_BETWEEN_LOOKS = 50  # iterations, after which times are compared with those of the plan
_BETWEEN_COSTS = 20  # looks, after which costs are measured again: it takes what some ten iterations send
_DRIFT = 0.1  # of the backward pass, or of a cost: beyond it messages are planned anew


def _have_drifted(now, then):
    """Of pairs of costs, one."""
    return any(abs(one - other) > _DRIFT * other for one, other in zip(now, then))


class MergePlanner:
    """``messages``: of each its first and its last piece, in the order of sending. ``times``: see BackwardTimes."""

    def __init__(self, policy, group):
        number_of(policy)  # raises
        self.policy = policy
        self.costs = None  # (alpha, beta)
        self._group = group
        self._iteration = 0
        self._looks = 0
        self._measure = None  # the costs of now, for messages of so many bytes at most; None: they are given
        self.begin([])

    def by_times(self):
        """Whether the policy goes by times and costs. If not, messages stay as they begin."""
        return self.policy in ("mgwfbp", "optimal")

    def find_costs(self, given, allocate, most):
        """Those given, or measured now and again in plan(), if there are any to know: then all ranks call it."""
        if given is None and self.by_times():
            self._measure = lambda most: measure_costs(allocate, most, self._group)
            given = self._measure(most)
        elif given is not None:
            numbers = [float(number) for number in given]
            if len(numbers) != 2 or not all(math.isfinite(number) and number >= 0 for number in numbers):
                raise ValueError(f"invalid costs {given!r:.64}: expected (seconds, seconds per byte), neither negative")
            given = tuple(numbers)
        self.costs = given

    def begin(self, sizes):
        """With pieces of so many bytes, whose times are not known yet."""
        self.sizes = list(sizes)
        self.times = BackwardTimes(len(self.sizes))
        self._measured = 0  # iterations
        self._planned = None  # the times that the messages were planned for
        self.messages = [(place, place) for place in range(len(self.sizes))]
        if self.policy == "synceasgd" and self.sizes:
            self.messages = [(0, len(self.sizes) - 1)]

    def finish_iteration(self, counts=True):
        """Whether all ranks are to call plan() now. ``counts``: whether the iteration's times do, on all of them."""
        self._iteration += 1
        if not counts:
            self.times.discard()
            return False
        self.times.finish()
        self._measured += 1
        if not self.by_times() or self._measured < WINDOW:
            return False
        return self._planned is None or self._iteration % _BETWEEN_LOOKS == 0

    def plan(self):
        """Changes the messages, if times or costs have changed by much. Nothing else may be on its way."""
        seconds = averaged_where_known(self.times.medians(), self._group)
        costs = self._costs_of_now()
        if self._planned is not None:
            drift = sum(abs(now - then) for now, then in zip(seconds, self._planned))
            if drift <= _DRIFT * sum(self._planned) and not _have_drifted(costs, self.costs):
                return
        self._planned, self.costs = seconds, costs
        # merge_layers() has layers from the network's first to its last, which is the first to be ready.
        merged = merge_layers(list(zip(self.sizes, seconds))[::-1], *self.costs, policy=self.policy)
        last = len(self.sizes) - 1
        self.messages = [(last - message[-1], last - message[0]) for message in merged]

    def _costs_of_now(self):
        self._looks += 1
        if self._measure is None or self._looks % _BETWEEN_COSTS != 0:
            return self.costs
        return self._measure(sum(self.sizes))
