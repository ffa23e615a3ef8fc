"""The scripts of trainer/examples/distributed come to the same with gloo and with gradcube, unmodified.

What only travels, and integers that are added, is equal. What comes of added floats is close: each backend has its own
order of addition.
"""

import contextlib
import math
import re
import sys

from fabrics import TOOL
from harness import Cluster, TestCase, main
from torch_examples import BACKENDS, SCRIPTS
from torch_launch import PRELOADED, Ranks, reserved_port, run_launcher

PROGRAM = SCRIPTS[0].parents[3] / "tests" / "integration" / "torch_examples.py"
PRELOADED += ["torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook", "torch.distributed.optim"]
EQUAL = {"groups", "metrics", "pipeline"}
ROUGH = {"compressed": 1e-2}  # sums of float16, and matrices of low rank; all others: 1e-4
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Examples(TestCase):
    """The processes start once, because PyTorch takes long to load, and run all scripts one after the other."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)
        with contextlib.ExitStack() as held:
            ports = [held.enter_context(reserved_port()) for _ in range(len(BACKENDS) * len(SCRIPTS) - 1)]
            with Ranks(cls.cluster, [PROGRAM, *ports]) as ranks:
                ranks.wait()
                cls.everything = ranks.everything()
                cls.said = [{(b, script): text for b, script, text in ranks.said(rank, "done")} for rank in range(4)]

    def assert_close(self, texts, tolerance):
        first, second = texts
        self.assertEqual(NUMBER.sub("#", first), NUMBER.sub("#", second))
        for one, other in zip(NUMBER.findall(first), NUMBER.findall(second)):
            self.assertTrue(math.isclose(float(one), float(other), rel_tol=tolerance, abs_tol=1e-6), texts)

    def test_each_comes_to_the_same_as_with_gloo(self):
        self.assertGreaterEqual(len(SCRIPTS), 10)
        for script in (path.stem for path in SCRIPTS):
            with self.subTest(script=script):
                for rank, said in enumerate(self.said):
                    for backend in BACKENDS:
                        self.assertIn((backend, script), said, f"rank {rank}\n{self.everything}")
                    texts = [said[backend, script] for backend in BACKENDS]
                    if script in EQUAL:
                        self.assertEqual(*texts)
                    else:
                        self.assert_close(texts, ROUGH.get(script, 1e-4))
                    self.assertNotIn("nan", texts[0])
                self.assertTrue(any(NUMBER.search(said["gradcube", script]) for said in self.said))

    def test_that_of_the_readme_runs_by_gradcube_run(self):
        readme = (SCRIPTS[0].parents[3] / "README.md").read_text()
        program = next(text for text in readme.split("```python\n") if text.startswith("import gradcube.torch"))
        with reserved_port() as port:
            command = [TOOL, "run", "--port", port, "--", sys.executable, "-c", program.split("```")[0]]
            done = run_launcher(command, self.cluster.environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        for rank in range(4):
            self.assertRegex(done.stdout, rf"\[{rank}\] rank {rank}: loss [0-9.e+-]+\n")


if __name__ == "__main__":
    main()
