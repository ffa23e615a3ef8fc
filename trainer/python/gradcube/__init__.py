"""Gradcube for Python: all-reduce of NumPy arrays over the trainers of a job.

    import gradcube

    with gradcube.Session(job="mnist") as session:
        gradients = session.alloc(1000, "float32")   # shared with the daemon: never copied
        gradients[:] = ...
        session.allreduce(gradients, op="average")   # in place; blocks

        request = session.allreduce_async(gradients, op="sum")
        ...                                          # other work; hands off `gradients`
        request.wait(timeout=60)

Any C-contiguous, writeable array of float32, float64, float16, int32 or int64 may be given; those that are
not from ``alloc`` are staged through shared memory. NumPy has no bfloat16: pass a uint16 array of its bits
with ``dtype="bfloat16"``.

Errors are exceptions: ``gradcube.Error`` and its subclasses, whose text says what failed and what to do.

A session is used by one thread at a time. Waiting releases the interpreter lock and is ended by Ctrl-C.
Arrays may outlive their session: leaving the job happens at once, their memory goes when the last of them
does.
"""

from ._errors import (
    AgainError,
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
from ._session import Request, Session

__all__ = [
    "AgainError",
    "Error",
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
]
