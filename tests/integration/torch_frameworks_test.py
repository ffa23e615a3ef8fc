"""Frameworks train with the backend as with gloo: those that are installed (`./scripts/test_torch.sh --frameworks`)."""

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import signal
import sys
import tempfile
import tomllib

from harness import Cluster, TestCase, main
from torch_launch import Ranks, reserved_port, run_launcher

PROGRAM = pathlib.Path(__file__).resolve().parent / "torch_frameworks.py"
PROJECT = PROGRAM.parents[2] / "pyproject.toml"
WITHOUT_TORCHRUN = ("ray",)
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": "cpu"}


def write_entry_points(folder):
    """What pip leaves beside an installed package, by which PyTorch finds the backend without an import."""
    groups = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    place = pathlib.Path(folder) / "gradcube-0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: gradcube\nVersion: 0\n")
    with open(place / "entry_points.txt", "w") as entries:
        for group, names in groups.items():
            print(f"[{group}]", *(f"{name} = {value}" for name, value in names.items()), sep="\n", file=entries)


class Frameworks(TestCase):
    """Each test says what it measured, for docs/pytorch.md."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)
        path = [os.environ.get("PYTHONPATH", "")]
        if not importlib.metadata.entry_points(group="torch.backends", name="gradcube"):
            path.append(cls.enterClassContext(tempfile.TemporaryDirectory()))
            write_entry_points(path[-1])
        cls.cluster.environment.update(QUIET, PYTHONPATH=os.pathsep.join(filter(None, path)))

    def result(self, framework, backend):
        with reserved_port() as port:
            where = ["--nproc_per_node", "4", "--master_addr", "127.0.0.1", "--master_port", port]
            launcher = [] if framework in WITHOUT_TORCHRUN else ["-m", "torch.distributed.run", *where]
            done = run_launcher([sys.executable, *launcher, PROGRAM, framework, backend], self.cluster.environment)
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

    @contextlib.contextmanager
    def lighthouse(self, replicas):
        """torchft's, which needs so many of them to begin with. Skips the test where it is not installed."""
        if importlib.util.find_spec("torchft") is None:
            self.skipTest("torchft is not installed")
        from torchft.coordination import LighthouseServer

        server = LighthouseServer(bind="127.0.0.1:0", min_replicas=replicas, join_timeout_ms=1000)
        self.cluster.environment["TORCHFT_LIGHTHOUSE"] = f"http://127.0.0.1:{server.address().split(':')[-1]}"
        yield
        server.shutdown()

    def test_ddp(self):
        self.compare("ddp")

    def test_fsdp2(self):
        self.compare("fsdp2")

    def test_lightning(self):
        self.compare("lightning", "lightning")

    def test_accelerate(self):
        self.compare("accelerate", "accelerate")

    def test_fsdp2_of_replicas_in_bfloat16(self):
        self.compare("gpt")

    def test_trainer_of_hugging_face(self):
        self.compare("transformers", "transformers")

    def test_deepspeed_1(self):
        self.compare("deepspeed", "deepspeed")

    def test_deepspeed_2(self):
        self.compare("deepspeed_2", "deepspeed")

    def test_ray(self):
        self.compare("ray", "ray")

    def test_torchft(self):
        with self.lighthouse(4):
            self.compare("torchft", "torchft")

    def test_torchft_goes_on_when_a_replica_is_killed_and_when_it_comes_back(self):
        with self.lighthouse(2):
            sockets = self.cluster.sockets()
            arguments = [PROGRAM, "torchft_death", "gradcube"]
            with Ranks(self.cluster, arguments, sockets=[*sockets, sockets[3]], forked=False) as ranks:
                self.assertEqual(ranks.wait(), [0, 0, 0, -signal.SIGKILL, 0], ranks.everything())
                weights = [ranks.said(rank, "loss") for rank in (0, 1, 2, 4)]
                self.assertEqual(weights, [weights[0]] * 4)
                together = ranks.said(0, "together")[0]
                self.assertIn(3, together)
                self.assertEqual(together[-1], 4)


if __name__ == "__main__":
    main()
