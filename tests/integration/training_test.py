"""Nine Python trainers train a real model over a real cluster, and end with the same bits."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

from harness import Cluster, TestCase, main

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "trainer" / "examples" / "digits_cluster.py"


@unittest.skipUnless(
    all(importlib.util.find_spec(module) for module in ("torch", "sklearn")), "needs PyTorch and scikit-learn"
)
class Training(TestCase):
    def test_nine_trainers_end_with_the_same_weights(self):
        with Cluster("--topology", "bcube:3,2") as cluster:
            done = subprocess.run(
                [sys.executable, str(EXAMPLE), "--epochs", "2", "--require-accuracy", "0"],
                env=dict(cluster.environment, OMP_NUM_THREADS="1"),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=100,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("weights: bit-identical on all 9 trainers", done.stdout)
            self.assertEqual(cluster.status()["jobs"], [])


if __name__ == "__main__":
    main()
