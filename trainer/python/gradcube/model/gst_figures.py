"""Figures of synchronization times: those of HiPS and BML, and those of docs/scale.md and docs/choosing.md."""

from . import bml, hips
from .crossover import gst_lines
from .figures import OVER_BYTES, RELATIVE, Figure, Panel, Series
from .grid import transfer_seconds
from .gst_table import Load
from .topology import parse_topology

_RELATIVE = "GST / T_F"
_HIPS = ((4, 2), (8, 3), (16, 4))  # the configurations (n, h) of HiPS, section 4.2
# What a cluster runs for the bars of BML's paper.
_BML = ("bml", "hips:mesh", "hips:ring")
_PS_ON_FAT_TREE = ("mesh", "bml", "hips:mesh")


def _hips_figure(name, number, network_name, network):
    is_torus = network == hips.TORUS
    topologies = tuple(f"{network}:{n},{h}" for n, h in _HIPS)

    def bars(title, gst, algorithms):
        series = Series(title, topologies=topologies, algorithms=algorithms)
        for category, (n, h) in enumerate(_HIPS):
            series.add(category, gst(network, n, h, 1.0))
        return series

    panel = Panel("", "(n, h)", _RELATIVE, categories=[f"({n},{h})" for n, h in _HIPS], measure=RELATIVE)
    panel.series = [
        bars("HiPS", hips.gst, ("hips:ring",) if is_torus else ("hips:mesh", "hips:ring", "bml")),
        bars("PSS/MS, a lower bound" if is_torus else "PSS/MS", hips.mesh_gst, ("mesh",)),
        bars("RS", hips.ring_gst, ("ring",)),
    ]
    return Figure(name, f"HiPS, Figure {number}: GST in {network_name}", [panel])


def hips_6(_):
    return _hips_figure("hips-6", 6, "BCube", hips.BCUBE)


def hips_7(_):
    return _hips_figure("hips-7", 7, "Torus", hips.TORUS)


def bml_5(_):
    bcubes = ("bcube:4,2", "bcube:32,2")
    # Non-blocking, too: the paper's testbed of a Fat-Tree is one (section 4.2). A measured tree is like it if its
    # uplinks are as fast as all links below them (MeasuredRun.like).
    stars = ("star:16", "star:1024")

    def bars(title, gst, topologies, algorithms):
        return Series(title, [0.0, 1.0], gst, topologies=topologies, algorithms=algorithms)

    fat_trees = [bml.fat_tree_gst(16, 1.0), bml.fat_tree_gst(1024, 1.0)]
    meshes = [hips.mesh_gst(hips.BCUBE, 4, 2, 1.0), hips.mesh_gst(hips.BCUBE, 32, 2, 1.0)]
    panel = Panel("", "servers", _RELATIVE, categories=["16", "1024"], measure=RELATIVE)
    panel.series = [
        bars("BCube, BML", [bml.gst(4, 2, 1.0), bml.gst(32, 2, 1.0)], bcubes, _BML),
        bars("BCube, PS", meshes, bcubes, ("mesh",)),
        bars("Fat-Tree, hierarchical", fat_trees, stars, ("blueconnect",)),
        bars("Fat-Tree, PS", list(fat_trees), stars, _PS_ON_FAT_TREE),
    ]
    return Figure("bml-5", "BML, Figure 5: GST on BCube and on Fat-Tree", [panel])


def _bml_training(name, network, byte_count, batches, assumed):
    """Section 4.2: 40GE, BCube(3,2) or nine servers on one switch, 1000 iterations."""
    iterations = 1000
    panel = Panel(
        "",
        "sub-minibatch size",
        "time of 1000 iterations (s)",
        categories=list(map(str, batches)),
        measure=RELATIVE,
        unit=iterations * transfer_seconds(byte_count, 40e9),
        base=tuple(iterations * samples * assumed.seconds_per_sample for samples in batches),
    )
    for title, gst, topology, algorithms in (
        ("BML", bml.gst(3, 2, 1.0), "bcube:3,2", _BML),
        ("Fat-Tree, PS", bml.fat_tree_gst(9, 1.0), "star:9", _PS_ON_FAT_TREE),
    ):
        bars = Series(title, topologies=(topology,) * len(batches), algorithms=algorithms)
        for category in range(len(batches)):
            bars.add(category, panel.of_relative(category, gst))
        panel.series.append(bars)
    alone = "" if assumed.seconds_per_sample > 0 else ", the synchronization alone"
    return Figure(name, f"BML, Figure {name[-1]}: {network}{alone}", [panel])


def bml_6(assumed):
    return _bml_training("bml-6", "LeNet-5", 12.5e6, (128, 256, 512, 1024), assumed)


def bml_7(assumed):
    return _bml_training("bml-7", "VGG-19", 548e6, (16, 32, 64), assumed)


def _lines_over_bytes(spec, title, latency, measure=""):
    load = Load(bytes=0.0, bits_per_second=10e9, latency_seconds=latency)
    panel = Panel(title, "bytes", "time (ms)", logarithmic=True, measure=measure)
    for line in gst_lines(parse_topology(spec, "the figure"), load):
        series = Series(line.algorithm)
        size = 1e3
        while size <= 1.01e10:
            series.add(size, line.seconds(size) * 1e3)
            size *= 10
        panel.series.append(series)
    return panel


def _latency(assumed):
    return assumed.latency_seconds if assumed.latency_seconds > 0 else 5e-6


def scale(assumed):
    latency = _latency(assumed)
    title = f"GST on BCube(16,4), 65536 servers: 10 Gbit/s, {latency * 1e6:.3g} us for each message"
    return Figure("scale", title, [_lines_over_bytes("bcube:16,4", "", latency, OVER_BYTES)])


def choosing(assumed):
    latency = _latency(assumed)
    panels = [
        _lines_over_bytes("star:16", "one NIC: star:16", latency),
        _lines_over_bytes("bcube:4,2", "two NICs: bcube:4,2", latency),
    ]
    title = f"GST of 16 servers: 10 Gbit/s, {latency * 1e6:.3g} us for each message"
    return Figure("choosing", title, panels)
