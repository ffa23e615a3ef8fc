"""The gradient synchronization time (GST) of every algorithm that the papers give for a topology, by the names that the
project uses for them.

    bml               BML. On a star and a Fat-Tree, whose servers have one NIC, that of BCube(N,1)
    ps                one parameter server for all, under one switch or a Fat-Tree: that of hips:root with one group
    mesh              PS and MS, which the papers do not tell apart: every server is the parameter server for 1/N of the
                      gradient (bml, hips)
    ring              one ring of all servers
    hips:mesh,        HiPS, with mesh, ring or one parameter server in every group
    hips:ring, hips:root
    blueconnect       BlueConnect with a factor for each level: its Eq. 10 with one learner in a node on BCube and
                      Torus, each of whose levels has its own links; its Eq. 9 with the one factor N on a star and a
                      Fat-Tree. On a Torus every stage is a ring, as in the plan: half of a ring is not one hop away
    halving_doubling  recursive halving, then doubling, of all servers: for powers of two
    two-level         groups of n servers under one level-0 switch, then a ring, or halving and doubling, of one of each
                      group: BlueConnect's Eq. 7 with p_0 = n. On a star and a Fat-Tree, which have one level, p_0 is
                      the load's group

BML and HiPS have one radix n for all levels. On a generalized BCube their levels carry different shares, and the time
is that of the busiest: 2(n-1)/n for the largest n with mesh, and bml.generalized_gst()'s sum with bml and hips, a lower
bound there. hips:root has no row then. BlueConnect's equations take any radices.

Latency is a time for every message. BlueConnect's equations have it (alpha); those of BML and HiPS do not. To these is
added the latency of all messages that a server's busiest port passes one after the other in the steps of the algorithm,
which is alpha's meaning and gives the ring of HiPS that of BlueConnect's Eq. 6. A flat mesh on BCube counts relayed
messages, too.
"""

import dataclasses
import typing

from . import blueconnect, bml, hips
from .grid import is_power_of_two, transfer_seconds


@dataclasses.dataclass
class Load:
    """What is synchronized, and over which links; all links are equal."""

    bytes: float  # of each server's gradient
    bits_per_second: float  # of a link
    latency_seconds: float = 0.0  # of a message
    group: int = 0  # of two-level: servers in a group, where the topology has one level; 0: not known


class Row(typing.NamedTuple):
    topology: str  # "bcube:3,2"
    algorithm: str
    servers: int
    seconds: float
    relative: float  # seconds / T_F: the time that one link takes for the full gradient (BML, Table 1), no latency
    source: str  # where the equation is: "BML 3.2"


class _Question:
    """One topology and load, as the equations take them."""

    def __init__(self, topology, load, t_f):
        self.topology, self.load, self.t_f = topology, load, t_f
        self.most = max(topology.radices)  # n where all are equal
        self.N = topology.servers
        self.levels = topology.levels
        self.is_uniform = topology.uniform
        self.is_torus = topology.kind == "torus"
        self.is_fattree = topology.kind == "fattree"
        self.network = hips.TORUS if self.is_torus else hips.BCUBE

    def latency_by_levels(self):
        """Of both stages, at each of the levels in turn n-1 messages."""
        return 2 * sum(n - 1 for n in self.topology.radices) * self.load.latency_seconds

    def latency_of_ring(self):
        return 2 * (self.N - 1) * self.load.latency_seconds

    def latency_of_flat_mesh(self):
        """In each stage a port passes what goes to the N (n-1)/n servers with another digit at its level. A torus has
        two ports for them."""
        per_stage = self.N // self.most * (self.most - 1)
        return (per_stage if self.is_torus else 2 * per_stage) * self.load.latency_seconds


# Each answers with (seconds, source), or with None where no paper gives the time.


def _busiest_level(q, source):
    seconds = bml.generalized_gst(q.topology.radices, q.t_f) + q.latency_by_levels()
    return seconds, source + ", the busiest level: a lower bound"


def _bml(q):
    if q.is_torus:
        return None
    if not q.is_uniform:
        return _busiest_level(q, "BML 3.2")
    return bml.gst(q.most, q.levels, q.t_f) + q.latency_by_levels(), "BML 3.3" if q.is_fattree else "BML 3.2"


def _mesh(q):
    """A level's ports carry (n-1)/n of a gradient, so those of the largest radix are the busiest."""
    if q.is_fattree:
        return bml.fat_tree_gst(q.N, q.t_f) + q.latency_of_flat_mesh(), "BML 2"
    bound = ": a lower bound" if q.is_torus else "" if q.is_uniform else ", the busiest level"
    seconds = hips.mesh_gst(q.network, q.most, 1, q.t_f) + q.latency_of_flat_mesh()
    return seconds, "HiPS Table 3, PSS/MS" + bound


def _ring(q):
    if q.is_fattree:
        return bml.fat_tree_gst(q.N, q.t_f) + q.latency_of_ring(), "BML 2"
    return hips.ring_gst(q.network, q.N, 1, q.t_f) + q.latency_of_ring(), "HiPS Table 3, RS"


def _hips_ring(q):
    """Mesh and ring bring the same bytes over each link as BML."""
    if q.is_fattree:
        return None
    if not q.is_uniform:
        return _busiest_level(q, "HiPS Table 3, HiPS")
    return hips.gst(q.network, q.most, q.levels, q.t_f) + q.latency_by_levels(), "HiPS Table 3, HiPS"


def _hips_mesh(q):
    return None if q.is_torus else _hips_ring(q)


def _ps(q):
    """One group, of all servers."""
    if q.is_torus or q.levels > 1:
        return None
    return hips.root_gst(q.most, 1, q.t_f) + q.latency_by_levels(), "HiPS Algorithm 1"


def _hips_root(q):
    """In a stage the processes are at different levels: of different radices, none has a time for all."""
    if q.is_torus or q.is_fattree or not q.is_uniform:
        return None
    return hips.root_gst(q.most, q.levels, q.t_f) + q.latency_by_levels(), "HiPS Algorithm 1"


def _blueconnect(q):
    size, alpha, w = q.load.bytes, q.load.latency_seconds, q.load.bits_per_second
    stages = [blueconnect.Stage(n, w) for n in q.topology.radices]
    if q.topology.kind == "star" or q.is_fattree:
        return blueconnect.tree_seconds(stages, size, alpha), "BlueConnect Eq. 9"
    if not q.is_torus:
        stages.insert(0, blueconnect.Stage(1, w))  # one learner in a node
        return blueconnect.torus_seconds(stages, size, alpha), "BlueConnect Eq. 10"
    # Half of a ring of cables is not one hop away, so no stage is halved there, and Eq. 3 has no choice. All links are
    # equal, and no stage waits for a slower one before it.
    seconds = 0.0
    for n in q.topology.radices:
        seconds += 2 * blueconnect.ring_stage_seconds(n, size, alpha, w)
        size /= n
    return seconds, "BlueConnect Eq. 10"


def _halving_doubling(q):
    """Eq. 2 wants the same latency between any two servers."""
    if q.is_torus or not is_power_of_two(q.N):
        return None
    load = q.load
    seconds = blueconnect.halving_doubling_seconds(q.N, load.bytes, load.latency_seconds, load.bits_per_second)
    return seconds, "BlueConnect Eq. 2"


def _two_level(q):
    load = q.load
    n = q.topology.radices[0] if q.levels > 1 else load.group
    if q.is_torus or n < 2 or n >= q.N or q.N % n != 0:
        return None
    w = load.bits_per_second
    return blueconnect.two_level_seconds(n, q.N // n, load.bytes, load.latency_seconds, w, w), "BlueConnect Eq. 7"


_ANSWERS = {
    "bml": _bml,
    "ps": _ps,
    "mesh": _mesh,
    "ring": _ring,
    "hips:mesh": _hips_mesh,
    "hips:ring": _hips_ring,
    "hips:root": _hips_root,
    "blueconnect": _blueconnect,
    "halving_doubling": _halving_doubling,
    "two-level": _two_level,
}
ALGORITHMS = tuple(_ANSWERS)


def gst_row(topology, algorithm, load):
    """None when no paper gives the algorithm's time on the topology.

    Raises ValueError for an algorithm that is none of ALGORITHMS, and for a load without bytes, without a rate or with
    a negative latency.
    """
    if algorithm not in _ANSWERS:
        raise ValueError(f"there is no algorithm {algorithm}")
    t_f = transfer_seconds(load.bytes, load.bits_per_second)
    if t_f <= 0:
        raise ValueError("0 bytes take no time: there is nothing to compare")
    if not load.latency_seconds >= 0:
        raise ValueError(f"a latency of {load.latency_seconds} s")
    answer = _ANSWERS[algorithm](_Question(topology, load, t_f))
    if answer is None:
        return None
    seconds, source = answer
    return Row(topology.spec, algorithm, topology.servers, seconds, seconds / t_f, source)
