"""`gradcube perf hub` measures rounds of a hub and finds wrong weights."""

import contextlib
import json
import os
import signal
import tempfile

from fabrics import GRID, PATIENCE, SERVERS, only_on
from harness import Cluster, TestCase, main, wait_until

LENET5 = ["--network", "lenet5", "--iterations", "2"]
MIXED = [("weight", 70_001, "float32"), ("half", 3_000, "float16"), ("brain", 5_000, "bfloat16"), ("b", 1, "float32")]
PLANS = (
    ["--algorithm", "ps"],
    ["--algorithm", "hips:ring"],
    ["--algorithm", "two-level"],
    ["--algorithm", "auto"],
    ["--trainers", "2"],
    ["--members", "0,0 0,1"],
    ["--aggregator", "2,2"],
    ["--aggregator", "2,1 2,2"],
    ["--aggregator", "0,0", "--members", "0,1 2,2", "--trainers", "2"],
)


def keys_file(test, keys):
    file = tempfile.NamedTemporaryFile("w", suffix=".json")
    test.addCleanup(file.close)
    json.dump({"keys": [dict(zip(("name", "elements", "dtype"), key)) for key in keys]}, file)
    file.flush()
    os.chmod(file.name, 0o644)
    return file.name


class HubPerf(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", GRID)
        cls.addClassCleanup(cls.cluster.end)

    def keys_file(self, keys=MIXED):
        return keys_file(self, keys)

    def measured(self, *arguments):
        return self.cluster.answer("perf", "hub", "--check", *arguments)

    def test_every_optimizer_has_the_right_weights_with_any_chunks(self):
        keys, chunks = self.keys_file(), ("--chunk", "auto,32Ki,4Mi")
        for optimizer in ("sgd:lr=0.3", "nesterov", "adam", "adamw;*e*:lr=0.25,weight-decay=0"):
            with self.subTest(optimizer=optimizer):
                report = self.measured("--keys", keys, "--iterations", "2", "--optimizer", optimizer, *chunks)
                self.assertEqual([row["chunk_bytes"] for row in report["results"]], [None, 32 << 10, 4 << 20])
                self.assertEqual([row["wrong"] for row in report["results"]], [0, 0, 0])
                self.assertEqual([row["iterations"] for row in report["results"]], [2, 2, 2])
                self.assertEqual((report["trainers"], report["optimizer"]), (SERVERS, optimizer))

    def test_keys_of_all_types_have_them_on_every_plan(self):
        for options in PLANS:
            with self.subTest(options=options):
                report = self.measured("--keys", self.keys_file(), "--optimizer", "momentum", *options)
                self.assertEqual(report["results"][0]["wrong"], 0)
                self.assertEqual(report["keys"], len(MIXED))

    def test_a_table_has_a_row_for_each_length_and_says_what_was_checked(self):
        outcome = self.cluster.tool("perf", "hub", *LENET5, "--check", "--chunk", "64Ki,256Ki")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        lines = outcome.stdout.splitlines()
        self.assertIn("hub of lenet5", lines[0])
        self.assertEqual([line.split()[0] for line in lines[3:5]], ["65536", "262144"])
        self.assertIn("every weight of every server", lines[5])
        outcome = self.cluster.tool("perf", "hub", "--keys", self.keys_file(), "--aggregator", "2,2")
        self.assertIn("aggregated by 2,2, bcube:3,2, 8 of 9 servers", outcome.stdout.splitlines()[0])

    def test_a_list_of_aggregators_without_any_is_refused(self):
        outcome = self.cluster.tool("perf", "hub", *LENET5, "--aggregator", " ")
        self.assertEqual((outcome.returncode, outcome.stdout), (2, ""))
        self.assertIn("--aggregator: it names no server", outcome.stderr)

    def test_an_interrupt_ends_a_measurement_and_nothing_is_left_of_its_job(self):
        asked = ["perf", "hub", "--network", "lenet5", "--iterations", "1000000"]
        with self.cluster.start_tool(*asked) as process, contextlib.ExitStack() as stack:
            stack.callback(process.kill)
            own = lambda: self.cluster.job(f"perf-hub-{process.pid}")
            wait_until(lambda: own() is not None and own()["state"] == "running", "the job to run")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, -signal.SIGINT)
        wait_until(lambda: self.cluster.status()["jobs"] == [], "the job to be forgotten")

    def test_a_hub_of_many_keys_is_measured(self):
        keys = self.keys_file([(f"key{number}", 3, "float32") for number in range(1100)])
        self.assertEqual(self.measured("--keys", keys, "--iterations", "1")["results"][0]["wrong"], 0)

    def test_what_takes_longer_than_the_limit_is_told(self):
        outcome = self.cluster.tool("perf", "hub", *LENET5, "--timeout", "0.001")
        self.assertEqual(outcome.returncode, 1)
        self.assertRegex(outcome.stderr, "not done after|did not make the hub in time")
        self.assert_works(self.cluster)

    @only_on("embedded", why="a daemon of each server has memory of its own")
    def test_a_hub_that_the_host_cannot_hold_is_refused(self):
        outcome = self.cluster.tool("perf", "hub", "--keys", self.keys_file([("huge", 10**12, "float32")]))
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("are available", outcome.stderr)


@only_on("embedded", why="its servers alone have several ports on a switch")
class PBox(TestCase):
    WORKERS, PORTS = 4, 3
    RATE = f"200mbit,server{WORKERS}={PORTS}x200mbit"

    @classmethod
    def setUpClass(cls):
        # Greetings are few beside what is pushed, however long that takes.
        flags = ("--rate", cls.RATE, "--mtu", "9000", "--aggregators", str(cls.WORKERS), "--greeting", "500ms")
        cls.cluster = Cluster("--topology", f"star:{cls.WORKERS + 1}", *flags)
        cls.addClassCleanup(cls.cluster.end)

    def ports(self):
        return self.cluster.status()["servers"][self.WORKERS]["ports"]

    def test_each_port_carries_what_the_plan_says(self):
        keys = [(f"key{number}", elements, "float32") for number, elements in enumerate((700_001, 400_000, 90_000, 7))]
        file = keys_file(self, keys)
        options = ["--keys", file, "--chunk", "256Ki"]
        plan = self.cluster.answer("plan", *options, "--topology", f"star:{self.WORKERS + 1}", "--rate", self.RATE,
                                   "--algorithm", f"ps:{self.WORKERS}", "--lcores", "0")  # fmt: skip
        running = self.cluster.answer("plan", *options, "--algorithm", f"ps:{self.WORKERS}", "--lcores", "0")
        self.assertEqual((running["running"], running["ports"]), (True, plan["ports"]))
        planned = [port["push_bytes"] for port in plan["ports"]]
        self.assertEqual(len(planned), self.PORTS)
        wait_until(lambda: not self.cluster.links_down(), "links that another test cut to be in use again")
        resent = lambda: self.cluster.status()["counters"]["resent"]
        before, resent_before = self.ports(), resent()
        self.assertEqual([port["rate_bps"] for port in before], [200_000_000] * self.PORTS)
        aggregated = ["--aggregator", str(self.WORKERS), "--warmup", "0", "--iterations", "5", "--check"]
        report = self.cluster.answer("perf", "hub", *options, *aggregated)
        self.assertEqual(report["results"][0]["wrong"], 0)
        rounds = 1 + 5  # the first weights are pushed, too
        after = self.ports()
        again = 9000 * (resent() - resent_before)  # bytes, also of the first push, which is not measured
        for port, bytes_planned in zip(zip(before, after), planned):
            for direction in ("rx_bytes", "tx_bytes"):
                carried = port[1][direction] - port[0][direction]
                more = carried - rounds * bytes_planned
                self.assertGreater(more, 0, f"{direction} {port[1]}")
                self.assertLess(more - again, 0.02 * rounds * bytes_planned, f"{direction} {port[1]}")

    def test_each_port_is_named_where_there_are_several(self):
        asked = ("paths", "--from", "0", "--to", str(self.WORKERS))
        ports = [(path["ports"], path["far_ports"]) for path in self.cluster.answer(*asked)["paths"]]
        direct = [([0], [port]) for port in range(self.PORTS)]
        self.assertEqual(ports[: self.PORTS], direct)
        self.assertRegex(self.cluster.tool(*asked).stdout, r"\n *1  0>2 .*\[0\] \[4\] ")
        self.cluster.answer("impair", "--server", str(self.WORKERS), "--port", "1", "--loss", "0.1")
        self.assertRegex(self.cluster.tool("status").stdout, r"\[4\] +1  loss 10 %\n")
        self.cluster.answer("impair", "--clear")

    def test_a_port_that_fails_leaves_its_chunks_to_the_others(self):
        for port in range(self.PORTS):
            with self.subTest(port=port):
                flags = ["impair", "--server", str(self.WORKERS), "--port", str(port)]
                self.assertEqual(self.cluster.tool(*flags, "--down").returncode, 0)
                try:
                    keys = keys_file(self, [("one", 150_000, "float32"), ("other", 90_000, "float32")])
                    options = ["--check", "--iterations", "2", "--aggregator", str(self.WORKERS)]
                    report = self.cluster.answer("perf", "hub", "--keys", keys, *options)
                finally:
                    self.assertEqual(self.cluster.tool(*flags, "--up").returncode, 0)
                self.assertEqual(report["results"][0]["wrong"], 0)


if __name__ == "__main__":
    main()
