"""Session and Request: gradcube.h on NumPy arrays."""

import ctypes
import operator
import os
import time

import numpy

from ._errors import AgainError, InvalidError, JobError, TimeoutError, error_of
from ._library import library
from ._memory import Block, Handle

_DTYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 3, "int32": 4, "int64": 5}
_OPS = {"sum": 0, "average": 1, "min": 2, "max": 3}

# The longest stay inside the library: Ctrl-C ends a wait after this at the latest.
_SLICE_MILLISECONDS = 100


def _storage_dtype(dtype):
    """The NumPy type that holds elements of `dtype`."""
    if isinstance(dtype, str) and dtype == "bfloat16":
        return numpy.dtype("uint16")
    storage = _numpy_dtype(dtype)
    if storage.name not in _DTYPES and storage.name != "uint16":
        raise InvalidError(f"invalid dtype {storage.name}: expected one of {', '.join(_DTYPES)}")
    return storage


def _numpy_dtype(dtype):
    try:
        return numpy.dtype(dtype)
    except TypeError:
        raise InvalidError(f"invalid dtype {dtype!r:.64}: expected one of {', '.join(_DTYPES)}") from None


def _wire_dtype(array, dtype):
    """The library's number for the elements of `array`, which the caller calls `dtype`."""
    if dtype is None:
        name = array.dtype.name
    else:
        name = dtype if isinstance(dtype, str) else _numpy_dtype(dtype).name
    if name == "bfloat16" and array.dtype == numpy.uint16:
        return _DTYPES[name]
    if name not in _DTYPES or array.dtype.name != name:
        raise InvalidError(
            f"an array of {array.dtype.name} cannot be all-reduced as {name:.64}: expected an array of one of "
            + ", ".join(_DTYPES)
            + ' (bfloat16: uint16 with dtype="bfloat16")'
        )
    return _DTYPES[name]


def _job_name(job):
    if not isinstance(job, str):
        raise InvalidError(f"invalid job name: expected a string, not {type(job).__name__}")
    if "\0" in job:
        raise JobError("invalid job name: it contains a NUL character")
    return job.encode(errors="replace")  # the library checks the characters


def _socket_path(socket):
    if socket is None:
        return None
    try:
        path = os.fsencode(socket)
    except TypeError:
        raise InvalidError(f"invalid socket: expected a path, not {type(socket).__name__}") from None
    if b"\0" in path:
        raise InvalidError("invalid socket: the path contains a NUL character")
    return path


def _shape(shape):
    """`shape`, a number or a sequence of numbers, as a tuple of ints."""
    try:
        try:
            shape = (operator.index(shape),)
        except TypeError:
            shape = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise InvalidError(f"invalid shape {shape!r:.64}: expected a whole number, or a sequence of them") from None
    if any(n < 0 for n in shape):
        raise InvalidError(f"invalid shape {shape}: a dimension is negative")
    return shape


def _deadline(timeout):
    """The time.monotonic() at which `timeout` seconds are over; None: never."""
    if timeout is None:
        return None
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = float("nan")
    if seconds != seconds:
        raise InvalidError(f"invalid timeout {timeout!r:.64}: expected a number of seconds, or None")
    return None if seconds < 0 else time.monotonic() + seconds


class Session:
    """Membership in a job. Does not wait for the job's other trainers.

    ``socket``: the daemon's socket; None: $GRADCUBE_SOCKET, else the only server in the run directory.
    """

    _handle = None

    def __init__(self, socket=None, job="default"):
        session = ctypes.c_void_p()
        code = library().gradcube_open(_socket_path(socket), _job_name(job), ctypes.byref(session))
        if code != 0:
            raise error_of(code, library().gradcube_last_error(None).decode(errors="replace"))
        self._handle = Handle(session)
        self._unreported = {}  # request -> its array, which must live until the request has ended
        self._abandoned = set()  # requests in _unreported whose Request object is gone
        self.rank = library().gradcube_rank(session)
        self.size = library().gradcube_size(session)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def close(self):
        """Leaves the job at once. Arrays from alloc() stay valid."""
        if self._handle is not None:
            self._handle.leave()
            self._handle = None
            self._unreported = {}

    def alloc(self, shape, dtype="float32"):
        """A new array of zeros in memory shared with the daemon: collectives on it copy nothing."""
        handle = self._open_handle()
        storage = _storage_dtype(dtype)
        shape = _shape(shape)
        size = storage.itemsize
        for n in shape:
            size *= n
        if size >= 1 << 63:
            raise InvalidError(f"invalid shape {str(shape):.64}: it is too large")
        address = handle.library.gradcube_alloc(handle.session, size)
        if not address:
            raise handle.failure()
        array = numpy.asarray(Block(handle, address, shape, storage))
        array.fill(0)
        return array

    def allreduce(self, array, op="sum", dtype=None, timeout=None):
        """Combines `array` with those of all other trainers, in place. ``op``: sum, average, min, max."""
        _deadline(timeout)  # an invalid one is refused before anything is submitted
        self.allreduce_async(array, op, dtype).wait(timeout)

    def allreduce_async(self, array, op="sum", dtype=None):
        """Starts an all-reduce. Until the request has ended, `array` belongs to the daemon."""
        handle = self._open_handle()
        if not isinstance(array, numpy.ndarray):
            raise InvalidError(f"invalid array: expected a NumPy array, not {type(array).__name__}")
        if not array.flags.c_contiguous or not array.flags.writeable or not array.dtype.isnative:
            raise InvalidError("invalid array: it must be C-contiguous, writeable and in native byte order")
        if not isinstance(op, str) or op not in _OPS:
            raise InvalidError(f"invalid op {op!r:.64}: expected one of {', '.join(_OPS)}")
        number = ctypes.c_uint64()
        arguments = (handle.session, array.ctypes.data, array.size, _wire_dtype(array, dtype), _OPS[op])
        code = handle.library.gradcube_allreduce(*arguments, ctypes.byref(number))
        if code == AgainError.code and self._reap_abandoned():
            code = handle.library.gradcube_allreduce(*arguments, ctypes.byref(number))
        if code != 0:
            raise handle.failure()
        self._unreported[number.value] = array
        return Request(self, number.value)

    def barrier(self, timeout=None):
        """Waits until all trainers of the job have called it."""
        self.allreduce(numpy.empty(0, "float32"), timeout=timeout)

    def _open_handle(self):
        if self._handle is None:
            raise InvalidError("this session is closed: open another one")
        self._handle.free_dead()
        return self._handle

    def _poll(self, number, milliseconds):
        """True when the request has ended; raises when it failed."""
        handle = self._open_handle()
        done = ctypes.c_int()
        code = handle.library.gradcube_poll(handle.session, number, milliseconds, ctypes.byref(done))
        if done.value:
            self._unreported.pop(number, None)
        if code != 0:
            raise handle.failure()
        return bool(done.value)

    def _time_out(self, number):
        """The deadline has come: lets the library ask the daemon why. Returns if the request just ended."""
        handle = self._open_handle()
        code = handle.library.gradcube_wait(handle.session, number, 0)
        if code != TimeoutError.code:
            self._unreported.pop(number, None)
        if code != 0:
            raise handle.failure()

    def _abandon(self, number):
        if number in self._unreported:
            self._abandoned.add(number)

    def _reap_abandoned(self):
        """Takes the end of requests that no Request object can report any more. True when that made room."""
        done = ctypes.c_int()
        room = False
        for number in sorted(self._abandoned.copy()):
            self._handle.library.gradcube_poll(self._handle.session, number, 0, ctypes.byref(done))
            if done.value:
                self._unreported.pop(number, None)
                self._abandoned.discard(number)
                room = True
        return room


class Request:
    """A collective in flight. Its end is reported once, by wait() or test(); later calls repeat it."""

    def __init__(self, session, number):
        self._session = session
        self._number = number
        self._ended = False
        self._failure = None

    def test(self):
        """True when the collective has ended. Raises when it failed."""
        return self._look(0)

    def wait(self, timeout=None):
        """Blocks until the collective has ended, at most `timeout` seconds: then TimeoutError, and it goes on."""
        deadline = _deadline(timeout)
        while not self._ended:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                if not self._look(0):
                    self._remember(self._session._time_out)
                return
            stay = _SLICE_MILLISECONDS if left is None else min(_SLICE_MILLISECONDS, left * 1000 + 1)
            self._look(int(stay))
        self._repeat()

    def _look(self, milliseconds):
        if self._ended:
            self._repeat()
            return True
        return self._remember(self._session._poll, milliseconds)

    def _remember(self, call, *arguments):
        """Calls, and keeps the request's end if it has come."""
        try:
            ended = call(self._number, *arguments)
        except Exception as failure:
            self._ended = self._number not in self._session._unreported
            self._failure = failure if self._ended else None
            raise
        self._ended = ended is not False
        return self._ended

    def _repeat(self):
        if self._failure is not None:
            raise self._failure

    def __del__(self):
        if not self._ended:
            self._session._abandon(self._number)
