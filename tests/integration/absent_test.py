"""Clusters some of whose addresses have no server: what runs, who waits for whom, and what is said of it."""

import json
import os
import tempfile

import gradcube

from fabrics import PATIENCE, faults
from harness import Cluster, TestCase, all_of, job, main, wait_until

ABSENT = ("--topology", "bcube:3x2", "--absent", "2,1")
SIZES = ("--sizes", "4,1K,200K", "--iterations", "2")
THERE = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]


class Absent(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(*ABSENT, *faults("--loss", "0.005", "--reorder", "0.01"))
        cls.addClassCleanup(cls.cluster.end)

    def test_servers_are_not_started_nor_counted_nor_waited_for(self):
        status = self.cluster.status()
        self.assertEqual([server["address"] for server in status["servers"]], THERE)
        self.assertEqual(status["topology"]["servers"], 5)
        self.assertEqual(status["topology"]["absent"], [[2, 1]])
        self.assertEqual(len(self.cluster.sockets()), 5)
        self.assertFalse(any("why" in server for server in status["servers"]))
        summary = self.cluster.tool("status").stdout
        self.assertIn("bcube:3x2: 5 servers, 1 absent", summary)
        self.assertIn("absent        [2,1]; a job on all servers runs", summary)
        with job(self.cluster, "whole") as sessions:
            self.assertEqual([session.size for session in sessions], [5] * 5)
            ranks = sorted(session.rank for session in sessions)
            self.assertEqual(ranks, list(range(5)))

    def test_no_server_is_found_to_be_down_and_a_real_failure_is(self):
        wait_until(lambda: self.cluster.links_down() == set(), "all links to be up")
        self.cluster.answer("impair", "--server", "2,0", "--port", "1", "--down")
        wait_until(lambda: self.cluster.links_down() != set(), "the link to be found down")
        named = json.dumps([port["down"] for server in self.cluster.status()["servers"] for port in server["ports"]])
        self.assertNotIn("[2, 1]", named)
        self.cluster.answer("impair", "--server", "2,0", "--port", "1", "--up")
        wait_until(lambda: self.cluster.links_down() == set(), "all links to be up")

    def test_the_algorithms_that_run_are_right_and_the_default_is_one_of_them(self):
        default = self.cluster.status()["algorithm"]
        self.assertIn(default, ["mesh", "ring"])
        answer = self.cluster.answer("perf", "allreduce", "--check", *SIZES)
        self.assertEqual(answer["algorithm"], default)
        self.assert_right(answer["results"])
        for algorithm in ("ring", "mesh", "ps", "ps:2,0", "auto"):
            with self.subTest(algorithm=algorithm):
                self.assert_right(self.cluster.perf("--algorithm", algorithm, *SIZES))
        head = self.cluster.tool("perf", "allreduce", "--sizes", "1K", "--iterations", "1").stdout
        self.assertIn(f"# {default} as the servers form no grid, bcube:3x2, 5 servers, 1 absent", head)

    def test_members_that_form_a_grid_run_what_needs_one(self):
        self.assert_right(self.cluster.perf("--algorithm", "bml", "--members", "0,0 0,1 1,0 1,1", *SIZES))
        self.assert_right(self.cluster.perf("--members", "0,0 1,0 2,0", *SIZES))
        self.assert_right(self.cluster.perf("--members", "2,0 1,1", *SIZES))

    def test_messages_pass_servers_that_are_there(self):
        answer = self.cluster.answer("perf", "sendrecv", "--from", "1", "--to", "4", "--sizes", "1K,300K", "--check")
        self.assert_right(answer["results"])
        paths = self.cluster.answer("paths", "--from", "0,1", "--to", "2,0")["paths"]
        self.assertTrue(paths)
        for path in paths:
            for server in path["servers"]:
                self.assertIn(server, THERE)

    def test_what_asks_for_an_absent_server_is_told_so(self):
        absent = "the cluster has no server at this address"
        for command in (
            ["perf", "allreduce", "--members", "0,0 2,1"],
            ["perf", "allreduce", "--algorithm", "ps:2,1"],
            ["paths", "--from", "2,1", "--to", "0,0"],
            ["impair", "--server", "2,1", "--port", "0", "--down"],
        ):
            with self.subTest(command=command):
                self.assert_one_message(self.cluster.tool(*command), 2, "is absent", absent)
        self.assert_one_message(
            self.cluster.tool("perf", "allreduce", "--algorithm", "bml"), 2, "form no grid", "[2,1] is", "servers: mesh"
        )

    def test_check_measures_the_links_that_are_there(self):
        _, report = self.cluster.check("--least-rate", "0", "--most-lost", "1")
        self.assertTrue(report["ok"], report)
        # Two rows of two, and columns of three and of two.
        self.assertEqual(len(report["links"]), 1 + 1 + 3 + 1)
        for link in report["links"]:
            for server in link["between"]:
                self.assertIn(server, THERE)

    def test_a_trainer_that_leaves_ends_the_job_for_all_others(self):
        with job(self.cluster, "left") as sessions:
            arrays = [session.alloc(1000, "float32") for session in sessions]
            sessions[2].close()
            stay = [rank for rank in range(5) if rank != 2]
            for result in all_of(lambda rank: sessions[rank].allreduce(arrays[rank], timeout=PATIENCE), stay):
                self.assert_fails(gradcube.PeerError, result, "left")
        self.assert_works(self.cluster)


class ClusterFile(TestCase):
    def test_names_absent_servers_and_a_flag_replaces_them(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "cluster.toml")
            with open(path, "w", encoding="ascii") as file:
                file.write('[topology]\nspec = "bcube:2,2"\nabsent = ["1,1"]\n')
            with Cluster("--cluster", path) as cluster:
                self.assertEqual(cluster.status()["topology"]["absent"], [[1, 1]])
                self.assert_right(cluster.perf(*SIZES))
            with Cluster("--cluster", path, "--absent", "0,0") as cluster:
                self.assertEqual(cluster.status()["topology"]["absent"], [[0, 0]])
                self.assert_right(cluster.perf(*SIZES))


if __name__ == "__main__":
    main()
