"""Hub: gradcube_hub.h on NumPy arrays."""

import collections
import contextlib
import ctypes
import os
import time

import numpy

from ._arrays import elements_of, real_number, whole_number, whole_numbers
from ._errors import AgainError, Error, InvalidError, TimeoutError
from ._held_memory import HeldMemory
from ._hub_handle import HubHandle
from ._interruptible_call import Call
from ._late_memory import check_late
from ._library import HubKey, HubSettings, keep
from ._request import Request, deadline_of, milliseconds_of

_OWN_RATE = -1.0
_NO_AGGREGATOR = (1 << 64) - 1
_SYNCHRONOUS = (1 << 64) - 1
_MOST_SERVER = (1 << 16) - 1
_MOST_STALENESS = (1 << 32) - 2
_MOST_BYTES = 1 << 62
_NO_STEP = (1 << 64) - 1
_MOST_AT_ONCE = 256  # of the 1024 requests that a session can have in flight


def _rate_of(rate):
    return _OWN_RATE if rate is None else real_number(rate, "rate")


def _path_of(path):
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidError(f"invalid path {path!r:.64}: expected a string or a path")
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise InvalidError(f"invalid path {path!r:.64}: expected one without NUL characters")
    return encoded


class Hub:
    """The parameter hub of a session's job: weights with an optimizer, of which each server has its part.

    ``weights``: NumPy arrays by name, the same on all trainers, in any order: the first weights. bfloat16: uint16
    arrays of their bits, whose names are in ``bfloat16``.
    ``optimizer``: with its settings, such as "momentum:lr=0.1,momentum=0.9", and those of keys that have some of their
    own, such as "adamw:weight-decay=0.1;*bias:weight-decay=0" (docs/hub.md).
    ``chunk_bytes``: what is sent, added and stepped as one; 0: by the length of the model.
    ``lane``: whose algorithm the hub takes.
    ``aggregator``: the number of a server without trainers of the job, which has all weights and the optimizer's state;
    a list of them: each has a part; None: the trainers' servers have them. Of such a hub rank 0 writes and reads the
    one file of a checkpoint.
    ``staleness``: with an aggregator: a number makes the hub asynchronous. Each server's gradients are stepped with by
    themselves, and a push waits for others only where theirs of the key are more than ``staleness`` behind those
    before it. None: all trainers' gradients make one step.
    ``accumulate``: whether accumulate(), norm() and apply() can be called.

    Blocks, at most ``timeout`` seconds, until all trainers of the job have made it and its weights are there. Nothing
    else may be submitted to lane 0 meanwhile. After Ctrl-C the session's next Hub() frees what this one has made:
    AgainError until the library's call has ended.

    ``restore``: the path of checkpoints. If the job's servers have one there, the hub goes on from the newest that all
    have, and ``weights`` only say which keys there are; the optimizer's settings are those given here, not the saved
    ones. ``step`` is the checkpoint's step; None: there was none, and the hub has ``weights``.

    push() and push_pull() start a round of a key when its gradients are there, in any order. It ends when all trainers
    have pushed the key: then the weights are those after one step with the mean of the gradients. Each has two forms:
    one that blocks, at most ``timeout`` seconds, and one that returns a Request at once. Until that has ended, the
    arrays belong to the daemon. A push uses gradients in memory of the session's alloc() up: whatever is there
    afterwards, fill them anew before the next one.
    """

    def __init__(
        self,
        session,
        weights,
        optimizer="sgd",
        *,
        chunk_bytes=0,
        lane=0,
        aggregator=None,
        staleness=None,
        accumulate=False,
        bfloat16=(),
        restore=None,
        timeout=None,
    ):
        milliseconds = milliseconds_of(timeout)
        handle = session._open_handle()
        self._session = session
        self._left_behind = []  # calls that Ctrl-C has left
        self._ending = None  # the Call that ends the last checkpoint, or has ended it
        self._types = {name: "bfloat16" if name in bfloat16 else None for name in weights}
        self._places = {name: place for place, name in enumerate(weights)}
        self._shapes = {}
        keys, names = self._keys_of(weights)  # both must outlive the call
        if not isinstance(optimizer, str):
            raise InvalidError(f"invalid optimizer: expected a string, not {type(optimizer).__name__}")
        servers = [] if aggregator is None else whole_numbers(aggregator, "aggregator", _MOST_SERVER)
        settings = HubSettings(
            size=ctypes.sizeof(HubSettings),
            keys=keys,
            key_count=len(weights),
            optimizer=optimizer.encode(errors="replace"),
            chunk_bytes=whole_number(chunk_bytes, "chunk_bytes", 0, _MOST_BYTES),
            lane=whole_number(lane, "lane", 0, session._last_lane),
            aggregator=_NO_AGGREGATOR,
            aggregators=(ctypes.c_uint64 * len(servers))(*servers) if servers else None,
            aggregator_count=len(servers),
            staleness=(
                _SYNCHRONOUS if staleness is None else whole_number(staleness, "staleness", 0, _MOST_STALENESS)
            ),
            accumulate=1 if accumulate else 0,
        )
        path = None if restore is None else _path_of(restore)
        if handle.making is not None:
            session._reap_abandoned(len(session._abandoned))  # its pushes
            handle.making.discard()
        self._handle = made = HubHandle(handle)
        handle.making = made  # Ctrl-C does not come between this and the next line
        try:
            self._take(Call(handle, lambda _=(keys, names): made.make(settings, milliseconds)))
            self.step = None if path is None else self._restore(path, milliseconds)
            if self.step is None:
                self.set_weights(weights, timeout)
            handle.making = None
        except BaseException as failure:
            # So that the session can make another one. After Ctrl-C it waits for nobody.
            made.is_left = True
            with contextlib.suppress(Error):
                self.free(timeout if isinstance(failure, Exception) else 0)
            raise

    def _keys_of(self, weights):
        keys = (HubKey * max(1, len(weights)))()
        names = []
        for place, (name, array) in enumerate(weights.items()):
            if not isinstance(name, str) or "\0" in name:
                raise InvalidError(f"invalid name of a key {name!r:.64}: expected a string without NUL characters")
            dtype, count = elements_of(array, self._types[name])
            names.append(name.encode(errors="replace"))
            keys[place] = HubKey(name=names[-1], elements=count, dtype=dtype)
            self._shapes[name] = (array.shape, array.dtype)
        return keys, names

    @property
    def names(self):
        """Of the keys, as they were given."""
        return tuple(self._places)

    def set_weights(self, weights, timeout=None):
        """Sets the weights of these keys anew, and their optimizer's state to zero.

        ``weights``: arrays by name, the same on all trainers, which all call it. Blocks, for each key at most
        ``timeout`` seconds. Where it fails all the same, keys may have been set: set all again. After TimeoutError and
        Ctrl-C it goes on: until set_weights() has succeeded again with all of the arrays they must be left alone.
        """
        deadline_of(timeout)
        for name, array in weights.items():  # before any is set
            self._place(name)
            self._check(name, array)
        requests = collections.deque()
        try:
            for name, array in sorted(weights.items()):  # in the order of all others, who may wait for these
                if len(requests) == _MOST_AT_ONCE:
                    requests[0].wait(timeout)
                    requests.popleft()
                requests.append(self._push("gradcube_hub_init", name, (array,)))
                requests[-1]._begin()
            for request in requests:
                request.wait(timeout)
        except TimeoutError:
            raise
        except Error:
            for request in requests:  # what failed one fails all: the hub can be freed when they have ended
                with contextlib.suppress(Error):
                    request.wait(timeout)
            raise
        finally:
            for request in requests:
                request._go_on()

    def push(self, name, gradients, rate=None, timeout=None):
        """One step of the key. ``rate``: its learning rate, the same on all trainers; None: the optimizer's."""
        self._push("gradcube_hub_push", name, (gradients,), _rate_of(rate))._complete(timeout)

    def push_async(self, name, gradients, rate=None):
        return self._push("gradcube_hub_push", name, (gradients,), _rate_of(rate))._begin()

    def push_pull(self, name, gradients, weights, rate=None, timeout=None):
        """The same, and `weights` has the new weights then. It may be `gradients`."""
        self._push_pull(name, gradients, weights, rate)._complete(timeout)

    def push_pull_async(self, name, gradients, weights, rate=None):
        return self._push_pull(name, gradients, weights, rate)._begin()

    def _push_pull(self, name, gradients, weights, rate):
        return self._push("gradcube_hub_push_pull", name, (gradients, weights), _rate_of(rate))

    def accumulate(self, name, gradients, timeout=None):
        """Adds the mean of all trainers' gradients to what the key's owners have, and takes no step."""
        self._push("gradcube_hub_accumulate", name, (gradients,))._complete(timeout)

    def accumulate_async(self, name, gradients):
        return self._push("gradcube_hub_accumulate", name, (gradients,))._begin()

    def norm(self):
        """Of all that is accumulated, of all keys together: the same bits on all trainers. Nothing is sent for it.

        It is no finite number where the gradients are not. Each key must have accumulated something.
        """
        norm = ctypes.c_double()
        handle = self._idle_handle()
        if handle.call("gradcube_hub_norm", ctypes.byref(norm)) != 0:
            raise handle.session.failure()
        return norm.value

    def apply(self, name, scale=1.0, rate=None, weights=None, timeout=None):
        """A step of the key with what is accumulated times ``scale``, the same on all trainers. Then nothing is.

        ``weights``: an array that has the new weights then; None: they stay at the server. The scale 0 drops what is
        accumulated, and takes no step.
        """
        self._apply(name, scale, rate, weights)._complete(timeout)

    def apply_async(self, name, scale=1.0, rate=None, weights=None):
        return self._apply(name, scale, rate, weights)._begin()

    def _apply(self, name, scale, rate, weights):
        numbers = (real_number(scale, "scale"), _rate_of(rate))
        arrays, nowhere = ((), (None,)) if weights is None else ((weights,), ())
        return self._push("gradcube_hub_apply", name, arrays, *nowhere, *numbers, pushes=False)

    def pull(self, name, weights):
        """Copies the key's weights to `weights`: they are here already.

        AgainError while a push of the key is in flight, or waits in another thread for pulls that have begun.
        """
        with HeldMemory(weights) as held:
            place = self._place(name)
            self._check(name, weights)
            address = held.take(weights, is_written=True)
            check_late(held.pieces)
            handle = self._idle_handle()
            if handle.call("gradcube_hub_pull", place, address) != 0:
                raise handle.session.failure()

    def weights(self, name):
        """The key's weights where they lie, as an array that cannot be written to.

        They change with each push of the key: read them only while none is in flight, and after one that has ended
        well. free() is refused while such an array is in use.
        """
        handle = self._open_handle()
        place = self._place(name)
        shown = handle.show(place, *self._shapes[name])
        if shown is None:
            raise handle.session.failure()
        return numpy.asarray(shown)

    def begin_checkpoint(self, path, step):
        """Copies what this server has of the hub, and begins to write it to PATH.STEP.PART-of-PARTS.

        All trainers begin it between the same two steps. Train on while it is written. AgainError while pushes are in
        flight, or before end_checkpoint() of the one before has told how that has ended.
        """
        handle = self._idle_handle()
        number, encoded = whole_number(step, "step", 0, 1 << 62), _path_of(path)
        if self._ending is not None and self._ending.is_made() and not self._ending.is_told:
            raise AgainError(
                "nobody was told how the checkpoint before has ended, as a signal has ended the wait for it: call "
                "end_checkpoint() first"
            )
        self._ending = None
        self._take(Call(handle.session, lambda: handle.call("gradcube_hub_begin_checkpoint", encoded, number)))

    def end_checkpoint(self, timeout=None):
        """Waits until all servers have written theirs. From then on no crash loses it.

        All trainers call it. After an error the checkpoint before counts, or the new one, as the message says. Called
        again, as after Ctrl-C, it says the same of this checkpoint once more.
        """
        handle = self._open_handle()
        if self._ending is None or self._ending.is_void():
            milliseconds = self._after_left_calls(timeout)  # such as that of begin_checkpoint()
            self._ending = Call(handle.session, lambda: handle.call("gradcube_hub_end_checkpoint", milliseconds))
        ending = self._ending
        try:
            self._take(ending, timeout)
        except (TimeoutError, AgainError):
            if isinstance(ending.failure, (TimeoutError, AgainError)):  # then another call may end it
                self._ending = None
            raise

    def checkpoint(self, path, step, timeout=None):
        """Both at once."""
        deadline_of(timeout)
        self.begin_checkpoint(path, step)
        self.end_checkpoint(timeout)

    def _restore(self, path, milliseconds):
        """The step; None: no server has a checkpoint."""
        handle = self._idle_handle()
        step = ctypes.c_uint64()
        self._take(
            Call(handle.session, lambda: handle.call("gradcube_hub_restore", path, milliseconds, ctypes.byref(step)))
        )
        return None if step.value == _NO_STEP else step.value

    @property
    def is_freed(self):
        return self._handle is None or self._handle.hub is None

    def free(self, timeout=None):
        """Waits until all trainers of the job have called it, and frees the hub.

        AgainError, and nothing is freed, while pushes are in flight, or while another thread is in a call of the hub, as
        one may be that Ctrl-C has left.
        """
        handle = self._idle_handle()
        milliseconds = self._after_left_calls(timeout)
        try:
            self._take(Call(handle.session, lambda: handle.free(milliseconds)))
        finally:
            if handle.hub is None:
                self._handle = None

    def _after_left_calls(self, timeout):
        """Waits for calls that Ctrl-C has left. The milliseconds that are left of the timeout."""
        self._handle.session.check_process()  # a forked child has no thread that would end them
        deadline = deadline_of(timeout)
        for call in self._left_behind:
            call.wait(deadline)
        return milliseconds_of(None if deadline is None else max(0, deadline - time.monotonic()))

    def _take(self, call, timeout=None):
        try:
            call.take(timeout)
        finally:
            if call.is_under_way():
                self._left_behind.append(call)

    def _place(self, name):
        try:
            return self._places[name]
        except (KeyError, TypeError):
            raise InvalidError(f"the hub has no key {name!r:.64}") from None

    def _check(self, name, array):
        """That `array` is as the key, which there is: what is pushed, or gets the weights."""
        shape, dtype = self._shapes[name]
        elements_of(array, self._types[name])
        if array.dtype != dtype or array.size != int(numpy.prod(shape)):
            raise InvalidError(
                f"invalid array for key {name!r:.64}: {array.size} elements of {array.dtype}: expected "
                f"{int(numpy.prod(shape))} of {dtype}"
            )

    def _push(self, function, name, arrays, *arguments, pushes=True):
        """``arrays``: what is pushed, if anything is, and, if weights are pulled, what gets them."""
        with HeldMemory(*arrays) as held:
            place = self._place(name)
            for array in arrays:
                self._check(name, array)
            handle = self._open_handle()
            addresses = []
            for number, array in enumerate(arrays):
                is_pushed = pushes and number == 0  # then the daemon adds there, if the memory is shared
                is_written = not is_pushed or handle.session.shares(array.ctypes.data)
                addresses.append(held.take(array, is_written=is_written))
            return Request._of(
                self._session,
                lambda number: handle.call(function, place, *addresses, *arguments, number),
                held,
                None,
                handle,
            )

    def _idle_handle(self):
        """For what is refused while a push is in flight: those that have ended, and that nobody keeps, are not."""
        self._session._reap_abandoned(len(self._session._abandoned))
        return self._open_handle()

    def _open_handle(self):
        self._session._open_handle()
        if self.is_freed:
            raise InvalidError("this hub was freed: make another one")
        return self._handle
