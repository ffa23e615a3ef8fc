"""Python trainers train a real model over a real cluster, and end with the same bits."""

import importlib.util
import pathlib
import sys
import unittest

from fabrics import GRID, SERVERS
from harness import Cluster, TestCase, main, wait_until
from torch_launch import run_launcher

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "trainer" / "examples" / "digits_cluster.py"


@unittest.skipUnless(
    all(importlib.util.find_spec(module) for module in ("torch", "sklearn")), "needs PyTorch and scikit-learn"
)
class Training(TestCase):
    def test_trainers_end_with_the_same_weights(self):
        with Cluster("--topology", GRID) as cluster:
            command = [sys.executable, EXAMPLE, "--epochs", "2", "--require-accuracy", "0"]
            done = run_launcher(command, cluster.environment)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn(f"weights: bit-identical on all {SERVERS} trainers", done.stdout)
            wait_until(lambda: cluster.status()["jobs"] == [], "the job to be forgotten")


if __name__ == "__main__":
    main()
