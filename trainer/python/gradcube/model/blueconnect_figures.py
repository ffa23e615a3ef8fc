"""The figures of the BlueConnect paper."""

from .blueconnect import Stage, one_level_seconds, tree_seconds, two_level_seconds
from .figures import OVER_FLOATS, PAPER, Figure, Panel, Series

# Inside a node: PCIe gen3 with 16 lanes, and two NVLinks of a P100 to each neighbour. The paper names the links, not
# their rates.
_PCIE = 126e9
_NVLINK = 320e9

# Section 4.2: ResNet-50, 32 images on each of up to 192 learners.
_GRADIENT = 100e6
_ITERATION_SECONDS = 0.163
_IMAGES = 32
_INFINIBAND = 100e9
_LEARNERS_OF_NODE = 4
_NODES_OF_RACK = 16


def _two_nodes(title, inside, between, latency):
    """Two nodes of four learners."""
    panel = Panel(title, "FP32 numbers", "time (ms)", logarithmic=True, measure=OVER_FLOATS)
    blueconnect, ring = Series("BlueConnect, Eq. 9"), Series("NCCL: a ring, Eq. 6")
    stages = [Stage(_LEARNERS_OF_NODE, inside), Stage(2, between)]
    numbers = 1e4
    while numbers <= 1.01e8:
        blueconnect.add(numbers, 1e3 * tree_seconds(stages, 4 * numbers, latency))
        ring.add(numbers, 1e3 * one_level_seconds(2 * _LEARNERS_OF_NODE, 4 * numbers, latency, between))
        numbers *= 10
    panel.series = [blueconnect, ring]
    return panel


def _overheads(nodes, alpha):
    """By BlueConnect, two levels and a ring. Of so many nodes, in racks whose uplinks carry all of their nodes."""
    in_rack = min(nodes, _NODES_OF_RACK)
    stages = [Stage(_LEARNERS_OF_NODE, _NVLINK)]
    if in_rack > 1:
        stages.append(Stage(in_rack, _INFINIBAND))
    if nodes > in_rack:
        stages.append(Stage(nodes // in_rack, _INFINIBAND * in_rack))
    slowest = _INFINIBAND if nodes > 1 else _NVLINK
    blueconnect = tree_seconds(stages, _GRADIENT, alpha)
    # Inside one node it is the same as BlueConnect: both leave it to NCCL (section 4.2).
    two_level = (
        two_level_seconds(_LEARNERS_OF_NODE, nodes, _GRADIENT, alpha, _NVLINK, slowest) if nodes > 1 else blueconnect
    )
    return blueconnect, two_level, one_level_seconds(_LEARNERS_OF_NODE * nodes, _GRADIENT, alpha, slowest)


def _paper_point(name, y):
    return Series(f"{name}, the paper's text", [192.0], [y], PAPER)


def figure_5(assumed):
    return Figure(
        "blueconnect-5",
        "BlueConnect, Figure 5: all-reduce on two nodes of four learners",
        [
            _two_nodes("(a) PCIe gen3 and 10 Gbit/s", _PCIE, 10e9, assumed.latency_seconds),
            _two_nodes("(b) NVLink and 100 Gbit/s", _NVLINK, 100e9, assumed.latency_seconds),
        ],
    )


def figure_6(assumed):
    names = ("BlueConnect", "two-level (GLOO)", "ring")
    panels = [
        Panel(title, "learners", y_label, [Series(name) for name in names])
        for title, y_label in (
            ("(a) communication", "overhead (ms)"),
            ("(b) scaling efficiency", "efficiency (%)"),
            ("(c) throughput", "images per second"),
        )
    ]
    overhead, efficiency, throughput = (panel.series for panel in panels)
    for nodes in (1, 2, 4, 8, 16, 32, 48):
        learners = float(_LEARNERS_OF_NODE * nodes)
        for i, seconds in enumerate(_overheads(nodes, assumed.latency_seconds)):
            iteration = _ITERATION_SECONDS + seconds
            overhead[i].add(learners, 1e3 * seconds)
            efficiency[i].add(learners, 100 * _ITERATION_SECONDS / iteration)
            throughput[i].add(learners, learners * _IMAGES / iteration)
    overhead.append(_paper_point("BlueConnect", 31.0))
    overhead.append(_paper_point("two-level (GLOO)", 58.0))
    efficiency.append(_paper_point("ring", 100.0 - 48))
    return Figure("blueconnect-6", "BlueConnect, Figure 6: ResNet-50 on up to 192 learners", panels)
