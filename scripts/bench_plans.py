"""Rows of plans on paper: no cluster runs."""

import resource
import statistics

from bench_process import run_all
from bench_row import Row
from bench_row import value_at_most


def processor_seconds():
    """Of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def server_plan_rows(setting):
    """One server's part of the plan of 65,536, by the tool: with its start and end as a process."""
    rows = []
    for algorithm in ("bml", "hips:ring", "blueconnect"):
        command = [f"{setting.build}/cli/gradcube", "plan", "--topology", "bcube:16,4"]
        command += ["--algorithm", algorithm, "--server", "2,1,0,3"]
        seconds = []
        for _ in range(setting.iterations(30)):
            begin = processor_seconds()
            run_all([command], 60)
            seconds.append(processor_seconds() - begin)
        name = f"plan of one server of bcube:16,4, {algorithm}, time of a core"
        row = Row(name, statistics.median(seconds) * 1e3, "ms")
        rows.append(value_at_most(row, 10))
    return rows


GROUPS = [("plan of one server of 65,536", server_plan_rows)]
