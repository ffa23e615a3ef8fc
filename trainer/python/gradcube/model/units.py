"""Quantities as people write them: rates, sizes, durations, numbers of nodes.

Each function takes the text and where it comes from ("--rate"), and raises a UsageError that begins with that. K, M and
G are decimal, Ki, Mi and Gi binary. Letters may be of either case.
"""

import math
import re

from .failure import UsageError
from .grid import MOST_SERVERS
from .printable import quoted

_RATES = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
_DURATIONS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_SIZES = {"": 1, "b": 1, "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9}
_SIZES.update({"ki": 2**10, "kib": 2**10, "mi": 2**20, "mib": 2**20, "gi": 2**30, "gib": 2**30})
_MOST_SIZE = 10**15
_MOST_DIGITS = 19  # of a size, with its point
_MOST_DURATION = 3600e9
_MOST_NANOSECONDS_PER_BYTE = 1e6
_RATE_ACCEPTED = (
    "a number and its unit bit, kbit, mbit, gbit or tbit (bits per second), 1mbit to 10tbit, for example 200mbit"
)
_SIZE_ACCEPTED = "a whole number of bytes, or a number and K, M, G (decimal) or Ki, Mi, Gi (binary), for example 12.5M"
_DURATION_ACCEPTED = "a number and its unit ns, us, ms or s, for example 50us"


def _split(text, where, units, accepted):
    """(number, factor) of "12.5M"; of a text without a unit, where one is needed, the factor None."""

    def refuse(what):
        raise UsageError(f"{where} {quoted(text)}: {what}; expected {accepted}")

    number, unit = re.fullmatch(r"([0-9.]*)(.*)", text, re.DOTALL).groups()
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", number):
        refuse("this does not begin with a number")
    factor = units.get(re.sub("[A-Z]", lambda letter: letter[0].lower(), unit))
    if factor is None and unit == "" and float(number) != 0:
        refuse("the unit is missing")
    if factor is None and unit != "":
        refuse(f"there is no unit {quoted(unit)}")
    return number, factor, refuse


def _rounded(value):
    """To a whole number, halves up; infinity stays."""
    if not math.isfinite(value):
        return value
    whole = math.floor(value)
    return whole + (value - whole >= 0.5)


def parse_rate(text, where):
    """Bits per second, as a float."""
    number, factor, refuse = _split(text, where, _RATES, _RATE_ACCEPTED)
    if factor is None:
        refuse("the unit is missing")
    rate = _rounded(float(number) * factor)
    if not 1e6 <= rate <= 1e13:
        refuse("this rate is out of range")
    return float(rate)


def parse_size(text, where):
    """Bytes: a whole number, at most 10^15."""
    number, factor, refuse = _split(text, where, _SIZES, _SIZE_ACCEPTED)
    if "." in number:
        number = number.rstrip("0")
    number = number.lstrip("0")
    if len(number) > _MOST_DIGITS:
        refuse("this number has too many digits")
    whole, _, decimals = number.partition(".")
    size, rest = divmod(int(whole + decimals or "0") * factor, 10 ** len(decimals))
    if rest:
        refuse("this is not a whole number of bytes")
    if size > _MOST_SIZE:
        refuse("this is more than 1000000G")
    return size


def parse_duration(text, where):
    """Whole nanoseconds, at most an hour of them; 0 needs no unit."""
    number, factor, refuse = _split(text, where, _DURATIONS, _DURATION_ACCEPTED)
    duration = _rounded(float(number) * (factor or 0))
    if not duration <= _MOST_DURATION:
        refuse("this is more than an hour")
    return duration


def parse_integer(text, where, lowest, highest):
    digits = text.lstrip("0")
    if re.fullmatch("[0-9]+", text) and len(digits) <= len(str(highest)) and lowest <= int(digits or "0") <= highest:
        return int(digits or "0")
    raise UsageError(f"{where} {quoted(text)}: expected a whole number in {lowest}..{highest}")


def parse_seconds_per_byte(text, where):
    """ "0.8ns" for each byte: nanoseconds with decimals."""
    number = re.fullmatch(r"(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)ns", text)
    value = float(number[1]) if number else math.inf
    is_lost = number and value == 0 and re.search("[1-9]", number[2])  # too small to be a number
    if value > _MOST_NANOSECONDS_PER_BYTE or is_lost:
        raise UsageError(
            f"{where} {quoted(text)}: this is no time of a byte; expected nanoseconds with their unit, for example "
            "0.8ns"
        )
    return value * 1e-9


def parse_node_counts(text, where):
    """ "64", "4,8,64", and "4..64": its first number, and on with twice the one before, up to its last."""
    counts = []
    for item in text.split(","):
        first, is_range, last = item.partition("..")
        count = parse_integer(first, where, 2, MOST_SERVERS)
        end = parse_integer(last, where, 2, MOST_SERVERS) if is_range else count
        if count > end:
            raise UsageError(f"{where} {quoted(item)}: the range ends before it begins; expected {end}..{count}")
        while count <= end:
            counts.append(count)
            count *= 2
    return counts
