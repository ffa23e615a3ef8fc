"""MG-WFBP's communication model: an all-reduce of M bytes takes T_ar(M) = a + bM (MG-WFBP, section II-D, Eq. 9 and 10,
Table II).

    N      nodes
    alpha  seconds that a message between two nodes takes before its first byte
    beta   seconds per byte between two nodes: 8 / bits per second
    gamma  seconds to add one byte to another in a node

Where the text leaves a choice:
  - Table I calls gamma the time to add two floating point numbers, and beta and b times per byte. In Table II gamma
    stands beside beta, so it is per byte here: of 4-byte floats, a quarter of the time of one addition.
  - The paper assumes that N is a power of two. The row of the ring needs it nowhere, and is taken for every N; the
    others refuse another N.

Every function raises ValueError for N < 2, and the rows of a tree or of recursive algorithms for an N that is no power
of two.
"""

import dataclasses
import typing

from .grid import checked_servers, is_power_of_two


@dataclasses.dataclass
class NodeCosts:
    alpha: float = 0.0
    beta: float = 0.0
    gamma: float = 0.0


class AllReduceCost(typing.NamedTuple):
    """The line of one algorithm on N nodes: a in seconds, b in seconds per byte."""

    a: float
    b: float

    def seconds(self, M):
        """Eq. 9: T_ar(M). With a > 0, one all-reduce of M1 + M2 bytes takes less than two (Eq. 10)."""
        return self.a + self.b * M


def _log2_of(N):
    if not is_power_of_two(checked_servers(N)):
        raise ValueError(f"N is {N}, but it is a power of two")
    return N.bit_length() - 1


# The rows of Table II.


def binary_tree_cost(N, costs):
    """a = 2 alpha lg N, b = (2 beta + gamma) lg N"""
    rounds = _log2_of(N)
    return AllReduceCost(2 * costs.alpha * rounds, (2 * costs.beta + costs.gamma) * rounds)


def recursive_doubling_cost(N, costs):
    """a = alpha lg N, b = (beta + gamma) lg N"""
    rounds = _log2_of(N)
    return AllReduceCost(costs.alpha * rounds, (costs.beta + costs.gamma) * rounds)


def halving_doubling_cost(N, costs):
    """a = 2 alpha lg N, b = 2 beta - (2 beta + gamma)/N + gamma"""
    both = 2 * costs.beta + costs.gamma
    return AllReduceCost(2 * costs.alpha * _log2_of(N), both - both / N)


def ring_cost(N, costs):
    """a = 2(N-1) alpha, b = 2(N-1)/N beta + (N-1)/N gamma"""
    share = (checked_servers(N) - 1) / N
    return AllReduceCost(2 * (N - 1) * costs.alpha, 2 * share * costs.beta + share * costs.gamma)
