"""Rows where the links are the bottleneck: how near the bound 2(N-1)/(kN), and what loss costs."""

import functools

from bench_process import Cluster
from bench_process import Failure
from bench_row import Row
from bench_row import at_least
from bench_row import at_most
from bench_row import zero

SLOW_LINKS = ("--rate", "200mbit", "--queue", "128K")


def total(status, counter):
    return sum(switch[counter] for switch in status["switches"])


def of_bound(figure, result, limit):
    bound = f"bound {result['bound_seconds']:.4g} s"
    row = Row(figure, result["seconds_median"], "s", bound, result["efficiency"])
    return at_least(row, limit)


def mtu_rows(setting):
    """At 200 Mbit/s with both MTUs; do the switches' queues hold?"""
    rows = []
    for mtu, limit in ((9000, 0.97), (1500, 0.90)):
        with Cluster(setting.build, *SLOW_LINKS, "--mtu", str(mtu)) as cluster:
            cluster.allreduce("12.5M", 1)  # into the steady state
            before = total(cluster.status(), "dropped_queue")
            result = cluster.allreduce("12.5M", setting.iterations(6))
            drops = total(cluster.status(), "dropped_queue") - before
        rows.append(of_bound(f"12.5 MB at 200 Mbit/s, MTU {mtu}", result, limit))
        rows.append(zero(f"drops of 128 KB switch queues, MTU {mtu}", drops, "frames"))
    return rows


def gigabit_rows(setting):
    rows = []
    for rate, words, sizes in (
        ("1gbit", "1 Gbit/s", (("12.5", 0.95, 9), ("100", 0.97, 4))),
        ("2gbit", "2 Gbit/s", (("12.5", 0.92, 15),)),
    ):
        with Cluster(setting.build, "--rate", rate) as cluster:
            for megabytes, limit, iterations in sizes:
                result = cluster.allreduce(f"{megabytes}M", setting.iterations(iterations))
                rows.append(of_bound(f"{megabytes} MB at {words}", result, limit))
    return rows


def topology_rows(topology, size, limit, iterations, setting):
    """One topology at 500 Mbit/s; 1 MB or 100 MB."""
    with Cluster(setting.build, "--rate", "500mbit", topology=topology) as cluster:
        result = cluster.allreduce(f"{size}M", setting.iterations(iterations))
        drops = total(cluster.status(), "dropped_queue")
    name = f"{size} MB at 500 Mbit/s, {topology}"
    return [of_bound(name, result, limit), zero(f"drops of switch queues, {name}", drops, "frames")]


def loss_rows(setting):
    """What random loss costs, in time and in segments resent, at 200 Mbit/s."""
    iterations = setting.iterations(9)
    rows = []
    with Cluster(setting.build, *SLOW_LINKS, "--mtu", "9000") as cluster:
        cluster.allreduce("12.5M", 1)
        clean = cluster.allreduce("12.5M", iterations)
        resent = cluster.status()["counters"]["resent"]
        rows.append(zero("segments resent at no loss", resent, "segments"))
        for loss, limit in ((0.001, 1.01), (0.01, 1.03)):
            cluster.impair("--loss", str(loss))
            before = cluster.status()
            result = cluster.allreduce("12.5M", iterations)
            rows += rows_of_loss(loss, limit, clean, result, before, cluster.status())
    return rows


def rows_of_loss(loss, limit, clean, result, before, after):
    lost = total(after, "dropped_loss") - total(before, "dropped_loss")
    resent = after["counters"]["resent"] - before["counters"]["resent"]
    if lost == 0:
        raise Failure("the switches lost nothing: no such loss was set")
    time = Row(
        f"12.5 MB at 200 Mbit/s, loss {loss:.1%}",
        result["seconds_median"],
        "s",
        f"without loss {clean['seconds_median']:.4g} s",
        result["seconds_median"] / clean["seconds_median"],
    )
    again = Row(
        f"segments resent at loss {loss:.1%}",
        resent,
        "segments",
        f"lost {lost} frames",
        resent / lost,
    )
    return [at_most(time, limit), at_most(again, 1.2)]


GROUPS = [
    ("200 Mbit/s", mtu_rows),
    ("1 and 2 Gbit/s", gigabit_rows),
    *(
        (
            f"500 Mbit/s, {size} MB, {topology}",
            functools.partial(topology_rows, topology, size, limit, iterations),
        )
        for size, topology, limit, iterations in (
            ("100", "bcube:2,3", 0.97, 3),
            ("100", "bcube:3,3", 0.97, 3),
            ("100", "star:9", 0.97, 3),
            ("100", "bcube:4,2", 0.97, 3),
            ("1", "bcube:3,2", 0.90, 60),
            ("1", "star:9", 0.90, 60),
        )
    ),
    ("random loss", loss_rows),
]
