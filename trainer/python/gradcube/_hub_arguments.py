"""What callers of Hub give, checked and as the library takes it."""

import os

from ._errors import InvalidError
from ._request import deadline_of

_OWN_RATE = -1.0


def milliseconds_of(timeout):
    if timeout is None:
        return -1
    deadline_of(timeout)  # an invalid one is refused
    seconds = float(timeout)
    return -1 if seconds < 0 else int(min(seconds * 1000, (1 << 31) - 1))


def number_of(given, name):
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise InvalidError(f"invalid {name} {given!r:.64}: expected a finite number, 0 or more")
    return number


def rate_of(rate):
    return _OWN_RATE if rate is None else number_of(rate, "rate")


def path_of(path):
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidError(f"invalid path {path!r:.64}: expected a string or a path")
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise InvalidError(f"invalid path {path!r:.64}: expected one without NUL characters")
    return encoded
