"""PyTorch's own tests of torch.distributed pass on the backend gradcube. torch_own_cases.py says which are skipped."""

import pathlib
import re
import subprocess
import sys

from harness import Cluster, TestCase, main, wait_until

CASES = pathlib.Path(__file__).resolve().parent / "torch_own_cases.py"


class OwnTests(TestCase):
    """The numbers are those of Debian 12's PyTorch, which docs/pytorch.md adds up: 124."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "star:4")  # on which any servers are a job
        cls.addClassCleanup(cls.cluster.end)

    def run_cases(self, *arguments):
        """How many have passed."""
        done = subprocess.run(
            [sys.executable, str(CASES), *arguments],
            env={**self.cluster.environment, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
            cwd=self.cluster.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=500,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten")
        return int(re.search(r"Ran (\d+) tests", done.stderr)[1]) - int(re.search(r"skipped=(\d+)", done.stderr)[1])

    def test_those_for_cpu_backends(self):
        self.assertEqual(self.run_cases("gloo"), 111)

    def test_those_of_all_to_all(self):
        self.assertEqual(self.run_cases("mpi", "-k", "all_to_all"), 12)

    def test_those_of_the_backends_name(self):
        self.assertEqual(self.run_cases("gradcube", "-k", "get_backend", "-k", "backend_group"), 1)


if __name__ == "__main__":
    main()
