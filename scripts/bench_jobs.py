"""Rows that repeat BML's section 4.2: job completion time of LeNet-5 and VGG-19 on BCube(3,2) and on a star of nine.

An iteration computes, which is slept, and then exchanges each layer's gradients. On the star this is done by parameter
servers, of which each server is one; links have the same rate everywhere. The paper gives no times of computation, only
how much less time its jobs take, least and most, and the sub-minibatches; computation is in proportion to those. Its
unit, the time for the smallest sub-minibatch by that of exchanging all gradients over one link, is chosen here, once
for each network and each kind of parameter server:

- Equal shares, the algorithm `mesh`: each server is responsible for a ninth of each layer. BML then saves at most half
  of the time. The unit is the one by which the largest sub-minibatch comes to the paper's least saving.
- Whole layers, `ps:SERVER`, one server for each in turn. The paper says that its peer does this (tensor by tensor), so
  that servers were loaded unevenly and BML saved more than half. The unit is the one by which the equations come
  nearest to both of the paper's figures.
"""

import dataclasses
import json
import pathlib
import tempfile
from typing import Sequence

import bench_algorithms
import bench_peers
from bench_process import Cluster
from bench_process import run_all
from bench_row import Row
from bench_trainers import CALM
from bench_trainers import on_cluster

RATE = 1_000_000 * bench_algorithms.RATE[0]  # bit/s, of all links
LANES = 8  # of a job, at most
POINTS = 5  # of percent, by which a saving may differ from the paper's


@dataclasses.dataclass
class Network:
    name: str  # for `gradcube model training`
    title: str
    samples: Sequence[int]  # the paper's sub-minibatches
    most: float  # percent that BML saves with the first of them
    least: float  # and with the last
    whole_unit: float
    cut: int  # layers have so many times fewer bytes here

    def equal_unit(self):
        """Saved is (1/2) / (c + 1), with c for the last sub-minibatch."""
        return (50 / self.least - 1) * self.samples[0] / self.samples[-1]

    def computations(self, unit, seconds):
        return [unit * seconds * samples / self.samples[0] for samples in self.samples]


LENET = Network("lenet5", "LeNet-5", (128, 256, 512, 1024), 56.4, 18.7, 2.3, 1)
VGG = Network("vgg19", "VGG-19, layers cut to 1/64", (16, 32, 64), 52.1, 29.2, 1.8, 64)


def layer_bytes(setting, network):
    """Of each layer's gradients, from the first to the last."""
    gradcube = str(pathlib.Path(setting.build) / "cli/gradcube")
    with tempfile.TemporaryDirectory(prefix="gradcube-bench.") as folder:
        profile = pathlib.Path(folder) / "profile.json"
        options = ["--network", network.name, "--nodes", "8", "--write-profile", str(profile)]
        run_all([[gradcube, "model", "training", *options]], 30)
        layers = json.loads(profile.read_text(encoding="utf-8"))["layers"]
    return [max(4, layer["bytes"] // network.cut) for layer in layers]


class Side:
    """A topology, and the algorithms of a job's lanes, which layers take in turn."""

    def __init__(self, topology, algorithms, sizes):
        self._topology, self._algorithms, self._sizes = topology, algorithms, sizes

    def measured(self, setting, computations, iterations):
        """The seconds of an iteration, for each time of computation."""
        lists = [",".join(map(str, each)) for each in (self._algorithms, self._sizes, computations)]
        options = bench_algorithms.link_options(self._topology, bench_algorithms.RATE)[2:]
        with Cluster(setting.build, *options, *CALM, topology=self._topology) as cluster:
            return on_cluster(setting, cluster, "job_time.py", *lists, iterations)["seconds"]

    def virtual(self, setting, computations):
        """The same with an exchange in virtual time: the fullest lane's, as lanes do not wait for each other."""
        lanes = len(self._algorithms)
        most = max(sum(self._sizes[lane::lanes]) for lane in range(lanes))
        place = (self._topology, bench_algorithms.RATE, self._algorithms[0])
        seconds = bench_algorithms.virtual_seconds(setting, *place, str(most))
        return [computation + seconds for computation in computations]


def saving(ours, theirs):
    return 100 * (1 - ours / theirs)


def saving_row(title, seconds, virtual, paper):
    """Of pairs of seconds. `paper`: percent, or None where it does not say."""
    bound = f"virtual time {saving(*virtual):.4g} %; an iteration {seconds[0]:.4g} and {seconds[1]:.4g} s"
    row = Row(title, saving(*seconds), "%", bound)
    if paper is not None:
        row.bound = f"the paper {paper:g} %; {bound}"
        row.target, row.met = f"{paper:g} +- {POINTS} %", abs(row.value - paper) <= POINTS
    return row


def network_rows(network, setting):
    sizes = layer_bytes(setting, network)
    ranks = bench_peers.RANKS
    exchange = 2 * (ranks - 1) / ranks * sum(sizes) * 8 / RATE  # over one link, with equal shares
    bml = Side("bcube:3,2", ["bml"], sizes)
    equal = Side("star:9", ["mesh"], sizes)
    whole = Side("star:9", [f"ps:{server}" for server in range(min(LANES, len(sizes)))], sizes)
    papers = [network.most, *([None] * (len(network.samples) - 2)), network.least]
    rows = []
    for words, servers, unit, iterations in (
        ("equal shares", equal, network.equal_unit(), setting.iterations(3)),
        ("a server for each layer", whole, network.whole_unit, 1),  # of seconds, most of which are slept
    ):
        computations = network.computations(unit, exchange)
        seconds = zip(*(side.measured(setting, computations, iterations) for side in (bml, servers)))
        virtual = zip(*(side.virtual(setting, computations) for side in (bml, servers)))
        for samples, *pairs, paper in zip(network.samples, seconds, virtual, papers):
            title = f"{network.title}, {samples} samples, bml on bcube:3,2: less than {words} on star:9"
            rows.append(saving_row(title, *pairs, paper))
    return rows


def lenet_rows(setting):
    return network_rows(LENET, setting)


def vgg_rows(setting):
    return network_rows(VGG, setting)


GROUPS = [
    ("training: LeNet-5, BML against parameter servers", lenet_rows),
    ("training: VGG-19, BML against parameter servers", vgg_rows),
]
