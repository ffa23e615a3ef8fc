"""Frameworks train with the backend as with gloo: those that are installed (`./scripts/test_torch.sh --frameworks`)."""

import importlib.util
import json
import pathlib
import sys

from harness import Cluster, TestCase, main
from torch_launch import reserved_port, run_launcher

PROGRAM = pathlib.Path(__file__).resolve().parent / "torch_frameworks.py"


class Frameworks(TestCase):
    """Each test says what it measured, for docs/pytorch.md."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)

    def result(self, framework, backend):
        with reserved_port() as port:
            where = ["--nproc_per_node", "4", "--master_addr", "127.0.0.1", "--master_port", port]
            command = [sys.executable, "-m", "torch.distributed.run", *where, PROGRAM, framework, backend]
            done = run_launcher(command, self.cluster.environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        return json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"loss"')))

    def compare(self, framework, package="torch"):
        if importlib.util.find_spec(package) is None:
            self.skipTest(f"{package} is not installed")
        gloo, ours = (self.result(framework, backend) for backend in ("gloo", "gradcube"))
        self.assertEqual(gloo["steps"], ours["steps"])
        self.assertAlmostEqual(gloo["loss"], ours["loss"], delta=1e-3 * max(1, abs(gloo["loss"])))
        times = ", ".join(f"{name} {1000 * one['step']:.1f} ms" for name, one in (("gloo", gloo), ("gradcube", ours)))
        print(f"      {framework}: loss {ours['loss']:.4f} (gloo: {gloo['loss']:.4f}), {times}", flush=True)

    def test_ddp(self):
        self.compare("ddp")

    def test_fsdp2(self):
        self.compare("fsdp2")

    def test_lightning(self):
        self.compare("lightning", "lightning")

    def test_accelerate(self):
        self.compare("accelerate", "accelerate")


if __name__ == "__main__":
    main()
