"""A row of the table of scripts/bench.sh, and how it is held against its target."""

import dataclasses
import statistics
from typing import Optional


@dataclasses.dataclass
class Row:
    figure: str
    value: Optional[float] = None
    unit: str = ""
    bound: str = ""  # the bound or the peer, in words, with its value
    ratio: Optional[float] = None
    target: str = ""
    met: Optional[bool] = None  # None: for information, no target
    error: str = ""


@dataclasses.dataclass
class Setting:
    build: str
    quick: bool

    def iterations(self, full):
        return max(2, full // 3) if self.quick else full

    def turns(self, full=3):
        """How often the sides of a comparison take turns."""
        return 1 if self.quick else full


def at_most(row, limit):
    row.target, row.met = f"<= {limit:g}", row.ratio <= limit
    return row


def at_least(row, limit):
    row.target, row.met = f">= {limit:g}", row.ratio >= limit
    return row


def within(row, share):
    """Of a ratio that should be 1: too good is a miss as well, since the model is then wrong."""
    row.target, row.met = f"1 +- {share:g}", abs(row.ratio - 1) <= share
    return row


def value_at_most(row, limit):
    row.target, row.met = f"<= {limit:g} {row.unit}", row.value <= limit
    return row


def value_at_least(row, limit):
    row.target, row.met = f">= {limit:g} {row.unit}", row.value >= limit
    return row


def zero(figure, number, unit):
    return Row(figure, number, unit, target="0", met=number == 0)


def against(figure, value, unit, words, other):
    """`value` as a multiple of `other`, which `words` name; times are in s, shown in `unit`."""
    scale = {"s": 1, "us": 1e6}[unit]
    bound = f"{words} {other * scale:.4g} {unit}"
    return Row(figure, value * scale, unit, bound, value / other)


class Medians:
    """Figures by name, taken in several turns; medians[name] is the median over the turns."""

    def __init__(self):
        self._taken = {}

    def add(self, name, value):
        self._taken.setdefault(name, []).append(value)

    def __getitem__(self, name):
        return statistics.median(self._taken[name])
