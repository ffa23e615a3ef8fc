"""A cluster of a daemon per server, joined by shared memory to daemons of emulated switches.

Needs no rights: where root runs it, it goes on as another user if that user may read the build.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

from harness import TOOL, Cluster, TestCase, alive, become_ordinary_user, main, wait_until

SIZES = ("--sizes", "4,100K", "--iterations", "2")
SMALL = ("--fabric", "memif", "--topology", "bcube:2,2")


def links_down(cluster):
    """(server, level) of each port over which a server misses a neighbour."""
    ports = [(s["address"], port) for s in cluster.status()["servers"] for port in s.get("ports", [])]
    return {(tuple(address), port["level"]) for address, port in ports if port["down"]}


def processes_of(cluster):
    """All processes that have the run directory in their command lines."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(cluster.directory).encode() in (process / "cmdline").read_bytes() and alive(process.name):
                found.append(int(process.name))
    return found


def sockets_in(cluster):
    return list(cluster.directory.rglob("*.sock"))


def resent(results):
    return sum(result["resent"] for result in results)


class Collectives(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(*SMALL, "--rate", "100mbit")
        cls.addClassCleanup(cls.cluster.end)

    def tearDown(self):
        self.cluster.answer("impair", "--clear")
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten", 10)

    def switches(self, name):
        return sum(switch[name] for switch in self.cluster.status()["switches"])

    def test_are_right(self):
        self.assert_right(self.cluster.perf("--sizes", "4,1K,100K,2M", "--iterations", "2"))

    def test_count_their_frames_at_every_port_and_switch(self):
        self.assert_right(self.cluster.perf(*SIZES))
        status = self.cluster.status()
        self.assertEqual(status["fabric"], "memif")
        self.assertEqual(len(status["servers"]), 4)
        for server in status["servers"]:
            self.assertEqual([port["level"] for port in server["ports"]], [0, 1])
            for port in server["ports"]:
                self.assertGreater(port["rx_bytes"], 0)
                self.assertGreater(port["tx_bytes"], 0)
        names = [switch["name"] for switch in status["switches"]]
        self.assertEqual(names, ["0/[0,*]", "0/[1,*]", "1/[*,0]", "1/[*,1]"])
        self.assertTrue(all(switch["forwarded"] > 0 for switch in status["switches"]))
        (daemon,) = status["switch_daemons"]
        self.assertEqual((daemon["links"], daemon["connected"]), (8, 8))
        self.assertIn("4 servers, memif fabric", self.cluster.tool("status").stdout)

    def test_go_over_links_that_can_be_checked(self):
        report = self.cluster.answer("check", "--least-rate", "0.01", "--most-lost", "0.9")
        self.assertTrue(report["ok"], report)
        self.assertEqual(len(report["links"]), 4)

    def test_go_over_links_that_each_server_can_check(self):
        """The run directory of each daemon stands for its host."""
        hosts = [path.parent for path in self.cluster.directory.glob("?-?/control.sock")]
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

    def test_show_one_job_with_all_of_its_trainers(self):
        with contextlib.ExitStack() as stack:
            tool = stack.enter_context(
                self.cluster.start_tool("perf", "allreduce", "--sizes", "10M", "--iterations", "20", "--job", "long")
            )
            stack.callback(tool.wait)
            stack.callback(tool.terminate)
            whole = lambda: len((self.cluster.job("long") or {"trainers": []})["trainers"]) == 4
            wait_until(whole, "all trainers to join", 20)
            self.assertEqual([job["name"] for job in self.cluster.status()["jobs"]], ["long"])

    def test_go_around_a_link_that_is_cut(self):
        self.cluster.answer("impair", "--down", "1,0:0")
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: ((1, 0), 0) in links_down(self.cluster), "the cut to be seen", 20)
        differing = self.cluster.status()["impaired_links"]
        self.assertEqual([(link["server"], link["level"], link["up"]) for link in differing], [([1, 0], 0, False)])
        self.cluster.answer("impair", "--up")
        wait_until(lambda: not links_down(self.cluster), "the link to be seen again", 20)

    def test_survive_all_that_the_switches_do(self):
        for fault, counted in (
            ("--loss", "dropped_loss"),
            ("--duplicate", "duplicated"),
            ("--reorder", "reordered"),
            ("--corrupt", "corrupted"),
        ):
            before = self.switches(counted)
            self.assertEqual(self.cluster.answer("impair", "--clear", fault, "0.05")["changed"], 8)
            results = self.cluster.perf("--sizes", "1M", "--iterations", "3")
            self.assert_right(results)
            self.assertGreater(self.switches(counted), before, fault)
            if fault in ("--loss", "--corrupt"):
                self.assertGreater(resent(results), 0, fault)

    def test_refuse_impairments_that_are_none(self):
        self.assert_one_message(self.cluster.tool("impair", "--switch", "7/[*]", "--loss", "0.1"), 2, "no link is selected")
        self.assert_one_message(self.cluster.tool("impair", "--server", "5,5", "--loss", "0.1"), 2, '"5,5"')


class Settings(TestCase):
    def test_reach_the_switches(self):
        with Cluster(*SMALL, "--rate", "100mbit", "--loss", "0.02", "--delay", "200us", "--seed", "7") as cluster:
            results = cluster.perf("--sizes", "1M", "--iterations", "3")
            self.assert_right(results)
            self.assertGreater(resent(results), 0)
            impairments = cluster.status()["impairments"]
            self.assertEqual((impairments["loss"], impairments["seed"]), (0.02, 7))

    def test_may_leave_links_unlimited_and_frames_short(self):
        with Cluster(*SMALL, "--mtu", "1500") as cluster:
            self.assert_right(cluster.perf("--sizes", "4,100K,4M", "--iterations", "2"))

    def test_that_do_not_fit_are_refused(self):
        for topology, why in (("torus:3,2", "by switches"), ("star:33", "at most 32"), ("bcube:9,2", "at most 64")):
            with Cluster("--fabric", "memif", "--topology", topology, up=False) as cluster:
                self.assert_one_message(cluster.tool("up", *cluster.flags), 2, why)
                self.assertEqual(sockets_in(cluster), [])


class ManySwitches(TestCase):
    def test_have_several_daemons(self):
        with Cluster("--fabric", "memif", "--topology", "bcube:2,4", "--rate", "50mbit") as cluster:
            status = cluster.status()
            self.assertEqual([daemon["connected"] for daemon in status["switch_daemons"]], [32, 32])
            self.assertEqual(len(status["switches"]), 32)
            self.assertEqual(cluster.answer("impair", "--level", "3", "--loss", "0.01")["changed"], 16)
            differing = cluster.status()["impaired_links"]
            self.assertEqual({(link["level"], link["loss"]) for link in differing}, {(3, 0.01)})
            self.assertEqual(len(differing), 16)
            self.assertEqual(cluster.answer("impair", "--server", "0,1,0,1", "--loss", "0.02")["changed"], 4)
            self.assertEqual(len(cluster.status()["impaired_links"]), 19)
            self.assert_right(cluster.perf("--sizes", "4,100K", "--iterations", "1"))


class Death(TestCase):
    def test_of_a_daemon_in_good_order_is_told_to_the_others(self):
        with Cluster(*SMALL) as cluster:
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
                tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 1)

    def test_of_a_daemon_leaves_the_others_at_work(self):
        with Cluster(*SMALL) as cluster:
            os.kill(cluster.status()["servers"][3]["pid"], signal.SIGKILL)
            wait_until(lambda: "why" in cluster.status()["servers"][3], "the end to be seen", 10)
            self.assert_right(cluster.perf(*SIZES, "--members", "0,0 0,1"))
            self.assertEqual(cluster.tool("down").returncode, 0)

    def test_of_daemons_at_work_harms_no_switch_and_new_ones_take_their_places(self):
        with Cluster(*SMALL) as cluster, contextlib.ExitStack() as stack:
            for _ in range(3):
                tool = stack.enter_context(
                    cluster.start_tool("perf", "allreduce", "--sizes", "4M", "--iterations", "100000")
                )
                done = cluster.status()["counters"]["collectives"]
                wait_until(lambda: cluster.status()["counters"]["collectives"] > done + 4, "some collectives", 30)
                pid = next(p for p in processes_of(cluster) if b"\x001,1\x00" in command_of(p))
                arguments = command_of(pid).split(b"\x00--ready-fd\x00")[0].rstrip(b"\x00").split(b"\x00")
                os.kill(pid, signal.SIGKILL)
                tool.communicate(timeout=60)
                self.assertEqual(tool.returncode, 1)
                log = stack.enter_context(open(cluster.directory / "again.log", "w"))
                new = stack.enter_context(subprocess.Popen(arguments, stdout=log, stderr=log))
                stack.callback(new.kill)
                connected = lambda: cluster.status()["switch_daemons"][0]["connected"] == 8
                wait_until(connected, "the new daemon to connect", 20)
                wait_until(lambda: "ports" in cluster.status()["servers"][3], "it to be ready", 20)
                self.assert_right(cluster.perf(*SIZES))

    def test_of_switches_ends_jobs_and_is_reported(self):
        with Cluster(*SMALL) as cluster:
            with cluster.start_tool("perf", "allreduce", "--sizes", "1M", "--iterations", "100000") as tool:
                started = lambda: cluster.status()["counters"]["collectives"] > 0
                wait_until(started, "the first collective", 20)
                os.kill(cluster.status()["switch_daemons"][0]["pid"], signal.SIGKILL)
                tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 1)
            status = cluster.status()
            self.assertIn("signal 9", status["switch_daemons"][0]["why"])
            self.assertFalse(status["impairments"]["up"])
            self.assertEqual([server.get("trainers") for server in status["servers"]], [0, 0, 0, 0])
            self.assertIn("switches 0: its daemon ended", cluster.log())
            self.assert_one_message(cluster.tool("impair", "--loss", "0.1"), 1, "a daemon of switches")
            self.assertEqual(cluster.tool("down").returncode, 0)


def command_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


class End(TestCase):
    def test_leaves_nothing(self):
        with Cluster(*SMALL) as cluster:
            self.assertEqual(len(processes_of(cluster)), 6)
            self.assertEqual(len([path for path in sockets_in(cluster) if path.name == "memif.sock"]), 1)
            done = cluster.tool("down")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(processes_of(cluster), [])
            self.assertEqual(sockets_in(cluster), [])
            for log in cluster.directory.rglob("gradcubed.log"):
                self.assertNotRegex(log.read_text(), "error|SIGKILL|killing|signal 11")

    def test_leaves_no_process_after_sigkill(self):
        with Cluster(*SMALL) as cluster:
            cluster.kill()
            wait_until(lambda: processes_of(cluster) == [], "all processes to be gone", 20)
            cluster.up()
            self.assert_right(cluster.perf(*SIZES))

    def test_works_in_a_directory_with_any_name(self):
        with Cluster(*SMALL, up=False) as cluster:
            odd = cluster.directory / "a,b=[c] d"
            odd.mkdir(mode=0o700)
            cluster.environment["GRADCUBE_RUN"] = str(odd)
            cluster.up()
            try:
                self.assert_right(cluster.perf(*SIZES))
            finally:
                self.assertEqual(cluster.tool("down").returncode, 0)


if __name__ == "__main__":
    become_ordinary_user()
    main()
