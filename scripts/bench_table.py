"""Measures what Gradcube promises to be fast at and prints one table; scripts/bench.sh runs it.

All figures are taken in one session on one machine, runs against a peer alternate with the peer's.
Exit code 0 when everything could be measured, whatever the figures; a missed target says "no".
"""

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import sys
from typing import Callable, List, Optional

import bench_peers
from bench_process import Cluster
from bench_process import Failure
from bench_process import run_json

SLOW_LINKS = ("--rate", "200mbit", "--queue", "128K")


@dataclasses.dataclass
class Row:
    figure: str
    value: Optional[float] = None
    unit: str = ""
    bound: str = ""  # the bound or the peer, in words, with its value
    ratio: Optional[float] = None
    target: str = ""
    met: Optional[bool] = None  # None: for information, no target
    error: str = ""


@dataclasses.dataclass
class Setting:
    build: str
    quick: bool

    def iterations(self, full):
        return max(2, full // 3) if self.quick else full


def at_most(row, limit):
    row.target, row.met = f"<= {limit:g}", row.ratio <= limit
    return row


def at_least(row, limit):
    row.target, row.met = f">= {limit:g}", row.ratio >= limit
    return row


def total(status, counter):
    return sum(switch[counter] for switch in status["switches"])


def bound_rows(setting):
    """Links the bottleneck: how near the bound 2(N-1)/(kN), and do the switches' queues hold."""
    rows = []
    for mtu, limit in ((9000, 0.97), (1500, 0.90)):
        with Cluster(setting.build, *SLOW_LINKS, "--mtu", str(mtu)) as cluster:
            cluster.allreduce("12.5M", 1)  # into the steady state
            before = total(cluster.status(), "dropped_queue")
            result = cluster.allreduce("12.5M", setting.iterations(6))
            drops = total(cluster.status(), "dropped_queue") - before
        rows.append(
            at_least(
                Row(
                    f"12.5 MB at 200 Mbit/s, MTU {mtu}",
                    result["seconds_median"],
                    "s",
                    f"bound {result['bound_seconds']:.4g} s",
                    result["efficiency"],
                ),
                limit,
            )
        )
        rows.append(
            Row(
                f"drops of 128 KB switch queues, MTU {mtu}",
                drops,
                "frames",
                target="0",
                met=drops == 0,
            )
        )
    return rows


def loss_rows(setting):
    """What random loss costs, in time and in segments resent, on the same links."""
    iterations = setting.iterations(9)
    rows = []
    with Cluster(setting.build, *SLOW_LINKS, "--mtu", "9000") as cluster:
        cluster.allreduce("12.5M", 1)
        clean = cluster.allreduce("12.5M", iterations)
        resent = cluster.status()["counters"]["resent"]
        rows.append(
            Row("segments resent at no loss", resent, "segments", target="0", met=resent == 0)
        )
        for loss, limit in ((0.001, 1.03), (0.01, 1.10)):
            cluster.impair("--loss", str(loss))
            before = cluster.status()
            result = cluster.allreduce("12.5M", iterations)
            after = cluster.status()
            lost = total(after, "dropped_loss") - total(before, "dropped_loss")
            resent = after["counters"]["resent"] - before["counters"]["resent"]
            if lost == 0:
                raise Failure("the switches lost nothing: no such loss was set")
            rows.append(
                at_most(
                    Row(
                        f"12.5 MB at 200 Mbit/s, loss {loss:.1%}",
                        result["seconds_median"],
                        "s",
                        f"without loss {clean['seconds_median']:.4g} s",
                        result["seconds_median"] / clean["seconds_median"],
                    ),
                    limit,
                )
            )
            rows.append(
                at_most(
                    Row(
                        f"segments resent at loss {loss:.1%}",
                        resent,
                        "segments",
                        f"lost {lost} frames",
                        resent / lost,
                    ),
                    1.2,
                )
            )
    return rows


def peer_rows(setting):
    """Cores the bottleneck: nine servers on this machine against the peers' nine processes."""
    ours, mpi, gloo = [], [], []
    iterations = 2 if setting.quick else 5
    for _ in range(1 if setting.quick else 3):
        # Up for its own turn only: a daemon that polls would take the peers' cores.
        with Cluster(setting.build) as cluster:
            ours.append(cluster.allreduce("100M", iterations)["seconds_median"])
        mpi.append(bench_peers.open_mpi(setting.build, "100M", iterations)["seconds_median"])
        gloo.append(bench_peers.gloo_ring(setting.build, "100M", iterations)["seconds_median"])
    value = statistics.median(ours)
    rows = []
    for name, taken, limit in (
        ("Open MPI, shared memory", mpi, 0.5),
        ("Gloo ring, loopback TCP", gloo, 0.4),
    ):
        peer = statistics.median(taken)
        row = Row("100 MB, nine servers, no rate", value, "s", f"{name} {peer:.4g} s", value / peer)
        rows.append(at_most(row, limit))
    return rows


def program_rows(setting, program, judge):
    """The rows of a Google Benchmark program of ours, which `judge` holds against the target."""
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
    # The target is for the path with CRC32C; without it the figure is for information.
    if row.unit == "GB/s" and "without" not in row.figure:
        row.target, row.met = ">= 8 GB/s", row.value >= 8
    return row


def memory_rows(setting):
    """The daemon's own memory must follow the windows, not the gradients."""
    with Cluster(setting.build) as cluster:
        cluster.allreduce("1M", 2)
        small = cluster.status()["memory"]["daemon_bytes"]
        cluster.allreduce("100M", 2)
        large = cluster.status()["memory"]["daemon_bytes"]
    row = Row(
        "memory of the daemon after 100 MB",
        large / 1e6,
        "MB",
        f"after 1 MB {small / 1e6:.4g} MB",
        large / small,
    )
    return [at_most(row, 1.05)]


SECTIONS: List[tuple] = [
    ("links the bottleneck", bound_rows),
    ("random loss", loss_rows),
    ("cores the bottleneck, against the peers", peer_rows),
    (
        "segment path",
        lambda setting: program_rows(setting, "dataplane/bench_segment_path", judge_segment_path),
    ),
    ("kernels", lambda setting: program_rows(setting, "aggregation/bench_kernels", judge_kernel)),
    ("memory", memory_rows),
]


def measure(name: str, section: Callable, setting: Setting) -> List[Row]:
    print(f"      {name} ...", file=sys.stderr, flush=True)
    try:
        return section(setting)
    except Failure as failure:
        return [Row(name, error=str(failure))]
    except (KeyError, TypeError) as error:
        return [Row(name, error=f"output of another form than expected: {error!r}")]


def cells(row):
    if row.error:
        return [row.figure, "not measured", row.error, "", "", "no"]
    value = f"{row.value:.4g} {row.unit}"
    ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
    met = "" if row.met is None else "yes" if row.met else "no"
    return [row.figure, value, row.bound, ratio, row.target, met]


def print_table(rows):
    table = [["figure", "value", "bound or peer", "ratio", "target", "met"]]
    table += [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for number, line in enumerate(table):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="the release build's directory")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the table")
    parser.add_argument("--quick", action="store_true", help="fewer iterations: rougher, sooner")
    arguments = parser.parse_args()
    setting = Setting(arguments.build, arguments.quick)

    rows = [row for name, section in SECTIONS for row in measure(name, section, setting)]
    cores = len(os.sched_getaffinity(0))
    if arguments.json:
        machine = {"processor": processor(), "cores": cores}
        print(json.dumps({"machine": machine, "rows": [dataclasses.asdict(row) for row in rows]}))
    else:
        print(f"{processor()}, {cores} cores\n")
        print_table(rows)
    return 1 if any(row.error for row in rows) else 0


if __name__ == "__main__":
    # So that a SIGTERM, too, brings down what is up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
