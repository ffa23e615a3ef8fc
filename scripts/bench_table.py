"""Measures what Gradcube promises to be fast at and prints one table; scripts/bench.sh runs it.

All figures are taken in one session on one machine, runs against a peer alternate with the peer's.
Exit code 0 when everything could be measured, whatever the figures, unless --check is given; a missed target says "no".
"""

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import sys
import time
from typing import Callable, List

import bench_algorithms
import bench_cores
import bench_hosts
import bench_hub
import bench_instructions
import bench_jobs
import bench_links
import bench_plans
import bench_relay
import bench_tenants
import bench_training
import bench_udp
from bench_process import Failure
from bench_row import Row
from bench_row import Setting

# Rows that are measured together: their name, and what measures them.
ENGINE_GROUPS = [
    *bench_links.GROUPS,
    *bench_cores.GROUPS,
    *bench_instructions.GROUPS,
    *bench_tenants.GROUPS,
    *bench_plans.GROUPS,
]
GROUPS = [
    *ENGINE_GROUPS,
    *bench_algorithms.GROUPS,
    *bench_hosts.GROUPS,
    *bench_udp.GROUPS,
    *bench_relay.GROUPS,
    *bench_training.GROUPS,
    *bench_jobs.GROUPS,
    *bench_hub.GROUPS,
]


def chosen(parts):
    """Those of which a part of the name is given; without any, those that need no root and no PyTorch."""
    for part in parts:
        if part != "all" and not any(part.lower() in name.lower() for name, _ in GROUPS):
            names = "".join(f"\n  {name}" for name, _ in GROUPS)
            what = f'there is no group "{part}"; expected "all", or a part of one of these names:{names}'
            print(f"bench.sh: {what}", file=sys.stderr)
            sys.exit(2)
    if "all" in parts:
        return GROUPS
    if not parts:
        return ENGINE_GROUPS
    return [group for group in GROUPS if any(part.lower() in group[0].lower() for part in parts)]


def measure(name: str, group: Callable, setting: Setting) -> List[Row]:
    print(f"      {name} ...", end="", file=sys.stderr, flush=True)
    begin = time.monotonic()
    try:
        return group(setting)
    except Failure as failure:
        return [Row(name, error=str(failure))]
    except (KeyError, TypeError) as error:
        return [Row(name, error=f"output of another form than expected: {error!r}")]
    finally:
        print(f" {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


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
    parser.add_argument("--check", action="store_true", help="a missed target is a failure")
    parser.add_argument("--check-groups", action="store_true", help="only print the groups' names, or exit with 2")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="a part of the names of groups")
    arguments = parser.parse_args()
    groups = chosen(arguments.groups)
    if arguments.check_groups:
        print("".join(f"{name}\n" for name, _ in groups), end="")
        return 0
    setting = Setting(arguments.build, arguments.quick)

    rows = [row for name, group in groups for row in measure(name, group, setting)]
    cores = len(os.sched_getaffinity(0))
    if arguments.json:
        machine = {"processor": processor(), "cores": cores}
        print(json.dumps({"machine": machine, "rows": [dataclasses.asdict(row) for row in rows]}))
    else:
        print(f"{processor()}, {cores} cores\n")
        print_table(rows)
    missed = arguments.check and any(row.met is False for row in rows)
    return 1 if missed or any(row.error for row in rows) else 0


if __name__ == "__main__":
    # So that a SIGTERM, too, brings down what is up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
