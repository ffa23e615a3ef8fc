"""Requests that nobody keeps until their ends were told: no result of theirs is submitted as what a trainer has written."""

import random
import warnings

import numpy

from fabrics import GRID, PATIENCE, SERVERS
from harness import Cluster, TestCase, all_of, job, main

TURNS = 60


class Dropped(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", GRID)
        cls.addClassCleanup(cls.cluster.end)

    def play(self, session):
        """Drops requests with arrays, writes there, and submits that."""
        choices = random.Random(self.seed)  # all trainers make the same ones
        aligned, block = session.alloc(20_000), session.alloc(20_001)
        arrays = [numpy.ones(20_000, "float32"), aligned, block[1:], aligned[64:128]]
        for turn in range(1, TURNS):
            array = choices.choice(arrays)
            array[:] = turn
            session.allreduce_async(array)
            # Where the daemon works on the array itself, it is its own until the end, which a later one tells.
            session.barrier(timeout=PATIENCE)
            part = choices.choice([array, array[10:20]])
            part[:] = 2 * turn
            for _ in range(choices.randrange(3)):
                session.barrier(timeout=PATIENCE)
            session.allreduce(part, timeout=PATIENCE)
            numpy.testing.assert_array_equal(part, numpy.full_like(part, 2 * turn * SERVERS))

    def test_what_was_written_after_a_request_was_dropped_is_what_all_get(self):
        for name, is_reproducible in (("dropped", False), ("copied", True)):
            with job(self.cluster, name, reproducible=is_reproducible) as sessions, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertEqual(all_of(self.play, sessions), [None] * SERVERS)


if __name__ == "__main__":
    main()
