"""A real cluster for a test: `gradcube up` starts gradcubed in a run directory of its own.

Every wait is bounded, and a Cluster ends its daemon however the test ends. Trainers are threads of the test;
the library is used by one thread per session and waits without the interpreter lock. A test that kills
trainers starts them as child processes.

Random numbers: a failing test prints seed(). Set $GRADCUBE_TEST_SEED to replay it.
"""

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

TOOL = os.environ["GRADCUBE_TOOL"]
PATIENCE = 60  # seconds for everything that must end by itself
AT_ONCE = 1.0  # seconds within which a trainer must learn of a failure elsewhere


def seed():
    return int(os.environ.get("GRADCUBE_TEST_SEED", "20240607"))


class Cluster:
    """with Cluster("--topology", "star:4") as cluster: ... ; ends the daemon and removes the run directory."""

    def __init__(self, *flags, up=True):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gradcube-test-"))
        self.flags = flags
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

    def tool(self, *arguments, timeout=PATIENCE):
        """Runs `gradcube ...` to its end and returns its CompletedProcess, for any exit code."""
        return subprocess.run(
            [TOOL, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start_tool(self, *arguments):
        return subprocess.Popen(
            [TOOL, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def answer(self, *arguments, timeout=PATIENCE):
        """The one JSON object that `gradcube ... --json` prints."""
        done = self.tool(*arguments, "--json", timeout=timeout)
        if done.returncode != 0:
            raise AssertionError(f"gradcube {' '.join(arguments)}: exit {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def up(self):
        return self.answer("up", *self.flags)

    def status(self):
        return self.answer("status")

    def perf(self, *arguments, timeout=PATIENCE):
        return self.answer("perf", "allreduce", "--check", *arguments, timeout=timeout)["results"]

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
        path = self.directory / "gradcubed.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self):
        """SIGKILL for the daemon; returns once it is gone."""
        os.kill(self.pid(), signal.SIGKILL)
        wait_until(self.is_unlocked, "the killed daemon to be gone")

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
        shutil.rmtree(self.directory, ignore_errors=True)


def holds(process, path):
    try:
        return any(os.readlink(entry) == str(path) for entry in (process / "fd").iterdir())
    except OSError:
        return False


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until(condition, what, timeout=PATIENCE):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s for {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def job(cluster, name, servers=None):
    """A session on each server (or those numbered `servers`), in rank order; all are closed at the end."""
    sockets = cluster.sockets()
    sessions = []
    try:
        for server in range(len(sockets)) if servers is None else servers:
            sessions.append(gradcube.Session(sockets[server], name))
        yield sessions
    finally:
        for session in sessions:
            session.close()


def all_of(work, things, timeout=PATIENCE):
    """Runs work(thing) for all things at once, one thread each. Returns the results, or the exceptions."""
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
            done = self.cluster.tool(
                "perf", "allreduce", "--sizes", "4K,1M", "--iterations", "3", "--check", "--timeout", "5", "--json"
            )
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
        with contextlib.suppress(AssertionError):  # one whole round after the event
            wait_until(lambda: self.rounds > before + 1 or not self.is_alive(), "another round", 20)
        self.stopping.set()
        self.join(PATIENCE)


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
    """A cluster for all tests of the class. After each, the daemon lives and works, and all jobs are forgotten."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:3,2")
        cls.addClassCleanup(cls.cluster.end)
        cls.pid = cls.cluster.pid()
        cls.path = cls.cluster.sockets()[4]

    def tearDown(self):
        self.assertEqual(self.cluster.pid(), self.pid, "the daemon did not live")
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten", 10)
        self.assert_works(self.cluster)


def become_ordinary_user():
    """If root runs the test, it begins again as nobody, or goes on as root and says why.

    $GRADCUBE_TEST_AS_ROOT=1: it goes on as root. What it runs and reads must be readable by all.
    """
    if os.geteuid() != 0 or os.environ.get("GRADCUBE_TEST_AS_ROOT") == "1":
        return
    lower = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    works = [TOOL, "plan", "--topology", "star:2"]
    tries = ([*lower, *works], [*lower, sys.executable, "-c", f"import gradcube; open({__file__!r})"])
    try:
        for command in tries:
            subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"running as root, because another user cannot: {error}", file=sys.stderr)
        return
    print("running as user 65534", file=sys.stderr)
    os.execvp(lower[0], [*lower, sys.executable, *sys.argv])


def skip_without_namespaces():
    """Ends the test as skipped where it may not make network namespaces, or has no programs for it."""
    for program in ("ip", "tc", "nsenter", "unshare"):
        if shutil.which(program) is None:
            print(f"skipped: the program {program} is not installed", file=sys.stderr)
            sys.exit(77)
    links = "ip link add name left type veth peer name right && ip link add name sw type bridge"
    made = subprocess.run(
        ["unshare", "--net", "sh", "-c", links],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if made.returncode != 0:
        print(f"skipped: this process may not make links in namespaces: {made.stderr.strip()}", file=sys.stderr)
        sys.exit(77)


def main():
    print(f"seed {seed()} (GRADCUBE_TEST_SEED replays)", file=sys.stderr)
    unittest.main(verbosity=2)
