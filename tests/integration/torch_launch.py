"""Starts the ranks of a torch.distributed program at the servers of a cluster, as a launcher would."""

import atexit
import contextlib
import functools
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from fabrics import PATIENCE

PROGRAM = pathlib.Path(__file__).resolve().parent / "torch_ranks.py"
PRELOADED = ["torch", "torch.utils.data"]  # by what ranks are forked from; a test may add what its ranks load, too
LONG = 4 * PATIENCE  # seconds: PyTorch takes long to load where other processes want the cores, too

# For every process of PyTorch's. gloo is not to look for an interface by the name of this host.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "GLOO_SOCKET_IFNAME": "lo"}


@contextlib.contextmanager
def reserved_port():
    """A port of 127.0.0.1 where a process may listen that reuses addresses, as PyTorch's store does, and no other one
    gets by chance: it is bound here, but nobody listens."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def run_launcher(command, environment):
    """Runs a program that starts others to its end, for any exit code. All are ended if it takes too long."""
    process = subprocess.Popen(
        [*map(str, command)],
        env={**environment, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            output, _ = process.communicate(timeout=LONG)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise AssertionError(f"{command} runs after {LONG} s: {output}") from None
    return subprocess.CompletedProcess(command, process.returncode, output)


class Forks:
    """torch_forks.py, which has loaded PyTorch."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM.parent / "torch_forks.py"), *PRELOADED],
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.end)

    @staticmethod
    @functools.cache
    def of_this_test():
        return Forks()

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if answer == "":
            raise AssertionError(f"the process that forks ranks has ended: exit {self.process.wait()}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Forked:
    """A process that was forked there, with what is used of subprocess.Popen."""

    def __init__(self, **request):
        self.forks = Forks.of_this_test()
        self.pid = self.forks.ask(**request)
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            self.returncode = self.forks.ask(poll=self.pid)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self):
        while self.poll() is None:
            time.sleep(0.01)


class Ranks:
    """with Ranks(cluster, [PROGRAM, ...]) as ranks: ranks.wait() ... ; ends those that still run.

    ``sockets``: those of the ranks in their order; None: each server's. ``untold``: no socket is named, and the ranks
    find theirs by their ranks, so many of them. ``forked``: from a process that has loaded PyTorch; False, where it
    matters how a rank starts or ends: each is a new interpreter. ``run``: another run directory than the cluster's.
    """

    def __init__(self, cluster, arguments, sockets=None, untold=None, forked=True, run=None):
        sockets = cluster.sockets() if sockets is None else sockets
        size = len(sockets) if untold is None else untold
        self.held = contextlib.ExitStack()
        port = self.held.enter_context(reserved_port())
        common = {**ENVIRONMENT, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
        if run is not None:
            common["GRADCUBE_RUN"] = run
        self.directory = cluster.directory
        self.processes = []
        for rank in range(size):
            place = {"RANK": str(rank)}
            if untold is None:
                place["GRADCUBE_SOCKET"] = sockets[rank]
            with open(self.file(rank, "out"), "wb") as output, open(self.file(rank, "err"), "wb") as errors:
                words, environment = [*map(str, arguments)], {**cluster.environment, **common, **place}
                if forked:
                    files = {"output": output.name, "errors": errors.name}
                    process = Forked(arguments=words, environment=environment, **files)
                else:
                    process = subprocess.Popen(
                        [sys.executable, *words],
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=errors,
                    )
            self.processes.append(process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()
        self.held.close()

    def file(self, rank, kind):
        return os.path.join(self.directory, f"rank-{rank}.{kind}")

    def errors(self, rank):
        return pathlib.Path(self.file(rank, "err")).read_text(errors="replace")

    def output(self, rank):
        return pathlib.Path(self.file(rank, "out")).read_text(errors="replace")

    def said(self, rank, key):
        """What the rank has said under this key, in its order."""
        lines = self.output(rank).splitlines()
        return [fact[key] for fact in map(json.loads, lines) if key in fact]

    def everything(self):
        """What all ranks have printed so far."""
        ranks = range(len(self.processes))
        return "".join(f"--- rank {rank}:\n{self.output(rank)}{self.errors(rank)}" for rank in ranks)

    def wait(self, timeout=LONG):
        """The exit codes, when all have ended: in a minute, once one has failed."""
        deadline = time.monotonic() + timeout
        while any(process.poll() is None for process in self.processes):
            if any(process.returncode for process in self.processes):
                deadline = min(deadline, time.monotonic() + PATIENCE)
            if time.monotonic() > deadline:
                codes = [process.returncode for process in self.processes]
                raise AssertionError(f"not all ranks have ended in time: exit codes {codes}\n{self.everything()}")
            time.sleep(0.02)
        return [process.returncode for process in self.processes]

    def succeed(self):
        """Waits, and fails with what the ranks have said."""
        codes = self.wait()
        if any(codes):
            raise AssertionError(f"exit codes {codes}\n{self.everything()}")
