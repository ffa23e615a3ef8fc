"""One exception per code of gradcube.h. Each also derives from Python's own class for the case, if there is one."""

import builtins


class Error(Exception):
    """Any failure. ``code`` is the GRADCUBE_E... code; the text is the library's message."""

    code = 0


class InvalidError(Error, ValueError):
    """Invalid argument."""

    code = -1


class MemoryFullError(Error, MemoryError):
    """The session's shared heap is full."""

    code = -2


class NoDaemonError(Error, ConnectionError):
    """No daemon at this socket, or the daemon went away."""

    code = -3


class JobError(Error):
    """The job cannot be joined.

    Its name is invalid, this server's place or the rank is taken, the job's trainers ask for different options, or the
    daemon belongs to another user or does not serve this one.
    """

    code = -4


class MismatchError(Error):
    """The trainers of the job disagree on a collective, or a message is longer than its receive, or of another type."""

    code = -5


class PeerError(Error):
    """Another trainer of the job died, left or aborted the job."""

    code = -6


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001 - the name that asyncio and socket use, too
    """Not done within the timeout. A collective goes on, and its array must be left alone until it has ended; a send or
    a receive that blocks is withdrawn.

    ``request``: what goes on, whose wait() can be called again; None: nothing does. KeyboardInterrupt has it, too.
    """

    code = -7
    request = None


class ProtocolError(Error):
    """Protocol error between trainer and daemon."""

    code = -8


class AgainError(Error):
    """Too many collectives in flight: wait for one first."""

    code = -9


class SystemRefusedError(Error, OSError):
    """A system call failed."""

    code = -10


class OverflowError(Error, builtins.OverflowError):  # noqa: A001 - as for TimeoutError
    """An average of integers: a partial sum does not fit in the type."""

    code = -11


class AbortedError(Error):
    """abort() was called on this session."""

    code = -12


class CanceledError(Error):
    """The message was withdrawn by cancel(): it has given or taken nothing."""

    code = -13


class CorruptError(Error):
    """compare(): memory that should be the same on all trainers is not."""

    code = -14


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code, message):
    """The exception for a negative code."""
    return _BY_CODE.get(code, Error)(message)
