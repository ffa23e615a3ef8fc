"""What only memif links have: emulated switches in daemons of their own, their faults, and their deaths."""

import contextlib
import json
import os
import signal
import subprocess
import unittest

import numpy

from fabrics import PATIENCE
from harness import Cluster, TestCase, all_of, arguments_of, command_of, job, main, wait_until

SIZES = ("--sizes", "4,100K", "--iterations", "2")
SMALL = ("--topology", "bcube:2,2")
CORES = [str(core) for core in sorted(os.sched_getaffinity(0))]
TWO_LCORES = ("--server-lcores", "2", "--lcores", ",".join(CORES))


def resent(results):
    return sum(result["resent"] for result in results)


class Switches(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(*SMALL, "--rate", "100mbit")
        cls.addClassCleanup(cls.cluster.end)

    def tearDown(self):
        self.cluster.answer("impair", "--clear")
        self.assert_right(self.cluster.perf(*SIZES))
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten")

    def switches(self, name):
        return sum(switch[name] for switch in self.cluster.status()["switches"])

    def test_count_the_frames_that_they_forward(self):
        self.assert_right(self.cluster.perf(*SIZES))
        status = self.cluster.status()
        names = [switch["name"] for switch in status["switches"]]
        self.assertEqual(names, ["0/[0,*]", "0/[1,*]", "1/[*,0]", "1/[*,1]"])
        self.assertTrue(all(switch["forwarded"] > 0 for switch in status["switches"]))
        (daemon,) = status["switch_daemons"]
        self.assertEqual((daemon["links"], daemon["connected"]), (8, 8))

    def test_harm_no_collective_by_their_faults(self):
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
            before = cluster.status()["memory"]["pool_bytes"]
            at_once = [cluster.start_tool("perf", "allreduce", "--sizes", "1K", "--job", f"job-{i}") for i in range(8)]
            for tool in at_once:
                said = tool.communicate(timeout=4 * PATIENCE)
                self.assertEqual(tool.returncode, 0, said)
            self.assertEqual(cluster.status()["memory"]["pool_bytes"], before, "first jobs wait for no memory")
            self.assert_right(cluster.perf("--sizes", "4,100K,4M", "--iterations", "2"))

    def test_that_do_not_fit_are_refused(self):
        for topology, why in (("star:33", "at most 32"), ("bcube:9,2", "at most 64")):
            with Cluster("--topology", topology, up=False) as cluster:
                self.assert_one_message(cluster.tool("up", *cluster.flags), 2, why)
                self.assertEqual(list(cluster.directory.rglob("*.sock")), [])


class ManySwitches(TestCase):
    def test_have_several_daemons(self):
        with Cluster("--topology", "bcube:3x2x2", "--rate", "50mbit") as cluster:
            status = cluster.status()
            self.assertEqual(len(status["switch_daemons"]), 2)
            self.assertEqual(sum(daemon["connected"] for daemon in status["switch_daemons"]), 36)
            self.assertEqual(len(status["switches"]), 16)
            self.assertEqual(cluster.answer("impair", "--level", "2", "--loss", "0.01")["changed"], 12)
            differing = cluster.status()["impaired_links"]
            self.assertEqual({(link["level"], link["loss"]) for link in differing}, {(2, 0.01)})
            self.assertEqual(len(differing), 12)
            self.assertEqual(cluster.answer("impair", "--server", "0,1,0", "--loss", "0.02")["changed"], 3)
            self.assertEqual(len(cluster.status()["impaired_links"]), 14)
            # A grid over levels of both daemons; more servers at work are too many for two cores.
            members = "0,0,0 0,0,1 1,0,0 1,0,1"
            self.assert_right(cluster.perf("--sizes", "4,100K", "--iterations", "1", "--members", members))

    def test_are_cables_on_a_torus_with_faults_at_each_end(self):
        with Cluster("--topology", "torus:3,2", "--rate", "50mbit") as cluster:
            daemons = cluster.status()["switch_daemons"]
            self.assertEqual([daemon["connected"] for daemon in daemons], [32, 4])
            self.assertEqual(cluster.answer("impair", "--switch", "0/[0,0]-[0,1]", "--loss", "0.2")["changed"], 2)
            # The last cable, which the second daemon has, and the other port of its level at its first end.
            self.assertEqual(cluster.answer("impair", "--server", "2,2", "--port", "2", "--reorder", "0.1")["changed"], 1)
            self.assertEqual(cluster.answer("impair", "--server", "2,2", "--port", "3", "--loss", "0.02")["changed"], 1)
            impaired = [(link["server"], link["port"], link["loss"]) for link in cluster.status()["impaired_links"]]
            self.assertEqual(impaired, [([0, 0], 0, 0.2), ([0, 1], 1, 0.2), ([2, 2], 2, 0), ([2, 2], 3, 0.02)])
            self.assert_right(cluster.perf("--sizes", "4,500K", "--iterations", "1", "--members", "0,0 0,1 2,0 2,1"))
            lost = {each["name"]: each["dropped_loss"] for each in cluster.status()["switches"]}
            self.assertGreater(lost["0/[0,0]-[0,1]"], 0)


class Death(TestCase):
    def test_of_daemons_at_work_harms_no_switch_and_new_ones_take_their_places(self):
        with Cluster(*SMALL) as cluster, contextlib.ExitStack() as stack:
            for _ in range(3):
                tool = stack.enter_context(
                    cluster.start_tool("perf", "allreduce", "--sizes", "4M", "--iterations", "100000")
                )
                done = cluster.status()["counters"]["collectives"]
                wait_until(lambda: cluster.status()["counters"]["collectives"] > done + 4, "some collectives", 30)
                pid = next(p for p in cluster.processes() if b"\x001,1\x00" in command_of(p))
                arguments = arguments_of(pid)
                os.kill(pid, signal.SIGKILL)
                tool.communicate(timeout=PATIENCE)
                self.assertEqual(tool.returncode, 1)
                stack.enter_context(cluster.daemon(arguments))
                connected = lambda: cluster.status()["switch_daemons"][0]["connected"] == 8
                wait_until(connected, "the new daemon to connect")
                wait_until(lambda: "ports" in cluster.status()["servers"][3], "it to be ready")
                self.assert_right(cluster.perf(*SIZES))

    def test_of_the_bed_leaves_a_daemon_that_was_started_by_hand_which_up_names_and_down_ends(self):
        with Cluster(*SMALL) as cluster:
            for kill_bed in True, False:
                pid = cluster.status()["servers"][3]["pid"]
                arguments = arguments_of(pid)
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: "why" in cluster.status()["servers"][3], "the end to be seen")
                with cluster.daemon(arguments) as new:
                    wait_until(lambda: cluster.status()["servers"][3]["pid"] == new.pid, "it to be ready")
                    if kill_bed:
                        os.kill(cluster.pid(), signal.SIGKILL)
                        wait_until(cluster.is_unlocked, "the bed to be gone")
                        for command in ("up", *cluster.flags), ("status",):
                            said = ("no cluster runs", f"1-1 (pid {new.pid})", "`gradcube down` ends")
                            self.assert_one_message(cluster.tool(*command), 1, *said)
                    self.assertEqual(cluster.tool("down").returncode, 0)
                    self.assertEqual(new.wait(PATIENCE), 0)
                self.assert_one_message(cluster.tool("down"), 1, "nothing to end")
                cluster.up()

    def test_of_switches_ends_jobs_and_is_reported_and_new_ones_take_their_places(self):
        with Cluster(*SMALL) as cluster, contextlib.ExitStack() as stack:
            (switches,) = cluster.status()["switch_daemons"]
            arguments = arguments_of(switches["pid"])
            for _ in range(2):
                with cluster.start_tool("perf", "allreduce", "--sizes", "1M", "--iterations", "100000") as tool:
                    before = cluster.status()["counters"]["collectives"]
                    wait_until(lambda: cluster.status()["counters"]["collectives"] > before, "the first collective")
                    os.kill(cluster.status()["switch_daemons"][0]["pid"], signal.SIGKILL)
                    _, errors = tool.communicate(timeout=PATIENCE)
                self.assertEqual(tool.returncode, 1)
                self.assertRegex(errors, r"server \[\d,\d\]")
                self.check_without_switches(cluster)

                new = stack.enter_context(cluster.daemon(arguments))
                connected = lambda: cluster.status()["switch_daemons"][0].get("connected") == 8
                wait_until(connected, "the servers to connect again")
                self.assertEqual(cluster.status()["switch_daemons"][0]["pid"], new.pid)
                wait_until(lambda: not cluster.links_down(), "all links to be seen again")
                self.assertTrue(cluster.status()["impairments"]["up"])
                self.assert_right(cluster.perf(*SIZES))
            self.assertNotIn("memif_connect", cluster.log(), "a try is no news")
            self.assertEqual(cluster.tool("down").returncode, 0)

    def check_without_switches(self, cluster):
        wait_until(lambda: "why" in cluster.status()["switch_daemons"][0], "the end to be seen")
        self.assertFalse(cluster.status()["impairments"]["up"])
        trainers = lambda: [server.get("trainers") for server in cluster.status()["servers"]]
        wait_until(lambda: trainers() == [0, 0, 0, 0], "all trainers to be gone")
        self.assertIn("switches 0: its daemon ended", cluster.log())
        self.assert_one_message(cluster.tool("impair", "--loss", "0.1"), 1, "a daemon of switches")


@unittest.skipIf(len(CORES) < 2, "it takes two cores")
class TwoLcoresOfEachServer(TestCase):
    """Links of two queues, over which the switches spread frames without regard to threads."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(*SMALL, *TWO_LCORES)
        cls.addClassCleanup(cls.cluster.end)

    def counters(self):
        return self.cluster.status()["counters"]

    def test_add_to_the_last_bit_what_comes_to_the_wrong_engine(self):
        self.assert_right(self.cluster.perf("--sizes", "4,100K,4M", "--iterations", "3"))
        counters = self.counters()
        self.assertGreater(counters["handed_over"], 0)
        self.assertEqual(counters["dropped"]["foreign_thread"], 0)
        wait_until(lambda: not self.cluster.links_down(), "all links to be seen")
        (daemon,) = self.cluster.status()["switch_daemons"]
        self.assertEqual((daemon["links"], daemon["connected"]), (8, 8))

    def test_recover_from_lost_and_doubled_frames(self):
        faults = ("--loss", "0.02", "--duplicate", "0.02", "--reorder", "0.02")
        self.assertEqual(self.cluster.answer("impair", *faults)["changed"], 8)
        results = self.cluster.perf("--sizes", "1M", "--iterations", "2")
        self.cluster.answer("impair", "--clear")
        self.assert_right(results)
        self.assertGreater(resent(results), 0)

    def test_add_up_on_all_of_them_where_there_is_one_level(self):
        with Cluster("--topology", "star:3", *TWO_LCORES) as cluster:
            with job(cluster, "wide") as sessions:
                arrays = [session.alloc(100_003) for session in sessions]
                for array in arrays:
                    array[:] = numpy.arange(array.size) % 7
                all_of(lambda session: session.allreduce(arrays[session.rank], timeout=PATIENCE), sessions)
                for array in arrays:
                    numpy.testing.assert_array_equal(array, 3 * (numpy.arange(array.size) % 7))
                flows = cluster.status()["flows"]
            self.assertEqual({flow["thread"] for flow in flows if flow["sent"]}, {0, 1})

    def test_are_as_many_as_the_links_have_queues(self):
        pid = next(p for p in self.cluster.processes() if b"\x00--server\x000,1\x00" in command_of(p))
        arguments = arguments_of(pid)
        place = arguments.index(b"--settings") + 1
        settings = json.loads(arguments[place])
        settings["lcores"] = settings["lcores"].split(",")[0]
        arguments[place] = json.dumps(settings).encode()
        with Cluster(up=False) as other:
            arguments[arguments.index(b"--run-dir") + 1] = str(other.directory).encode()
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("lcores: there are 1, and server-lcores is 2", done.stderr + other.log())

    def test_are_no_more_than_there_are(self):
        with Cluster(*SMALL, "--server-lcores", "2", "--lcores", CORES[0], up=False) as cluster:
            done = cluster.tool("up", *cluster.flags)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("server-lcores: each server is to run on 2 lcores, and there are 1", done.stderr)

    def test_connect_again_when_a_daemon_was_killed(self):
        with Cluster(*SMALL, *TWO_LCORES) as cluster:
            pid = next(p for p in cluster.processes() if b"\x00--server\x001,1\x00" in command_of(p))
            arguments = arguments_of(pid)
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: "why" in cluster.status()["servers"][3], "the end to be seen")
            with cluster.daemon(arguments):
                connected = lambda: cluster.status()["switch_daemons"][0]["connected"] == 8
                wait_until(connected, "the new daemon to connect")
                wait_until(lambda: "ports" in cluster.status()["servers"][3], "it to be ready")
                self.assert_right(cluster.perf(*SIZES))


class RunDirectory(TestCase):
    def test_may_have_any_name(self):
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
    main()
