"""Servers whose role is to aggregate: they take no trainers, and jobs on all servers are on the others."""

import json
import os
import tempfile

import gradcube

from fabrics import LAST, RADIX, SERVERS
from harness import Cluster, TestCase, job, main

ROLE = LAST.strip("[]")  # an address as flags have it
OTHERS = SERVERS - 1
SIZES = ("--sizes", "4,1K,200K", "--iterations", "2")
HUB = ("--network", "lenet5", "--iterations", "1", "--warmup", "0", "--check")


class Aggregators(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", f"bcube:{RADIX},2", "--aggregators", ROLE)
        cls.addClassCleanup(cls.cluster.end)

    def test_take_no_trainers_and_say_so(self):
        status = self.cluster.status()
        self.assertEqual(status["aggregators"], [[RADIX - 1, RADIX - 1]])
        self.assertIn(f"aggregators   {LAST}, which take no trainers", self.cluster.tool("status").stdout)
        sockets = self.cluster.sockets()
        with self.assertRaisesRegex(gradcube.JobError, "is an aggregator of this cluster.*takes no trainers"):
            gradcube.Session(sockets[-1], "there")
        with self.assertRaisesRegex(gradcube.JobError, "members: server .* is an aggregator"):
            gradcube.Session(sockets[0], "named", members=[0, SERVERS - 1])
        for command in (["perf", "allreduce"], ["run", "--", "true"]):
            with self.subTest(command=command):
                where = command.index("--") if "--" in command else len(command)
                asked = [*command[:where], "--members", f"0,0 {ROLE}", *command[where:]]
                self.assert_one_message(self.cluster.tool(*asked), 2, "--members", "takes no trainers")

    def test_leave_jobs_that_name_no_servers_to_the_others(self):
        with job(self.cluster, "all", range(OTHERS)) as sessions:
            self.assertEqual([session.size for session in sessions], [OTHERS] * OTHERS)
        answer = self.cluster.answer("perf", "allreduce", "--check", *SIZES)
        self.assert_right(answer["results"])
        self.assertEqual(answer["algorithm"], self.cluster.status()["algorithm"])
        head = self.cluster.tool("perf", "allreduce", "--sizes", "1K", "--iterations", "1").stdout
        self.assertIn(f"{OTHERS} of {SERVERS} servers", head)
        done = self.cluster.tool("run", "--no-prefix", "--", "sh", "-c", "echo $WORLD_SIZE")
        self.assertEqual(done.stdout.split(), [str(OTHERS)] * OTHERS, done.stderr)

    def test_have_no_part_in_what_is_planned_for_jobs(self):
        text = self.cluster.tool("plan").stdout
        self.assertTrue(text.startswith(f"# on bcube:{RADIX},2, the running cluster without its aggregators\n"), text[:99])
        self.assertIn(f": {OTHERS} servers, ", text)
        self.assertNotIn(f"server {LAST}", text)
        self.assert_one_message(self.cluster.tool("plan", "--server", ROLE), 2, "takes no trainers")
        self.assertEqual(self.cluster.answer("plan", "--verify")["servers"], OTHERS)
        with tempfile.TemporaryDirectory() as directory:
            keys = os.path.join(directory, "keys.json")
            with open(keys, "w", encoding="ascii") as file:
                json.dump({"keys": [{"name": "a", "elements": 1000, "dtype": "float32"}]}, file)
            self.assertEqual(self.cluster.answer("plan", "--keys", keys)["servers"], OTHERS)
        for candidate in self.cluster.answer("plan", "--why", "1K")["candidates"]:
            self.assert_right(self.cluster.perf("--sizes", "1K", "-n", "1", "--algorithm", candidate["algorithm"]))

    def test_aggregate_hubs(self):
        for options in (["--aggregator", ROLE], []):
            with self.subTest(options=options):
                report = self.cluster.answer("perf", "hub", *HUB, *options)
                self.assertEqual(report["results"][0]["wrong"], 0)
                self.assertEqual(report["trainers"], OTHERS)

    def test_have_links_that_check_does_not_measure(self):
        _, report = self.cluster.check("--least-rate", "0", "--most-lost", "1")
        self.assertTrue(report["ok"], report)
        own = [RADIX - 1, RADIX - 1]
        for link in report["links"]:
            self.assertEqual(link["payload_bps"] is None, own in link["between"], link)
        self.assertEqual(len([link for link in report["links"] if own in link["between"]]), 2 * (RADIX - 1))


class ClusterFile(TestCase):
    def test_names_them_and_a_topology_flag_forgets_them(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "cluster.toml")
            with open(path, "w", encoding="ascii") as file:
                file.write('[topology]\nspec = "star:3"\naggregators = ["2"]\n')
            with Cluster("--cluster", path) as cluster:
                self.assertEqual(cluster.status()["aggregators"], [[2]])
                self.assert_right(cluster.perf(*SIZES))
            with Cluster("--cluster", path, "--topology", "star:2") as cluster:
                self.assertEqual(cluster.status()["aggregators"], [])


if __name__ == "__main__":
    main()
