"""A real cluster for a test: `gradcube up` starts gradcubed in a run directory of its own.

Every wait is bounded, and a Cluster ends its daemon however the test ends. Trainers are threads of the test;
the library is used by one thread per session and waits without the interpreter lock. A test that kills
trainers starts them as child processes.

Random numbers: a failing test prints seed(). Set $GRADCUBE_TEST_SEED to replay it.
"""

import atexit
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import gradcube

from fabrics import CALM, FABRIC, GRID, MIDDLE, PATIENCE, SERVERS, TOOL, prepare, seed


class Cluster:
    """with Cluster("--topology", "star:4") as cluster: ... ; ends the daemons and removes the run directory."""

    not_ended = set()

    def __init__(self, *flags, up=True, fabric=FABRIC):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gradcube-test-"))
        Cluster.not_ended.add(self)
        calm = () if any(flag.startswith("--greeting") for flag in flags) else CALM
        self.flags = flags if fabric == "embedded" else ("--fabric", fabric, *calm, *flags)
        self.environment = dict(os.environ, GRADCUBE_RUN=str(self.directory))
        if up:
            try:
                self.up()
            except BaseException:
                self.end()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def tool(self, *arguments, timeout=2 * PATIENCE):
        """Runs `gradcube ...` to its end and returns its CompletedProcess, for any exit code."""
        return subprocess.run(
            [TOOL, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start_tool(self, *arguments, **options):
        return subprocess.Popen(
            [TOOL, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    @contextlib.contextmanager
    def daemon(self, arguments):
        """A daemon that takes the place of another, whose arguments_of() these were. It ends with the scope."""
        with open(self.directory / "again.log", "w") as log:
            process = subprocess.Popen(arguments, stdout=log, stderr=log)
            try:
                yield process
            finally:
                process.kill()
                process.wait(PATIENCE)

    def answer(self, *arguments, **options):
        """The one JSON object that `gradcube ... --json` prints."""
        return self.parsed(self.tool(*arguments, "--json", **options))

    def parsed(self, done):
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(done.args)}: exit {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def up(self):
        return self.answer("up", *self.flags)

    def status(self):
        """Asked again where daemons share cores with others and the tool has waited in vain."""
        done = None
        deadline = time.monotonic() + PATIENCE
        while done is None or ("did not answer in time" in done.stderr and time.monotonic() < deadline):
            done = self.tool("status", "--json")
        return self.parsed(done)

    def perf(self, *arguments, **options):
        return self.answer("perf", "allreduce", "--check", *arguments, **options)["results"]

    def check(self, *arguments, down=0):
        """The exit code and the report of `gradcube check`, once so many links are down.

        Others may seem to be for a moment while their ends wait for a core.
        """
        done, report = None, None

        def asked():
            nonlocal done, report
            done = self.tool("check", "--json", *arguments)
            report = json.loads(done.stdout)
            return sum("down: " in (link["problem"] or "") for link in report["links"]) == down

        wait_until(asked, f"{down} links to be down")
        return done.returncode, report

    def begun(self):
        """The pid of a daemon that somebody starts, which may not be ready yet."""
        lock = self.directory / "gradcubed.lock"
        wait_until(lambda: lock.exists() and lock.read_text().strip(), "the daemon to start")
        return int(lock.read_text())

    def pid(self):
        return self.status()["pid"]

    def sockets(self):
        """The servers' sockets in rank order."""
        return [server["socket"] for server in self.status()["servers"]]

    def job(self, name):
        """The job's entry in status, or None."""
        return next((job for job in self.status()["jobs"] if job["name"] == name), None)

    def files(self):
        return sorted(path.name for path in self.directory.iterdir())

    def log(self):
        """Of all daemons."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.directory.rglob("gradcubed.log")))

    def links_down(self):
        """(server, level) of each port over which a server misses a neighbour."""
        ports = [(tuple(s["address"]), port) for s in self.status()["servers"] for port in s.get("ports", [])]
        return {(address, port["level"]) for address, port in ports if port["down"]}

    def processes(self):
        """All processes that have the run directory in their command lines."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.directory).encode() in (process / "cmdline").read_bytes() and alive(process.name):
                    found.append(int(process.name))
        return found

    def kill(self):
        """SIGKILL for the daemon; returns once it is gone, and with it those that it has started."""
        os.kill(self.pid(), signal.SIGKILL)
        wait_until(self.is_unlocked, "the killed daemon to be gone")
        wait_until(lambda: self.processes() == [], "the daemons of its servers to be gone")

    def is_unlocked(self):
        """Whether no daemon holds the run directory, not even a killed one that the kernel is still reaping."""
        with open(self.directory / "gradcubed.lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def end(self):
        with contextlib.suppress(Exception):
            self.tool("down", timeout=20)
        with contextlib.suppress(OSError, ValueError):
            lock = (self.directory / "gradcubed.lock").resolve()
            pid = int(lock.read_text())
            if holds(pathlib.Path(f"/proc/{pid}"), lock):  # not another process with this number
                os.kill(pid, signal.SIGKILL)
        # What a daemon has started ends with it, but not at once.
        with contextlib.suppress(AssertionError):
            wait_until(lambda: self.processes() == [], "all daemons to be gone", 20)
        for process in self.processes():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)
        Cluster.not_ended.discard(self)


@atexit.register
def end_clusters():
    """Also those of a test that was interrupted, which unittest does not clean up after."""
    for cluster in list(Cluster.not_ended):
        cluster.end()


def holds(process, path):
    try:
        return any(os.readlink(entry) == str(path) for entry in (process / "fd").iterdir())
    except OSError:
        return False


def alive(pid):
    """Also while only some of its threads have ended: the others may still hold its files and locks."""
    process = pathlib.Path(f"/proc/{pid}")
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX" or len(list((process / "task").iterdir())) > 1
    except OSError:
        return False


def stop(pid):
    """Returns once it stands still, until SIGCONT."""
    os.kill(pid, signal.SIGSTOP)
    state = lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    wait_until(lambda: state() == "T", f"process {pid} to stand still")


def command_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def arguments_of(pid):
    """Those with which the daemon of a test bed can be started by hand."""
    return command_of(pid).split(b"\x00--ready-fd\x00")[0].rstrip(b"\x00").split(b"\x00")


def wait_until(condition, what, timeout=PATIENCE):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s for {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def job(cluster, name, servers=None, **options):
    """A session on each server (or those numbered `servers`), in rank order; all are closed at the end."""
    sockets = cluster.sockets()
    sessions = []
    try:
        for server in range(len(sockets)) if servers is None else servers:
            sessions.append(gradcube.Session(sockets[server], name, **options))
        yield sessions
    finally:
        for session in sessions:
            session.close()


def all_of(work, things, timeout=2 * PATIENCE):
    """Runs work(thing) for all things at once, one thread each. Returns the results, or the exceptions.

    Longer than PATIENCE, within which the work itself says what it waits for.
    """
    things = list(things)
    results = [None] * len(things)

    def run(index):
        try:
            results[index] = work(things[index])
        except Exception as error:  # the caller checks it
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(things))]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        raise AssertionError(f"not all of {len(things)} had ended after {timeout} s")
    return results


class Clockwork(threading.Thread):
    """A second job during a test: perf with checks, repeated until stopped. It shows whether others suffer."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.stopping = threading.Event()
        self.rounds = 0
        self.complaint = None

    def run(self):
        while not self.stopping.is_set():
            done = self.cluster.tool("perf", "allreduce", "--sizes", "4K,1M", "--iterations", "3", "--check", "--json")
            if done.returncode != 0:
                self.complaint = done.stderr
                return
            self.rounds += 1

    def __enter__(self):
        self.start()
        wait_until(lambda: self.rounds > 0 or not self.is_alive(), "the other job to work")
        return self

    def __exit__(self, *_):
        before = self.rounds
        try:  # one whole round after the event
            wait_until(lambda: self.rounds > before + 1 or not self.is_alive(), "another round")
        except AssertionError as error:
            self.complaint = str(error)
        self.stopping.set()
        self.join(PATIENCE)

    def goes_on_beside(self, work):
        """Whether rounds that begin while work() is repeated end, too."""
        before = self.rounds
        deadline = time.monotonic() + PATIENCE
        while self.rounds < before + 4 and self.is_alive() and time.monotonic() < deadline:
            work()
        return self.rounds >= before + 4


class TestCase(unittest.TestCase):
    longMessage = True

    def setUp(self):
        self.seed = seed()

    def assert_undisturbed(self, other):
        self.assertIsNone(other.complaint, "another job was disturbed")
        self.assertGreater(other.rounds, 1)

    def assert_right(self, results):
        for row in results:
            self.assertEqual(row["wrong"], 0, row)

    def assert_fails(self, kind, result, *words):
        """`result` is an error of this kind, and its message contains these words."""
        self.assertIsInstance(result, kind, f"got {result!r}")
        for word in words:
            self.assertIn(word, str(result))

    def assert_works(self, cluster, name="after-all"):
        """A new job on the cluster gets right results."""
        self.assert_right(cluster.perf("--sizes", "4,100K", "--iterations", "2", "--job", name))

    def assert_one_message(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])


class WithACluster(TestCase):
    """A cluster for all tests of the class, in which tests do harm at server [1,1].

    After each, the daemons live and work, and all jobs are forgotten.
    """

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", GRID)
        cls.addClassCleanup(cls.cluster.end)
        cls.pid = cls.cluster.pid()
        cls.daemon = cls.cluster.status()["servers"][MIDDLE].get("pid", cls.pid)
        cls.path = cls.cluster.sockets()[MIDDLE]
        cls.others = [rank for rank in range(SERVERS) if rank != MIDDLE]

    def tearDown(self):
        self.assertEqual(self.cluster.pid(), self.pid, "the daemon did not live")
        for server in self.cluster.status()["servers"]:
            self.assertNotIn("why", server, "a server's daemon did not live")
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten")
        self.assert_works(self.cluster)


def main():
    prepare()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a test that takes too long ends its clusters
    # A shell that started this in the background left it ignored, and so would each tool that the test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"seed {seed()} (GRADCUBE_TEST_SEED replays)", file=sys.stderr)
    unittest.main(verbosity=2)
