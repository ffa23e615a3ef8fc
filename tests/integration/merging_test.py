"""MergedGradientOptimizer and merged_gradient_hook over the backend of torch.distributed: what they train, send, plan,
record, tell and refuse; and their example."""

import json
import pathlib
import re
import sys

from harness import Cluster, TestCase, main
from torch_launch import PRELOADED, Ranks, run_launcher

PROGRAM = pathlib.Path(__file__).resolve().parent / "merging_ranks.py"
EXAMPLE = PROGRAM.parents[2] / "trainer" / "examples" / "merged_digits.py"
PRELOADED.append("sklearn.datasets")


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

    def test_no_step_is_taken_with_a_part_of_the_averages(self):
        self.assert_done("a_message_that_fails")

    def test_no_step_is_taken_where_gradients_were_wiped_on_their_way(self):
        self.assert_done("gradients_that_are_wiped_on_their_way")

    def test_gradients_that_one_rank_wipes_on_their_way_are_in_the_others_averages(self):
        self.assert_done("gradients_that_one_rank_wipes_while_they_are_added")

    def test_the_timeline_shows_each_layer_and_each_message_of_all_ranks(self):
        self.assert_done("timeline_of_the_optimizer")

    def test_costs_are_measured_again_and_planned_by_where_they_have_changed(self):
        self.assert_done("costs_that_change")

    def test_progress_tells_the_plan_and_its_times(self):
        self.assert_done("progress_of_the_optimizer")

    def test_by_need_progress_tells_them_too(self):
        self.assert_done("progress_by_need")

    def test_the_hook_tells_its_progress(self):
        self.assert_done("progress_of_the_hook")

    def test_the_hooks_timeline_shows_each_bucket_and_each_message_of_all_ranks(self):
        self.assert_done("timeline_of_the_hook")

    def test_by_need_weights_are_the_same_to_the_bit(self):
        self.assert_done("need_trains_the_same")

    def test_by_need_rates_that_are_tensors_are_those_of_the_step(self):
        self.assert_done("need_keeps_rates_that_are_tensors")

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

    def test_the_hook_trains_with_a_static_graph(self):
        self.assert_done("hook_static_graph")

    def test_the_hook_tells_why_it_fails(self):
        self.assert_done("hook_failures")


class Example(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)

    def test_it_trains_tells_its_progress_and_leaves_a_timeline_that_can_be_drawn(self):
        timeline = self.cluster.directory / "trace.json"
        picture = self.cluster.directory / "trace.svg"
        for priority in ("ready", "need"):
            script = [EXAMPLE, "--epochs", "2", "--priority", priority, "--timeline", timeline]
            with self.subTest(priority=priority), Ranks(self.cluster, script) as ranks:
                ranks.succeed()
                said = ranks.output(0)
                self.assertRegex(said, r"epoch 2/2 .* 44 iterations, .* ms each; \d+ all-reduces in .* hidden")
                self.assertIn("weights: bit-identical on all 4 ranks", said)
                self.assertGreater(float(re.search(r"test accuracy: ([\d.]+)%", said)[1]), 50)
                self.assert_drawn(timeline, picture, [], ["rank 3", "all-reduces"])
                begin, end = self.span_of(timeline, "conv1")  # whose name a picture of all may be too narrow for
                self.assert_drawn(timeline, picture, ["--from", begin, "--until", end], ["rank 3", "conv1"])
                timeline.unlink()

    def assert_drawn(self, timeline, picture, options, expected):
        draw = [sys.executable, "-m", "gradcube.draw_timeline", timeline, picture, *options]
        drawn = run_launcher(draw, self.cluster.environment)
        self.assertEqual(drawn.returncode, 0, drawn.stdout)
        for words in expected:
            self.assertIn(words, picture.read_text())
        picture.unlink()

    def span_of(self, timeline, name):
        """Milliseconds, as --from and --until take them."""
        spans = json.loads(timeline.read_text())["traceEvents"]
        span = next(span for span in spans if span["ph"] == "X" and name in span["name"])
        return [f"{span['ts'] / 1e3}", f"{(span['ts'] + span['dur']) / 1e3}"]


if __name__ == "__main__":
    main()
