"""What HubOptimizer has begun of an iteration: the rounds that are in flight, and how their gradients are clipped."""

import collections
import functools
import math

from ._errors import AgainError, Error, InvalidError, TimeoutError

INTERRUPTED = "a push was interrupted, and the daemon may have it, or not: "


class Rounds:
    """Rounds of keys that are in flight, in the order in which they were begun."""

    def __init__(self):
        self._begun = collections.deque()  # requests: [None] while one is being begun, and where that was interrupted

    def begin(self, name, start, begun, timeout):
        """Has the request of start(), which is of the key, in flight, and its name in `begun`."""
        round_ = [None]
        self._begun.append(round_)
        begun.add(name)
        try:
            while round_[0] is None:
                try:
                    round_[0] = start()
                except AgainError:  # as many requests are in flight as there can be
                    if len(self._begun) == 1:
                        raise
                    self._end_first(timeout)
        except Error:  # it was not begun
            self._begun.pop()
            begun.discard(name)
            raise

    def end(self, timeout):
        """Waits for all. After a TimeoutError they can be waited for again."""
        while self._begun:
            self._end_first(timeout)

    def _end_first(self, timeout):
        request = self._begun[0][0]
        if request is None:
            raise InvalidError(INTERRUPTED + "free this optimizer, and make another one in another session")
        request.wait(timeout)
        self._begun.popleft()

    def give_up(self, timeout):
        """Waits for all, whatever becomes of them. False: one was interrupted."""
        while self._begun:
            request = self._begun[0][0]
            if request is None:
                return False
            try:
                request.wait(timeout)
            except TimeoutError:
                raise  # it still uses its memory
            except Error:
                pass  # it has ended, whatever the reason
            self._begun.popleft()
        return True


def watched(parameters, ready):
    """Calls ready(name, ...) when a parameter's gradient is there, until its handle is removed.

    Returns the handles, and the parameters' accumulators, nodes of autograd's graph that tell it: keep them.
    """
    handles, accumulators = [], []
    for name, parameter in parameters.items():
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        handles.append(accumulator.register_hook(functools.partial(ready, name)))
        accumulators.append(accumulator)
    return handles, accumulators


_LEAST_SCALE = 2.0**-149  # of float32, above the 0 that takes no step


class Clipping:
    """Of one step, by the norm of all gradients: as torch.nn.utils.clip_grad_norm_()."""

    def __init__(self, max_norm):
        try:
            self.max_norm = float(max_norm)
        except (TypeError, ValueError):
            self.max_norm = 0.0
        if not self.max_norm > 0:
            raise InvalidError(f"invalid max_norm {max_norm!r:.64}: expected a number above 0")
        self.norm = None  # until all gradients are accumulated
        self.applied = set()  # names

    @classmethod
    def of(cls, max_norm):
        return None if max_norm is None else cls(max_norm)

    def following(self):
        """That of the next step."""
        return Clipping(self.max_norm)

    @property
    def is_finite(self):
        return math.isfinite(self.norm)

    def why_dropped(self):
        return f"the norm of the gradients is {self.norm}: they were dropped, and no step was taken"

    @property
    def scale(self):
        """Of the gradients; 0 where no step can be taken with them."""
        if not self.is_finite:
            return 0.0
        return max(_LEAST_SCALE, min(1.0, self.max_norm / (self.norm + 1e-6)))
