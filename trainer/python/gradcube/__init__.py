"""Gradcube for Python: collectives on NumPy arrays over the trainers of a job.

    import gradcube

    with gradcube.Session(job="mnist") as session:
        gradients = session.alloc(1000, "float32")   # shared with the daemon: never copied
        gradients[:] = ...
        session.allreduce(gradients, op="average")   # in place; blocks

        request = session.allreduce_async(gradients, op="sum")
        ...                                          # other work that leaves `gradients` alone
        request.wait(timeout=60)

Keep each request until wait() or test() has told its end: where one is dropped before, its array does not get the result.

The collectives are allreduce, reduce_scatter, allgather, broadcast, reduce, barrier and compare, each also as ..._async.
compare() raises CorruptError, which names ranks, where memory that should be the same on all trainers is not.

Messages go from one trainer to another, and are matched by rank and tag, in their order:

    session.send(numpy.arange(10), to=3, tag=7)      # at another trainer
    count = session.recv(array, source=0, tag=7)     # at the one of rank 3; the message's bytes
    text = session.recv_bytes(100, source=0, tag=8)

each also as ..._async. An array of any type can be sent, and all that has a buffer, such as bytes. Where both arrays
have one of the types that can be combined or copied by name, it is the same one; else MismatchError names both. A
send() or recv() whose time is up, or that Ctrl-C ends, is withdrawn: it gives and takes nothing. Requests have
cancel().

Any C-contiguous, writeable array of float32, float64, float16, int32, int64, int16, int8, uint8, bool, complex64 or
complex128 may be given; docs/arithmetic.md says which operations each has. An array that is not from ``alloc`` is
copied to shared memory and back. NumPy has no bfloat16: pass a uint16 array of its bits with ``dtype="bfloat16"``.
Arrays of uint16, uint32 and uint64 can be gathered and broadcast, too, and with ``dtype="bytes"`` those of any type.

Timeouts are in seconds. None and negative ones mean no limit, as in C and C++; 0 looks once.

Errors are exceptions: ``gradcube.Error`` and its subclasses, whose text says what failed and what to do.

Any thread may use a session and its requests. Where several threads submit to one lane, the order of their
submissions is theirs to agree on, on all trainers alike. Waiting releases the interpreter lock, and Ctrl-C ends it
within a tenth of a second. In asyncio, `loop.add_reader(session, callback)` calls back when a request may have ended:
the callback calls test() on the requests. Remove the reader while there are none.

Arrays may outlive their session: a session that is closed or garbage-collected leaves its job at once, and the
memory is freed when the last array is gone. In a forked child every call raises InvalidError, and the parent's
session goes on: a child opens a session of its own. Its copies of the parent's arrays are private.
"""

import importlib

__version__ = "0.1.0"  # the project's, in meson.build

from ._errors import (
    AbortedError,
    AgainError,
    CanceledError,
    CorruptError,
    Error,
    InvalidError,
    JobError,
    MemoryFullError,
    MismatchError,
    NoDaemonError,
    OverflowError,
    PeerError,
    ProtocolError,
    SystemRefusedError,
    TimeoutError,
)
from ._merging import merge_layers

__all__ = [
    "AbortedError",
    "AgainError",
    "CanceledError",
    "CorruptError",
    "Error",
    "Hub",
    "InvalidError",
    "JobError",
    "MemoryFullError",
    "MismatchError",
    "NoDaemonError",
    "OverflowError",
    "PeerError",
    "ProtocolError",
    "Request",
    "Session",
    "SystemRefusedError",
    "TimeoutError",
    "__version__",
    "merge_layers",
]

_WITH_NUMPY = {"Hub": "._hub", "Request": "._request", "Session": "._session"}


def __getattr__(name):
    """These are imported when they are first used: what is of the package without NumPy works without it."""
    if name not in _WITH_NUMPY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_WITH_NUMPY[name], __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_WITH_NUMPY})
