"""Averages whose sum does not fit in the type: right for 16-bit floats, an error on every trainer for integers."""

import gradcube
import numpy

from fabrics import GRID, PATIENCE, SERVERS
from harness import Cluster, TestCase, all_of, job, main

COUNT = 20000  # some segments for each server


class Average(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", GRID)
        cls.addClassCleanup(cls.cluster.end)

    def average(self, session, values, dtype=None):
        """The array, or the failure."""
        try:
            session.allreduce(values, op="average", dtype=dtype, timeout=PATIENCE)
        except gradcube.Error as failure:
            return failure
        return values

    def check(self, value, storage, dtype=None):
        with job(self.cluster, "mean") as sessions:
            work = lambda session: self.average(session, numpy.full(COUNT, value, storage), dtype)
            for result in all_of(work, sessions):
                numpy.testing.assert_array_equal(result, numpy.full(COUNT, value, storage))

    def test_of_trainers_with_30000_in_float16_is_30000(self):
        self.check(30000, "float16")

    def test_of_the_greatest_float16_is_the_greatest(self):
        self.check(numpy.finfo("float16").max, "float16")

    def test_of_the_greatest_bfloat16_is_the_greatest(self):
        self.check(0x7F7F, "uint16", "bfloat16")

    def test_of_integers_that_overflow_fails_on_every_trainer_and_the_job_goes_on(self):
        with job(self.cluster, "sums") as sessions:
            for dtype, advice in (("int32", "int64 or float64"), ("int64", "float64")):
                most = numpy.iinfo(dtype).max
                for value in (most // SERVERS + 1, most, -most):
                    work = lambda session: self.average(session, numpy.full(COUNT, value, dtype))
                    for result in all_of(work, sessions):
                        self.assert_fails(gradcube.OverflowError, result, '"sums"', dtype, "server", advice)
                for value in (most // SERVERS, 0, -7):
                    for result in all_of(work, sessions):
                        numpy.testing.assert_array_equal(result, numpy.full(COUNT, value, dtype))

    def test_of_few_integers_that_overflow_fails_on_every_trainer_too(self):
        """So few that some of a server's threads have no part of them."""
        with job(self.cluster, "few") as sessions:
            for count in (1, 2, 5, 16) * 5:
                for dtype in "int32", "int64":
                    most = numpy.full(count, numpy.iinfo(dtype).max, dtype)
                    for result in all_of(lambda session: self.average(session, most.copy()), sessions):
                        self.assert_fails(gradcube.OverflowError, result, '"few"', dtype)


if __name__ == "__main__":
    main()
