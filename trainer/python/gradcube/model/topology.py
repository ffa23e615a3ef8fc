"""The topologies that the papers compare, as the models see them. They may have more servers than a cluster.

    bcube:n,k   BCube(n,k) as BML counts: k levels of n-port switches, N = n^k servers
    bcube:4x3x2 a generalized BCube: a radix for each level, the highest first
    torus:n,h   a torus of h dimensions with n servers in each ring, N = n^h
    star:N      N servers around one switch; it is bcube:N,1
    fattree:N   N servers on a non-blocking Fat-Tree. BML and other papers write Fat-Tree(n) for one of n-port switches,
                which has n^3/4 servers: Fat-Tree(4) is fattree:16

Bounds: n and N at least 2, 1..16 levels, at most grid.MOST_SERVERS.
"""

import typing

from .failure import UsageError
from .grid import MOST_SERVERS, product_of
from .printable import quoted
from .units import parse_integer

_MOST_LEVELS = 16
_LEVELS = {"bcube": "k", "torus": "h", "star": "", "fattree": ""}  # what the second number is called
_FORMS = "bcube:n,k, bcube with a list of radices, torus:n,h, star:N or fattree:N; for example bcube:3,2 or bcube:4x3x2"


class Topology(typing.NamedTuple):
    kind: str
    radices: tuple  # by level: how many servers differ in its digit alone. Of a star and a Fat-Tree one number, N

    @property
    def levels(self):
        """k or h"""
        return len(self.radices)

    @property
    def servers(self):
        return product_of(self.radices)

    @property
    def uniform(self):
        """All radices are equal, as the papers have it."""
        return len(set(self.radices)) == 1

    @property
    def spec(self):
        """ "bcube:3,2": what parse_topology() reads."""
        if not _LEVELS[self.kind]:
            return f"{self.kind}:{self.radices[0]}"
        if self.uniform:
            return f"{self.kind}:{self.radices[0]},{self.levels}"
        return f"{self.kind}:{'x'.join(map(str, reversed(self.radices)))}"


def parse_topology(spec, where):
    """Raises a UsageError that begins with `where`."""

    def refuse(what):
        raise UsageError(f"{where} {quoted(spec)}: {what}; expected {_FORMS}")

    def number(text, name, lowest, highest):
        return parse_integer(text, f"{where} {quoted(spec)}: {name}", lowest, highest)

    kind, _, numbers = spec.partition(":")
    if kind not in _LEVELS:
        refuse(f"there is no topology {quoted(kind)}")
    levels = _LEVELS[kind]
    if kind == "bcube" and "x" in numbers:
        radices = tuple(number(item, "a radix", 2, MOST_SERVERS) for item in numbers.split("x"))[::-1]
    else:
        first, comma, second = numbers.partition(",")
        if bool(comma) != bool(levels):
            refuse(f"{kind} takes {'two numbers' if levels else 'one number'}")
        n = number(first, "n" if levels else "N", 2, MOST_SERVERS)
        radices = (n,) * (number(second, levels, 1, _MOST_LEVELS) if levels else 1)
    try:
        product_of(radices)
    except ValueError as error:
        refuse(error)
    return Topology(kind, radices)
