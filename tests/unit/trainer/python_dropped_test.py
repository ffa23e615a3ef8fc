"""Requests of the Python package that nobody keeps until their ends were told, against the fake daemon.

Usage: python_dropped_test.py FAKE_DAEMON. The package and the library are found through PYTHONPATH and GRADCUBE_LIBRARY.
"""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import unittest
import warnings

from python_control_c import ControlC
from python_daemon import BROADCAST, RANK, RECEIVED, SIZE, WithDaemon

import gradcube
import numpy

REFUSED = r"request \d+, which was dropped, "

AT_EXIT = """
import sys, gradcube, numpy
session = gradcube.Session(sys.argv[1], job="hold")
arrays = [numpy.ones(10), session.alloc(10)]
requests = [session.allreduce_async(array) for array in arrays]
cycle = [session.allreduce_async(numpy.ones(10))]
cycle.append(cycle)
"""


class WithDropped(WithDaemon):
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

    def assert_is_added(self, session, array):
        array[:] = 5
        session.allreduce(array, timeout=60)
        self.assertEqual(array.tolist(), [5 * SIZE] * array.size)

    def assert_is_refused_once(self, session, array):
        with self.assertRaisesRegex(gradcube.InvalidError, REFUSED + ".*write there anew"):
            session.allreduce(array, timeout=60)
        self.assert_is_added(session, array)


class DroppedTest(WithDropped):
    def test_what_a_program_writes_after_it_has_dropped_a_request_stays_and_is_submitted(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = numpy.ones(10)
            with self.losing(1):
                session.allreduce_async(array)
            array[:] = 5
            self.release()
            session.barrier(timeout=60)
            session.alloc(1)
            self.reap(session)
            self.assertEqual(array.tolist(), [5] * 10)
            self.assert_is_refused_once(session, array)

    def test_what_is_taken_for_a_result_is_refused_before_the_request_has_ended_too(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = numpy.ones(10)
            with self.losing(1):
                session.allreduce_async(array)
            with self.assertRaisesRegex(gradcube.InvalidError, REFUSED):
                session.send(array, 1, timeout=60)
            self.release()
            session.allreduce(array, timeout=60)  # as the caller knows now
            self.assertEqual(array.tolist(), [SIZE] * 10)

    def test_a_request_that_is_dropped_after_its_end_brings_nothing_either(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = numpy.ones(10)
            request = session.allreduce_async(array)
            session.barrier(timeout=60)
            array[:] = 7
            with self.losing(1):
                del request
            self.assertEqual(array.tolist(), [7] * 10)
            self.assert_is_refused_once(session, array)

    def test_an_array_on_which_the_daemon_works_itself_is_refused_until_the_end_and_once_afterwards(self):
        with gradcube.Session(self.socket, job="hold") as session, gradcube.Session(self.socket, job="job") as other:
            array = session.alloc(10)
            array[:] = 1
            with self.losing(0):
                session.allreduce_async(array)
            array[:] = 5
            for one in (session, session, other):
                with self.assertRaisesRegex(gradcube.InvalidError, REFUSED + ".*may still read or write it"):
                    one.allreduce(array, timeout=60)
            with self.assertRaisesRegex(gradcube.InvalidError, REFUSED):
                other.recv(array, 1, timeout=60)
            self.release()
            self.reap(session)
            with self.assertRaisesRegex(gradcube.InvalidError, REFUSED + ".*write there anew"):
                other.allreduce(array, timeout=60)
            self.assert_is_added(session, array)

    def test_an_array_that_something_else_has_made_of_a_shared_one_is_known_as_such(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = session.alloc(10)
            hub = gradcube.Hub(session, {"fc": array}, timeout=60)
            for drop in (
                lambda made: session.allreduce_async(made),
                lambda made: session.reduce_async(made, root=1),
                lambda made: hub.push_async("fc", made),
            ):
                for is_ended_before in (False, True):
                    request = drop(numpy.frombuffer(memoryview(array), "float32"))
                    if is_ended_before:
                        session.barrier(timeout=60)
                    with self.losing(0):
                        del request
                    self.reap(session)
                    gc.collect()
                    self.assert_is_refused_once(session, array)
            hub.free(60)

    def test_parts_of_shared_arrays_that_are_copied_are_refused_once(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = session.alloc(30)
            with self.losing(0):
                session.allreduce_async(array[1:11])
            self.reap(session)
            self.assert_is_added(session, array[11:])
            self.assert_is_refused_once(session, array[10:20])

    def test_all_that_were_dropped_with_an_array_are_told_at_once(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = numpy.ones(20)
            with self.losing(2):
                session.allreduce_async(array[:10])
                session.recv_async(array[10:], 1)
            self.assert_is_refused_once(session, array)

    def test_what_a_dropped_request_has_only_read_is_refused_to_nobody(self):
        with gradcube.Session(self.socket, job="job") as session:
            shared, array = session.alloc(10), numpy.ones(10, "float32")
            hub = gradcube.Hub(session, {"fc": array}, timeout=60)
            for drop in (
                lambda one: session.broadcast_async(one, root=RANK),
                lambda one: session.send_async(one, 1),
                lambda one: session.compare_async(one),
                lambda one: session.reduce_async(array, root=1),
                lambda one: hub.push_async("fc", array),
            ):
                for one in (array, shared):
                    with self.losing(0):
                        drop(one)
                    self.reap(session)
                    self.assert_is_added(session, one)
            hub.free(60)

    def test_what_writes_alone_is_refused_for_no_dropped_request_that_has_ended(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = numpy.ones(SIZE, "float32")
            hub = gradcube.Hub(session, {"fc": array}, timeout=60)
            with self.losing(1):
                session.allreduce_async(array)
            session.recv(array, 1, tag=array.nbytes, timeout=60)
            self.assertEqual(array.tobytes(), bytes([RECEIVED]) * array.nbytes)
            session.broadcast(array, root=1, timeout=60)
            self.assertEqual(array.tobytes(), bytes([BROADCAST]) * array.nbytes)
            hub.pull("fc", array)
            self.assertEqual(array.tolist(), [1] * SIZE)
            with self.assertRaisesRegex(gradcube.InvalidError, REFUSED):
                session.allgather(array, timeout=60)
            hub.free(60)

    def test_of_a_gather_the_own_part_alone_is_submitted(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = numpy.ones(SIZE)
            with self.losing(1):
                session.allreduce_async(array[:RANK])
            session.allgather(array, timeout=60)
            with self.assertRaisesRegex(gradcube.InvalidError, REFUSED):
                session.allreduce(array, timeout=60)

    def test_memory_to_which_a_dropped_push_writes_is_refused_once(self):
        with gradcube.Session(self.socket, job="job") as session:
            for make in (session.alloc, lambda count: numpy.ones(count, "float32")):
                gradients, weights, is_shared = make(10), make(10), make == session.alloc
                weights[:] = 3
                hub = gradcube.Hub(session, {"fc": weights}, timeout=60)
                with self.losing(0):
                    hub.push_pull_async("fc", gradients, weights)
                self.reap(session)
                self.assert_is_refused_once(session, weights)
                if is_shared:  # where servers have added to them
                    self.assert_is_refused_once(session, gradients)
                else:
                    self.assert_is_added(session, gradients)
                hub.free(60)

    def test_weights_of_a_dropped_push_in_memory_of_others_are_refused_once_though_their_array_is_gone(self):
        with gradcube.Session(self.socket, job="job") as session:
            memory, gradients = bytearray(40), numpy.ones(10, "float32")
            hub = gradcube.Hub(session, {"fc": gradients}, timeout=60)
            hub.push_pull_async("fc", gradients, numpy.frombuffer(memory, "float32"))
            self.reap(session)
            self.assert_is_refused_once(session, numpy.frombuffer(memory, "float32"))
            hub.free(60)

    def test_ctrl_c_anywhere_in_a_call_whose_request_nobody_keeps_lets_no_result_be_submitted(self):
        with gradcube.Session(self.socket, job="job") as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for array in (numpy.ones(10), session.alloc(10)):
                for place in range(1, 1000):
                    array[:] = 1
                    never_came = ControlC(place).run(lambda: session.allreduce_async(array) and None)
                    array[:] = 5
                    session.barrier(timeout=60)
                    try:
                        self.reap(session)
                        session.allreduce(array, timeout=60)
                        self.assertEqual(array.tolist(), [5 * SIZE] * 10, f"place {place}")
                    except gradcube.InvalidError:
                        self.assert_is_added(session, array)
                    if never_came:
                        break
                self.assertLess(place, 999)

    def test_a_dropped_request_that_fails_loses_nothing(self):
        with gradcube.Session(self.socket, job="fail") as session:
            array = numpy.ones(10)
            request = session.allreduce_async(array)
            self.wait_for(lambda: session._handle.native.gradcube_event_fd(session._handle.session) >= 0)
            with self.assertRaises(gradcube.PeerError):
                session.barrier(timeout=60)  # which ends after it
            with self.losing(0):
                del request
            for _ in range(2):
                with self.assertRaises(gradcube.PeerError):
                    session.allreduce(array, timeout=60)

    def test_requests_whose_ends_were_told_are_dropped_silently(self):
        with gradcube.Session(self.socket, job="job") as session, self.losing(0):
            array = numpy.ones(10)
            session.allreduce_async(array).wait(timeout=60)
            request = session.allreduce_async(array)
            self.wait_for(request.test)
            del request
            session.recv(array, 1, timeout=60)
            session.allreduce(array, timeout=60)
            self.assertEqual((session._late._requests, len(session._abandoned)), ({}, 0))


class LifetimeTest(WithDropped):
    def test_memory_of_dropped_requests_is_known_as_long_as_it_is_there(self):
        with gradcube.Session(self.socket, job="job") as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = numpy.ones(30)
            session.allreduce_async(whole[10:20])
            for make in (numpy.ones, session.alloc, lambda count: numpy.frombuffer(bytearray(8 * count)), bytearray):
                for _ in range(100):
                    session.recv_async(make(16), 1)
                    session.barrier(timeout=60)
            self.reap(session)
            self.assertEqual(len(session._late._requests), 1)
            with self.assertRaisesRegex(gradcube.InvalidError, REFUSED):
                session.allreduce(whole)
            self.assertEqual(session._late._requests, {})

    def test_an_array_with_which_many_requests_were_dropped_is_known_once(self):
        with gradcube.Session(self.socket, job="job") as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for array in (numpy.ones(16), session.alloc(16)):
                for part in (array[:8], array[8:]) * 20:
                    session.recv_async(part, 1)
                    self.reap(session)
                self.assertEqual(len(session._late._requests), 2)
                self.assert_is_refused_once(session, array)

    def test_an_array_that_comes_to_lie_where_another_one_was_is_not_refused(self):
        with gradcube.Session(self.socket, job="job") as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for make in (numpy.ones, session.alloc, lambda count: numpy.frombuffer(bytearray(8 * count))):
                places = set()
                for _ in range(50):
                    array = make(16)
                    places.add(array.ctypes.data)
                    self.assert_is_added(session, array)
                    session.allreduce_async(array)
                    del array
                    session.barrier(timeout=60)
                self.assertLess(len(places), 50)

    def test_nothing_is_written_to_bytes_whose_receive_was_dropped(self):
        with gradcube.Session(self.socket, job="hold") as session:
            memory = bytearray(8)
            with self.losing(2):
                session.recv_async(memory, 1, tag=4)
                session.recv_async(memoryview(bytearray(8))[2:6], 1, tag=4)
            memory += b"more"  # it is the program's again
            self.release()
            self.reap(session)
            self.assertEqual(memory, bytes(8) + b"more")
            sent = session.send_async(memory, 1)
            self.release()
            sent.wait(timeout=60)

    def test_a_session_that_is_closed_leaves_arrays_to_their_program(self):
        with gradcube.Session(self.socket, job="job") as other:
            for is_closed_first in (False, True):
                session = gradcube.Session(self.socket, job="hold")
                arrays = [numpy.ones(10), session.alloc(10)]
                cycle = [session.allreduce_async(array) for array in arrays]
                cycle.append(cycle)
                with self.losing(0 if is_closed_first else 1):
                    for step in (session.close, cycle.clear)[:: 1 if is_closed_first else -1]:
                        step()
                    del session, cycle, step
                    gc.collect()
                for array in arrays:
                    self.assert_is_added(other, array)

    def test_requests_in_rings_of_references_are_dropped_when_they_are_collected(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = numpy.ones(10)
            cycle = [session.allreduce_async(array)]
            cycle.append(cycle)
            session.barrier(timeout=60)
            array[:] = 7
            with self.losing(1):
                del cycle
                gc.collect()
            self.assertEqual(array.tolist(), [7] * 10)
            self.assert_is_refused_once(session, array)

    def test_a_forked_child_drops_requests_of_its_parent_for_itself_alone(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = numpy.ones(10)
            request = session.allreduce_async(array)
            child = os.fork()
            if child == 0:
                try:
                    with self.losing(0):
                        del request
                    with gradcube.Session(self.socket, job="job") as own:
                        self.assert_is_added(own, array)
                    os._exit(0)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.release()
            request.wait(timeout=60)
            self.assertEqual(array.tolist(), [SIZE] * 10)

    def test_threads_that_drop_requests_submit_what_they_have_written(self):
        failures, refusals = [], []

        def work(number):
            array = numpy.ones(100) if number % 2 else session.alloc(100)
            for turn in range(50):
                array[:] = number
                try:
                    session.allreduce(array, timeout=60)
                except gradcube.InvalidError as refusal:
                    refusals.append(str(refusal))
                    continue
                if array.tolist() != [number * SIZE] * 100:
                    failures.append((number, turn, array[0]))
                ring = [session.allreduce_async(array)]
                ring.append(ring)
                if turn % 7 == 0:
                    gc.collect()
                session.barrier(timeout=60)

        with gradcube.Session(self.socket, job="job") as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        for refusal in refusals:
            self.assertRegex(refusal, REFUSED + "|wait for its request first")

    def test_an_interpreter_ends_silently_with_requests_that_nobody_has_waited_for(self):
        command = [sys.executable, "-W", "always", "-c", AT_EXIT, self.socket]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
