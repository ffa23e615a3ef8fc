"""A cluster of a daemon per server on a test bed: collectives over real links, also while some are cut.

Needs root and iproute2.
"""

import contextlib
import json
import os
import re
import signal
import subprocess

from harness import TOOL, Cluster, TestCase, main, skip_without_namespaces, wait_until

SIZES = ("--sizes", "4,100K", "--iterations", "2")


def links_down(cluster):
    """(server, level) of each port over which a server misses a neighbour."""
    ports = [(s["address"], port) for s in cluster.status()["servers"] for port in s.get("ports", [])]
    return {(tuple(address), port["level"]) for address, port in ports if port["down"]}


class Collectives(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--fabric", "veth", "--topology", "bcube:2,2", "--rate", "100mbit")
        cls.addClassCleanup(cls.cluster.end)

    def tearDown(self):
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten", 10)

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

    def test_go_over_links_that_can_be_checked(self):
        report = self.cluster.answer("check", "--least-rate", "0.01", "--most-lost", "0.9")
        self.assertTrue(report["ok"], report)
        self.assertEqual(len(report["links"]), 4)

    def test_go_over_links_that_each_host_can_check(self):
        """The run directory of each daemon stands for its host."""
        hosts = [path for path in self.cluster.directory.iterdir() if path.is_dir()]
        self.assertEqual(len(hosts), 4)
        with contextlib.ExitStack() as stack:
            checks = []
            for host in hosts:
                command = [TOOL, "check", "--json", "--job", "first", "--least-rate", "0.01", "--most-lost", "0.9"]
                environment = dict(os.environ, GRADCUBE_RUN=str(host))
                checks.append(
                    stack.enter_context(
                        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    )
                )
            for check in checks:
                output, errors = check.communicate(timeout=60)
                self.assertEqual(check.returncode, 0, output + errors)
                self.assertEqual(len(json.loads(output)["links"]), 2)
        alone = subprocess.run([TOOL, "check"], env=environment, capture_output=True, text=True, timeout=20)
        self.assertEqual(alone.returncode, 2)
        self.assertIn("--job", alone.stderr)

    def test_show_one_job_with_all_of_its_trainers(self):
        with contextlib.ExitStack() as stack:
            tool = stack.enter_context(
                self.cluster.start_tool("perf", "allreduce", "--sizes", "10M", "--iterations", "20", "--job", "long")
            )
            stack.callback(tool.wait)
            stack.callback(tool.terminate)
            whole = lambda: len((self.cluster.job("long") or {"trainers": []})["trainers"]) == 4
            wait_until(whole, "all trainers to join", 20)
            names = [job["name"] for job in self.cluster.status()["jobs"]]
            self.assertEqual(names, ["long"])

    def test_go_around_a_link_that_the_switch_cuts(self):
        self.cluster.answer("impair", "--down", "1,0:0")
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: ((1, 0), 0) in links_down(self.cluster), "the cut to be seen", 20)
        self.cluster.answer("impair", "--up")
        wait_until(lambda: not links_down(self.cluster), "the link to be seen again", 20)

    def test_go_around_a_link_that_the_server_cuts(self):
        pid = self.cluster.status()["servers"][1]["pid"]
        set_link = ["nsenter", "-t", str(pid), "-n", "ip", "link", "set", "dev", "level1"]
        subprocess.run([*set_link, "down"], check=True, timeout=20)
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: ((0, 1), 1) in links_down(self.cluster), "the cut to be seen", 20)
        subprocess.run([*set_link, "up"], check=True, timeout=20)
        wait_until(lambda: not links_down(self.cluster), "the link to be seen again", 20)


class Torus(TestCase):
    def test_goes_over_cables_and_around_one_that_is_cut(self):
        with Cluster("--fabric", "veth", "--topology", "torus:3,2", "--rate", "100mbit") as cluster:
            for algorithm in ("hips:ring", "mesh"):
                self.assert_right(cluster.perf(*SIZES, "--algorithm", algorithm))
            for server in cluster.status()["servers"]:
                self.assertEqual([(port["level"], port["port"]) for port in server["ports"]], [(0, 0), (0, 1), (1, 2), (1, 3)])
                self.assertTrue(all(port["rx_bytes"] > 0 for port in server["ports"]))
            cluster.answer("impair", "--down", "2,1:2")
            cut = {((2, 1), 1), ((0, 1), 1)}
            wait_until(lambda: links_down(cluster) == cut, "the cut to be seen at both ends", 20)
            self.assert_right(cluster.perf(*SIZES))
            cluster.answer("impair", "--up")
            wait_until(lambda: not links_down(cluster), "the cable to be seen again", 20)


class Death(TestCase):
    def test_of_a_daemon_in_good_order_is_told_to_the_others(self):
        with Cluster("--fabric", "veth", "--topology", "bcube:2,2") as cluster:
            flags = ("--sizes", "1M", "--iterations", "100000", "--job", "long")
            with cluster.start_tool("perf", "allreduce", *flags) as tool:
                started = lambda: cluster.status()["counters"]["collectives"] > 0
                wait_until(started, "the first collective", 20)
                # The trainers stand still, so that none of them leaves before its daemon is told.
                tool.send_signal(signal.SIGSTOP)
                os.kill(cluster.status()["servers"][3]["pid"], signal.SIGTERM)
                others = [cluster.directory / name / "gradcubed.log" for name in ("0-0", "0-1", "1-0")]
                told = r"trainer .*\[1,1\].* lost its daemon, which was shut down"
                try:
                    all_told = lambda: all(re.search(told, log.read_text()) for log in others)
                    wait_until(all_told, "all others to be told", 20)
                finally:
                    tool.send_signal(signal.SIGCONT)
                _, errors = tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 1)
            self.assertNotIn("does not answer", cluster.log() + errors)

    def test_of_a_daemon_leaves_the_others_at_work(self):
        with Cluster("--fabric", "veth", "--topology", "bcube:2,2") as cluster:
            os.kill(cluster.status()["servers"][3]["pid"], signal.SIGKILL)
            wait_until(lambda: "why" in cluster.status()["servers"][3], "the end to be seen", 10)
            self.assert_right(cluster.perf(*SIZES, "--members", "0,0 0,1"))
            self.assertEqual(cluster.tool("down").returncode, 0)


if __name__ == "__main__":
    skip_without_namespaces()
    main()
