"""Python trainers train a real model over a real cluster, and end with the same bits."""

import importlib.util
import pathlib
import re
import sys
import unittest

from harness import Cluster, TestCase, main, wait_until
from torch_launch import run_launcher

SERVERS = 4
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "trainer" / "examples" / "digits_cluster.py"


@unittest.skipUnless(
    all(importlib.util.find_spec(module) for module in ("torch", "sklearn")), "needs PyTorch and scikit-learn"
)
class Training(TestCase):
    def train(self, cluster, *options):
        """The accuracy, in percent."""
        done = run_launcher([sys.executable, EXAMPLE, "--require-accuracy", "0", *options], cluster.environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"weights: bit-identical on all {SERVERS} trainers", done.stdout)
        wait_until(lambda: cluster.status()["jobs"] == [], "the job to be forgotten")
        return float(re.search(r"test accuracy: ([\d.]+)%", done.stdout)[1])

    def test_they_come_to_the_same_accuracy_where_servers_take_the_steps(self):
        with Cluster("--topology", "bcube:2,2") as cluster:
            by_all_reduce = self.train(cluster, "--epochs", "10")
            by_hub = self.train(cluster, "--epochs", "10", "--hub")
        self.assertGreater(by_all_reduce, 85)
        self.assertAlmostEqual(by_hub, by_all_reduce, delta=2)


if __name__ == "__main__":
    main()
