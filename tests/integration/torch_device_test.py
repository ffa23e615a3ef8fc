"""The backend of torch.distributed for tensors on a device: the test's own (torch_late_device.py), and CUDA where it is."""

import pathlib
import unittest

import torch
from harness import Cluster, TestCase, main, wait_until
from torch_launch import Ranks

import torch_late_device

PROGRAM = pathlib.Path(__file__).resolve().parent / "torch_device.py"
SCENARIOS = ["collectives", "streams", "failures", "faults", "staging", "training", "merged_hook"]


class OnDevice:
    device = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)
        with Ranks(cls.cluster, [PROGRAM, cls.device, *SCENARIOS], forked=False) as ranks:
            cls.codes = ranks.wait()
            cls.done = [ranks.said(rank, "done") for rank in range(4)]
            cls.errors = ranks.everything()

    def assert_done(self, scenario):
        for rank, done in enumerate(self.done):
            self.assertIn(scenario, done, f"rank {rank}\n{self.errors}")

    def test_every_rank_ends_well(self):
        self.assertEqual(self.codes, [0] * 4, self.errors)

    def test_every_call_equals_that_of_the_cpu(self):
        self.assert_done("collectives")

    def test_the_host_waits_for_no_copy_and_streams_have_the_order(self):
        self.assert_done("streams")

    def test_failures_are_told_and_the_group_goes_on(self):
        self.assert_done("failures")

    def test_late_copies_lost_devices_and_shared_memory_spoil_nothing(self):
        self.assert_done("faults")

    def test_memory_for_copies_is_pinned_once_and_used_again(self):
        self.assert_done("staging")

    def test_models_train_on_the_device(self):
        self.assert_done("training")

    def test_the_hook_of_merged_gradients_waits_for_what_is_copied_back(self):
        self.assert_done("merged_hook")

    def test_nothing_is_left_behind(self):
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten")


class OnLateDevice(OnDevice, TestCase):
    device = "late"

    @classmethod
    def setUpClass(cls):
        torch_late_device.built()
        super().setUpClass()


@unittest.skipUnless(torch.cuda.is_available(), "there is no device of CUDA's")
class OnCuda(OnDevice, TestCase):
    device = "cuda"


if __name__ == "__main__":
    main()
