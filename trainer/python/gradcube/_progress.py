"""How a training with merged gradients gets on: what its iterations and their all-reduces take, and its timeline.

One Observer belongs to one MergedGradientOptimizer or MergedGradientState. All of it happens on the thread that trains,
but for the end of a message, which the group's thread tells.
"""

import collections
import statistics
import time
import typing

from ._timeline import BACKWARD, COMMUNICATION, Timeline, check_writable

_WINDOW = 50  # iterations of a median


class Progress(typing.NamedTuple):
    """What this rank has seen. Times are medians of its last iterations, 50 at most; 0 before there are any.

    ``str(progress)`` is a line to be printed.
    """

    iterations: int  # so far
    messages: list  # the plan: of each all-reduce what it sends, in the order of sending
    iteration_seconds: float  # from the end of one iteration to that of the next
    communication_seconds: float  # of an iteration, in which all-reduces were on their way
    waiting_seconds: float  # of these, in which the training waited

    @property
    def hidden(self):
        """The part of the communication, from 0 to 1, that took place while the rank computed."""
        if self.communication_seconds == 0:
            return 0.0
        return max(0.0, 1 - self.waiting_seconds / self.communication_seconds)

    def __str__(self):
        return (
            f"{self.iterations} iterations, {1e3 * self.iteration_seconds:.1f} ms each; "
            f"{len(self.messages)} all-reduces in {1e3 * self.communication_seconds:.1f} ms, {self.hidden:.0%} hidden"
        )


class _Span:
    """Of an all-reduce. It outlives the work, which holds tensors."""

    def __init__(self, begin):
        self.begin = begin
        self.end = None  # not yet
        self.waited = 0.0  # seconds


class Message:
    """An all-reduce on its way: its work, of which wait() is measured."""

    def __init__(self, work, span):
        self._work = work
        self._span = span

    def wait(self):
        begin = time.perf_counter()
        try:
            self._work.wait()
        finally:
            self._span.waited += time.perf_counter() - begin


class _Iteration:
    def __init__(self):
        self.spans = []
        self.seconds = None  # since the one before it ended
        self.waits_from = None  # when the rank had nothing more to do; None: the messages know

    def times(self):
        """Of the iteration, its communication, and waiting for it; None where something is not known."""
        if self.seconds is None or not self.spans or any(one.end is None for one in self.spans):
            return None
        communication, until = 0.0, 0.0
        for one in sorted(self.spans, key=lambda span: span.begin):
            communication += max(0.0, one.end - max(one.begin, until))
            until = max(until, one.end)
        if self.waits_from is None:
            return self.seconds, communication, sum(one.waited for one in self.spans)
        return self.seconds, communication, max(0.0, until - self.waits_from)


class Observer:
    def __init__(self, group):
        self._group = group
        self._timeline = None
        self._path = None
        self._left = 0  # iterations of the timeline
        self._iterations = 0
        self._finished = None  # when the last one was
        self._current, self._before = _Iteration(), None
        self._rows = collections.deque(maxlen=_WINDOW)

    def progress(self, messages):
        medians = [statistics.median(column) for column in zip(*self._rows)] or [0.0] * 3
        return Progress(self._iterations, messages, *medians)

    def record(self, path, iterations):
        """Of the next iterations a timeline. All ranks call it; all raise OSError if rank 0 cannot write the file."""
        check_writable(path, self._group)
        self._timeline, self._path, self._left = Timeline(), path, iterations

    def computed(self, name, begin, end):
        """A part of the backward pass."""
        if self._timeline is not None:
            self._timeline.add(BACKWARD, name, begin, end)

    def sent(self, name, begin, work):
        """The message of an all-reduce that was begun then."""
        span, timeline = _Span(begin), self._timeline
        self._current.spans.append(span)

        def ended(_):
            span.end = time.perf_counter()
            if timeline is not None:
                timeline.add(COMMUNICATION, name, begin, span.end)

        work.get_future().add_done_callback(ended)
        return Message(work, span)

    def finish_iteration(self, waits=False):
        """Whether write_timeline() is due, once all messages have ended. ``waits``: the rank has nothing to do until
        then, which its messages will not know."""
        now = time.perf_counter()
        if self._finished is not None:
            self._current.seconds = now - self._finished
        if waits:
            self._current.waits_from = now
        row = None if self._before is None else self._before.times()  # whose messages have ended meanwhile
        if row is not None:
            self._rows.append(row)
        self._finished, self._before, self._current = now, self._current, _Iteration()
        self._iterations += 1
        if self._timeline is None:
            return False
        self._left -= 1
        return self._left <= 0

    def write_timeline(self):
        """Every rank calls it."""
        timeline, self._timeline = self._timeline, None
        timeline.write(self._path, self._group)


class Reported:
    """What a user may ask of what has a MergePlanner, an Observer, and ``messages``."""

    @property
    def costs(self):
        """(alpha, beta) in seconds, and seconds per byte; None for a policy that does not need them."""
        return self._planner.costs

    @property
    def progress(self):
        """The plan and what iterations take, on this rank: see Progress, which print() shows in a line."""
        return self._observer.progress(self.messages)

    def record(self, path, iterations=3):
        """Writes what all ranks do in the next iterations to a file of rank 0's, in Chrome's trace format.

        All ranks call it, between two iterations. Raises OSError on all if the file cannot be written.
        """
        self._observer.record(path, iterations)
