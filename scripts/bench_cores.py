"""Rows where cores are the bottleneck: links without a rate, and programs without a cluster."""

import functools
import pathlib

import bench_peers
from bench_process import Cluster
from bench_process import run_json
from bench_row import Medians
from bench_row import Row
from bench_row import against
from bench_row import at_least
from bench_row import at_most
from bench_row import value_at_least
from bench_row import value_at_most


def large_rows(setting):
    """100 MB on nine servers against the peers' nine processes, and against the bare arithmetic."""
    medians = Medians()
    iterations = 2 if setting.quick else 5
    floor = str(pathlib.Path(setting.build) / "tests/bench/dataplane/bench_floor")
    for _ in range(setting.turns()):
        # Up for its own turn only: a daemon that polls would take the peers' cores.
        with Cluster(setting.build) as cluster:
            medians.add("ours", cluster.allreduce("100M", iterations)["seconds_median"])
        peer = bench_peers.open_mpi(setting.build, ["100M"], iterations)
        medians.add("mpi", peer["100M"])
        peer = bench_peers.gloo_ring(setting.build, ["100M"], iterations)
        medians.add("gloo", peer["100M"])
        for name, seconds in run_json([floor, "--json"], 120).items():
            medians.add(name, seconds)
    ours = medians["ours"]
    rows = []
    for name, words, limit in (
        ("mpi", "Open MPI, shared memory", 3.0),
        ("gloo", "Gloo ring, loopback TCP", 3.8),
        ("in_windows", "additions and copies alone, in windows", 0.75),
        ("in_cache", "additions and copies alone, in the cache", None),
        ("by_stage", "additions and copies alone, step by step", None),
    ):
        bound = f"{words} {medians[name]:.4g} s"
        row = Row("100 MB, nine servers, no rate", ours, "s", bound, medians[name] / ours)
        rows.append(row if limit is None else at_least(row, limit))
    return rows


def small_two_rows(setting):
    """1 KB, two servers, beside Open MPI."""
    medians = Medians()
    for _ in range(setting.turns()):
        with Cluster(setting.build, topology="star:2") as cluster:
            medians.add("ours", cluster.allreduce("1K", 1000)["seconds_median"])
        for transport in ("vader", "tcp"):
            peer = bench_peers.open_mpi(setting.build, ["1K"], 1000, 2, transport)
            medians.add(transport, peer["1K"])
    peers = {"vader": "vader", "tcp": "tcp"}
    return small_rows_of("1 KB, star:2, no rate", medians, "ours", peers, 20)


def small_rows_of(figure, medians, ours, peers, limit):
    """One row for each transport of Open MPI; the target is for the first."""
    rows = []
    for transport, name in peers.items():
        words = f"Open MPI, {transport}"
        row = against(figure, medians[ours], "us", words, medians[name])
        rows.append(row if rows else value_at_most(row, limit))
    return rows


def small_nine_rows(setting):
    """1 KB to 64 KB on nine servers, without a rate and at 1 Gbit/s, beside Open MPI."""
    sizes = ["1K", "16K", "64K"]
    medians = Medians()
    for _ in range(setting.turns()):
        with Cluster(setting.build) as cluster:
            for size in sizes:
                medians.add(size, cluster.allreduce(size, 500)["seconds_median"])
            medians.add("cpu", cluster.allreduce("1K", 1000, "--verbose")["cpu_seconds_each"])
        with Cluster(setting.build, "--rate", "1gbit") as cluster:
            medians.add("at a rate", cluster.allreduce("1K", 300)["seconds_median"])
        for transport in ("vader", "tcp"):
            peer = bench_peers.open_mpi(setting.build, sizes, 300, transport=transport)
            for size in sizes:
                medians.add(f"{transport} {size}", peer[size])
        peer = bench_peers.open_mpi(setting.build, ["1K"], 1000, figure="cpu_seconds_each")
        medians.add("vader cpu", peer["1K"])
    peers = {"vader": "vader 1K", "tcp": "tcp 1K"}
    rows = small_rows_of("1 KB, bcube:3,2, no rate", medians, "1K", peers, 90)
    rows += small_rows_of("1 KB, bcube:3,2, 1 Gbit/s", medians, "at a rate", peers, 150)
    for size in sizes[1:]:
        figure = f"{size[:-1]} KB, bcube:3,2, no rate"
        peer = medians[f"vader {size}"]
        rows.append(at_most(against(figure, medians[size], "us", "Open MPI, vader", peer), 1))
    figure = "1 KB, bcube:3,2, no rate: time of a core, of all processes"
    rows.append(at_most(against(figure, medians["cpu"], "us", "Open MPI, vader", medians["vader cpu"]), 1))
    return rows


def lcore_rows(setting):
    """100 MB on two servers: with a core for both, a core for each, and both cores for each."""
    medians = Medians()
    beds = {
        "both": ["--lcores", "0"],
        "each": ["--lcores", "0-1"],
        "two": ["--lcores", "0-1", "--server-lcores", "2"],
    }
    for _ in range(setting.turns()):
        for name, options in beds.items():
            with Cluster(setting.build, *options, topology="star:2") as cluster:
                medians.add(name, cluster.allreduce("100M", setting.iterations(10))["seconds_median"])
    two = medians["two"]
    rows = []
    for name, words in (("both", "one lcore for both servers"), ("each", "an lcore for each server")):
        bound = f"{words} {medians[name]:.4g} s"
        rows.append(Row("100 MB, star:2, no rate, two lcores for each server", two, "s", bound, medians[name] / two))
    return rows


def program_rows(program, judge, setting):
    """The rows of a program of tests/bench, which `judge` holds against the target."""
    path = pathlib.Path(setting.build) / "tests/bench" / program
    rows = []
    for entry in run_json([str(path), "--json"], 600)["rows"]:
        peer, name = entry.get("peer"), entry.get("peer_name") or ""
        bound = f"{name} {peer:.4g} {entry['unit']}" if peer is not None else name
        row = Row(entry["figure"], entry["value"], entry["unit"], bound, entry.get("ratio"))
        rows.append(judge(row))
    return rows


def judge_kernel(row):
    return row if row.ratio is None else at_least(row, 0.95)


def judge_segment_path(row):
    # The targets are for the path with CRC32C; without it the figure is for information.
    if row.unit != "GB/s" or "without" in row.figure:
        return row
    return value_at_least(row, 9 if "in memory" in row.figure else 8)


def judge_iteration(row):
    return at_most(row, 1.10)


GROUPS = [
    ("100 MB against the peers and the bare arithmetic", large_rows),
    ("lcores of a server", lcore_rows),
    ("1 KB, two servers", small_two_rows),
    ("1 KB to 64 KB, nine servers", small_nine_rows),
    (
        "segment path",
        functools.partial(program_rows, "dataplane/bench_segment_path", judge_segment_path),
    ),
    (
        "iteration of an engine",
        functools.partial(program_rows, "dataplane/bench_iteration", judge_iteration),
    ),
    ("kernels", functools.partial(program_rows, "aggregation/bench_kernels", judge_kernel)),
]
