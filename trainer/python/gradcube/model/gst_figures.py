"""Figures of synchronization times: those of HiPS and BML, and that of docs/scale.md."""

from . import bml, hips
from .crossover import gst_lines
from .figures import OVER_BYTES, RELATIVE, Figure, Panel, Series
from .grid import transfer_seconds
from .gst_table import Load
from .topology import parse_topology

_RELATIVE = "GST / T_F"
_HIPS = ((4, 2), (8, 3), (16, 4))  # the configurations (n, h) of HiPS, section 4.2


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
    stars = ("star:16", "star:1024")  # non-blocking, too: the paper's testbed of a Fat-Tree is one (section 4.2)

    def bars(title, gst, topologies, algorithms):
        return Series(title, [0.0, 1.0], gst, topologies=topologies, algorithms=algorithms)

    fat_trees = [bml.fat_tree_gst(16, 1.0), bml.fat_tree_gst(1024, 1.0)]
    meshes = [hips.mesh_gst(hips.BCUBE, 4, 2, 1.0), hips.mesh_gst(hips.BCUBE, 32, 2, 1.0)]
    panel = Panel("", "servers", _RELATIVE, categories=["16", "1024"], measure=RELATIVE)
    panel.series = [
        bars("BCube, BML", [bml.gst(4, 2, 1.0), bml.gst(32, 2, 1.0)], bcubes, ("bml", "hips:mesh", "hips:ring")),
        bars("BCube, PS", meshes, bcubes, ("mesh",)),
        bars("Fat-Tree, hierarchical", fat_trees, stars, ("blueconnect",)),
        bars("Fat-Tree, PS", list(fat_trees), stars, ("mesh", "bml", "hips:mesh")),
    ]
    return Figure("bml-5", "BML, Figure 5: GST on BCube and on Fat-Tree", [panel])


def bml_7(assumed):
    """Section 4.2: 548 MB, 40GE, BCube(3,2) or nine servers on one switch, 1000 iterations."""
    t_f = transfer_seconds(548e6, 40e9)
    iterations = 1000
    on_bcube, on_fat_tree = Series("BML"), Series("Fat-Tree, PS")
    for category, samples in enumerate((16, 32, 64)):
        computation = samples * assumed.seconds_per_sample
        on_bcube.add(category, iterations * (computation + bml.gst(3, 2, t_f)))
        on_fat_tree.add(category, iterations * (computation + bml.fat_tree_gst(9, t_f)))
    panel = Panel("", "sub-minibatch size", "time of 1000 iterations (s)", categories=["16", "32", "64"])
    panel.series = [on_bcube, on_fat_tree]
    alone = "" if assumed.seconds_per_sample > 0 else ", the synchronization alone"
    return Figure("bml-7", f"BML, Figure 7: VGG-19{alone}", [panel])


def scale(assumed):
    latency = assumed.latency_seconds if assumed.latency_seconds > 0 else 5e-6
    load = Load(bytes=0.0, bits_per_second=10e9, latency_seconds=latency)
    panel = Panel("", "bytes", "time (ms)", logarithmic=True, measure=OVER_BYTES)
    for line in gst_lines(parse_topology("bcube:16,4", "the figure"), load):
        series = Series(line.algorithm)
        size = 1e3
        while size <= 1.01e10:
            series.add(size, line.seconds(size) * 1e3)
            size *= 10
        panel.series.append(series)
    title = f"GST on BCube(16,4), 65536 servers: 10 Gbit/s, {latency * 1e6:.3g} us for each message"
    return Figure("scale", title, [panel])
