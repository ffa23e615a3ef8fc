"""PyTorch's own tests of torch.distributed, on the backend gradcube: `torch_own_cases.py BACKEND [OPTION...]`.

What a test needs, PyTorch's decorators ask of a backend's name. BACKEND is the name that they see: "gloo", for what it
and PyTorch say that CPU backends can, "mpi" for all_to_all, or "gradcube" itself. The groups are always gradcube's.
"""

import gc
import logging
import os
import sys
import tempfile
import time
import types
import unittest

SIZE = 4
SKIPPED = {  # by a part of the test's name; PyTorch itself skips what needs CUDA, NCCL, or torchvision
    "gloo_rank_0_timeout": "this is about gloo's words for a timeout of 0",
}
name = sys.argv.pop(1)
if name != "gradcube":
    SKIPPED["backend"] = "this asks for the name of the backend"
os.environ.update(BACKEND=name, WORLD_SIZE=str(SIZE), LOCAL_WORLD_SIZE=str(SIZE), TEMP_DIR=tempfile.mkdtemp())
# Not every host has expecttest; the class and the flag are all that is used here.
sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.testing._internal import common_distributed  # noqa: E402

if not torch.cuda.is_available():  # else each of these starts its ranks, which then find that out
    common_distributed.skip_if_no_gpu = unittest.skip("needs CUDA")
    common_distributed.skip_if_lt_x_gpu = lambda gpus: unittest.skip(f"needs CUDA on {gpus} devices")
from torch.testing._internal.distributed import distributed_test  # noqa: E402

import gradcube.torch  # noqa: E402, F401

for feature in ("ddp", "subgroup", "plugin"):
    common_distributed.DistTestCases.backend_feature[feature].add("gradcube")
if torch.__version__.startswith("1."):
    from torch.nn.parallel import _replicated_tensor_ddp_utils as replicated_tensors

    # Of an experiment that does not load under Python 3.11.
    replicated_tensors._set_ddp_with_replicated_tensor = lambda is_on: None
init_process_group = dist.init_process_group
# How often a rank and its test look whether the others have come, five times in each test.
often = types.SimpleNamespace(**vars(time))
often.sleep = lambda seconds: time.sleep(0.01 if seconds == 0.1 else seconds)
common_distributed.time = distributed_test.time = often
distributed_test.Barrier.sync.__func__.__defaults__ = (None, 240)  # seconds: the cores may be busy


class OwnTest(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        # Forked: PyTorch takes long to load, and this process has no group.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    @classmethod
    def _run(cls, rank, *arguments, **more):
        os.environ["LOCAL_RANK"] = str(rank)
        dist.init_process_group = lambda **options: init_process_group(**{**options, "backend": "gradcube"})
        super()._run(rank, *arguments, **more)


for test in [test for test in dir(OwnTest) if test.startswith("test_")]:
    for part, reason in SKIPPED.items():
        if part in test:
            setattr(OwnTest, test, unittest.skip(reason)(getattr(OwnTest, test)))

if __name__ == "__main__":
    logging.disable(logging.INFO)
    torch.set_num_threads(1)
    gc.freeze()  # so that no process looks through all of PyTorch, and copies its pages for it
    unittest.main(verbosity=2)
