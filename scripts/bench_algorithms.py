"""Rows that hold algorithms against the papers' models and against each other, links being the bottleneck.

A plan is measured on the embedded fabric, and beside that in virtual time (bench_schedule), which no other load on the
machine changes. A row also says how busy the machine's cores were: where that is near all of them, it is the cores that
were measured.
"""

import itertools
import pathlib
import time

from bench_process import Cluster
from bench_process import cpu_seconds
from bench_process import run_json
from bench_row import Medians
from bench_row import Row
from bench_row import against
from bench_row import at_least
from bench_row import at_most
from bench_row import within

MEGABYTES = 12.5
RATE = (200,)  # Mbit/s
# Of which the levels have other rates: 4:1 and 10:1, and four servers share a rack's uplink as fast as the link of one.
LEVELS = (("bcube:4x4", (200, 50)), ("bcube:4x4", (200, 20)), ("tree:4x4", (200, 200)))
# The segments of a flat mesh on their way over two hops and back fit into a port's queue.
QUEUE = "256K"
SIZES = ("1K", "16K", "256K", "1M", "12.5M")
SHORT_SIZES = ("64", "1K", "4K", "8K")
PLACES = (
    ("bcube:4,2", RATE),
    ("torus:4,2", RATE),
    ("bcube:3,2", RATE),
    ("star:9", RATE),
    *LEVELS,
)


def rate_option(rates):
    if len(rates) == 1:
        return f"{rates[0]}mbit"
    return ",".join(f"level{level}={rate}mbit" for level, rate in enumerate(rates))


def place_words(topology, rates):
    return f"{topology} at {'/'.join(str(rate) for rate in rates)} Mbit/s"


def link_options(topology, rates):
    return ["--topology", topology, "--rate", rate_option(rates), "--mtu", "9000", "--queue", QUEUE]


def virtual_seconds(setting, topology, rates, algorithm, size=f"{MEGABYTES}M"):
    schedule = pathlib.Path(setting.build) / "tests/bench/schedule/bench_schedule"
    options = [*link_options(topology, rates), "--algorithm", algorithm, "--bytes", size]
    return run_json([str(schedule), *options, "--json"], 300)["seconds"]


class Measured:
    """One algorithm on one topology: its median time, and that in virtual time."""

    def __init__(self, setting, topology, algorithm, rates=RATE):
        self.name = f"{algorithm} on {place_words(topology, rates)}"
        self.virtual = virtual_seconds(setting, topology, rates, algorithm)
        size = f"{MEGABYTES}M"
        with Cluster(setting.build, *link_options(topology, rates)[2:], topology=topology) as cluster:
            cluster.allreduce(size, 1, algorithm=algorithm)  # into the steady state
            pid = cluster.status()["pid"]
            busy, begin = cpu_seconds(pid), time.monotonic()
            result = cluster.allreduce(size, setting.iterations(9), algorithm=algorithm)
            busy, elapsed = cpu_seconds(pid) - busy, time.monotonic() - begin
        self.seconds = result["seconds_median"]
        self.bound = result["bound_seconds"]
        self._cores = busy / elapsed

    def against(self, model, words):
        words = f"{words} {model:.4g} s, virtual time {self.virtual:.4g} s, {self._cores:.2g} cores"
        return Row(self.name, self.seconds, "s", words, self.seconds / model)


def of_model(setting, command, *options):
    gradcube = str(pathlib.Path(setting.build) / "cli/gradcube")
    command = [gradcube, "model", command, *options, "--bytes", f"{MEGABYTES}M", "--json"]
    return {row["algorithm"]: row["seconds"] for row in run_json(command, 30)["rows"]}


def gst(setting, topology):
    return of_model(setting, "gst", "--topology", topology, "--rate", rate_option(RATE))


def reduction(plan, other, papers, exactly=True):
    """By how much less a plan takes than another, in percent; the papers say by how much, or by how much at least."""
    saved = 100 * (1 - plan.seconds / other.seconds)
    virtual = 100 * (1 - plan.virtual / other.virtual)
    words = f"the papers {papers:g} %, virtual time {virtual:.4g} %"
    row = Row(f"{plan.name}, less than {other.name}", saved, "%", words, saved / papers)
    row.target = f"{papers:g} +- 3 %" if exactly else f">= {papers - 3:g} %"
    row.met = saved >= papers - 3 and (saved <= papers + 3 or not exactly)
    return row


def flat_rows(setting):
    """HiPS and BML against flat plans (HiPS, section 4.2; BML, section 3.3)."""
    rows = []
    for sides, reductions in (
        ((("bcube:4,2", "hips:mesh"), ("bcube:4,2", "mesh")), ((37.5, True),)),
        ((("bcube:4,2", "hips:ring"), ("bcube:4,2", "ring")), ((50, True),)),
        ((("torus:4,2", "hips:ring"), ("torus:4,2", "ring"), ("torus:4,2", "mesh")), ((50, True), (37.5, False))),
        ((("bcube:3,2", "bml"), ("star:9", "mesh")), ((50, True),)),
    ):
        plans = [Measured(setting, *side) for side in sides]
        for plan, (topology, algorithm) in zip(plans, sides):
            row = plan.against(gst(setting, topology)[algorithm], "model")
            # Of a mesh on a torus, HiPS only says what it takes at least.
            rows.append(row if (topology, algorithm) == ("torus:4,2", "mesh") else within(row, 0.05))
        rows += [reduction(plans[0], other, *papers) for other, papers in zip(plans[1:], reductions)]
    return rows


def order(figure, seconds, modelled):
    """Whether plans, by name, stand in the order of their models: the pairs of them that do."""
    pairs = list(itertools.combinations(modelled, 2))
    alike = sum((seconds[a] < seconds[b]) == (modelled[a] < modelled[b]) for a, b in pairs)
    measured, model = (" < ".join(sorted(times, key=times.get)) for times in (seconds, modelled))
    row = Row(figure, alike, f"of {len(pairs)} pairs", f"model {model}; measured {measured}")
    row.target, row.met = f"{len(pairs)} of {len(pairs)} pairs", alike == len(pairs)
    return row


def level_rows(setting):
    """BlueConnect's section 3.3, and the shares of bml, where the rates of the levels differ.

    The equations take the stages of a plan one after the other. An engine lets each segment go on by itself, so stages
    on different links overlap. A plan that takes so much less that it is not within 10 %, or changes its place among
    the others, misses the equations all the same.
    """
    rows = []
    for topology, rates in LEVELS:
        fast, slow = rates
        factors = ("--factors", "4x4", "--rates")
        model = of_model(setting, "gst", *factors, f"{fast}mbit,{slow}mbit")
        if topology.startswith("bcube"):
            # Eq. 9's servers of a group share an uplink; here each has a link of its own.
            own = of_model(setting, "gst", *factors, f"{fast}mbit,{4 * slow}mbit")
            model["blueconnect"] = own["blueconnect"]
        equations = {"ring": "Eq. 6", "two-level": "Eq. 7", "blueconnect": "Eq. 9"}
        plans = {algorithm: Measured(setting, topology, algorithm, rates) for algorithm in equations}
        for algorithm, words in equations.items():
            rows.append(within(plans[algorithm].against(model[algorithm], f"BlueConnect's {words}"), 0.1))
        seconds = {algorithm: plan.seconds for algorithm, plan in plans.items()}
        modelled = {algorithm: model[algorithm] for algorithm in equations}
        rows.append(order(f"order on {place_words(topology, rates)}", seconds, modelled))
        if topology.startswith("tree"):
            continue  # bml has nothing to gain: all its threads are on the one port of a server
        shares = Measured(setting, topology, "bml", rates)
        row = shares.against(shares.bound, "the least over all shares")
        row.ratio = shares.bound / shares.seconds
        rows.append(at_least(row, 0.95))
        equal = Measured(setting, topology, "hips:mesh", rates)
        rows.append(at_most(shares.against(equal.seconds, "equal shares, hips:mesh"), 1))
    return rows


def race(setting, cluster, size, auto, others):
    """The medians of `auto` and of the others, by name, but of those that take more than twice the least."""
    first = {name: cluster.allreduce(size, 2, algorithm=name)["seconds_median"] for name in others}
    least = min(first.values())
    runners = [auto, *(name for name in others if first[name] <= 2 * least)]
    iterations = setting.iterations(max(6, min(60, int(0.5 / least))))
    medians = Medians()
    for _ in range(setting.turns()):
        for name in runners:
            medians.add(name, cluster.allreduce(size, iterations, algorithm=name)["seconds_median"])
    return {name: medians[name] for name in runners}


def auto_rows(setting):
    """`auto`, with what a message costs as `model fit` found it, against the best of all others, size by size."""
    rows = []
    for topology, rates in PLACES:
        with Cluster(setting.build, *link_options(topology, rates)[2:], topology=topology) as cluster:
            auto = cluster.fitted_auto()
            for size in SIZES:
                why = cluster.why(size, auto)
                # What the model takes for four times as long is not worth the time to measure it.
                most = 4 * why["candidates"][0]["seconds"]
                others = [each["algorithm"] for each in why["candidates"] if each["seconds"] <= most]
                medians = race(setting, cluster, size, auto, others)
                best = min((name for name in medians if name != auto), key=medians.get)
                words = f"{best} {medians[best]:.4g} s; {auto} ran {why['auto']}"
                figure = f"auto, {size}B on {place_words(topology, rates)}"
                rows.append(at_most(Row(figure, medians[auto], "s", words, medians[auto] / medians[best]), 1.03))
    return rows


def short_rows(setting):
    """`recursive_doubling` against `bml`, in turns, where links have no rate: sizes that it runs itself."""
    rows = []
    for topology in ("bcube:3,2", "star:9"):
        with Cluster(setting.build, topology=topology) as cluster:
            for size in SHORT_SIZES:
                medians = Medians()
                for _ in range(setting.turns(5)):
                    for algorithm in ("bml", "recursive_doubling"):
                        seconds = cluster.allreduce(size, setting.iterations(1000), algorithm=algorithm)["seconds_median"]
                        medians.add(algorithm, seconds)
                figure = f"recursive_doubling, {size}B on {topology}"
                rows.append(at_most(against(figure, medians["recursive_doubling"], "us", "bml", medians["bml"]), 1))
    return rows


GROUPS = [
    ("algorithms: against flat plans", flat_rows),
    ("algorithms: short all-reduces", short_rows),
    ("algorithms: levels of different rates", level_rows),
    ("algorithms: auto", auto_rows),
]
