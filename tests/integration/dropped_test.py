"""Requests that nobody keeps until their ends were told: no result of theirs is submitted as what a trainer has written."""

import random
import threading
import warnings

import gradcube
import numpy

from fabrics import GRID, PATIENCE, SERVERS
from harness import Cluster, TestCase, all_of, job, main

TURNS = 40
MOST_REFUSALS = 100_000  # while a request goes on


class Dropped(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", GRID)
        cls.addClassCleanup(cls.cluster.end)

    def add(self, session, array, value):
        """Submits an array of this value for as long as that is refused. Returns how often it was."""
        for refusals in range(MOST_REFUSALS):
            try:
                array[:] = value
                session.allreduce(array, timeout=PATIENCE)
                numpy.testing.assert_array_equal(array, numpy.full_like(array, value * SERVERS))
                return refusals
            except gradcube.InvalidError as refusal:
                self.assertRegex(str(refusal), "which was dropped, |wait for its request first")
        raise AssertionError("the array is refused for ever")

    def play(self, session):
        """Drops requests with arrays, writes there, and submits that. Returns the refusals of each."""
        choices = random.Random(self.seed)  # all trainers make the same ones
        aligned, block = session.alloc(20_000), session.alloc(20_001)
        arrays = [numpy.ones(20_000, "float32"), aligned, block[1:], aligned[64:128]]
        refusals = []
        for turn in range(1, TURNS):
            array = choices.choice(arrays)
            array[:] = turn
            session.allreduce_async(array)
            array[:] = -turn
            for _ in range(choices.randrange(3)):
                session.barrier(timeout=PATIENCE)
            refusals.append(self.add(session, choices.choice([array, array[10:20]]), 2 * turn))
            self.add(session, array, 3 * turn)
        return refusals

    def test_what_was_written_after_a_request_was_dropped_is_what_all_get(self):
        for name, is_reproducible in (("dropped", False), ("copied", True)):
            with job(self.cluster, name, reproducible=is_reproducible) as sessions, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for refusals in all_of(self.play, sessions):
                    self.assertIsInstance(refusals, list, refusals)
                    self.assertGreater(min(refusals), 0)

    def test_gradients_to_which_servers_have_added_are_refused_once(self):
        with job(self.cluster, "pushed") as sessions:
            meeting = threading.Barrier(len(sessions))

            def push(session):
                hub = gradcube.Hub(session, {"fc": numpy.zeros(20_000, "float32")}, "sgd:lr=1", timeout=PATIENCE)
                gradients = session.alloc(20_000)
                for turn in range(1, 10):
                    gradients[:] = turn
                    hub.push_async("fc", gradients)
                    gradients[:] = 7  # which the server may add to
                    meeting.wait(PATIENCE)
                    session.barrier(timeout=PATIENCE)
                    self.assertGreater(self.add(session, gradients, turn), 0)
                hub.free(PATIENCE)

            self.assertEqual(all_of(push, sessions), [None] * SERVERS)


if __name__ == "__main__":
    main()
