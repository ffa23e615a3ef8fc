"""What a command has found, told once: the text for people and the JSON for programs are both made of it.

A cell is a pair: what people read, and what programs do. A column without a key is in the text alone.
"""

import errno
import json
import os

from .failure import Failure
from .printable import encoded

_STANDARD_OUTPUT = 1


def write_output(text):
    """All of it, or a Failure: a full disk does not lose it silently."""
    rest = memoryview(encoded(text))
    while rest:
        try:
            rest = rest[os.write(_STANDARD_OUTPUT, rest) :]
        except OSError as error:
            raise Failure(f"cannot write to standard output: {os.strerror(error.errno or errno.EIO)}") from None


def json_text(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class TextTable:
    """Each column is as wide as its widest cell, and two spaces separate columns. Titles that begin with "<" stand on
    the left."""

    def __init__(self, titles):
        self._left = [title.startswith("<") for title in titles]
        self.rows = [[title.lstrip("<") for title in titles]]

    def text(self):
        # Widths are those of bytes, as everywhere in the tool.
        widths = [max(len(encoded(row[i])) for row in self.rows) for i in range(len(self._left))]
        text = ""
        for row in self.rows:
            cells = [
                cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(row, widths, self._left)
            ]
            text += "  ".join(cells).rstrip(" ") + "\n"
        return text


class Report:
    """Lines, which the text alone has, and then a table, a list of objects in the JSON."""

    def __init__(self, key, *columns):
        """Columns are (title, key)."""
        self.lines = []
        self._key = key
        self._keys = [key for _, key in columns]
        self._text = TextTable([title for title, _ in columns])
        self._rows = []

    def add(self, *cells):
        self._text.rows.append([shown for shown, _ in cells])
        self._rows.append({key: told for key, (_, told) in zip(self._keys, cells) if key})

    def write(self, as_json):
        if as_json:
            write_output(json_text({self._key: self._rows}) + "\n")
        else:
            table = self._text.text() if self._rows else ""
            write_output("".join(line + "\n" for line in self.lines) + table)


# Numbers for people.


def _scaled(value, *units):
    unit = 0
    while abs(value) >= 999.5 and unit + 1 < len(units):
        value /= 1000
        unit += 1
    return f"{value:.{4 if abs(value) >= 100 else 3}g} {units[unit]}"


def human_bytes(size):
    """ "1.23 MB" """
    return _scaled(size, "B", "KB", "MB", "GB", "TB")


def human_rate(bits_per_second):
    return _scaled(bits_per_second, "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s")


def human_seconds(seconds):
    """ "1.23 ms"; from a minute on "2 min 5 s", and from 10^15 s on "1e+21 s"."""
    if seconds >= 1e15:
        return f"{seconds:.3g} s"
    if seconds >= 3600:
        return f"{int(seconds) // 3600} h {int(seconds) // 60 % 60} min"
    if seconds >= 60:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.3g} s"
    return _scaled(seconds * 1e9, "ns", "us", "ms", "s", "s")


# Cells.


def count_cell(number):
    return f"{number:,}", number


def bytes_cell(size):
    return human_bytes(size), size


def rate_cell(bits_per_second):
    return human_rate(bits_per_second), bits_per_second


def seconds_cell(seconds):
    return human_seconds(seconds), seconds


def text_cell(text):
    return text, text


def shown_cell(text):
    """Of a column of the text alone."""
    return text, None
