"""A cluster's life by its programs alone: up, perf with and without faults, impair, status, trainers that
come and go, down.

No Python loads libgradcube here, so this test also runs where everything was built with a sanitizer, which
must be in a process from its beginning. A sanitizer's reports go to files, because the daemon has no
terminal: any such file is a failure, and its text is printed.
"""

import os
import pathlib
import subprocess
import tempfile

from fabrics import GRID, faults
from harness import Cluster, TestCase, main

CHURN = os.environ["GRADCUBE_CHURN"]

FAULTS = ["--loss", "0.02", "--duplicate", "0.02", "--reorder", "0.02", "--corrupt", "0.01"]
SANITIZERS = ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
ENOUGH = 300  # seconds: a sanitizer makes everything about ten times as slow


class Tools(TestCase):
    def setUp(self):
        super().setUp()
        self.reports = tempfile.TemporaryDirectory(prefix="gradcube-reports-")
        self.addCleanup(self.reports.cleanup)
        for name in SANITIZERS:
            before = os.environ.get(name, "")
            self.addCleanup(os.environ.__setitem__, name, before)
            os.environ[name] = f"{before}:log_path={self.reports.name}/report"

    def assert_no_report(self):
        texts = [path.read_text(errors="replace") for path in pathlib.Path(self.reports.name).iterdir()]
        self.assertEqual(len(texts), 0, "a sanitizer complains:\n" + "\n".join(texts))

    def live(self, *flags):
        with Cluster(*flags) as cluster:
            self.assert_right(cluster.perf("--sizes", "4,64K,3M", "--iterations", "3", timeout=ENOUGH))
            if faults(*FAULTS):
                cluster.answer("impair", *FAULTS)
                self.assert_right(cluster.perf("--sizes", "4,64K,1M", "--iterations", "3", timeout=ENOUGH))
                self.assertGreater(cluster.status()["counters"]["resent"], 0)
            down = cluster.tool("down")
            self.assertEqual(down.returncode, 0, down.stderr)
        self.assert_no_report()

    def test_a_cluster_lives_and_ends_without_a_rate(self):
        self.live("--topology", GRID)

    def test_a_cluster_lives_and_ends_with_a_rate(self):
        self.live("--topology", "bcube:2,2", "--rate", "200mbit")

    def test_trainers_join_leave_and_die(self):
        with Cluster("--topology", "star:3") as cluster:
            jobs = 2
            done = subprocess.run(
                [CHURN, "2", str(jobs), str(self.seed), *cluster.sockets()],
                env=dict(os.environ, GRADCUBE_HEAP="1M"),
                stdout=subprocess.PIPE,
                text=True,
                timeout=ENOUGH,
            )
            lines = done.stdout.splitlines()
            self.assertEqual([line for line in lines if not line.startswith("rounds ")], [])
            self.assertEqual(len(lines), jobs)
            self.assertEqual(cluster.tool("down").returncode, 0)
        self.assert_no_report()


if __name__ == "__main__":
    main()
