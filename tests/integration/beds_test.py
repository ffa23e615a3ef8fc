"""A cluster of a daemon per server: its links, its jobs, its daemons' deaths, and that nothing of it is left behind."""

import contextlib
import json
import os
import re
import signal
import subprocess

from fabrics import PATIENCE, TOOL, only_on
from harness import Cluster, TestCase, main, wait_until
from telemetry_client import TelemetryClient

SIZES = ("--sizes", "4,100K", "--iterations", "2")
SMALL = ("--topology", "bcube:2,2")
# How fast a link is, and what is sent again, depends on what else the machine does.
LENIENT = ("--least-rate", "0.01", "--most-lost", "0.9")


def hosts_of(cluster):
    return sorted(path.parent for path in cluster.directory.glob("?-?/control.sock"))


class Collectives(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(*SMALL, "--rate", "100mbit")
        cls.addClassCleanup(cls.cluster.end)

    def tearDown(self):
        self.cluster.answer("impair", "--up")
        wait_until(lambda: not self.cluster.links_down(), "all links to be seen")
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten")

    def test_are_right(self):
        self.assert_right(self.cluster.perf("--sizes", "4,1K,100K,2M", "--iterations", "2"))

    def test_count_their_frames_at_every_port(self):
        self.assert_right(self.cluster.perf(*SIZES))
        status = self.cluster.status()
        self.assertEqual(len(status["servers"]), 4)
        for server in status["servers"]:
            self.assertEqual([port["level"] for port in server["ports"]], [0, 1])
            for port in server["ports"]:
                self.assertGreater(port["rx_bytes"], 0)
                self.assertGreater(port["tx_bytes"], 0)
        self.assertGreater(status["counters"]["collectives"], 0)
        self.assertIn(f"4 servers, {status['fabric']} fabric", self.cluster.tool("status").stdout)

    def test_show_one_job_with_all_of_its_trainers(self):
        with contextlib.ExitStack() as stack:
            tool = stack.enter_context(
                self.cluster.start_tool("perf", "allreduce", "--sizes", "10M", "--iterations", "20", "--job", "long")
            )
            stack.callback(tool.wait)
            stack.callback(tool.terminate)
            whole = lambda: len((self.cluster.job("long") or {"trainers": []})["trainers"]) == 4
            wait_until(whole, "all trainers to join")
            names = lambda: [job["name"] for job in self.cluster.status()["jobs"]]
            wait_until(lambda: names() == ["long"], "jobs of before to be forgotten, and one to be shown")

    def test_go_around_a_link_that_the_switch_cuts(self):
        self.cluster.answer("impair", "--server", "1,0", "--port", "0", "--down")
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: ((1, 0), 0) in self.cluster.links_down(), "the cut to be seen")
        differing = self.cluster.status()["impaired_links"]
        self.assertEqual([(link["server"], link["level"], link["up"]) for link in differing], [([1, 0], 0, False)])
        self.cluster.answer("impair", "--up")
        wait_until(lambda: not self.cluster.links_down(), "the link to be seen again")

    @only_on("veth", why="a server's interface can be taken down in a namespace")
    def test_go_around_a_link_that_the_server_cuts(self):
        pid = self.cluster.status()["servers"][1]["pid"]
        set_link = ["nsenter", "-t", str(pid), "-n", "ip", "link", "set", "dev", "level1"]
        subprocess.run([*set_link, "down"], check=True, timeout=PATIENCE)
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: ((0, 1), 1) in self.cluster.links_down(), "the cut to be seen")
        subprocess.run([*set_link, "up"], check=True, timeout=PATIENCE)
        wait_until(lambda: not self.cluster.links_down(), "the link to be seen again")


class EachHost(TestCase):
    """The run directory of each daemon stands for its host."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(*SMALL, "--rate", "100mbit")
        cls.addClassCleanup(cls.cluster.end)

    def test_can_check_its_links(self):
        with contextlib.ExitStack() as stack:
            checks = []
            for host in hosts_of(self.cluster):
                command = [TOOL, "check", "--json", "--job", "first", *LENIENT]
                environment = dict(os.environ, GRADCUBE_RUN=str(host))
                check = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                stack.callback(check.wait)
                stack.callback(check.kill)
                checks.append(check)
            self.assertEqual(len(checks), 4)
            for check in checks:
                output, errors = check.communicate(timeout=PATIENCE)
                self.assertEqual(check.returncode, 0, output + errors)
                self.assertEqual(len(json.loads(output)["links"]), 2)
        alone = subprocess.run([TOOL, "check"], env=environment, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(alone.returncode, 2)
        self.assertIn("--job", alone.stderr)

    def test_has_telemetry(self):
        for host, server in zip(hosts_of(self.cluster), self.cluster.status()["servers"]):
            with TelemetryClient(host) as client:
                self.assertEqual(client.greeting["pid"], server["pid"])
                self.assertEqual((client.ask("/gradcube/status")["servers"], len(client.ask("/gradcube/links"))), (1, 2))


class Death(TestCase):
    def test_of_a_daemon_in_good_order_is_told_to_the_others(self):
        with Cluster(*SMALL) as cluster:
            flags = ("--sizes", "1M", "--iterations", "100000", "--job", "long")
            with cluster.start_tool("perf", "allreduce", *flags) as tool:
                started = lambda: cluster.status()["counters"]["collectives"] > 0
                wait_until(started, "the first collective")
                # The trainers stand still, so that none of them leaves before its daemon is told.
                tool.send_signal(signal.SIGSTOP)
                os.kill(cluster.status()["servers"][3]["pid"], signal.SIGTERM)
                others = [cluster.directory / name / "gradcubed.log" for name in ("0-0", "0-1", "1-0")]
                told = r"trainer .*\[1,1\].* lost its daemon, which was shut down"
                try:
                    all_told = lambda: all(re.search(told, log.read_text()) for log in others)
                    wait_until(all_told, "all others to be told")
                finally:
                    tool.send_signal(signal.SIGCONT)
                _, errors = tool.communicate(timeout=PATIENCE)
            self.assertEqual(tool.returncode, 1)
            self.assertNotIn("does not answer", errors)

    def test_of_a_daemon_leaves_the_others_at_work(self):
        with Cluster(*SMALL) as cluster:
            os.kill(cluster.status()["servers"][3]["pid"], signal.SIGKILL)
            wait_until(lambda: cluster.status()["servers"][3].get("ended"), "the end to be seen")
            self.assert_right(cluster.perf(*SIZES, "--members", "0,0 0,1"))
            advice = ("server [1,1]: its daemon ended", "`gradcube down`, then `gradcube up`, puts the cluster in order")
            for command in (["perf", "allreduce"], ["perf", "sendrecv"], ["up", *SMALL]):
                self.assert_one_message(cluster.tool(*command), 1, *advice)
            self.assertEqual(cluster.tool("down").returncode, 0)

    def test_of_a_daemon_during_a_measurement_is_told_with_what_to_do(self):
        with Cluster(*SMALL) as cluster:
            for kind in ("allreduce", "sendrecv"):
                with cluster.start_tool("perf", kind, "--sizes", "64K", "--iterations", "1000000") as tool:
                    wait_until(lambda: cluster.status()["counters"]["segments_sent"] > 100, "segments")
                    os.kill(cluster.status()["servers"][3]["pid"], signal.SIGKILL)
                    _, errors = tool.communicate(timeout=PATIENCE)
                self.assertEqual(tool.returncode, 1)
                self.assertIn("server [1,1]: its daemon ended", errors)
                cluster.answer("down")
                cluster.up()

    def test_of_a_servers_only_link_ends_its_jobs_which_say_that_there_is_no_other_way(self):
        with Cluster("--topology", "star:3") as cluster:
            with cluster.start_tool("perf", "allreduce", "--sizes", "1M", "--iterations", "100000") as tool:
                wait_until(lambda: cluster.status()["counters"]["collectives"] > 0, "the first collective")
                cluster.answer("impair", "--server", "1", "--down")
                _, errors = tool.communicate(timeout=PATIENCE)
            self.assertEqual(tool.returncode, 1)
            no_way = r"nothing is heard of the daemon on server \[\d\]: links are down, and no other way leads there"
            self.assertRegex(errors, no_way)
            cluster.answer("impair", "--up")
            wait_until(lambda: not cluster.links_down(), "the link to be seen again")
            self.assert_works(cluster)


class End(TestCase):
    def test_leaves_nothing(self):
        with Cluster(*SMALL) as cluster:
            self.assertEqual(len(cluster.processes()), 6 if cluster.status()["fabric"] == "memif" else 5)
            done = cluster.tool("down")
            self.assertEqual(done.returncode, 0, done.stderr)
            # The run directory is free a moment before the process that had it is gone.
            wait_until(lambda: cluster.processes() == [], "all daemons to be gone")
            self.assertEqual(list(cluster.directory.rglob("*.sock")), [])
            self.assertNotRegex(cluster.log(), "error|SIGKILL|killing|signal 11")

    def test_leaves_no_process_after_sigkill(self):
        with Cluster(*SMALL) as cluster:
            cluster.kill()
            self.assertEqual(cluster.processes(), [])
            cluster.up()
            self.assert_right(cluster.perf(*SIZES))


if __name__ == "__main__":
    main()
