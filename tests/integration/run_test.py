"""`gradcube run`: a process for each server, whose lines, exit codes and ends are as they should be.

Whatever a test starts has a mark in its environment, so that what is left of it can be found.
"""

import contextlib
import ctypes
import errno
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import uuid

from fabrics import GRID, LAST, MIDDLE, PATIENCE, SERVERS, TOOL, needs_daemons
from harness import Cluster, TestCase, alive, main, wait_until

FOREVER = "sleep 1000 & sleep 1001; exit"  # a shell with two children
TRAINER = textwrap.dedent(
    """
    import os, numpy, gradcube
    environment = {name: int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")}
    with gradcube.Session(
        job=os.environ["TORCHELASTIC_RUN_ID"],
        trainers_per_server=environment["LOCAL_WORLD_SIZE"],
        local=environment["LOCAL_RANK"],
    ) as session:
        assert (session.rank, session.size) == (environment["RANK"], environment["WORLD_SIZE"]), session
        numbers = numpy.full(100003, session.rank + 1, "float32")
        session.allreduce(numbers, timeout=60)
        print(f"sum {numbers[-1]:g}")
    """
)

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "trainer" / "examples"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heed_signals():
    """Whoever started this test may ignore some, as nohup does, and children inherit that."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


CLOSE_RANGE = 436  # of Linux 5.9, on all processors


def without_close_range():
    """From here on the call is refused, as by an older kernel."""
    heed_signals()
    load_number, is_equal, answer = 0x20, 0x15, 0x06
    refused, allowed = 0x00050000 | errno.ENOSYS, 0x7FFF0000
    lines = [(load_number, 0, 0, 0), (is_equal, 0, 1, CLOSE_RANGE), (answer, 0, 0, refused), (answer, 0, 0, allowed)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(code)))
    set_no_new_privileges, set_filter, by_filter = 38, 22, 2
    process = ctypes.CDLL(None)
    if process.prctl(set_no_new_privileges, 1, 0, 0, 0) or process.prctl(set_filter, by_filter, program, 0, 0):
        raise OSError("the kernel takes no filter of system calls")


class Run(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", GRID)
        cls.addClassCleanup(cls.cluster.end)
        cls.cluster.environment["OMP_NUM_THREADS"] = "1"

    def setUp(self):
        super().setUp()
        self.mark = f"GRADCUBE_TEST_MARK={uuid.uuid4()}"
        self.addCleanup(self.end_marked)

    def marked(self):
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (process / "environ").read_bytes() and alive(process.name):
                    found.append(int(process.name))
        return found

    def end_marked(self):
        for pid in self.marked():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def start(self, *arguments, run_directory=None, **options):
        name, value = self.mark.split("=")
        environment = dict(self.cluster.environment, **{name: value})
        if run_directory:
            environment["GRADCUBE_RUN"] = str(run_directory)
        options.setdefault("preexec_fn", heed_signals)
        return subprocess.Popen(
            [TOOL, "run", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def end_of(self, process):
        """Exit code, standard output and standard error; nothing is left of it."""
        output, errors = process.communicate(timeout=PATIENCE)
        wait_until(lambda: self.marked() == [], "all processes of the run to be gone")
        return process.returncode, output.decode(errors="surrogateescape"), errors.decode()

    def run_it(self, *arguments):
        return self.end_of(self.start(*arguments))

    def shell(self, script, *flags):
        return self.run_it(*flags, "--", "sh", "-c", script)

    def started(self, script, *flags, **options):
        """A run that goes on: all of its shells have said something, and have children."""
        process = self.start(*flags, "--", "sh", "-c", f"echo begun >&2; {script}", **options)
        for _ in range(SERVERS):
            process.stderr.readline()
        # The tool, its guard, and a shell with two children for each server.
        wait_until(lambda: len(self.marked()) == 2 + 3 * SERVERS, "the children of all")
        return process

    def test_tells_each_process_who_it_is(self):
        names = "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $GRADCUBE_SOCKET"
        code, output, errors = self.shell(f"echo {names} $MASTER_ADDR", "--no-prefix")
        self.assertEqual((code, errors), (0, ""))
        sockets = self.cluster.sockets()
        expected = [f"{r}/{SERVERS} 0/1 {r}/{SERVERS} {sockets[r]} 127.0.0.1" for r in range(SERVERS)]
        self.assertEqual(sorted(output.splitlines()), sorted(expected))

    def test_starts_several_on_some_of_the_servers(self):
        members = ["--members", "0,0 0,1", "--trainers", "3"]
        code, output, _ = self.shell("echo $RANK $LOCAL_RANK $GROUP_RANK $WORLD_SIZE", *members)
        self.assertEqual(code, 0)
        expected = [f"[{rank}] {rank} {rank % 3} {rank // 3} 6" for rank in range(6)]
        self.assertEqual(sorted(output.splitlines()), expected)

    def test_the_example_that_needs_numpy_alone_ends_with_the_same_weights_everywhere(self):
        command = [sys.executable, str(EXAMPLES / "spirals.py"), "--steps", "20"]
        code, output, errors = self.run_it("--no-prefix", "--", *command)
        self.assertEqual(code, 0, errors)
        self.assertIn("step 20/20", output)
        self.assertIn(f"weights: bit-identical on all {SERVERS} ranks", output)

    def test_python_trainers_add_up(self):
        for trainers in (1, 2):
            with self.subTest(trainers=trainers):
                code, output, errors = self.run_it("--trainers", str(trainers), "--", sys.executable, "-c", TRAINER)
                self.assertEqual(code, 0, errors)
                size = SERVERS * trainers
                expected = sorted(f"[{rank}] sum {size * (size + 1) // 2}" for rank in range(size))
                self.assertEqual(sorted(output.splitlines()), expected)

    def test_a_master_port_can_be_listened_at(self):
        script = "import os, socket; socket.create_server(('127.0.0.1', int(os.environ['MASTER_PORT'])))"
        code, _, errors = self.run_it("--members", "0,0", "--", sys.executable, "-c", script)
        self.assertEqual(code, 0, errors)

    def test_no_other_process_gets_the_master_port_by_chance(self):
        script = """
import os, socket
try:
    socket.socket().bind(("127.0.0.1", int(os.environ["MASTER_PORT"])))
except OSError as error:
    print(error.strerror)
"""
        code, output, errors = self.run_it("--members", "0,0", "--", sys.executable, "-c", script)
        self.assertEqual((code, output), (0, "[0] Address already in use\n"), errors)

    def test_passes_lines_on_as_they_are(self):
        script = r"printf '\377\376 one\r\n\ntwo'; printf 'a warning' >&2"
        code, output, errors = self.shell(script, "--members", "0,0 0,1")
        self.assertEqual(code, 0)
        lines = sorted(f"[{rank}] {text}" for rank in (0, 1) for text in ("\udcff\udcfe one\r\n", "\n", "two\n"))
        self.assertEqual(sorted(output.splitlines(keepends=True)), sorted("".join(lines).splitlines(keepends=True)))
        self.assertEqual(sorted(errors.splitlines()), ["[0] a warning", "[1] a warning"])

    def test_lines_of_many_stay_whole(self):
        code, output, _ = self.shell("seq 1 20000")
        self.assertEqual(code, 0)
        lines = output.splitlines()
        for rank in range(SERVERS):
            own = [line.removeprefix(f"[{rank}] ") for line in lines if line.startswith(f"[{rank}] ")]
            self.assertEqual(own, [str(number) for number in range(1, 20001)])
        self.assertEqual(len(lines), 20000 * SERVERS)

    def test_the_first_failure_ends_all_and_is_named(self):
        code, _, errors = self.shell(f"[ $RANK = {MIDDLE} ] && exit 7; {FOREVER}")
        self.assertEqual(code, 7)
        whose = f"rank {MIDDLE} on server [1,1]"
        self.assertEqual(errors, f"gradcube: {whose} ended with exit code 7; the others were ended\n")

    def test_a_signal_is_a_failure(self):
        code, _, errors = self.shell(f"[ $RANK = {SERVERS - 1} ] && kill -9 $$; {FOREVER}")
        self.assertEqual(code, 128 + 9)
        self.assertIn(f"rank {SERVERS - 1} on server {LAST} was ended by signal 9 (Killed)", errors)

    def test_who_does_not_heed_sigterm_is_killed(self):
        trapped = self.cluster.directory / "trapped"
        first = f"[ $RANK = 0 ] && until [ -e {trapped} ]; do sleep 0.02; done && exit 3"
        script = f"{first}; trap '' TERM; touch {trapped}; {FOREVER}"
        code, _, errors = self.shell(script, "--members", "0,0 0,1", "--grace", "200ms")
        self.assertEqual(code, 3)
        self.assertIn("rank 1 on server [0,1] did not end within 200ms of SIGTERM and was killed", errors)

    def test_what_a_process_leaves_behind_is_ended(self):
        code, output, errors = self.shell("sleep 1000 & echo well")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(output.count("well"), SERVERS)

    def test_ends_all_on_signals(self):
        for number in SIGNALS:
            with self.subTest(signal=number):
                process = self.started(FOREVER)
                process.send_signal(number)
                code, output, errors = self.end_of(process)
                self.assertEqual((code, output), (-number, ""))
                self.assertEqual(errors, "gradcube: interrupted: all processes were ended\n")

    def test_a_second_interrupt_does_not_wait(self):
        process = self.started(f"trap '' TERM; {FOREVER}", "--grace", "1000s")
        process.send_signal(signal.SIGINT)
        # The second counts once the first has been heeded, and a sleep inherits what the shell ignores.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        self.assertEqual(self.end_of(process)[0], -signal.SIGINT)

    def test_goes_on_after_a_hangup_that_was_to_be_ignored(self):
        end = self.cluster.directory / "end"
        script = f"until [ -e {end} ]; do sleep 0.02; done"
        nohup = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
        process = self.start("--", "sh", "-c", f"echo begun >&2; {script}", preexec_fn=nohup)
        process.stderr.readline()
        process.send_signal(signal.SIGHUP)
        end.touch()
        self.assertEqual(self.end_of(process)[0], 0)

    def test_leaves_nothing_after_sigkill(self):
        for before in heed_signals, without_close_range:
            with self.subTest(before=before.__name__):
                process = self.started(FOREVER, preexec_fn=before)
                process.kill()
                self.assertEqual(self.end_of(process)[0], -signal.SIGKILL)

    def test_ends_where_the_kernel_knows_no_close_range(self):
        process = self.start("--", "true", preexec_fn=without_close_range)
        self.assertEqual(self.end_of(process), (0, "", ""))

    def test_ends_all_when_nobody_reads(self):
        process = self.start("--", "yes")
        self.assertIn(b"] y", process.stdout.readline())
        process.stdout.close()
        errors = process.stderr.read().decode()
        self.assertEqual(process.wait(PATIENCE), 1)
        process.stderr.close()
        self.assertIn("cannot write to standard output: Broken pipe", errors)
        wait_until(lambda: self.marked() == [], "all processes of the run to be gone")

    def test_can_be_interrupted_while_nobody_reads(self):
        process = self.start("--", "yes")
        self.assertIn(b"] y", process.stdout.readline())
        wait_until(lambda: len(self.marked()) >= SERVERS, "all processes")
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: len(self.marked()) <= 2, "the processes of the run to be gone")
        process.send_signal(signal.SIGTERM)  # what they wrote is not wanted, either
        self.assertEqual(self.end_of(process)[0], -signal.SIGTERM)

    def test_a_command_that_is_not_there_starts_nothing(self):
        for command, code, words in [
            ("no-such-command", 127, 'there is no command "no-such-command" in PATH'),
            ("/nowhere/train", 127, "No such file"),
            ("/", 126, "Is a directory"),
        ]:
            done = self.cluster.tool("run", "--", command, "--epochs=", "3")
            self.assert_one_message(done, code, words)

    def test_prints_a_json_object_and_nothing_else(self):
        done = self.cluster.tool("run", "--json", "--members", "0,0 0,1", "--", "sh", "-c", "echo text; exit $RANK")
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        self.assertEqual((report["ok"], report["exit_code"], report["first_failure"]), (False, 1, 1))
        (last,) = [process for process in report["processes"] if process["rank"] == 1]
        self.assertEqual((last["server"], last["exit_code"], last["signal"]), ([0, 1], 1, None))
        self.assertIn("[1] text", done.stderr)

    def test_says_how_many_threads_openmp_gets(self):
        environment = dict(self.cluster.environment)
        del environment["OMP_NUM_THREADS"]
        command = [TOOL, "run", "--", "printenv", "OMP_NUM_THREADS"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(f"[{rank}] 1" for rank in range(SERVERS)))
        # It is no matter where the processes take all cores.
        has_cores = len(os.sched_getaffinity(0)) > SERVERS
        self.assertEqual("OMP_NUM_THREADS is not set" in done.stderr, has_cores, done.stderr)

    @needs_daemons
    def test_on_several_hosts_each_starts_its_own(self):
        hosts = [self.cluster.directory / f"{rank // 2}-{rank % 2}" for rank in range(SERVERS)]
        alone = self.end_of(self.start("--", "true", run_directory=hosts[0]))
        self.assertEqual(alone[0], 2)
        self.assertIn("1 of 4 servers are on this host", alone[2])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        flags = ["--master", "127.0.0.1", "--port", port, "--", sys.executable, "-c", TRAINER]
        runs = [self.start(*flags, run_directory=host) for host in hosts]
        for rank, run in enumerate(runs):
            output, errors = run.communicate(timeout=PATIENCE)
            self.assertEqual((run.returncode, output), (0, f"[{rank}] sum 10\n".encode()), errors)


class WithoutACluster(TestCase):
    def test_says_so(self):
        with Cluster(up=False) as cluster:
            self.assert_one_message(cluster.tool("run", "--", "true"), 1, "no cluster runs in", "gradcube up")

    @needs_daemons
    def test_names_a_server_whose_daemon_has_ended(self):
        with Cluster("--topology", "star:2") as cluster:
            os.kill(cluster.status()["servers"][1]["pid"], signal.SIGKILL)
            wait_until(lambda: cluster.status()["servers"][1].get("ended"), "the daemon's end")
            done = cluster.tool("run", "--", "true")
            self.assert_one_message(done, 1, "server [1]: its daemon ended", "`gradcube down`, then `gradcube up`")


if __name__ == "__main__":
    main()
