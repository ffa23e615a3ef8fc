"""MergedGradientOptimizer and merged_gradient_hook over the backend of torch.distributed: what they train, send, plan,
record and refuse."""

import pathlib

from harness import Cluster, TestCase, main
from torch_launch import Ranks

PROGRAM = pathlib.Path(__file__).resolve().parent / "merging_ranks.py"


class MergedGradients(TestCase):
    """The processes start once, because PyTorch takes long to load, and run all scenarios one after the other."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)
        with Ranks(cls.cluster, [PROGRAM, cls.cluster.directory]) as ranks:
            ranks.wait()
            cls.done = [ranks.said(rank, "done") for rank in range(4)]
            cls.errors = ranks.everything()

    def assert_done(self, scenario):
        for rank, done in enumerate(self.done):
            self.assertIn(scenario, done, f"rank {rank}\n{self.errors}")

    def test_every_policy_trains_as_averages_by_hand_do(self):
        self.assert_done("policies")

    def test_each_layer_is_combined_where_it_lies(self):
        self.assert_done("in_place")

    def test_layers_are_merged_by_their_times_and_again_when_these_have_changed(self):
        self.assert_done("planning")

    def test_layers_that_have_no_part_in_the_loss_do_not_stop_the_others(self):
        self.assert_done("layers_that_rest")

    def test_gradients_of_several_passes_add_up_before_they_are_sent(self):
        self.assert_done("accumulation")

    def test_gradients_are_averages_before_the_step(self):
        self.assert_done("clipping")

    def test_what_cannot_be_trained_is_refused(self):
        self.assert_done("refusals")

    def test_the_timeline_shows_each_layer_and_each_message_of_all_ranks(self):
        self.assert_done("timeline")

    def test_by_need_weights_are_the_same_to_the_bit(self):
        self.assert_done("need_trains_the_same")

    def test_by_need_models_of_all_kinds_are_trained(self):
        self.assert_done("need_kinds_of_models")

    def test_by_need_the_forward_pass_takes_the_step_layer_by_layer(self):
        self.assert_done("need_steps_layer_by_layer")

    def test_by_need_gradients_are_averages_where_they_are_asked_for(self):
        self.assert_done("need_waits_where_it_is_told_to")

    def test_by_need_weights_are_right_whoever_reads_or_writes_them(self):
        self.assert_done("need_weights_are_right_whoever_reads_or_writes_them")

    def test_by_need_gradients_are_used_up_by_the_step(self):
        self.assert_done("need_uses_gradients_up")

    def test_by_need_what_cannot_be_is_refused(self):
        self.assert_done("need_refusals")

    def test_the_hook_trains_as_averages_by_hand_do_and_copies_nothing(self):
        self.assert_done("hook_policies")

    def test_the_hook_merges_buckets_by_their_times_and_again_when_these_have_changed(self):
        self.assert_done("hook_planning")

    def test_the_hook_trains_with_uneven_inputs(self):
        self.assert_done("hook_uneven_inputs")

    def test_the_hook_trains_models_of_all_kinds(self):
        self.assert_done("hook_kinds_of_models")

    def test_the_hook_tells_why_it_fails(self):
        self.assert_done("hook_failures")


if __name__ == "__main__":
    main()
