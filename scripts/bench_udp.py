"""Rows of daemons that reach each other by datagrams, in the namespaces in which their peers speak TCP. They need root."""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import bench_peers
from bench_namespaces import inside
from bench_namespaces import star
from bench_process import Failure
from bench_process import run_all
from bench_row import Medians
from bench_row import Row
from bench_row import against
from bench_row import at_least

RATE = 100_000_000
MTU = 1500
# Up to 64 KB a step is a few datagrams, and what counts is how soon they pass.
SIZES = (("1K", 1.5, 200), ("16K", 1.5, 200), ("64K", 1.5, 100), ("1M", 1, 30), ("25M", 1, 4), ("100M", 1, 3))


class Hosts:
    """with Hosts(build, members) as hosts: a daemon of star:9 in the namespace of each member, by hand."""

    def __init__(self, build, members, link=""):
        self._build = pathlib.Path(build)
        self._members = members
        self._link = link
        self._jobs = 0

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            directory = tempfile.mkdtemp(prefix="gradcube-bench.", dir="/tmp")
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            self._directory = pathlib.Path(directory)
            addresses = json.dumps([address for _, address in self._members])
            text = f'[topology]\nspec = "star:{len(self._members)}"\nhosts = {addresses}\n'
            text += f'[link]\nfabric = "udp"\nmtu = {MTU}\n{self._link}\n'
            (self._directory / "cluster.toml").write_text(text, encoding="utf-8")
            for server, (holder, _) in enumerate(self._members):
                self._start(stack, server, holder)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _start(self, stack, server, holder):
        ready, tells = os.pipe()
        log = stack.enter_context(open(self._directory / f"{server}.log", "w", encoding="utf-8"))
        program = str(self._build / "dataplane/daemon/gradcubed")
        flags = ["--server", str(server), "--cluster", str(self._directory / "cluster.toml")]
        flags += ["--run-dir", str(self._directory / str(server)), "--ready-fd", str(tells)]
        command = inside(holder, [program, *flags])
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[tells])
        stack.callback(daemon.wait)
        stack.callback(daemon.kill)
        os.close(tells)
        with open(ready, encoding="utf-8") as line:
            if '"ok":true' not in line.readline():
                raise Failure((self._directory / f"{server}.log").read_text(encoding="utf-8").strip())

    def allreduce(self, size, iterations):
        """The result of rank 0's `gradcube perf allreduce`; one runs on each host."""
        self._jobs += 1
        tool = str(self._build / "cli/gradcube")
        flags = ["--sizes", size, "--iterations", str(iterations), "--job", f"bench{self._jobs}", "--json"]
        commands = []
        for server in range(len(self._members)):
            run = f"GRADCUBE_RUN={self._directory / str(server)}"
            commands.append(["env", run, tool, "perf", "allreduce", *flags])
        return json.loads(run_all(commands, 300))["results"][0]


def size_rows(size, limit, iterations, setting):
    """One size on links without a rate, against Gloo's ring over TCP in the same namespaces."""
    count = setting.iterations(iterations)
    medians = Medians()
    with star(bench_peers.RANKS, None, MTU) as members:
        for _ in range(setting.turns()):
            with Hosts(setting.build, members) as hosts:
                hosts.allreduce(size, 2)
                medians.add("gradcube", hosts.allreduce(size, count)["seconds_median"])
            medians.add("gloo", bench_peers.gloo_ring(setting.build, [size], count, members)[size])
    figure = f"{size}, nine hosts, no rate: Gloo over TCP"
    return [at_least(against(figure, medians["gloo"], "s", "by datagrams", medians["gradcube"]), limit)]


def bound_rows(setting):
    """How near the bound of one link nine hosts come."""
    with star(bench_peers.RANKS, RATE, MTU) as members, Hosts(setting.build, members, f'rate = "{RATE}bit"') as hosts:
        hosts.allreduce("12.5M", 1)
        result = hosts.allreduce("12.5M", setting.iterations(6))
    bound = f"bound {result['bound_seconds']:.4g} s"
    row = Row(f"12.5 MB at 100 Mbit/s, star:9, MTU {MTU}", result["seconds_median"], "s", bound, result["efficiency"])
    return [at_least(row, 0.93)]


GROUPS = [
    *((f"udp: {size} without a rate", functools.partial(size_rows, size, limit, count)) for size, limit, count in SIZES),
    ("udp: 100 Mbit/s", bound_rows),
]
