"""`gradcube up --hosts`: a cluster on several hosts by ssh, as an ordinary user, and what is typed on one of them.

Three hosts; nine with GRADCUBE_TEST_DEEP=1. Needs root, iproute2 and openssh-server.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from fabrics import CALM, TOOL, skip_without_namespaces
from harness import TestCase, main, wait_until
from namespaces import Hosts, skip_without_sshd

DEEP = os.environ.get("GRADCUBE_TEST_DEEP") == "1"
COUNT = 9 if DEEP else 3
# A trainer by the plain library: what it adds up says who took part.
TRAINER = """
import os, sys, numpy, gradcube
session = gradcube.Session(job=os.environ["TORCHELASTIC_RUN_ID"])
data = numpy.zeros(4, "float32")
data[:] = session.rank + 1
session.allreduce(data)
print("sum", data[0], os.environ["MASTER_ADDR"], os.environ["WORLD_SIZE"], flush=True)
"""


class OnHosts(TestCase):
    """All tests share the hosts; each leaves no cluster behind."""

    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.hosts = stack.enter_context(Hosts(COUNT))
        cls.all = ",".join(cls.hosts.names)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.hosts.tool, "node1", "down")

    def assert_ok(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def assert_nothing_is_left(self):
        for what in "gradcubed", "at-host":
            wait_until(lambda: self.hosts.processes(what) == [], f"no {what} to be left")
        for name in self.hosts.names:
            self.assertFalse((self.hosts.directory / name / "gradcube" / "hosts.json").exists())

    def up(self, *flags):
        command = ["up", "--hosts", self.all, *CALM, "--json", *flags]
        return json.loads(self.assert_ok(self.hosts.tool("node1", *command)).stdout)


class Clusters(OnHosts):
    def test_are_started_by_one_command_and_used_from_any_of_the_hosts(self):
        done = self.assert_ok(self.hosts.tool("node1", "up", "--hosts", self.all, *CALM))
        self.assertIn(f"star:{COUNT} on {COUNT} hosts, by ssh", done.stdout)
        self.assertIn(f"all {COUNT * (COUNT - 1) // 2} links of star:{COUNT} are as configured", done.stdout)
        status = json.loads(self.assert_ok(self.hosts.tool("node2", "status", "--json")).stdout)
        self.assertEqual([server["address"] for server in status["servers"]], [[i] for i in range(COUNT)])
        self.assertEqual([server["host"] for server in status["servers"]], self.hosts.names)
        self.assertIn("[1] node2 ", self.assert_ok(self.hosts.tool("node3", "status")).stdout)
        check = json.loads(self.assert_ok(self.hosts.tool("node3", "check", "--json")).stdout)
        self.assertEqual(len(check["links"]), COUNT * (COUNT - 1) // 2)
        self.assertTrue(check["ok"])
        flags = ("--sizes", "4,100K,1M", "--iterations", "2", "--check", "--json")
        perf = json.loads(self.assert_ok(self.hosts.tool("node2", "perf", "allreduce", *flags)).stdout)
        self.assert_right(perf["results"])
        some = self.assert_ok(self.hosts.tool("node3", "perf", "allreduce", "--members", "0 1", *flags)).stdout
        self.assert_right(json.loads(some)["results"])
        again = self.hosts.tool("node3", "up", "--hosts", self.all)
        self.assertEqual(again.returncode, 1)
        self.assertIn("a cluster runs already", again.stderr)
        self.change_key()
        down = self.assert_ok(self.hosts.tool("node2", "down"))
        self.assertIn(f"the cluster on {COUNT} hosts is down", down.stdout)
        self.assert_nothing_is_left()
        self.assertIn("there is nothing to end", self.hosts.tool("node1", "down").stderr)

    def change_key(self):
        """By one command, of all hosts."""
        new = self.hosts.directory / "home" / "new.key"
        self.assert_ok(self.hosts.tool("node1", "keygen", str(new)))
        for name in self.hosts.names:
            self.assert_ok(self.hosts.run(name, "cp", str(new), f"{self.hosts.directory}/{name}/gradcube/cluster.key"))
        short = self.hosts.tool("node2", "rekey", "--window", "1s")
        self.assertEqual(short.returncode, 2)
        self.assertIn("expected 60s or more", short.stderr)
        self.assertIn("are taken", self.assert_ok(self.hosts.tool("node2", "rekey")).stdout)
        status = json.loads(self.hosts.tool("node3", "status", "--json").stdout)
        self.assertEqual(len({(server["key"], server["other_key"]) for server in status["servers"]}), 1)

    def test_have_the_topology_rate_and_names_that_are_asked_for(self):
        file = self.hosts.write("hosts.txt", "# three\n" + "".join(f"tester@{name} slots=2\n" for name in self.hosts.names))
        flags = ("--rate", "50mbit", "--mtu", "1400", "--no-check", "--json")  # how fast it is depends on the machine
        report = json.loads(self.assert_ok(self.hosts.tool("node1", "up", "--hosts", file, *flags)).stdout)
        self.assertEqual([host["name"] for host in report["hosts"]], [f"tester@{name}" for name in self.hosts.names])
        self.assertNotIn("check", report)
        status = json.loads(self.hosts.tool("node1", "status", "--json").stdout)
        self.assertEqual((status["mtu"], status["rate_bps"]), (1400, 50e6))

    def test_are_started_and_used_from_a_host_that_has_no_server(self):
        self.assert_ok(self.hosts.tool("node1", "up", "--hosts", "node2,node3", *CALM))
        for command in ("status",), ("check",), ("perf", "allreduce", "--check"), ("run", "--", "printenv", "RANK"):
            self.assert_ok(self.hosts.tool("node1", *command))
        self.assert_ok(self.hosts.tool("node3", "run", "--members", "1", "--", "true"))
        self.assertEqual(len(self.hosts.processes("gradcubed\x00")), 2)
        self.assert_ok(self.hosts.tool("node1", "down"))
        self.assert_nothing_is_left()

    def test_run_trainers_on_all_hosts(self):
        self.up()
        script = self.hosts.write("home/train.py", TRAINER)
        done = self.assert_ok(self.hosts.tool("node2", "run", "--", "/usr/bin/python3", "train.py"))
        total = COUNT * (COUNT + 1) / 2
        lines = sorted(done.stdout.splitlines())
        self.assertEqual(lines, sorted(f"[{rank}] sum {total} 198.18.0.1 {COUNT}" for rank in range(COUNT)))
        done = self.hosts.tool("node1", "run", "--", "sh", "-c", 'test $RANK = 1 && exit 7; exec sleep 1000')
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("rank 1 on server [1] ended with exit code 7", done.stderr)
        wait_until(lambda: self.hosts.running("sleep", "1000") == [], "all trainers to be ended")
        os.unlink(script)
        done = self.hosts.tool("node1", "run", "--", "no-such-command")
        self.assertEqual(done.returncode, 127)

    def test_run_what_lies_in_the_virtual_environment_that_is_active_here(self):
        self.up("--no-check")
        folder = self.hosts.directory / "home" / "venv" / "bin"
        folder.mkdir(parents=True)
        program = self.hosts.write("home/venv/bin/where", '#!/bin/sh\necho "$0"\n')
        os.chmod(program, 0o755)
        active = ["env", f"VIRTUAL_ENV={folder.parent}", f"PATH={folder}:{os.environ['PATH']}"]
        done = self.assert_ok(self.hosts.run("node1", *active, TOOL, "run", "--no-prefix", "--", "where"))
        self.assertEqual(done.stdout.split(), [program] * COUNT)
        del active[1]
        self.assertEqual(self.hosts.run("node1", *active, TOOL, "run", "--", "where").returncode, 127)

    def test_end_their_trainers_however_the_command_ends(self):
        self.up()
        for how in signal.SIGINT, signal.SIGKILL:
            run = self.hosts.start_tool("node1", "run", "--", "sleep", "1000")
            wait_until(lambda: len(self.hosts.running("sleep", "1000")) == COUNT, "the trainers")
            run.send_signal(how)
            run.communicate(timeout=60)
            wait_until(lambda: self.hosts.running("sleep", "1000") == [], "all trainers to be ended")
            wait_until(lambda: self.hosts.processes("at-host") == [], "what started them to be gone")
        self.assertEqual(len(self.hosts.processes("gradcubed")), COUNT)


@unittest.skipUnless(DEEP and shutil.which("mpirun"), "with --deep, where Open MPI is installed")
class ByMpirun(OnHosts):
    """Its steps hold the daemons: they stay until `down`, and what ends a step ends its daemon."""

    def test_hold_their_daemons_until_they_are_ended(self):
        self.up("--launcher", "mpirun")
        self.assertEqual(len(self.hosts.processes("gradcubed\x00")), COUNT)
        self.assert_ok(self.hosts.tool("node2", "check"))
        perf = self.assert_ok(self.hosts.tool("node2", "perf", "allreduce", "--sizes", "4,1M", "--check", "--json"))
        self.assert_right(json.loads(perf.stdout)["results"])
        ranks = self.assert_ok(self.hosts.tool("node1", "run", "--no-prefix", "--", "printenv", "RANK")).stdout
        self.assertEqual(sorted(ranks.split()), [str(rank) for rank in range(COUNT)])
        failed = self.hosts.tool("node1", "run", "--", "sh", "-c", "test $RANK = 1 && exit 7; exec sleep 1000")
        self.assertEqual(failed.returncode, 7, failed.stderr)
        self.assert_ok(self.hosts.tool("node1", "down"))
        self.assert_nothing_is_left()
        wait_until(lambda: self.hosts.processes("mpirun") == [], "no mpirun to be left")

    def test_say_what_is_wrong_with_a_host(self):
        flags = ("--launcher", "mpirun", "--hosts", f"{self.all},198.18.0.99")
        self.assertIn("host 198.18.0.99: mpirun ended with exit code", self.hosts.tool("node1", "up", *flags).stderr)
        self.assert_nothing_is_left()
        flags = ("--launcher", "mpirun", "--hosts", self.all, "--program", "/nowhere/gradcube")
        self.assertIn("host node2: there is no /nowhere/gradcube there", self.hosts.tool("node1", "up", *flags).stderr)

    def test_end_their_daemons_when_they_die(self):
        self.up("--launcher", "mpirun")
        for pid in self.hosts.processes("mpirun\x00"):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.hosts.processes("gradcubed") == [], "no daemon to be left")


class Refused(OnHosts):
    def refusal(self, *arguments, code=1):
        done = self.hosts.tool("node1", "up", *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assert_nothing_is_left()
        return done.stderr

    def test_is_a_host_that_does_not_answer(self):
        errors = self.refusal("--hosts", f"{self.all},198.18.0.99")
        self.assertRegex(errors, r"host 198\.18\.0\.99: ssh ended with exit code 255 before it answered: ssh: connect to")
        self.hosts.stop_sshd(self.hosts.names[-1])
        self.addCleanup(self.hosts.continue_sshd, self.hosts.names[-1])
        self.assertIn(f"host {self.hosts.names[-1]}: ssh ended with exit code 255", self.refusal("--hosts", self.all))

    def test_is_a_host_without_gradcube_or_with_another_version(self):
        errors = self.refusal("--hosts", self.all, "--program", "/nowhere/gradcube")
        self.assertIn("host node2: there is no /nowhere/gradcube there: install the same version", errors)
        other = self.hosts.write(
            "home/other", f"#!/bin/sh\nread -r line\nprintf '%s\\n' \"$line\" | sed 's/\"version\":\"[^\"]*\"/\"version\":\"9.9\"/' | {TOOL} at-host\n"
        )
        os.chmod(other, 0o755)
        errors = self.refusal("--hosts", self.all, "--program", other)
        self.assertIn("host node2: gradcube is 0.1.0 here, and 9.9 where the command was typed", errors)

    def test_is_a_host_whose_port_another_program_has(self):
        taker = self.hosts.popen("node2", "/usr/bin/python3", "-c", (
            "import socket, time\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "s.bind(('198.18.0.2', 47330))\n"
            "print(flush=True)\n"
            "time.sleep(1000)\n"
        ), stdout=subprocess.PIPE)
        self.addCleanup(taker.kill)
        self.addCleanup(taker.stdout.close)
        taker.stdout.readline()
        errors = self.refusal("--hosts", self.all)
        self.assertIn("host node2: ", errors)
        self.assertIn("another process of this host has 198.18.0.2, UDP port 47330", errors)
        self.assertNotIn("host node3", errors)

    def test_is_a_link_that_a_firewall_cuts(self):
        self.cut_trains_at_hosts()
        self.hosts.ip(self.hosts.switch, ["link set dev node3 mtu 1300"])
        self.addCleanup(self.hosts.ip, self.hosts.switch, ["link set dev node3 mtu 1500"])
        errors = self.refusal("--hosts", self.all)
        self.assertIn("links are not as configured", errors)
        self.assertIn("small frames pass", errors)

    def cut_trains_at_hosts(self):
        """A bridge looks at no length of a train, which a wire would carry cut into its datagrams."""
        for name in self.hosts.names:
            self.hosts.ip(self.hosts.namespaces[name], ["link set dev eth0 gso_max_segs 1"])
            self.addCleanup(self.hosts.ip, self.hosts.namespaces[name], ["link set dev eth0 gso_max_segs 65535"])

    def test_are_hosts_that_make_no_sense(self):
        for flags, words in [
            (("--hosts", "node1,nowhere.invalid"), '"nowhere.invalid" is neither a file nor a host that is known here'),
            (("--hosts", "node1,localhost"), "localhost is 127.0.0.1 here"),
        ]:
            done = self.hosts.tool("node1", "up", *flags)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)


class Interrupted(OnHosts):
    def start(self):
        """An `up` that has started the daemons of all hosts but the last, whose sshd stands still."""
        self.hosts.stop_sshd(self.hosts.names[-1])
        self.addCleanup(self.hosts.continue_sshd, self.hosts.names[-1])
        up = self.hosts.start_tool("node1", "up", "--hosts", self.all)
        wait_until(lambda: len(self.hosts.processes("gradcubed")) == COUNT - 1, "the other daemons")
        return up

    def test_leaves_nothing_when_it_is_killed(self):
        up = self.start()
        up.kill()
        up.communicate(timeout=60)
        self.assert_nothing_is_left()

    def test_is_no_matter_to_the_next_start_right_behind(self):
        for seconds in 0.05, 0.1, 0.2, 0.4, 0.8:
            killed = self.hosts.start_tool("node1", "up", "--hosts", self.all)
            time.sleep(seconds)
            killed.kill()
            try:
                self.up("--no-check")
            finally:
                killed.communicate(timeout=60)
            self.assert_ok(self.hosts.tool("node1", "down"))
            self.assert_nothing_is_left()

    def test_is_neither_of_two_at_once_by_the_other(self):
        """One starts, or both say that there is another: as they start, or as links hear daemons of another key."""
        both = [self.hosts.start_tool(node, "up", "--hosts", self.all) for node in ("node1", "node2")]
        for up in both:
            _, errors = up.communicate(timeout=120)
            if up.returncode != 0:
                self.assertRegex(
                    errors, "a cluster runs already|another `gradcube up` is starting a cluster|is of another cluster"
                )

    def test_leaves_nothing_after_ctrl_c(self):
        up = self.start()
        up.send_signal(signal.SIGINT)
        _, errors = up.communicate(timeout=60)
        self.assertIn("interrupted", errors)
        self.assert_nothing_is_left()

    def test_leaves_nothing_when_a_launcher_dies(self):
        up = self.start()
        (launcher,) = self.hosts.processes("\x00node2\x00" + TOOL)
        os.kill(launcher, signal.SIGKILL)
        _, errors = up.communicate(timeout=90)
        self.assertEqual(up.returncode, 1)
        self.assertIn("host node2: ssh was ended by signal 9", errors)
        self.assert_nothing_is_left()


if __name__ == "__main__":
    skip_without_namespaces()
    skip_without_sshd()
    main()
