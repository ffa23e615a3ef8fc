"""The peers, measured by the programs of tests/bench/peers: seconds for one all-reduce."""

import json
import pathlib
import tempfile

from bench_process import run_all
from bench_process import run_json

RANKS = 9


def _options(size, iterations):
    return ["--sizes", size, "--iterations", str(iterations), "--warmup", "1"]


def open_mpi(build, size, iterations):
    """Open MPI's MPI_Allreduce over shared memory; its ranks yield, as they outnumber the cores."""
    command = ["mpirun", "--allow-run-as-root", "-n", str(RANKS), "--oversubscribe"]
    command += ["--mca", "btl", "self,vader", "--mca", "mpi_yield_when_idle", "1"]
    command.append(str(pathlib.Path(build) / "tests/bench/peers/mpi_allreduce"))
    return run_json(command + _options(size, iterations), 300)["results"][0]


def gloo_ring(build, size, iterations):
    """Gloo's ring over loopback TCP, one process per rank."""
    program = str(pathlib.Path(build) / "tests/bench/peers/gloo_ring")
    with tempfile.TemporaryDirectory(prefix="gradcube-gloo.") as store:
        commands = [
            [program, "--rank", str(rank), "--ranks", str(RANKS), "--store", store]
            + _options(size, iterations)
            for rank in range(RANKS)
        ]
        return json.loads(run_all(commands, 300))["results"][0]
