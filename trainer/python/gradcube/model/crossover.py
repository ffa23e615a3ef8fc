"""From which size on which algorithm takes the least time.

In every model of gst_table the time is a line over the bytes, a + b M: a is the latency of the messages that follow
each other, and b what the busiest link carries of the buffer. So the least time over all sizes is made of a few of
these lines, one after the other: those with few messages win for short buffers, those that use the most links for long
ones.
"""

import dataclasses
import typing

from .gst_table import ALGORITHMS, gst_row

_BYTES = 1e9  # of which the slope is taken


class GstLine(typing.NamedTuple):
    """The time of an algorithm for any number of bytes."""

    algorithm: str
    latency_seconds: float  # a
    seconds_per_byte: float  # b

    def seconds(self, size):
        return self.latency_seconds + self.seconds_per_byte * size


class Winners(typing.NamedTuple):
    """From so many bytes on, to before those of the next: all algorithms of one time."""

    from_bytes: float
    lines: list  # never empty, and all alike


def gst_lines(topology, load):
    """Of all algorithms that have a row on the topology, in their order. The bytes of the load do not count."""
    at_once = dataclasses.replace(load, bytes=_BYTES, latency_seconds=0.0)
    one_byte = dataclasses.replace(load, bytes=1.0)
    lines = []
    for name in ALGORITHMS:
        row = gst_row(topology, name, at_once)
        if row is not None:
            per_byte = row.seconds / _BYTES
            latency = gst_row(topology, name, one_byte).seconds - per_byte if load.latency_seconds > 0 else 0.0
            lines.append(GstLine(name, latency, per_byte))
    return lines


def _same(a, b):
    """Equations that say the same in other words differ in the last digits."""
    return abs(a - b) <= 1e-9 * max(a, b)


def _are_alike(a, b):
    return _same(a.latency_seconds, b.latency_seconds) and _same(a.seconds_per_byte, b.seconds_per_byte)


def _is_flatter(line, than):
    return line.seconds_per_byte < than.seconds_per_byte and not _same(line.seconds_per_byte, than.seconds_per_byte)


def _crossing(flatter, other):
    """Where the flatter line gets below the other."""
    return max(
        0.0, (flatter.latency_seconds - other.latency_seconds) / (other.seconds_per_byte - flatter.seconds_per_byte)
    )


def _first_winner(lines):
    """The one that wins for very few bytes."""
    first = lines[0]
    for line in lines[1:]:
        if _same(line.latency_seconds, first.latency_seconds):
            wins = _is_flatter(line, first)
        else:
            wins = line.latency_seconds < first.latency_seconds
        first = line if wins else first
    return first


def _next_winner(lines, winner):
    """The one that gets below `winner` first, and of several that do so at once the flattest; None if none does."""
    following = None
    for line in lines:
        if not _is_flatter(line, winner):
            continue
        if following is not None:
            here, there = _crossing(line, winner), _crossing(following, winner)
            if not (_is_flatter(line, following) if _same(here, there) else here < there):
                continue
        following = line
    return following


def crossovers(lines):
    """Winners by ascending size, from 0 bytes on. Who is in none of them never wins. There is a line at least."""
    everyone, from_bytes = [], 0.0
    winner = _first_winner(lines)
    while winner is not None:
        everyone.append(Winners(from_bytes, [line for line in lines if _are_alike(line, winner)]))
        following = _next_winner(lines, winner)
        if following is not None:
            from_bytes = _crossing(following, winner)
        winner = following
    return everyone
