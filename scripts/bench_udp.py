"""Rows of daemons that reach each other by datagrams, in the namespaces in which their peers speak TCP. They need root.

TCP gives way by the law that the machine has, but by cubic where that counts: where links lose or are shared. At an MTU
of 1500 headers take a tenth of a link, so what comes near its bound is measured at 9000, too.
"""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bench_peers
from bench_namespaces import inside
from bench_namespaces import star
from bench_process import Failure
from bench_process import run_all
from bench_row import Medians
from bench_row import Row
from bench_row import against
from bench_row import at_least
from bench_row import value_at_most
from bench_trainers import on_hosts
from bench_trainers import on_star

RATE = 100_000_000
MTU = 1500
SIZE = "12.5M"
# Up to 64 KB a step is a few datagrams, and what counts is how soon they pass.
SIZES = (("1K", 1.5, 200), ("16K", 1.5, 200), ("64K", 1.5, 100), ("1M", 1, 30), ("25M", 1, 4), ("100M", 1, 3))
LAYERS = 11  # 46 MB of gradients, as ResNet-18 has
FIRST_UDP_PORT = 47330


class Hosts:
    """with Hosts(build, members) as hosts: a star with a daemon in the namespace of each member, started by hand.

    They share the cores as those of a test bed do. Their frames are authenticated, as those of all daemons of several
    hosts are unless one asks for less. link: more lines of [link] in the cluster file. number: of a cluster beside others
    with the same members.
    """

    def __init__(self, build, members, mtu=MTU, link="", number=0):
        self._build = pathlib.Path(build).resolve()
        self._tool = str(self._build / "cli/gradcube")
        self._members = members
        self._jobs = 0
        rows = json.dumps([f"{address}:{FIRST_UDP_PORT + number}" for _, address in members])
        self._text = f'[topology]\nspec = "star:{len(members)}"\nhosts = {rows}\n'
        self._text += f'[link]\nfabric = "udp"\nmtu = {mtu}\n{link}\n'

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            directory = tempfile.mkdtemp(prefix="gradcube-bench.", dir="/tmp")
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            self._directory = pathlib.Path(directory)
            self._key = str(self._directory / "key")
            subprocess.run([self._tool, "keygen", self._key], check=True, stdout=subprocess.DEVNULL)
            for server, (holder, _) in enumerate(self._members):
                self._start(stack, server, holder)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _start(self, stack, server, holder):
        ready, tells = os.pipe()
        log = stack.enter_context(open(self._directory / f"{server}.log", "w", encoding="utf-8"))
        cores = sorted(os.sched_getaffinity(0))
        settings = self._directory / f"{server}.toml"
        own = f'[engine]\nlcores = [{cores[server % len(cores)]}]\n[security]\nkey-file = "{self._key}"\n'
        settings.write_text(self._text + own, encoding="utf-8")
        program = str(self._build / "dataplane/daemon/gradcubed")
        flags = ["--server", str(server), "--cluster", str(settings)]
        flags += ["--run-dir", str(self._directory / str(server)), "--ready-fd", str(tells)]
        command = inside(holder, [program, *flags])
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[tells])
        stack.callback(daemon.wait)
        stack.callback(daemon.kill)
        os.close(tells)
        with open(ready, encoding="utf-8") as line:
            if '"ok":true' not in line.readline():
                raise Failure((self._directory / f"{server}.log").read_text(encoding="utf-8").strip())

    def _tools(self, *arguments):
        """This command on each host."""
        runs = [f"GRADCUBE_RUN={self._directory / str(server)}" for server in range(len(self._members))]
        commands = [["env", run, self._tool, *arguments] for run in runs]
        return [inside(holder, command) for (holder, _), command in zip(self._members, commands)]

    def _perf(self, size, iterations):
        self._jobs += 1
        flags = ["--sizes", size, "--iterations", str(iterations), "--job", f"bench{self._jobs}", "--json"]
        return self._tools("perf", "allreduce", *flags)

    def allreduce(self, size, iterations):
        """The result of rank 0's `gradcube perf allreduce`; one runs on each host."""
        return json.loads(run_all(self._perf(size, iterations), 300))["results"][0]

    def trainers(self, command, environment, seconds):
        """The JSON object that these trainers print together, one on each host (`gradcube run`)."""
        flags = ["--no-prefix", "--master", self._members[0][1], "--port", "29500", "--"]
        try:
            return json.loads(run_all(self._tools("run", *flags, *command), seconds, {**os.environ, **environment}))
        except ValueError:
            raise Failure("trainers printed no JSON") from None

    @contextlib.contextmanager
    def busy(self):
        """with ...: all-reduces without pause."""
        with contextlib.ExitStack() as stack:
            for command in self._perf("4M", 1_000_000):
                _background(stack, command)
            yield

    def received(self, server):
        """Bytes of frames that have come in at this server."""
        (port,) = json.loads(run_all([self._tools("status", "--json")[server]], 30))["servers"][0]["ports"]
        return port["rx_bytes"]


def _background(stack, command):
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    stack.callback(process.wait)
    stack.callback(os.killpg, process.pid, signal.SIGKILL)


def size_rows(size, limit, iterations, setting):
    """One size on links without a rate, against the better of Gloo's ring and Open MPI over TCP."""
    count = setting.iterations(iterations)
    medians = Medians()
    with star(bench_peers.RANKS, None, MTU) as net:
        for _ in range(setting.turns()):
            with Hosts(setting.build, net.members) as hosts:
                hosts.allreduce(size, 2)
                medians.add("gradcube", hosts.allreduce(size, count)["seconds_median"])
            medians.add("Gloo", bench_peers.gloo_ring(setting.build, [size], count, net.members)[size])
            medians.add("Open MPI", bench_peers.open_mpi_over_tcp(setting.build, [size], count, net.members)[size])
    better = min("Gloo", "Open MPI", key=medians.__getitem__)
    rows = []
    for peer in ("Gloo", "Open MPI"):
        figure = f"{size}, nine hosts, no rate: {peer} over TCP"
        row = against(figure, medians[peer], "s", "by datagrams", medians["gradcube"])
        rows.append(at_least(row, limit) if peer == better else row)
    return rows


def bound_rows(setting):
    """How near the bound of one link nine hosts come."""
    rows = []
    for mtu, limit in ((9000, 0.93), (1500, 0.88)):
        link = f'rate = "{RATE}bit"'
        with star(bench_peers.RANKS, RATE, mtu) as net, Hosts(setting.build, net.members, mtu, link) as hosts:
            hosts.allreduce(SIZE, 1)
            result = hosts.allreduce(SIZE, setting.iterations(6))
        bound = f"bound {result['bound_seconds']:.4g} s"
        figure = f"12.5 MB at 100 Mbit/s, star:9 by datagrams, MTU {mtu}"
        rows.append(at_least(Row(figure, result["seconds_median"], "s", bound, result["efficiency"]), limit))
    return rows


def loss_rows(loss, limit, setting):
    """Links that lose IP packets, against Gloo's ring over TCP with cubic on them."""
    count = setting.iterations(6)
    medians = Medians()
    with star(bench_peers.RANKS, RATE, MTU, loss, "cubic") as net:
        for _ in range(setting.turns(2)):
            with Hosts(setting.build, net.members, MTU, f'rate = "{RATE}bit"') as hosts:
                hosts.allreduce(SIZE, 1)
                medians.add("gradcube", hosts.allreduce(SIZE, count)["seconds_median"])
            medians.add("gloo", bench_peers.gloo_ring(setting.build, [SIZE], count, net.members)[SIZE])
    figure = f"12.5 MB at 100 Mbit/s, loss of {loss:.1%}: Gloo over TCP cubic"
    return [at_least(against(figure, medians["gloo"], "s", "by datagrams", medians["gradcube"]), limit)]


def training_rows(setting):
    """DistributedDataParallel on links of 1 Gbit/s, against PyTorch's own gloo on them."""
    steps, rate = setting.iterations(9), 1_000_000_000
    with star(bench_peers.RANKS, rate, MTU) as net:
        link = f'rate = "{rate}bit"\ngreeting = "500ms"'
        with Hosts(setting.build, net.members, MTU, link) as hosts:
            ours = on_hosts(setting, hosts, "ddp_steps.py", "gradcube", steps, LAYERS)["seconds_median"]
        gloo = on_star(setting, net.members, "ddp_steps.py", "gloo", steps, LAYERS)["seconds_median"]
    figure = "a step of DDP, 46 MB of gradients, nine hosts at 1 Gbit/s: gloo"
    return [at_least(against(figure, gloo, "s", "by datagrams", ours), 1.2)]


# A stream of TCP from here to the first server, which reads what comes.
READER = """
import socket
with socket.create_server(("", 5001)) as server:
    stream, _ = server.accept()
    while stream.recv(1 << 20):
        pass
"""
WRITER = """
import socket, sys
with socket.socket() as stream:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    stream.connect((sys.argv[1], 5001))
    while True:
        stream.sendall(bytes(1 << 20))
"""


@contextlib.contextmanager
def tcp_stream(source, target):
    with contextlib.ExitStack() as stack:
        _background(stack, inside(target[0], [sys.executable, "-c", READER]))
        time.sleep(0.5)  # until it listens
        _background(stack, inside(source[0], [sys.executable, "-c", WRITER, target[1]]))
        yield


def shares(net, first, second, setting):
    """What two byte counters at member 0 gain while both sides send, in bit/s, and the share of frames dropped before it."""
    time.sleep(3)  # both have started
    seconds = 5 if setting.quick else 20
    begin = time.monotonic()
    before = [first(), second(), *net.drops(0)]
    time.sleep(seconds)
    after = [first(), second(), *net.drops(0)]
    gained = [now - was for was, now in zip(before, after)]
    took = time.monotonic() - begin
    return 8 * gained[0] / took, 8 * gained[1] / took, gained[3] / max(1, gained[2] + gained[3])


def share_rows(figure, words, taken):
    ours, other, dropped = taken
    row = Row(figure, ours / 1e6, "Mbit/s", f"{words} {other / 1e6:.4g} Mbit/s", ours / max(other, 1))
    row.target, row.met = "0.5 to 2", 0.5 <= row.ratio <= 2
    return [row, value_at_most(Row("the same: dropped at the bottleneck", 100 * dropped, "%"), 1)]


def fairness_rows(setting):
    """Servers without a rate, one of each pair behind the same queue of the switch."""
    figure = "all-reduces of two hosts, one on a link of 100 Mbit/s that others use"
    with star(3, RATE, MTU) as net:
        target, one, other = net.members
        with Hosts(setting.build, [target, one]) as first, first.busy():
            ours = functools.partial(first.received, 0)
            with tcp_stream(other, target):
                taken = shares(net, ours, lambda: net.received(0) - ours(), setting)
            rows = share_rows(figure, "one TCP cubic", taken)
            with Hosts(setting.build, [target, other], number=1) as second, second.busy():
                taken = shares(net, ours, functools.partial(second.received, 0), setting)
        return rows + share_rows(figure, "another pair", taken)


def crowd_rows(setting):
    """The same where eight servers send to the ninth at once, as in an all-reduce."""
    with star(bench_peers.RANKS, RATE, MTU) as net, Hosts(setting.build, net.members) as hosts:
        with hosts.busy(), tcp_stream(net.members[1], net.members[0]):
            ours = functools.partial(hosts.received, 0)
            taken = shares(net, ours, lambda: net.received(0) - ours(), setting)
    figure = "all-reduces of nine hosts without a rate, links of 100 Mbit/s"
    rows = share_rows(figure, "one TCP cubic into one of them", taken)
    rows[0].target, rows[0].met = "", None  # eight flows against one
    return rows


GROUPS = [
    *((f"udp: {size} without a rate", functools.partial(size_rows, size, limit, count)) for size, limit, count in SIZES),
    ("udp: 100 Mbit/s", bound_rows),
    ("udp: loss of 0.1 %", functools.partial(loss_rows, 0.001, 1.5)),
    ("udp: loss of 1 %", functools.partial(loss_rows, 0.01, 3)),
    ("udp: training at 1 Gbit/s", training_rows),
    ("udp: a link that is shared", fairness_rows),
    ("udp: a link that is shared by nine", crowd_rows),
]
