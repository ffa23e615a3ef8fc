"""up, down, and what stands in their way."""

import json
import os
import pathlib
import pwd
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import gradcube
import numpy

from fabrics import PATIENCE, TOOL
from harness import Cluster, TestCase, alive, all_of, job, main, stop, wait_until
from raw_session import RawSession


DAEMON = os.environ["GRADCUBE_DAEMON"]
# Starts a daemon that is to end with it, and waits.
STARTER = """
import os, subprocess, sys
subprocess.Popen([*sys.argv[1:], "--parent", str(os.getpid())]).wait()
"""


class Parent(TestCase):
    """Of a daemon that another program starts, as a test bed does."""

    def test_takes_the_daemon_with_it(self):
        with Cluster(up=False) as cluster, open(cluster.directory / "log", "w") as log:
            command = [sys.executable, "-c", STARTER, DAEMON, "--all", "--run-dir", str(cluster.directory)]
            with subprocess.Popen(command, stdout=log, stderr=log) as starter:
                wait_until((cluster.directory / "control.sock").exists, "the daemon to be ready")
                daemon = cluster.pid()
                starter.kill()
            wait_until(lambda: not alive(daemon), "the daemon to end")

    def test_is_the_one_that_started_it(self):
        with Cluster(up=False) as cluster:
            command = [DAEMON, "--all", "--run-dir", str(cluster.directory), "--parent", "1"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("--parent 1: that process has not started this one, or has ended", done.stderr)
            self.assertEqual(cluster.files(), [])


class Lifecycle(TestCase):
    def test_commands_without_a_cluster_say_how_to_start_one(self):
        with Cluster(up=False) as cluster:
            for command in (["perf", "allreduce"], ["status"], ["impair", "--loss", "0.1"]):
                self.assert_one_message(cluster.tool(*command), 1, "gradcube up", str(cluster.directory))
                self.assertEqual(cluster.files(), [], command)
            self.assert_one_message(cluster.tool("down"), 1, "no cluster runs")

    def test_a_second_up_is_told_of_the_first_which_goes_on(self):
        with Cluster("--topology", "star:4") as cluster:
            pid = cluster.pid()
            self.assert_one_message(cluster.tool("up"), 1, "gradcube status", "gradcube down")
            self.assertEqual(cluster.pid(), pid)
            self.assert_works(cluster)

    def test_up_and_down_again_and_again(self):
        with Cluster("--topology", "star:4", up=False) as cluster:
            for topology in ("star:4", "bcube:2,3", "bcube:3,2"):
                cluster.flags = ["--topology", topology]
                pid = cluster.up()["pid"]
                self.assert_works(cluster)
                self.assertEqual(cluster.tool("down").returncode, 0)
                wait_until(lambda pid=pid: not alive(pid), "the daemon to be gone")
                self.assertEqual([name for name in cluster.files() if name.endswith(".sock")], [])

    def test_down_beside_an_up_or_another_down_ends_the_cluster_and_succeeds(self):
        with Cluster("--topology", "star:2", up=False) as cluster:
            for _ in range(5):
                cluster.up()
                ends = [cluster.start_tool("down") for _ in range(2)]
                for end in ends:
                    _, said = end.communicate(timeout=PATIENCE)
                    self.assertTrue(end.returncode == 0 or "no cluster runs" in said, said)
            cluster.up()
            end = cluster.start_tool("down")
            wait_until(lambda: cluster.tool("up", *cluster.flags).returncode == 0, "the next cluster")
            _, said = end.communicate(timeout=PATIENCE)
            self.assertEqual(end.returncode, 0, said)
            self.assert_works(cluster)

    def test_down_waits_for_a_cluster_that_is_starting(self):
        with Cluster(up=False) as cluster:
            up = cluster.start_tool("up", "--topology", "star:2")
            cluster.begun()
            down = cluster.tool("down")
            self.assertEqual(down.returncode, 0, down.stderr)
            up.communicate(timeout=PATIENCE)
            self.assert_one_message(cluster.tool("status"), 1, "gradcube up")

    def test_an_up_that_cannot_tell_says_that_the_cluster_is_up(self):
        with Cluster(up=False) as cluster, open("/dev/full", "w") as full:
            up = subprocess.run(
                [TOOL, "up"], env=cluster.environment, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE
            )
            self.assertEqual(up.returncode, 1)
            self.assertIn("the cluster is up: `gradcube down` ends it", up.stderr)
            self.assert_works(cluster)

    def test_perf_refuses_gradients_that_do_not_fit_into_memory(self):
        with Cluster("--topology", "star:2") as cluster:
            self.assert_one_message(
                cluster.tool("perf", "allreduce", "--sizes", "1K,9000G"), 1, "9 TB", "18 TB", "available"
            )

    def test_few_file_descriptors_are_named_as_the_reason(self):
        with Cluster("--topology", "bcube:3,2", up=False) as cluster:
            few = lambda limit: lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            for limit in (20, 70):
                done = subprocess.run(
                    [TOOL, "up", "--topology", "star:64"],
                    env=cluster.environment,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                    preexec_fn=few(limit),
                )
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("ulimit -n", done.stderr)
            cluster.up()
            done = subprocess.run(
                [TOOL, "perf", "allreduce", "--sizes", "1K"],
                env=cluster.environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                preexec_fn=few(16),
            )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, "ulimit -n|Too many open files")

    def test_says_how_a_daemon_ended_where_it_was_started_without_regard_for_children(self):
        with Cluster("--topology", "star:2", up=False) as cluster:
            script = cluster.directory.parent / f"{cluster.directory.name}.sh"
            script.write_text("#!/bin/sh\nexit 7\n")
            script.chmod(0o755)
            self.addCleanup(script.unlink)
            done = subprocess.run(
                [TOOL, "up", *cluster.flags],
                env=cluster.environment | {"GRADCUBED": str(script)},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
            )
            self.assertEqual(done.returncode, 1)
            self.assertIn("exit code 7", done.stderr)

    def test_a_limit_of_file_sizes_costs_a_trainer_its_place_and_nobody_else_anything(self):
        with Cluster("--topology", "star:2", up=False) as cluster:
            few = 1 << 30  # a trainer's memory is a file of the daemon's
            for command, code in (("doctor", 1), ("up", 0)):
                done = subprocess.run(
                    [TOOL, command, *cluster.flags],
                    env=cluster.environment,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (few, few)),
                )
                self.assertEqual(done.returncode, code, done.stderr)
                if command == "doctor":
                    self.assertRegex(done.stdout, "OK +daemon")
                    self.assertRegex(done.stdout, "FAIL +trainers .*ulimit -f.*GRADCUBE_HEAP")
            pid = cluster.pid()
            self.assert_one_message(cluster.tool("perf", "allreduce", "--sizes", "1K"), 1, "ulimit -f", "GRADCUBE_HEAP")
            cluster.environment["GRADCUBE_HEAP"] = "64Mi"
            self.assert_works(cluster)
            self.assertEqual(cluster.pid(), pid)

    def test_a_limit_of_threads_ends_a_measurement_with_a_reason(self):
        def stacks_for_a_few():
            resource.setrlimit(resource.RLIMIT_STACK, (4 << 30, 4 << 30))
            resource.setrlimit(resource.RLIMIT_AS, (18 << 30, 18 << 30))

        with Cluster("--topology", "star:8") as cluster:
            cluster.environment["GRADCUBE_HEAP"] = "64Mi"
            for command in (["perf", "allreduce", "--sizes", "1K"], ["perf", "hub", "--network", "lenet5"], ["check"]):
                done = subprocess.run(
                    [TOOL, *command],
                    env=cluster.environment,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                    preexec_fn=stacks_for_a_few,
                )
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stdout + done.stderr, "cannot start a thread: .*ulimit -u")

    def test_a_run_directory_in_which_nothing_can_be_made_is_refused_by_up_and_doctor_alike(self):
        with Cluster(up=False) as cluster:
            cluster.environment["GRADCUBE_RUN"] = "/proc"
            self.assertEqual(cluster.tool("up").returncode, 1)
            done = cluster.tool("doctor")
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot write to /proc", done.stdout)

    def test_a_run_directory_that_is_not_utf_8_is_refused_by_up_and_doctor_alike(self):
        with Cluster(up=False) as cluster:
            cluster.environment["GRADCUBE_RUN"] = os.fsencode(cluster.directory) + b"/r\xfcn"
            self.assert_one_message(cluster.tool("up"), 1, "is not UTF-8", "r\\xfcn")
            checks = json.loads(cluster.tool("doctor", "--json").stdout)["checks"]
            said = next(one for one in checks if one["name"] == "run directory")
            self.assertIn("is not UTF-8", said["finding"])
            self.assertIn("mktemp", said["remedy"], "not a name that is as wrong or too long")

    def test_a_job_of_many_servers_is_prepared_and_told_of_in_parts(self):
        with Cluster("--topology", "star:48") as cluster:
            perf = cluster.start_tool("perf", "allreduce", "--sizes", "1K", "--iterations", "1000000", "--job", "large")
            try:
                wait_until(lambda: (cluster.job("large") or {}).get("collectives", 0) > 0, "the job to run")
                status = cluster.status()
                self.assertGreaterEqual(status["flow_count"], 48 * 2 * 47)
                self.assertEqual(len(status["flows"]), 1000)
                left_out = status["flow_count"] - 1000
                self.assertTrue(cluster.tool("status", "--flows").stdout.split("\n\n")[-2].endswith(f"and {left_out} more"))
                self.assertIn(f"flows: {status['flow_count']};", cluster.tool("status").stdout)
                self.assertGreater(status["control"]["put_off"], 0)
            finally:
                perf.kill()
                perf.communicate()

    def test_a_killed_daemon_leaves_nothing_that_stands_in_the_way(self):
        with Cluster("--topology", "bcube:3,2") as cluster:
            cluster.kill()
            self.assertIn("control.sock", cluster.files())
            self.assert_one_message(cluster.tool("perf", "allreduce"), 1, "gradcube up")
            log = cluster.log()
            cluster.flags = ["--topology", "star:4"]
            self.assertIn("gradcubed.log.old", cluster.tool("up", *cluster.flags).stderr)
            self.assertEqual((cluster.directory / "gradcubed.log.old").read_text(errors="replace"), log)
            self.assertEqual(
                [name for name in cluster.files() if name.startswith("server-")],
                [f"server-{server}.sock" for server in range(4)],
            )
            self.assert_works(cluster)

    def test_down_clears_up_after_a_killed_daemon(self):
        with Cluster("--topology", "star:4") as cluster:
            cluster.kill()
            self.assert_one_message(cluster.tool("status"), 1, "its daemon has ended", "gradcubed.log")
            self.assertEqual(cluster.tool("down").returncode, 0)
            self.assertEqual([name for name in cluster.files() if name.endswith(".sock")], [])

    def test_the_daemon_of_an_up_that_is_killed_ends(self):
        with Cluster(up=False) as cluster:
            up = cluster.start_tool("up", "--topology", "bcube:8,2")
            try:
                pid = cluster.begun()
                stop(pid)
                may_be_ready = (cluster.directory / "control.sock").exists()
            finally:
                up.kill()
                up.communicate()
            os.kill(pid, signal.SIGCONT)
            if may_be_ready:
                self.skipTest("the daemon was ready before it stood still")
            wait_until(lambda: not alive(pid), "the daemon to end")
            self.assertIn("ended before it was ready", cluster.log())
            self.assert_one_message(cluster.tool("status"), 1, "gradcube up")
            cluster.up()
            self.assert_works(cluster)

    def test_a_daemon_whose_run_directory_is_removed_ends_and_makes_room_for_another(self):
        with Cluster("--topology", "star:2") as cluster:
            old = cluster.pid()
            with job(cluster, "orphans") as sessions, open(cluster.directory / "gradcubed.log") as log:
                request = sessions[0].allreduce_async(numpy.ones(10, "float32"))
                shutil.rmtree(cluster.directory)
                new = cluster.up()["pid"]
                self.assertNotEqual(new, old)
                wait_until(lambda: not alive(old), "the daemon without a directory to end")
                self.assert_fails(gradcube.NoDaemonError, all_of(lambda r: r.wait(PATIENCE), [request])[0])
                self.assertIn("was removed or replaced", log.read())
            # The old daemon has left the new one's sockets in peace.
            self.assertEqual(cluster.pid(), new)
            self.assert_works(cluster)

    def test_a_daemon_whose_lock_file_is_removed_ends(self):
        with Cluster("--topology", "star:2") as cluster:
            pid = cluster.pid()
            (cluster.directory / "gradcubed.lock").unlink()
            wait_until(lambda: not alive(pid), "the daemon to end")
            self.assertEqual([name for name in cluster.files() if name.endswith(".sock")], [])
            cluster.up()
            self.assert_works(cluster)

    def test_the_log_names_trainers_that_die_and_jobs_that_are_aborted(self):
        with Cluster("--topology", "star:2") as cluster:
            with job(cluster, "victims", [1]), self.assertRaises(gradcube.JobError):
                gradcube.Session(cluster.sockets()[1], "victims")
            with job(cluster, "victims", [1]), RawSession(cluster.sockets()[0], "victims") as culprit:
                culprit.socket.close()
                wait_until(lambda: "is aborted" in cluster.log(), "the aborted job to be logged")
            lines = cluster.log()
            self.assertRegex(lines, rf"refused a trainer on server \[1\] \(pid {os.getpid()}\).*already has a trainer")
            self.assertRegex(lines, rf'trainer of job "victims" on server \[0\] \(pid {os.getpid()}\) died')
            self.assertIn('job "victims" is aborted', lines)

    def test_two_clusters_in_two_run_directories_do_not_meet(self):
        with Cluster("--topology", "star:4") as one, Cluster("--topology", "bcube:2,2") as two:
            self.assert_works(one)
            self.assert_works(two)
            self.assertEqual(one.tool("down").returncode, 0)
            self.assert_works(two)

    def test_ctrl_c_ends_the_daemon_in_an_orderly_way(self):
        with Cluster("--topology", "star:4") as cluster:
            pid = cluster.pid()
            os.kill(pid, signal.SIGINT)
            wait_until(lambda: not alive(pid), "the daemon to end")
            self.assertEqual([name for name in cluster.files() if name.endswith(".sock")], [])

    def test_a_run_directory_open_to_others_is_refused(self):
        with Cluster(up=False) as cluster:
            cluster.directory.chmod(0o777)
            self.assert_one_message(cluster.tool("up"), 1, str(cluster.directory))
            self.assertEqual(cluster.files(), [])


@unittest.skipUnless(os.getuid() == 0, "becomes another user, which takes root")
class WithoutRoot(TestCase):
    def test_up_perf_and_down_work_for_anybody(self):
        nobody = pwd.getpwnam("nobody")
        if not self.may_run(nobody):
            self.skipTest(f"{TOOL} lies where nobody may not go")
        with tempfile.TemporaryDirectory(prefix="gradcube-test-") as directory:
            os.chown(directory, nobody.pw_uid, nobody.pw_gid)
            environment = dict(os.environ, GRADCUBE_RUN=str(pathlib.Path(directory) / "run"), HOME=directory)

            def tool(*arguments):
                done = self.run_as(nobody, [TOOL, *arguments], environment)
                self.assertEqual(done.returncode, 0, done.stderr)

            tool("up", "--topology", "bcube:3,2", "--json")
            try:
                tool("perf", "allreduce", "--sizes", "4,100K", "--iterations", "2", "--check", "--json")
            finally:
                tool("down")

    def run_as(self, user, command, environment=None):
        return subprocess.run(
            command,
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def may_run(self, user):
        try:
            return self.run_as(user, [TOOL, "--version"]).returncode == 0
        except PermissionError:
            return False


if __name__ == "__main__":
    main()
