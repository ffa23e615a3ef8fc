"""Rows with a daemon per server on the links of one host's test bed (`up --fabric veth`). They need root."""

import time

import bench_peers
from bench_namespaces import star
from bench_process import Cluster
from bench_process import Failure
from bench_process import cpu_seconds
from bench_row import Medians
from bench_row import Row
from bench_row import against
from bench_row import at_least
from bench_row import value_at_most

RATE = 100_000_000
LINKS = ("--fabric", "veth", "--rate", f"{RATE}bit")
SIZE = "12.5M"


def bound_rows(setting):
    """How near the bound nine daemons come."""
    rows = []
    for mtu, limit in ((9000, 0.93), (1500, 0.88)):
        with Cluster(setting.build, *LINKS, "--mtu", str(mtu)) as cluster:
            cluster.allreduce(SIZE, 1)
            result = cluster.allreduce(SIZE, setting.iterations(6))
        bound = f"bound {result['bound_seconds']:.4g} s"
        figure = f"12.5 MB at 100 Mbit/s, nine daemons, MTU {mtu}"
        row = Row(figure, result["seconds_median"], "s", bound, result["efficiency"])
        rows.append(at_least(row, limit))
    return rows


def gloo_rows(setting):
    """BML on BCube(3,2) against Gloo's ring on a star of nine namespaces, with links of the same rate."""
    medians = Medians()
    for _ in range(setting.turns()):
        with Cluster(setting.build, *LINKS) as cluster:
            cluster.allreduce(SIZE, 1)
            medians.add("gradcube", cluster.allreduce(SIZE, setting.iterations(6))["seconds_median"])
        with star(bench_peers.RANKS, RATE, 9000) as net:
            medians.add("gloo", bench_peers.gloo_ring(setting.build, [SIZE], setting.iterations(6), net.members)[SIZE])
    figure = "12.5 MB, links of 100 Mbit/s: Gloo's ring on star:9"
    return [at_least(against(figure, medians["gloo"], "s", "bml on bcube:3,2", medians["gradcube"]), 1.85)]


def message_rows(setting):
    """A large message between servers that differ in both digits, over one path and over both."""
    with Cluster(setting.build, *LINKS) as cluster:
        iterations = setting.iterations(6)
        one = cluster.sendrecv(SIZE, iterations, "--paths", "1")
        two = cluster.sendrecv(SIZE, iterations)
    figure = "a 12.5 MB message at distance 2, 100 Mbit/s: one path"
    gain = at_least(against(figure, one["seconds_median"], "s", "two paths", two["seconds_median"]), 1.8)
    bound = f"bound {two['bound_seconds']:.4g} s"
    row = Row("the same over two paths", two["seconds_median"], "s", bound, two["efficiency"])
    return [gain, at_least(row, 0.9)]


def idle_rows(setting):
    """The busiest of nine daemons that have no job."""
    seconds = 5 if setting.quick else 20
    with Cluster(setting.build, *LINKS) as cluster:
        pids = [server["pid"] for server in cluster.status()["servers"]]
        if len(pids) != bench_peers.RANKS:
            raise Failure(f"{len(pids)} daemons are up")
        time.sleep(2)  # they have just started
        begin = time.monotonic()
        before = [cpu_seconds(pid) for pid in pids]
        time.sleep(seconds)
        spent = [cpu_seconds(pid) - was for pid, was in zip(pids, before)]
        share = max(spent) / (time.monotonic() - begin)
    return [value_at_most(Row("one of nine idle daemons, the busiest", 100 * share, "% of a core"), 1)]


GROUPS = [
    ("hosts: nine daemons on veths", bound_rows),
    ("hosts: against Gloo's ring on a star", gloo_rows),
    ("hosts: messages over two paths", message_rows),
    ("hosts: idle daemons", idle_rows),
]
