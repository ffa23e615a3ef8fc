"""A file with JSON that an option names, which another program may have written: any field may be missing or have
another type."""

import json
import math
import os

from .failure import Failure, UsageError
from .printable import encoded, quoted

_LONGEST_FILE = 16 << 20
_MOST_INTEGER = 2**64  # a greater one is a float


def _number(text):
    value = float(text)
    if math.isinf(value):
        raise ValueError("beyond all numbers")
    return value


def _integer(text):
    value = float(text) if len(text) > 30 else int(text)
    return value if -_MOST_INTEGER // 2 <= value < _MOST_INTEGER else _number(text)


def _no_constant(text):
    raise ValueError(f"{text} is no JSON")


class JsonFile:
    """`expected` ends each message: what the file should be."""

    def __init__(self, option, path, expected):
        self._option, self._path, self._expected = option, path, expected

    def refuse(self, what):
        """Raises the UsageError `OPTION "PATH": WHAT; expected EXPECTED`."""
        raise UsageError(f"{self._option} {quoted(self._path)}: {what}; expected {self._expected}")

    def content(self):
        """Raises a UsageError if the file cannot be read, is empty, has more than 16 MiB, or is no JSON. Waits for
        nobody to open a pipe at its other end: one without a writer is empty."""
        data = self._bytes()
        if not data:
            self.refuse("it is empty")
        if len(data) > _LONGEST_FILE:
            self.refuse("it is longer than 16 MiB")
        try:
            return json.loads(
                data.decode("utf-8-sig"), parse_float=_number, parse_int=_integer, parse_constant=_no_constant
            )
        except (ValueError, RecursionError):
            self.refuse("it is no JSON")

    def _bytes(self):
        try:
            descriptor = os.open(encoded(self._path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with open(descriptor, "rb", buffering=0) as file:
                os.set_blocking(descriptor, True)  # to wait for what a writer has not written yet
                data = b""
                while len(data) <= _LONGEST_FILE:
                    more = file.read(_LONGEST_FILE + 1 - len(data))
                    if not more:
                        break
                    data += more
                return data
        except OSError as error:
            self.refuse(f"it cannot be read: {error.strerror}")


def field(content, *path):
    """What is there, by keys; None where nothing is."""
    for key in path:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def number_field(content, *path):
    """A float, or None."""
    value = field(content, *path)
    return None if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)


def count_field(content, *path):
    """A whole number, at least 0, that is written as one; or None."""
    value = field(content, *path)
    return None if isinstance(value, bool) or not isinstance(value, int) or value < 0 else value


def text_field(content, *path):
    value = field(content, *path)
    return value if isinstance(value, str) else None


def items(content, key):
    """The list at this key; an empty one where there is none."""
    value = field(content, key)
    return value if isinstance(value, list) else []


def write_text_file(option, path, text):
    """Replaces what is there."""
    try:
        with open(encoded(path), "wb") as file:
            file.write(encoded(text))
    except OSError as error:
        raise Failure(f"{option}: cannot write {quoted(path)}: {error.strerror}") from None
