"""One exception per code of gradcube.h. Where Python has a class of its own for the case, ours is one of it, too."""

import builtins


class Error(Exception):
    """Any failure. ``code`` is the GRADCUBE_E... code; the text is the library's message."""

    code = 0


class InvalidError(Error, ValueError):
    """An argument is out of its range."""

    code = -1


class MemoryFullError(Error, MemoryError):
    """The session's shared heap is full."""

    code = -2


class NoDaemonError(Error, ConnectionError):
    """No daemon at this socket, or it went away."""

    code = -3


class JobError(Error):
    """The job cannot be joined: the name is bad, or this server's place is taken."""

    code = -4


class MismatchError(Error):
    """The trainers of the job disagree on a collective."""

    code = -5


class PeerError(Error):
    """Another trainer of the job died or left."""

    code = -6


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001 - asyncio and socket name theirs so, too
    """Not done within the time given; the collective goes on."""

    code = -7


class ProtocolError(Error):
    """Trainer and daemon do not understand each other."""

    code = -8


class AgainError(Error):
    """Too many collectives in flight: wait for one first."""

    code = -9


class SystemRefusedError(Error, OSError):
    """The operating system refused something."""

    code = -10


class OverflowError(Error, builtins.OverflowError):  # noqa: A001 - as for TimeoutError
    """An average of integers: a partial sum does not fit in the type."""

    code = -11


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code, message):
    """The exception for a negative code."""
    return _BY_CODE.get(code, Error)(message)
