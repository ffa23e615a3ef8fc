"""Clusters on several hosts, reached by a launcher that is a script, whose commands die at the worst time.

A network namespace stands for a host. Needs root and iproute2.
"""

import contextlib
import os
import pathlib
import signal
import subprocess

from fabrics import skip_without_namespaces
from harness import PATIENCE, TOOL, TestCase, main, wait_until
from namespaces import Hosts

COUNT = 3


class ByScript(TestCase):
    """All tests share the hosts; each leaves no cluster behind."""

    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.hosts = stack.enter_context(Hosts(COUNT, sshd=False))
        cls.flags = ("--launcher", cls.hosts.launcher)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_all)

    def end_all(self):
        """So that a test that fails leaves nothing to others."""
        for pid in self.daemons():
            os.kill(pid, signal.SIGKILL)
        for kept in self.hosts.directory.rglob("hosts.json"):
            kept.unlink()

    def assert_nothing_is_left(self):
        for what in "gradcubed", "at-host":
            wait_until(lambda: self.hosts.processes(what) == [], f"no {what} to be left")
        self.assertEqual(list(self.hosts.directory.rglob("hosts.json")), [])

    def list_of(self, *names):
        """A file of hosts, as a machine that does not know their names needs it."""
        text = "".join(f"{name} {self.hosts.address(name)}\n" for name in names)
        return self.hosts.write("list", text)

    def done(self, name, *arguments, code=0):
        done = self.hosts.tool_at(name, *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def up(self, name, *hosts, code=0):
        return self.done(name, "up", "--hosts", self.list_of(*hosts), *self.flags, code=code)

    def down(self, name):
        self.done(name, "down")

    def close(self, name):
        """From now on the launcher waits there."""
        closed = pathlib.Path(self.hosts.write(f"{name}/closed", ""))
        self.addCleanup(closed.unlink, missing_ok=True)
        return closed

    def daemons(self, on=None):
        return self.hosts.processes("gradcubed\x00", on)


class Up(ByScript):
    def test_leaves_nothing_when_it_is_killed_while_links_are_measured(self):
        up = self.hosts.start_at(None, "up", "--hosts", self.list_of(*self.hosts.names), *self.flags)
        with up.stdout, up.stderr:
            # One that stands still keeps all from their end.
            wait_until(lambda: self.hosts.processes("gradcube\x00check\x00"), "a measurement")
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.hosts.processes("gradcube\x00check\x00")[0], signal.SIGSTOP)
            self.assertEqual(len(self.daemons()), COUNT)
            self.assertIsNone(up.poll())
            up.kill()
            up.wait()
            self.assert_nothing_is_left()

    def test_returns_when_the_links_are_heard_without_a_check_too(self):
        self.done(None, "up", "--hosts", self.list_of(*self.hosts.names), *self.flags, "--no-check")
        self.done(None, "check")
        self.down(None)
        self.assert_nothing_is_left()

    def test_names_the_hosts_that_share_a_run_directory(self):
        shared = self.hosts.directory / "shared"
        words = (TOOL, "up", "--hosts", self.list_of("node1", "node2"), *self.flags)
        environment = {**os.environ, "GRADCUBE_RUN": str(shared)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"hosts node[12] and node[12] share the directory {shared}: set GRADCUBE_RUN to one")
        self.assert_nothing_is_left()

    def test_does_not_forget_a_cluster_whose_hosts_are_all_elsewhere(self):
        self.up(None, "node1", "node2")
        for arguments in ("--hosts", self.list_of("node2", "node3"), *self.flags), ("--topology", "star:2"):
            errors = self.done(None, "up", *arguments, code=1).stderr
            self.assertIn("a cluster on node1, node2 may run: `gradcube down` ends it", errors)
        self.assertEqual(len(self.daemons()), 2)
        self.down(None)
        self.assert_nothing_is_left()

    def test_does_not_forget_the_other_hosts_where_the_daemon_of_this_one_has_died(self):
        for again in ("--hosts", "198.18.0.1,198.18.0.3", *self.flags), ("--topology", "star:2"):
            self.up("node1", "node1", "node2")
            os.kill(*self.daemons(on="node1"), signal.SIGKILL)
            wait_until(lambda: len(self.daemons()) == 1, "the end of a daemon")
            errors = self.done("node1", "up", *again, code=1).stderr
            self.assertIn("a cluster on node1, node2 may run: `gradcube down` ends it", errors)
            self.down("node1")
            self.assert_nothing_is_left()


class Down(ByScript):
    def test_ends_everything_when_it_is_repeated_after_it_was_killed(self):
        for name in None, "node1", "node2":
            with self.subTest(typed_on=name):
                self.up(name, *self.hosts.names)
                closed = self.close("node3")
                down = self.hosts.start_at(name, "down")
                with down.stdout, down.stderr:
                    left = 1 if name is None else 2  # that of the host where it was typed ends last
                    wait_until(lambda: len(self.daemons()) == left, "the end of the other daemons")
                    down.kill()
                    down.wait()
                closed.unlink()
                self.down(name)
                self.assert_nothing_is_left()

    def test_says_after_ctrl_c_that_the_cluster_may_run_and_ends_it_when_it_is_repeated(self):
        self.up("node1", *self.hosts.names)
        closed = self.close("node3")
        down = self.hosts.start_at("node1", "down")
        wait_until(lambda: len(self.daemons()) == 2, "the end of another daemon")
        down.send_signal(signal.SIGINT)
        _, errors = down.communicate(timeout=60)
        closed.unlink()
        self.assertIn("interrupted: the cluster may still run", errors)
        self.assertNotIn("was ended", errors)
        self.down("node1")
        self.assert_nothing_is_left()

    def test_by_an_old_list_of_hosts_leaves_alone_what_another_up_has_started_there(self):
        self.up(None, "node1", "node2")
        self.down("node1")
        self.assertEqual(len(self.daemons()), 0)
        self.up("node3", "node1", "node2")
        self.down(None)
        self.assertEqual(len(self.daemons()), 2)
        self.done("node3", "check")
        self.down("node3")
        self.assert_nothing_is_left()


if __name__ == "__main__":
    skip_without_namespaces()
    main()
