"""When a HubOptimizer begins checkpoints and ends them, beside a hub that is interrupted or fails.

Usage: hub_checkpoints_test.py. The package is found through PYTHONPATH.
"""

import unittest

import gradcube
from gradcube._hub_checkpoints import HubCheckpoints

EVERY = 3


class FakeHub:
    """What was begun and ended, by steps. `failure` comes once: an error, and `is_early`, before a checkpoint begins."""

    def __init__(self):
        self.calls = []
        self.failure = None
        self.failure_of_end = None  # which gives the checkpoint up
        self.is_early = False
        self._steps = None

    def fail(self):
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def begin_checkpoint(self, _, steps):
        if isinstance(self.failure, gradcube.Error) or self.is_early:
            self.fail()
        if self._steps is not None:
            raise gradcube.AgainError("end the one before first")
        self._steps = steps
        self.calls.append(("begin", steps))
        self.fail()

    def end_checkpoint(self, _):
        if self._steps is None:
            raise gradcube.InvalidError("none has begun")
        steps, self._steps = self._steps, None
        failure, self.failure_of_end = self.failure_of_end, None
        if failure is not None:
            raise failure
        self.calls.append(("end", steps))


class HubCheckpointsTest(unittest.TestCase):
    def setUp(self):
        self.hub = FakeHub()
        self.checkpoints = HubCheckpoints("model.hub", EVERY)

    def step(self, steps):
        self.checkpoints.count(steps)
        if self.checkpoints.is_due:
            self.checkpoints.begin(self.hub, steps, None)

    def test_one_that_was_interrupted_as_it_began_is_ended_with_the_next_one_as_on_all_trainers(self):
        self.assert_all_are_made(EVERY)

    def test_one_that_was_interrupted_before_it_began_is_of_a_later_step_and_ended_as_on_all_trainers(self):
        self.hub.is_early = True
        self.assert_all_are_made(2 * EVERY)

    def assert_all_are_made(self, of):
        for steps in range(1, 3 * EVERY + 1):
            if steps == EVERY:
                self.hub.failure = KeyboardInterrupt()
                self.assertRaises(KeyboardInterrupt, self.step, steps)
            else:
                self.step(steps)
        calls = [("begin", of), ("end", of), ("begin", 2 * EVERY), ("end", 2 * EVERY), ("begin", 3 * EVERY)]
        self.assertEqual(self.hub.calls, calls)

    def test_one_that_cannot_begin_late_either_keeps_no_later_one_from_its_beginning(self):
        self.hub.is_early, self.hub.failure = True, KeyboardInterrupt()
        self.assertRaises(KeyboardInterrupt, self.step, EVERY)
        self.hub.failure = gradcube.PeerError("it has gone")
        self.assertRaises(gradcube.PeerError, self.step, 2 * EVERY)
        self.step(2 * EVERY + 1)
        self.assertEqual(self.hub.calls, [("begin", 2 * EVERY + 1)])

    def test_one_that_was_given_up_is_told_also_after_one_that_failed(self):
        for failure in gradcube.PeerError("it has gone"), gradcube.TimeoutError("others are late"):
            self.checkpoints.begin(self.hub, EVERY, None)
            self.hub.failure_of_end = failure
            self.assertRaises(type(failure), self.checkpoints.end, self.hub, EVERY, 1)
        self.assertRaises(gradcube.InvalidError, self.checkpoints.end, self.hub, EVERY, 1)

    def test_one_that_could_not_begin_is_tried_after_the_next_step(self):
        self.hub.failure = gradcube.MemoryFullError("there is none")
        self.assertRaises(gradcube.MemoryFullError, self.step, EVERY)
        self.step(EVERY + 1)
        self.assertEqual(self.hub.calls, [("begin", EVERY + 1)])


if __name__ == "__main__":
    unittest.main()
