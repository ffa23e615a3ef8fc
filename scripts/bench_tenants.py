"""Rows about several jobs in one cluster: what they cost each other, and how they share."""

import functools
import pathlib
import re

from bench_process import Cluster
from bench_row import Medians
from bench_row import Row
from bench_row import against
from bench_row import at_most

IDLE_JOBS = 48
JOBS_AT_ONCE = 64


def beside_rows(words, options, setting):
    """1 KB beside a job that makes 100 MB all-reduces without pause, and what those lose by it."""
    medians = Medians()
    iterations = 2 if setting.quick else 3
    with Cluster(setting.build, *options) as cluster:
        for _ in range(setting.turns(2)):
            medians.add("small", cluster.allreduce("1K", 500)["seconds_median"])
            with cluster.busy_jobs(1, 100_000_000):
                medians.add("small beside", cluster.allreduce("1K", 200)["seconds_median"])
            medians.add("large", cluster.allreduce("100M", iterations)["seconds_median"])
            with cluster.busy_jobs(1, 1000):
                medians.add("large beside", cluster.allreduce("100M", iterations)["seconds_median"])
    small = against(
        f"1 KB beside 100 MB, {words}", medians["small beside"], "us", "alone", medians["small"]
    )
    large = against(
        f"100 MB beside 1 KB, {words}", medians["large beside"], "s", "alone", medians["large"]
    )
    return [at_most(small, 3), at_most(large, 1.05)]


def idle_rows(size, unit, iterations, words, options, setting):
    """What jobs that are attached and do nothing cost another."""
    medians = Medians()
    with Cluster(setting.build, *options) as cluster:
        for _ in range(setting.turns()):
            medians.add("alone", cluster.allreduce(size, iterations)["seconds_median"])
            with cluster.idle_jobs(IDLE_JOBS):
                medians.add("beside", cluster.allreduce(size, iterations)["seconds_median"])
    figure = f"{words}, {IDLE_JOBS} idle jobs attached"
    return [at_most(against(figure, medians["beside"], unit, "none", medians["alone"]), 1.03)]


def at_once_rows(setting):
    """Jobs of 1 MB at the same time: do they finish as soon as one by one, and together?"""
    with Cluster(setting.build) as cluster:
        result = cluster.jobs_at_once(JOBS_AT_ONCE, 1_000_000, setting.iterations(9))
    figure = f"{JOBS_AT_ONCE} jobs of 1 MB at once, no rate"
    after, slowest = result["one_after_another"], result["job_slowest"]
    return [
        at_most(against(figure, result["at_once"], "s", "one after another", after), 1.10),
        at_most(
            against(f"{figure}: slowest job", slowest, "s", "median", result["job_median"]), 2
        ),
    ]


def many_server_rows(setting):
    """1 MB on 64 servers: the cost per server and MB against that of nine, and idle memory."""
    medians = Medians()
    idle = {}
    topologies = {"bcube:3,2": 9, "bcube:8,2": 64, "bcube:4,3": 64, "bcube:2,6": 64}
    for _ in range(setting.turns(2)):
        for topology, servers in topologies.items():
            with Cluster(setting.build, topology=topology) as cluster:
                idle[topology] = cluster.status()["memory"]["daemon_bytes"]
                result = cluster.allreduce("1M", setting.iterations(30))
                medians.add(topology, result["seconds_median"] / servers)
    nine = medians["bcube:3,2"]
    rows = []
    for topology in list(topologies)[1:]:
        figure = f"1 MB, {topology}, no rate: per server and MB"
        rows.append(at_most(against(figure, medians[topology], "us", "bcube:3,2", nine), 1.5))
    for topology in list(topologies)[1:]:
        row = Row(f"memory of the daemon, {topology} idle", idle[topology] / 1e6, "MB")
        row.target, row.met = "<= 300 MB", row.value <= 300
        rows.append(row)
    return rows


def memory_rows(setting):
    """The daemon's own memory must follow the windows, not the gradients."""
    with Cluster(setting.build) as cluster:
        # The first jobs fill the allocator's lists, whatever they add.
        small = resident_bytes(cluster, "1M", jobs=10)
        large = resident_bytes(cluster, "100M", jobs=2)
    row = Row(
        "memory of the daemon after 100 MB",
        large / 1e6,
        "MB",
        f"after 1 MB {small / 1e6:.4g} MB",
        large / small,
    )
    return [at_most(row, 1.05)]


def resident_bytes(cluster, size, jobs):
    """What the daemon has of all memory but the trainers' after so many jobs, as the kernel says now."""
    for _ in range(jobs):
        cluster.allreduce(size, 2)
    mappings = pathlib.Path(f"/proc/{cluster.status()['pid']}/smaps").read_text("utf-8").split("VmFlags:")
    own = (mapping for mapping in mappings if "memfd:gradcube-session" not in mapping)
    return sum(int(kilobytes) for one in own for kilobytes in re.findall(r"^Rss: +(\d+) kB$", one, re.MULTILINE)) * 1024


ONE_GIGABIT = ("--rate", "1gbit")

GROUPS = [
    ("1 KB beside 100 MB, no rate", functools.partial(beside_rows, "no rate", ())),
    ("1 KB beside 100 MB, 1 Gbit/s", functools.partial(beside_rows, "1 Gbit/s", ONE_GIGABIT)),
    (
        "idle jobs, 12.5 MB",
        functools.partial(idle_rows, "12.5M", "s", 9, "12.5 MB at 1 Gbit/s", ONE_GIGABIT),
    ),
    ("idle jobs, 1 KB", functools.partial(idle_rows, "1K", "us", 1000, "1 KB, no rate", ())),
    ("jobs at once", at_once_rows),
    ("64 servers", many_server_rows),
    ("memory", memory_rows),
]
