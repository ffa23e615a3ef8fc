"""PHub's models of training with parameter servers (PHub, sections 2.3.1 and 3.4).

    M    bytes of the model, and of each worker's gradients
    T    seconds of an iteration's computation
    N    workers; in section 3.4, of each rack
    R    racks

Every function raises ValueError for an N or R below 2, or a value that is not above 0.
"""

import typing

from .grid import checked_servers


class PhubNetwork(typing.NamedTuple):
    """Of the table of section 4.2: what one GPU, a GTX 1080 Ti, takes for a batch."""

    name: str
    bytes: float
    seconds: float


NETWORKS = (
    PhubNetwork("alexnet", 194e6, 0.016),
    PhubNetwork("vgg11", 505e6, 0.121),
    PhubNetwork("vgg19", 548e6, 0.268),
    PhubNetwork("googlenet", 38e6, 0.100),
    PhubNetwork("inception-v3", 91e6, 0.225),
    PhubNetwork("resnet18", 45e6, 0.054),
    PhubNetwork("resnet50", 97e6, 0.161),
    PhubNetwork("resnet269", 390e6, 0.350),
    PhubNetwork("resnext269", 390e6, 0.386),
)

# Figure 4: where the parameter servers are, by the names of Table 2. Colocated ones run on the workers' hosts; a
# central one has the whole model, and of sharded ones each has 1/N of it.
LAYOUTS = {
    "cc": "colocated, centralized",
    "cs": "colocated, sharded",
    "ncc": "on a host of its own, centralized",
    "ncs": "on hosts of their own, sharded",
}


def _require_positive(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} is {value}, but it is more than 0")


def hiding_bits_per_second(layout, N, M, T):
    """The least bits per second, sent and received together, with which the host of a parameter server hides its
    communication behind T: all gradients come in and all updates go out meanwhile.

    Figure 4 has the equations in a picture; these give all four numbers of each row of Table 2 (N = 8) from one M/T.
    With the times of section 4.2 they are 2 % to 10 % above the table, which rounds, and whose times are not given:

        cc   2(N-1) M/T    one of the workers is on the server's own host
        cs   4(N-1)/N M/T  each host serves its share to N-1 workers, and its worker needs N-1 shares
        ncc  2N M/T
        ncs  2 M/T         N servers beside the N workers, each with N shares of M/N
    """
    checked_servers(N)
    _require_positive(M=M, T=T)
    once = 8 * M / T
    if layout == "cc":
        return 2 * (N - 1) * once
    if layout == "cs":
        return 4 * (N - 1) / N * once
    return 2 * N * once if layout == "ncc" else 2 * once


class HubRates(typing.NamedTuple):
    """In bits per second."""

    hub: float  # of a rack's PBox, B_PBox
    core: float  # of a rack's uplink into the network core, B_Core
    worker: float  # B_Wkr


class HierarchyTimes(typing.NamedTuple):
    """In seconds."""

    flat: float
    hierarchical: float

    def pays(self):
        return self.flat > self.hierarchical


def hierarchy_times(N, R, rates, M):
    """Section 3.4: what the inequality compares, by the M that it leaves out.

        flat          N(R-1)/R M / B_Core, what crosses racks if the hubs share the model
        hierarchical  (max(N / B_PBox, 1 / B_Wkr) + (R-1)/R / min(B_PBox, B_Core)) M

    The text's r in C is taken for R: a ring of the racks' hubs, or their shards.
    """
    checked_servers(N)
    _require_positive(B_PBox=rates.hub, B_Core=rates.core, B_Wkr=rates.worker, M=M)
    others = (checked_servers(R) - 1) / R
    local = max(N / rates.hub, 1 / rates.worker)
    between = others / min(rates.hub, rates.core)
    return HierarchyTimes(N * others / rates.core * 8 * M, (local + between) * 8 * M)
