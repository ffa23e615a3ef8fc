"""Requests of the Python package that nobody keeps until their ends were told, against the fake daemon.

Usage: python_dropped_test.py FAKE_DAEMON. The package and the library are found through PYTHONPATH and GRADCUBE_LIBRARY.
"""

import contextlib
import gc
import os
import subprocess
import sys
import unittest
import warnings

from python_daemon import SIZE, WithDaemon

import gradcube
import numpy

AT_EXIT = """
import sys, gradcube, numpy
sessions = [gradcube.Session(sys.argv[1], job=job) for job in ("hold", "job")]
requests = [session.allreduce_async(array) for session in sessions for array in (numpy.ones(10), session.alloc(10))]
hub = gradcube.Hub(sessions[1], {"fc": numpy.ones(16, "float32")}, "sgd:lr=1", timeout=60)
requests.append(hub.push_pull_async("fc", numpy.ones(16, "float32"), numpy.ones(16, "float32")))
sessions[1].barrier(timeout=60)
cycle = [sessions[0].allreduce_async(numpy.ones(10))]
cycle.append(cycle)
"""


class DroppedTest(WithDaemon):
    @contextlib.contextmanager
    def losing(self, count):
        """So many requests that are dropped in this scope tell that their results are lost."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield
        self.assertEqual([each.category for each in told], [RuntimeWarning] * count)
        for each in told:
            self.assertRegex(str(each.message), "does not get the result")

    def reap(self, session):
        self.wait_for(lambda: session._reap_abandoned(1000) or not session._abandoned)

    def arrays(self, session):
        """Which the library copies, for one reason or another."""
        return numpy.ones(10), session.alloc(11)[1:], numpy.frombuffer(bytearray(80))

    def test_what_a_program_writes_after_it_has_dropped_a_request_stays_and_is_submitted(self):
        with gradcube.Session(self.socket, job="hold") as session:
            for array in self.arrays(session):
                with self.losing(1):
                    session.allreduce_async(array)
                array[:] = 5
                again = session.allreduce_async(array)
                self.release()
                again.wait(timeout=60)
                self.reap(session)
                self.assertEqual(array.tolist(), [5 * SIZE] * 10)

    def test_a_request_that_is_dropped_after_its_end_brings_nothing_either(self):
        with gradcube.Session(self.socket, job="job") as session:
            for array in self.arrays(session):
                array[:] = 1
                request = session.allreduce_async(array)
                session.barrier(timeout=60)
                array[:] = 7
                with self.losing(1):
                    del request
                self.assertEqual((array.tolist(), len(session._abandoned)), ([7] * 10, 0))

    def test_an_array_on_which_the_daemon_works_itself_gets_the_result(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = session.alloc(16)
            for _ in range(3):
                array[:] = 5
                session.allreduce_async(array)
                session.barrier(timeout=60)
                self.assertEqual(array.tolist(), [5 * SIZE] * 16)

    def test_a_program_is_told_that_it_may_not_write_where_the_daemon_works_itself(self):
        with gradcube.Session(self.socket, job="hold") as session, self.losing(1):
            session.allreduce_async(session.alloc(16))

    def test_weights_of_a_push_that_was_dropped_are_written_nowhere(self):
        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, {"fc": numpy.ones(16, "float32")}, "sgd:lr=1", timeout=60)
            for gradients in (numpy.ones(16, "float32"), session.alloc(16)):
                weights = numpy.full(16, 7, "float32")
                with self.losing(1):
                    hub.push_pull_async("fc", gradients, weights)
                self.wait_for(lambda: self.has_ended(hub, weights))
                self.reap(session)
                self.assertEqual(weights.tolist(), [7] * 16)
            hub.free(60)

    def has_ended(self, hub, weights):
        """The push of before: a pull is refused until then."""
        try:
            hub.pull("fc", numpy.empty_like(weights))
        except gradcube.AgainError:
            return False
        return True

    def test_what_loses_nothing_says_nothing(self):
        with gradcube.Session(self.socket, job="hold") as session, self.losing(0):
            array = numpy.ones(10)
            session.send_async(array, 1)
            session.compare_async(array)
            session.barrier_async()
            session.broadcast_async(array, root=session.rank)
            session.allreduce_async(array[:0])
            receive = session.recv_async(array, 1, tag=9)
            receive.cancel()
            del receive
            self.release()
            told = session.allreduce_async(array)
            self.release()
            told.wait(timeout=60)
            del told

    def test_requests_in_rings_of_references_are_dropped_when_they_are_collected(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = numpy.ones(10)
            ring = [session.allreduce_async(array)]
            ring.append(ring)
            session.barrier(timeout=60)
            array[:] = 7
            with self.losing(1):
                del ring
                gc.collect()
            self.assertEqual(array.tolist(), [7] * 10)

    def test_thousands_are_dropped_one_after_the_other(self):
        with gradcube.Session(self.socket, job="job") as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for turn in range(3000):
                session.allreduce_async(numpy.full(16, turn))
                session.recv_async(bytearray(16), 1)
            self.reap(session)
            self.assertEqual((session._late._requests, len(session._abandoned)), ({}, 0))

    def test_warnings_that_are_errors_leave_nothing_behind(self):
        with gradcube.Session(self.socket, job="job") as session, warnings.catch_warnings():
            warnings.simplefilter("error")
            array = numpy.ones(10)
            with self.assertLogsUnraisable(RuntimeWarning):
                session.allreduce_async(array)
            self.reap(session)
            session.allreduce(array, timeout=60)
            self.assertEqual(array.tolist(), [SIZE] * 10)

    @contextlib.contextmanager
    def assertLogsUnraisable(self, kind):
        told, hook = [], sys.unraisablehook
        sys.unraisablehook = lambda raised: told.append(raised.exc_type)
        try:
            yield
        finally:
            sys.unraisablehook = hook
        self.assertEqual(told, [kind])

    def test_a_session_that_is_closed_leaves_arrays_to_their_program(self):
        with gradcube.Session(self.socket, job="job") as other:
            for is_closed_first in (False, True):
                session = gradcube.Session(self.socket, job="hold")
                arrays = [numpy.ones(10), session.alloc(10)]
                requests = [session.allreduce_async(array) for array in arrays]
                with self.losing(0 if is_closed_first else 2):
                    for step in (session.close, requests.clear)[:: 1 if is_closed_first else -1]:
                        step()
                for array in arrays:
                    array[:] = 5
                    other.allreduce(array, timeout=60)
                    self.assertEqual(array.tolist(), [5 * SIZE] * 10)

    def test_a_forked_child_drops_requests_of_its_parent_for_itself_alone(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = numpy.ones(10)
            request = session.allreduce_async(array)
            child = os.fork()
            if child == 0:
                try:
                    with self.losing(0):
                        del request
                    os._exit(0)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.release()
            request.wait(timeout=60)
            self.assertEqual(array.tolist(), [SIZE] * 10)

    def test_an_interpreter_ends_silently_with_requests_that_nobody_has_waited_for(self):
        command = [sys.executable, "-W", "error", "-c", AT_EXIT, self.socket]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
