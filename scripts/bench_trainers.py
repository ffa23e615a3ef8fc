"""Trainers in Python, the programs of tests/bench/training: on a cluster, or over PyTorch's own backend gloo.

What rank 0 prints is one JSON object. Each rank has one thread.
"""

import json
import pathlib
import sys

from bench_namespaces import inside
from bench_process import Failure
from bench_process import run_all

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 240  # until trainers must have ended
# For `up`: nine trainers that start at once take all cores, and a daemon that waits for one must not seem to be dead.
CALM = ("--greeting", "500ms")


def _command(program, arguments):
    return [sys.executable, str(ROOT / "tests/bench/training" / program), *map(str, arguments)]


def _environment(build):
    return {
        "GRADCUBE_LIBRARY": str(pathlib.Path(build).resolve() / "trainer/libgradcube.so"),
        "PYTHONPATH": str(ROOT / "trainer/python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
    }


def on_cluster(setting, cluster, program, *arguments):
    """One trainer on each server. Those that choose gloo are on no server, but are started alike, over loopback."""
    environment = {**_environment(setting.build), "GLOO_SOCKET_IFNAME": "lo"}
    return cluster.trainers(_command(program, arguments), environment, SECONDS)


def on_hosts(setting, hosts, program, *arguments):
    """A trainer on each server of bench_udp.Hosts, in its namespace."""
    return hosts.trainers(_command(program, arguments), _environment(setting.build), SECONDS)


def on_star(setting, members, program, *arguments):
    """A rank in each of the namespaces of bench_namespaces.star(), over gloo."""
    rendezvous = {"MASTER_ADDR": members[0][1], "MASTER_PORT": 29500, "GLOO_SOCKET_IFNAME": "link"}
    common = {**_environment(setting.build), **rendezvous, "WORLD_SIZE": len(members)}
    commands = []
    for rank, (holder, _) in enumerate(members):
        variables = [f"{name}={value}" for name, value in {**common, "RANK": rank}.items()]
        commands.append(inside(holder, ["env", *variables, *_command(program, arguments)]))
    try:
        return json.loads(run_all(commands, SECONDS))
    except ValueError:
        raise Failure(f"{program} printed no JSON") from None
