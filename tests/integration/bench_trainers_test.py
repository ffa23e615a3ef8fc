"""The trainers of `./scripts/bench.sh training` run, and print what its rows are made of."""

import json
import pathlib
import sys

from harness import Cluster, TestCase, main
from torch_launch import LONG

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "bench" / "training"


class BenchTrainers(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "star:2")
        cls.addClassCleanup(cls.cluster.end)

    def printed(self, program, *arguments):
        command = [sys.executable, str(PROGRAMS / program), *arguments]
        done = self.cluster.tool("run", "--no-prefix", "--", *command, timeout=LONG)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_distributed_data_parallel_copies_nothing_after_its_first_step(self):
        printed = self.printed("ddp_steps.py", "gradcube", "2")
        self.assertGreater(printed["seconds_median"], 0)
        self.assertEqual(printed["staged_bytes"], 0)

    def test_all_reduces_of_each_size_are_timed(self):
        for memory in ("ordinary", "shared"):
            printed = self.printed("allreduce_sizes.py", "gradcube", memory, "2", "4000", "64000")
            self.assertEqual(sorted(printed), ["4000", "64000"])
            self.assertGreater(min(printed.values()), 0)

    def test_an_all_reduce_is_timed_by_torch_and_by_the_library(self):
        printed = self.printed("bucket_cost.py", "4096", "2")
        self.assertEqual(sorted(printed), ["library", "torch"])
        self.assertGreater(min(printed.values()), 0)

    def test_every_policy_trains_the_same_network(self):
        ways = ["mgwfbp", "optimal", "optimal,need", "synceasgd", "wfbp"]
        printed = self.printed("merged_steps.py", "16", "1x30,3x0", "0.5", "1", *ways)
        self.assertEqual(sorted(printed["seconds_median"]), ways)
        self.assertEqual(sorted(printed["messages"]), ways)
        self.assertEqual(printed["messages"]["wfbp"], 4)
        self.assertEqual(printed["messages"]["synceasgd"], 1)
        self.assertGreaterEqual(min(printed["seconds_median"].values()), 0.045)

    def test_layers_take_lanes_in_turn_and_computation_counts(self):
        for algorithms in ("mesh", "ps:0,ps:1"):
            seconds = self.printed("job_time.py", algorithms, "4,400,4000", "0,0.2", "1")["seconds"]
            self.assertEqual(len(seconds), 2)
            self.assertGreaterEqual(seconds[1], 0.2)


if __name__ == "__main__":
    main()
