"""Trainers that disagree on a collective, or do not come to it: told, by name, and the job goes on."""

import gc
import weakref

import gradcube
import numpy

from fabrics import GRID, LAST, MIDDLE, PATIENCE, RADIX, SERVERS, only_on
from harness import Cluster, TestCase, all_of, job, main, wait_until


class Disagreement(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", GRID)
        cls.addClassCleanup(cls.cluster.end)

    def reduce(self, session, count, dtype="float32", op="sum"):
        """The sums, or the failure."""
        array = numpy.ones(count, dtype)
        try:
            session.allreduce(array, op=op, timeout=PATIENCE)
        except gradcube.MismatchError as failure:
            return failure
        return array

    def assert_all_told(self, results, *words):
        for result in results:
            self.assert_fails(gradcube.MismatchError, result, *words)

    def assert_next_is_right(self, sessions):
        for result in all_of(lambda session: self.reduce(session, 1000), sessions):
            numpy.testing.assert_array_equal(result, numpy.full(1000, SERVERS, "float32"))

    def check_odd_one_out(self, usual, odd, *words):
        with job(self.cluster, "quarrel") as sessions:
            for server in (0, SERVERS // 2, SERVERS - 1):
                order = lambda session, server=server: odd if session.rank == server else usual
                results = all_of(lambda session: self.reduce(session, **order(session)), sessions)
                self.assert_all_told(results, "quarrel", *words)
                self.assert_next_is_right(sessions)

    def test_that_is_caught_keeps_no_session(self):
        gc.disable()
        self.addCleanup(gc.enable)

        def catch(socket):
            session = gradcube.Session(socket, job="caught")
            self.assert_all_told([self.reduce(session, 999 if session.rank == MIDDLE else 1000)], "caught")
            return weakref.ref(session)

        references = all_of(catch, self.cluster.sockets())
        self.assertEqual([reference() for reference in references], [None] * SERVERS)

    def test_in_count(self):
        self.check_odd_one_out({"count": 1000}, {"count": 999}, "1000 float32 sum", "999 float32 sum")

    def test_in_count_where_one_has_nothing(self):
        self.check_odd_one_out({"count": 1}, {"count": 0}, "1 float32 sum", "0 float32 sum")

    def test_in_count_by_megabytes(self):
        self.check_odd_one_out({"count": 2}, {"count": 3000000}, "2 float32 sum", "3000000 float32 sum")

    def test_in_type(self):
        self.check_odd_one_out(
            {"count": 1000}, {"count": 1000, "dtype": "int32"}, "1000 float32 sum", "1000 int32 sum"
        )

    def test_in_operation(self):
        self.check_odd_one_out({"count": 7}, {"count": 7, "op": "max"}, "7 float32 sum", "7 float32 max")

    def check_calls_told_apart(self, usual, odd, usual_text, odd_text):
        def call(session):
            try:
                (odd if session.rank == MIDDLE else usual)(session)
            except gradcube.MismatchError as failure:
                return failure
            return "success"

        with job(self.cluster, "apart") as sessions:
            self.assert_all_told(all_of(call, sessions), usual_text, odd_text)
            self.assert_next_is_right(sessions)

    def test_between_a_compare_and_a_gather_of_as_many_bytes(self):
        self.check_calls_told_apart(
            lambda session: session.compare(numpy.ones(100, "float32"), timeout=PATIENCE),
            lambda session: session.allgather(numpy.zeros(16 * SERVERS, "uint8"), "bytes", timeout=PATIENCE),
            "compare",
            "all-gather of 16 bytes",
        )

    def test_between_a_hub_that_is_made_and_a_gather_of_as_many_words(self):
        self.check_calls_told_apart(
            lambda session: gradcube.Hub(session, {"w": numpy.ones(10, "float32")}, timeout=PATIENCE),
            lambda session: session.allgather(numpy.zeros(7 * SERVERS, "int64"), timeout=PATIENCE),
            "a call of all trainers about a hub",
            "all-gather of 7 int64",
        )

    def test_all_with_all(self):
        with job(self.cluster, "babel") as sessions:
            results = all_of(lambda session: self.reduce(session, 100 + session.rank), sessions)
            self.assert_all_told(results, "babel")
            self.assert_next_is_right(sessions)

    def test_those_who_have_not_submitted_are_told_when_they_do(self):
        with job(self.cluster, "late") as sessions:
            order = lambda session: 999 if session.rank == MIDDLE else 1000
            early = all_of(lambda session: self.reduce(session, order(session)), sessions[1:])
            self.assert_all_told(early, "[1,1]", "nothing yet")
            late = all_of(lambda session: self.reduce(session, order(session)), sessions[:1])
            self.assert_all_told(late, "[1,1]")
            self.assert_next_is_right(sessions)

    def test_the_reason_stays_when_the_first_who_is_told_leaves(self):
        with job(self.cluster, "upset") as sessions:
            arrays = [numpy.ones(1000, "float32") for _ in sessions]
            requests = [sessions[rank].allreduce_async(arrays[rank]) for rank in range(1, SERVERS - 1)]
            self.assert_fails(gradcube.MismatchError, self.reduce(sessions[0], 999), "upset")
            sessions[0].close()
            wait_until(lambda: len(self.cluster.job("upset")["trainers"]) == SERVERS - 1, "it to be gone")
            late = [self.reduce(sessions[-1], 1000)]
            for result in all_of(lambda request: request.wait(PATIENCE), requests) + late:
                self.assert_fails(gradcube.MismatchError, result, "disagree", "999 float32 sum")
                self.assertNotIn("left", str(result))

    @only_on("embedded", why="this takes steps of three servers")
    def test_where_no_step_has_all_its_contributions(self):
        with job(self.cluster, "sparse") as sessions:
            here = [sessions[4], sessions[3], sessions[1]]  # 5 and 7 complete the steps that these three begin
            absent = [session for session in sessions if session not in here]
            order = lambda session: 999 if session.rank == MIDDLE else 1000
            self.assert_all_told(all_of(lambda session: self.reduce(session, order(session)), here), "[1,1]")
            self.assert_all_told(all_of(lambda session: self.reduce(session, order(session)), absent), "[1,1]")
            self.assert_next_is_right(sessions)

    def test_with_others_of_the_job_in_flight(self):
        with job(self.cluster, "pipeline") as sessions:

            def work(session):
                arrays = [numpy.ones(5000, "float32") for _ in range(6)]
                ops = ["sum"] * 6
                ops[3] = "min" if session.rank == MIDDLE else "sum"
                requests = [
                    session.allreduce_async(array, op=op) for array, op in zip(arrays, ops, strict=True)
                ]
                ends = []
                for request, array in zip(requests, arrays, strict=True):
                    try:
                        request.wait(PATIENCE)
                        ends.append(array)
                    except gradcube.MismatchError as failure:
                        ends.append(failure)
                return ends

            for ends in all_of(work, sessions):
                self.assertIsInstance(ends, list, ends)
                for end in ends[:3]:
                    numpy.testing.assert_array_equal(end, numpy.full(5000, SERVERS, "float32"))
                self.assert_fails(gradcube.MismatchError, ends[3], "collective 4", "[1,1]")
            self.assert_next_is_right(sessions)


class Missing(TestCase):
    def test_who_has_not_joined_is_named(self):
        with Cluster("--topology", GRID) as cluster, job(cluster, "few", range(SERVERS - 2)) as sessions:
            absent = (f"[{RADIX - 1},{RADIX - 2}]", LAST)
            for result in all_of(lambda session: session.barrier(timeout=0.3), sessions):
                self.assert_fails(gradcube.TimeoutError, result, f"2 of {SERVERS}", "few", *absent)
            self.assertEqual(cluster.job("few")["state"], "gathering")

    def test_who_has_not_submitted_is_named_and_may_still_come(self):
        with Cluster("--topology", GRID) as cluster, job(cluster, "slow") as sessions:
            arrays = [numpy.ones(10000, "float32") for _ in sessions]
            requests = {
                session.rank: session.allreduce_async(arrays[session.rank])
                for session in sessions
                if session.rank != MIDDLE
            }
            for result in all_of(lambda request: request.wait(0.3), requests.values()):
                self.assert_fails(gradcube.TimeoutError, result, "collective 1", "slow", "[1,1]", "pid")
                self.assertNotIn("[0,0]", str(result))
            requests[MIDDLE] = sessions[MIDDLE].allreduce_async(arrays[MIDDLE])
            self.assertEqual(all_of(lambda request: request.wait(PATIENCE), requests.values()), [None] * SERVERS)
            for array in arrays:
                numpy.testing.assert_array_equal(array, numpy.full(10000, SERVERS, "float32"))


if __name__ == "__main__":
    main()
