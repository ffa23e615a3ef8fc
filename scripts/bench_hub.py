"""Rows about the parameter hub: what an exchange with the optimizer in it costs, and where."""

import os
import pathlib
import sys

from bench_process import Cluster
from bench_process import Failure
from bench_process import run_json
from bench_row import Medians
from bench_row import Row
from bench_row import against
from bench_row import at_least
from bench_row import at_most

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests/bench/hub"
DEFAULT_CHUNK = 0  # by the model's length
CHUNKS = (8192, 32768, 65536, 131072, 262144, 524288, 1048576, 4194304)
JOBS = (1, 2, 4, 8)
WORKERS = (2, 4, 8)
# What is measured without links: so many workers, and PHub's chunks.
WORKERS_IN_MEMORY = 8
CHUNK = 32768


def resnet(blocks, bottleneck):
    """The elements of the parameters of a ResNet (He et al., 2015) for ImageNet, one number for each tensor."""
    keys, inputs = [64 * 3 * 49, 64, 64], 64
    for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512))):
        outputs = 4 * width if bottleneck else width
        for block in range(count):
            if bottleneck:
                keys += [width * inputs, width, width, 9 * width * width, width, width]
                keys += [outputs * width, outputs, outputs]
            else:
                keys += [9 * width * inputs, width, width, 9 * width * width, width, width]
            if block == 0 and (bottleneck or stage > 0):
                keys += [outputs * inputs, outputs, outputs]
            inputs = outputs
    return keys + [1000 * inputs, 1000]


RESNET_18 = resnet((2, 2, 2, 2), bottleneck=False)
# A quarter of it: at the rate below a root takes seconds for it.
QUARTER = [max(1, elements // 4) for elements in RESNET_18]
RESNET_50 = resnet((3, 4, 6, 3), bottleneck=True)


def rounds(cluster, setting, keys=RESNET_18, **given):
    return cluster.hub_rounds(keys, setting.iterations(15), **given)["seconds_median"]


def exchange_rows(setting):
    """Where chunks are stepped, and by what, where nothing but the cores limits."""
    medians = Medians()
    with Cluster(setting.build) as cluster:
        for _ in range(setting.turns()):
            medians.add("all_reduce", rounds(cluster, setting, how="all_reduce"))
            for optimizer in ("sgd", "nesterov:momentum=0.9", "adamw"):
                medians.add(optimizer, rounds(cluster, setting, optimizer=optimizer, how="push"))
            for how in ("in_turn", "push_pull", "then_pull"):
                medians.add(how, rounds(cluster, setting, how=how))
    figure = "ResNet-18's keys, 9 servers, no rate:"
    rows = [
        against(f"{figure} hub (sgd)", medians["sgd"], "s", "all-reduce of each key", medians["all_reduce"])
    ]
    for optimizer in ("nesterov:momentum=0.9", "adamw"):
        name = optimizer.split(":")[0]
        rows.append(against(f"{figure} {name}", medians[optimizer], "s", "sgd", medians["sgd"]))
    rows += [
        at_most(
            against(f"{figure} another order on each", medians["in_turn"], "s", "one order", medians["push_pull"]), 1.05
        ),
        against(f"{figure} push_pull", medians["push_pull"], "s", "push, then pull", medians["then_pull"]),
    ]
    return rows


def worker_rows(setting):
    """More workers, and a model's owners: one server, or all (PHub, section 4.4: ZeroCompute)."""
    medians = Medians()
    for name, keys in (("ResNet-18", RESNET_18), ("ResNet-50", RESNET_50)):
        for workers in WORKERS:
            with Cluster(setting.build, topology=f"star:{workers}") as cluster:
                for _ in range(setting.turns()):
                    for algorithm in ("ps", "mesh"):
                        seconds = rounds(cluster, setting, keys, how="push", algorithm=algorithm)
                        medians.add((name, workers, algorithm), seconds)
    rows = []
    for name in ("ResNet-18", "ResNet-50"):
        figure = f"{name}'s keys, no rate:"
        for workers in WORKERS[1:]:
            seconds = medians[name, workers, "ps"]
            times = workers // WORKERS[0]
            words = f"{times} times that of {WORKERS[0]}"
            linear = times * medians[name, WORKERS[0], "ps"]
            rows.append(against(f"{figure} {workers} workers, one of them the root", seconds, "s", words, linear))
        most = WORKERS[-1]
        root, sharded = medians[name, most, "ps"], medians[name, most, "mesh"]
        rows.append(against(f"{figure} {most} workers, sharded", sharded, "s", "one root", root))
    return rows


def aggregator_rows(setting):
    """Servers without trainers that own all, PHub's PBoxes, beside owners among the workers (PHub, section 4.4)."""
    workers = 8
    members = ("--members", " ".join(map(str, range(workers))))
    sides = {
        "PBox": (*members, "--aggregator", str(workers)),
        "two": (*members, "--aggregator", f"{workers} {workers + 1}"),
        "sharded": (*members, "--algorithm", "mesh"),
        "root": (*members, "--algorithm", "ps"),
    }
    medians = Medians()
    with Cluster(setting.build, topology=f"star:{workers + 2}") as cluster:
        for _ in range(setting.turns()):
            for side, options in sides.items():
                medians.add(side, cluster.perf_hub(RESNET_18, setting.iterations(15), *options)["seconds_median"])
    figure = f"ResNet-18's keys, {workers} workers, no rate: a server without workers owns all,"
    return [
        against(figure, medians["PBox"], "s", "sharded over the workers", medians["sharded"]),
        against(figure, medians["PBox"], "s", "one of the workers as root", medians["root"]),
        against(figure, medians["PBox"], "s", "two such servers", medians["two"]),
    ]


def owner_rows(setting):
    """All chunks at a root, or a piece of each at every server, on links of the same rate."""
    medians = Medians()
    rate = ("--rate", "200mbit", "--mtu", "9000")
    sides = (("root", "star:9", "ps"), ("mesh", "star:9", "mesh"), ("bml", "bcube:3,2", "bml"))
    for _ in range(setting.turns()):
        for name, topology, algorithm in sides:
            with Cluster(setting.build, *rate, topology=topology) as cluster:
                result = cluster.hub_rounds(QUARTER, setting.iterations(5), algorithm=algorithm)
            medians.add(name, result["seconds_median"])
    # Bits that the busiest port carries in one direction, of a model of 1: the root's link has what
    # eight others send; a mesh has 8/9 of it twice, and bml half of that on each of two links.
    rows = []
    figure = "11.7 MB in 62 keys, 9 servers, 200 Mbit/s:"
    sharded = (("mesh", "sharded on star:9", 8 / (16 / 9)), ("bml", "sharded by bml on bcube:3,2", 8 / (8 / 9)))
    for name, words, modelled in sharded:
        row = against(f"{figure} root", medians["root"], "s", words, medians[name])
        row.bound += f", {modelled:.3g} by the model"
        row.target = f"{0.95 * modelled:.3g} to {1.05 * modelled:.3g}"
        row.met = abs(row.ratio / modelled - 1) <= 0.05
        rows.append(row)
    return rows


def pbox_rows(setting):
    """A server that has links as fast as all workers together, PHub's PBox, beside owners among the workers (PHub,
    section 4.4)."""
    rows = []
    workers = 8
    keys = [max(1, elements // 22) for elements in RESNET_18]
    size = f"{4 * sum(keys) / 1e6:.1f} MB"
    members = ("--members", " ".join(map(str, range(workers))), "--algorithm", "mesh")
    for own, words in (("2gbit", "one port of 2 Gbit/s"), ("10x200mbit", "ten ports of 200 Mbit/s")):
        medians = Medians()
        rate = ("--rate", f"200mbit,server{workers}={own}", "--mtu", "9000")
        with Cluster(setting.build, *rate, topology=f"star:{workers + 1}") as cluster:
            for _ in range(setting.turns(7)):
                seconds = {}
                for side, options in (("PBox", ("--aggregator", str(workers))), ("sharded", members)):
                    result = cluster.perf_hub(keys, setting.iterations(15), *options)
                    seconds[side] = result["seconds_median"]
                    medians.add(side, seconds[side])
                    medians.add(side + " resent", result["resent"])
                medians.add("ratio", seconds["sharded"] / seconds["PBox"])
        figure = f"{size} in {len(keys)} keys, {workers} workers of 200 Mbit/s: sharded over them"
        row = against(figure, medians["sharded"], "s", f"a PBox with {words}", medians["PBox"])
        # A worker's link has 2(N-1)/N of the model each way, or with a PBox the model.
        row.bound += f", {2 * (workers - 1) / workers:.3g} times by the model"
        row.ratio = medians["ratio"]
        rows.append(at_least(row, 1.8))
        figure = f"segments sent again by the rounds with {words}"
        rows.append(Row(figure, medians["PBox resent"], "segments"))
    return rows


def chunk_rows(setting):
    """The default chunk against the best of a sweep (PHub, Figure 16)."""
    medians = Medians()
    with Cluster(setting.build) as cluster:
        for _ in range(setting.turns()):
            for chunk in (DEFAULT_CHUNK, *CHUNKS):
                medians.add(chunk, rounds(cluster, setting, chunk=chunk, how="push"))
    best = min(CHUNKS, key=lambda chunk: medians[chunk])
    figure = "ResNet-18's keys, no rate: chunks of the default length"
    row = against(figure, medians[DEFAULT_CHUNK], "s", f"of {best // 1024} KiB, the best", medians[best])
    return [at_most(row, 1.03)]


def jobs_rows(setting):
    """Hubs of several jobs at once: what each loses beyond its share (PHub, Figure 18)."""
    medians = Medians()
    with Cluster(setting.build, "--rate", "200mbit", "--mtu", "9000") as cluster:
        for jobs in JOBS:
            medians.add(jobs, cluster.hub_rounds(QUARTER, setting.iterations(9), jobs=jobs)["seconds_median"])
    rows = []
    for jobs in JOBS[1:]:
        figure = f"{jobs} hubs of 11.7 MB at once, 200 Mbit/s: a job's round"
        rows.append(at_most(against(figure, medians[jobs], "s", f"{jobs} times alone", jobs * medians[1]), 1.05))
    return rows


def program(setting, name, *arguments):
    """The JSON object of a program of tests/bench/hub that needs no cluster."""
    path = pathlib.Path(setting.build) / "tests/bench/hub" / name
    return run_json([str(path), *map(str, arguments)], 300)


def tall_or_wide_rows(setting):
    """Threads that own chunks against threads that share each key (PHub, section 4.5)."""
    medians = Medians()
    cores = len(os.sched_getaffinity(0))
    keys = ",".join(map(str, RESNET_50))
    ways = ("tall", "wide", "by_array")
    for _ in range(setting.turns()):
        for threads in {1, cores}:
            result = program(setting, "wide_and_tall", WORKERS_IN_MEMORY, threads, CHUNK, setting.iterations(15), keys)
            for way in ways:
                medians.add((way, threads), result[f"{way}_seconds_median"])
    rows = []
    for threads in sorted({1, cores}):
        figure = f"ResNet-50's keys in memory, {WORKERS_IN_MEMORY} workers, {threads} thread{'s' if threads > 1 else ''}:"
        tall, wide, by_array = (medians[way, threads] for way in ways)
        rows.append(against(f"{figure} wide", wide, "s", "tall", tall))
        rows.append(against(f"{figure} wide, array by array", by_array, "s", "tall", tall))
        if threads > 1:
            rows.append(against(f"{figure} tall", tall, "s", "1 thread", medians["tall", 1]))
    return rows


def store_rows(setting):
    """Stores that bypass the caches against ordinary ones, where new weights are sent (PHub, Table 4)."""
    whole = 4 * sum(RESNET_50) // 64 * 64 + 64  # bytes of a chunk that holds the model
    rows = []
    for model, elements, chunk, sent, unit in (
        ("1.3 MB", 32768, CHUNK, "by chunks", "us"),
        ("ResNet-50", sum(RESNET_50), CHUNK, "by chunks", "s"),
        ("ResNet-50", sum(RESNET_50), whole, "at the end", "s"),
    ):
        medians = Medians()
        for _ in range(setting.turns()):
            result = program(setting, "weight_stores", WORKERS_IN_MEMORY, chunk, setting.iterations(15), elements)
            if "skipped" in result:
                raise Failure(result["skipped"])
            for side in ("cached", "streamed"):
                medians.add(side, result[f"{side}_seconds_median"])
        figure = f"step and sending, {model}, {WORKERS_IN_MEMORY} workers, sent {sent}: stores bypass caches"
        rows.append(against(figure, medians["streamed"], unit, "ordinary stores", medians["cached"]))
    return rows


def optimizer_rows(setting):
    """AdamW where the gradients are owned, against an all-reduce and PyTorch's AdamW on every server."""
    medians = Medians()
    for words, options in (("no rate", ()), ("1 Gbit/s", ("--rate", "1gbit", "--mtu", "9000"))):
        with Cluster(setting.build, *options) as cluster:
            for _ in range(setting.turns()):
                for way in ("hub", "local"):
                    command = [sys.executable, str(TESTS / "optimizer_steps.py"), way]
                    command += [",".join(map(str, RESNET_50)), str(setting.iterations(5))]
                    package = str(TESTS.parents[2] / "trainer/python")
                    library = str(pathlib.Path(setting.build).resolve() / "trainer/libgradcube.so")
                    environment = {"PYTHONPATH": package, "GRADCUBE_LIBRARY": library, "OMP_NUM_THREADS": "1"}
                    result = cluster.trainers(command, environment, 300)
                    medians.add(way + words, result["seconds_median"])
    rows = []
    for words in ("no rate", "1 Gbit/s"):
        figure = f"AdamW on ResNet-50's keys, 9 servers, {words}: hub"
        local = medians["local" + words]
        rows.append(at_most(against(figure, medians["hub" + words], "s", "all-reduce and PyTorch", local), 0.9))
    return rows


GROUPS = [
    ("hub: the exchange", exchange_rows),
    ("hub: workers", worker_rows),
    ("hub: an aggregator", aggregator_rows),
    ("hub: root or sharded", owner_rows),
    ("hub: a pbox", pbox_rows),
    ("hub: chunks", chunk_rows),
    ("hub: jobs at once", jobs_rows),
    ("hub: tall or wide", tall_or_wide_rows),
    ("hub: stores", store_rows),
    ("hub: the optimizer at the owner", optimizer_rows),
]
