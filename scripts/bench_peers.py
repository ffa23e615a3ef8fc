"""The peers, measured by the programs of tests/bench/peers: seconds for one all-reduce, of time or of all cores."""

import json
import os
import pathlib
import tempfile

from bench_namespaces import inside
from bench_process import run_all
from bench_process import run_json

RANKS = 9


def _options(sizes, iterations):
    return ["--sizes", ",".join(sizes), "--iterations", str(iterations), "--warmup", "1"]


def _by_size(results, sizes, figure="seconds_median"):
    return {size: result[figure] for size, result in zip(sizes, results)}


def open_mpi(build, sizes, iterations, ranks=RANKS, transport="vader", figure="seconds_median"):
    """Open MPI's MPI_Allreduce, a figure by size; `vader` is its shared memory."""
    command = ["mpirun", "--allow-run-as-root", "-n", str(ranks), "--oversubscribe"]
    command += ["--mca", "btl", f"self,{transport}"]
    if transport == "tcp":
        command += ["--mca", "btl_tcp_if_include", "lo"]
    # Ranks that outnumber the cores yield; others are faster without.
    if ranks > len(os.sched_getaffinity(0)):
        command += ["--mca", "mpi_yield_when_idle", "1"]
    command.append(str(pathlib.Path(build) / "tests/bench/peers/mpi_allreduce"))
    return _by_size(run_json(command + _options(sizes, iterations), 300)["results"], sizes, figure)


AGENT = """#!/bin/sh
host=$1; shift
case $host in
{cases}
esac
exec nsenter --target $holder --net unshare --uts sh -c "hostname host-$host; export TMPDIR={store}; $*"
"""


def open_mpi_over_tcp(build, sizes, iterations, members):
    """The same by TCP between the namespaces of bench_namespaces.star(); a script stands for ssh."""
    with tempfile.TemporaryDirectory(prefix="gradcube-mpi.") as store:
        agent = pathlib.Path(store) / "agent"
        cases = "\n".join(f"{address}) holder={holder} ;;" for holder, address in members)
        agent.write_text(AGENT.format(cases=cases, store=store), encoding="utf-8")
        agent.chmod(0o700)
        command = ["mpirun", "--allow-run-as-root", "-n", str(len(members))]
        command += ["--host", ",".join(address for _, address in members)]
        parameters = {
            "plm_rsh_agent": str(agent),
            "plm_rsh_no_tree_spawn": "1",
            "orte_keep_fqdn_hostnames": "1",
            "oob_tcp_if_include": "link",
            "pml": "ob1",
            "btl": "self,tcp",
            "btl_tcp_if_include": "link",
            "mpi_yield_when_idle": "1",
        }
        for name, value in parameters.items():
            command += ["--mca", name, value]
        command.append(str(pathlib.Path(build).resolve() / "tests/bench/peers/mpi_allreduce"))
        return _by_size(run_json(inside(members[0][0], command + _options(sizes, iterations)), 300)["results"], sizes)


def gloo_ring(build, sizes, iterations, members=None):
    """Gloo's ring over TCP, one process per rank; the median by size.

    Over loopback, or in the namespaces of bench_namespaces.star().
    """
    program = str(pathlib.Path(build) / "tests/bench/peers/gloo_ring")
    with tempfile.TemporaryDirectory(prefix="gradcube-gloo.") as store:
        commands = []
        for rank in range(RANKS):
            command = [program, "--rank", str(rank), "--ranks", str(RANKS), "--store", store]
            command += _options(sizes, iterations)
            if members is not None:
                holder, address = members[rank]
                command = inside(holder, [*command, "--address", address])
            commands.append(command)
        return _by_size(json.loads(run_all(commands, 300))["results"], sizes)
