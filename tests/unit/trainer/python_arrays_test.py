"""NumPy arrays that calls of the Python package use, and what they cannot be, against the fake daemon.

Usage: python_arrays_test.py FAKE_DAEMON. The package and the library are found through PYTHONPATH and GRADCUBE_LIBRARY.
"""

import copy
import ctypes
import gc
import mmap
import pickle
import unittest
from multiprocessing.shared_memory import SharedMemory
from unittest import mock

from python_daemon import SIZE, WithDaemon
from python_library import Meanwhile

import gradcube
import numpy
from numpy.lib.stride_tricks import as_strided, sliding_window_view


class ArraysTest(WithDaemon):
    def assert_of_one_size(self, array):
        with self.assertRaisesRegex(ValueError, "cannot resize"):
            array.resize(1 << 20, refcheck=False)

    def test_arrays_in_flight_are_not_resized(self):
        with gradcube.Session(self.socket, job="hold") as session:
            for view in (
                lambda array: array,
                lambda array: array[2:7],
                lambda array: array.reshape(2, 5),
                as_strided,  # between these two and the array is an object of NumPy's own
                lambda array: sliding_window_view(array, 10, writeable=True)[0],
            ):
                array = numpy.ones(10)
                request = session.allreduce_async(view(array))
                self.assert_of_one_size(array)
                self.release()
                request.wait(timeout=60)
                self.assertEqual(view(array).tolist(), (SIZE * view(numpy.ones(10))).tolist())
                array.resize(20, refcheck=False)

    def test_arrays_of_messages_and_their_views_of_bytes_are_not_resized(self):
        with gradcube.Session(self.socket, job="hold") as session:
            for data in (lambda array: array, memoryview):
                array = numpy.ones(10)
                request = session.recv_async(data(array), 1)
                self.assert_of_one_size(array)
                self.release()
                request.wait(timeout=60)
                array.resize(20, refcheck=False)

    def assert_is_held_in_flight(self, session, array, give_back):
        array[:] = 1
        request = session.allreduce_async(array)
        with self.assertRaises(BufferError):
            give_back()
        self.release()
        request.wait(timeout=60)
        self.assertEqual(array.tolist(), [SIZE] * 10)
        give_back()  # while the request is still there

    def test_memory_that_lies_under_an_array_in_flight_is_not_given_back(self):
        with gradcube.Session(self.socket, job="hold") as session:
            shared = SharedMemory(create=True, size=80)
            shared.unlink()
            mapped, growing = mmap.mmap(-1, 80), bytearray(80)
            self.assert_is_held_in_flight(session, numpy.ndarray(10, buffer=shared.buf), shared.close)
            self.assert_is_held_in_flight(session, numpy.ndarray(10, buffer=mapped), mapped.close)
            self.assert_is_held_in_flight(session, numpy.ndarray(10, buffer=growing), growing.clear)

    def test_memory_is_given_back_where_its_request_was_dropped_or_its_session_has_closed(self):
        growing, errors = [bytearray(80) for _ in range(3)], []
        with gradcube.Session(self.socket, job="hold") as session:
            with self.assertWarnsRegex(RuntimeWarning, "dropped"):
                session.allreduce_async(numpy.ndarray(10, buffer=growing[0]))
                gc.collect()
            growing[0].clear()
            try:
                session.allreduce(numpy.ndarray(10, buffer=growing[1]), timeout=0)
            except gradcube.TimeoutError as error:
                errors.append(error)
            request = session.allreduce_async(numpy.ndarray(10, buffer=growing[2]))
        growing[1].clear()
        with self.assertRaisesRegex(gradcube.InvalidError, "closed"):
            request.wait(0)
        growing[2].clear()

    def test_memory_that_was_given_back_before_a_call_is_refused(self):
        with gradcube.Session(self.socket, job="job") as session:
            memory = mmap.mmap(-1, 80)
            array = numpy.ndarray(10, buffer=memory)
            memory.close()
            with self.assertRaisesRegex(gradcube.InvalidError, "mmap under it does not give its memory: mmap closed"):
                session.allreduce(array, timeout=60)

    def test_a_refused_call_holds_nothing_even_where_its_error_is_kept(self):
        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, {"fc": numpy.ones(16, "float32")}, "sgd:lr=1", timeout=60)
            errors = []
            for call in (
                lambda array: session.allreduce(array, op="none"),
                lambda array: session.send(array, to=1, tag=-1),
                lambda array: session.send(array, to=1 << 20, timeout=60),
                lambda array: session.compare(array, lane=1 << 20),
                lambda array: hub.push("fc", array[:3]),
                lambda array: hub.pull("fc", array[:3]),
            ):
                memory = bytearray(64)
                try:
                    call(numpy.ndarray(16, "float32", buffer=memory))
                except gradcube.InvalidError as error:
                    errors.append(error)
                memory.clear()
            self.assertEqual(len(errors), 6)
            hub.free(60)

    def test_arrays_are_not_resized_between_the_checks_of_a_call_and_its_submission(self):
        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, {"fc": numpy.ones(16, "float32")}, "sgd:lr=1", timeout=60)
            for call in (
                lambda array: session.allreduce(array, timeout=60),
                lambda array: session.compare(array, timeout=60),
                lambda array: session.send(array, to=1, timeout=60),
                lambda array: hub.push("fc", array, timeout=60),
                lambda array: hub.push_pull("fc", numpy.ones(16, "float32"), array, timeout=60),
                lambda array: hub.pull("fc", array),
            ):
                array = numpy.ones(16, "float32")
                meanwhile = mock.Mock(side_effect=lambda _, array=array: self.assert_of_one_size(array))
                with (
                    mock.patch("gradcube._request.check_late", meanwhile),
                    mock.patch("gradcube._hub.check_late", meanwhile),
                ):
                    call(array)
                meanwhile.assert_called_once()
                meanwhile.reset_mock(side_effect=True)
                array.resize(32, refcheck=False)
            hub.free(60)

    def test_an_array_is_not_resized_while_weights_are_copied_to_it(self):
        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, {"fc": numpy.ones(16, "float32")}, "sgd:lr=1", timeout=60)
            array = numpy.zeros(16, "float32")
            handle = session._handle
            handle.native = Meanwhile(handle, "gradcube_hub_pull", lambda: self.assert_of_one_size(array))
            hub.pull("fc", array)
            handle.native = handle.native.library
            self.assertEqual(array.tolist(), [1] * 16)
            array.resize(32, refcheck=False)
            hub.free(60)

    def test_arrays_of_a_call_whose_time_was_up_are_not_resized_before_it_has_ended(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = numpy.ones(10)
            try:
                session.allreduce(array, timeout=0)
            except gradcube.TimeoutError as late:
                request = late.request
            self.assert_of_one_size(array)
            self.release()
            request.wait(timeout=60)
            array.resize(20, refcheck=False)

    def test_weights_and_gradients_are_not_resized_before_a_push_was_told_to_have_ended(self):
        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, {"fc": numpy.ones(16, "float32")}, "sgd:lr=1", timeout=60)
            gradients, weights = numpy.ones(16, "float32"), numpy.ones(16, "float32")
            request = hub.push_pull_async("fc", gradients, weights)
            for array in (gradients, weights):
                self.assert_of_one_size(array)
            request.wait(timeout=60)
            for array in (gradients, weights):
                array.resize(32, refcheck=False)
            hub.free(60)

    def test_gradients_to_which_the_daemon_itself_may_write_are_refused_until_a_late_push_was_waited_for(self):
        with (
            gradcube.Session(self.socket, job="job") as session,
            gradcube.Session(self.socket, job="other") as other,
        ):
            hub = gradcube.Hub(session, {"fc": numpy.ones(16, "float32")}, "sgd:lr=1", timeout=60)
            blocks = [session.alloc(16) for _ in range(3)]
            gradients = blocks.pop(1)
            views = (
                lambda array: array,
                as_strided,
                lambda array: numpy.asarray(memoryview(array)),
                # What knows nothing of the array, as a tensor over it.
                lambda array: numpy.frombuffer((ctypes.c_float * 16).from_address(array.ctypes.data), "float32"),
            )
            for view in views:
                request = hub.push_async("fc", view(gradients))
                request._go_on()
                with self.assertRaisesRegex(gradcube.InvalidError, "wait for that request first"):
                    other.send(gradients, to=1)
                request.wait(timeout=60)
                other.send(gradients, to=1, timeout=60)
            hub.free(60)

    def test_gradients_that_are_copied_may_be_read_while_a_late_push_goes_on(self):
        with (
            gradcube.Session(self.socket, job="job") as session,
            gradcube.Session(self.socket, job="other") as other,
        ):
            hub = gradcube.Hub(session, {"fc": numpy.ones(16, "float32")}, "sgd:lr=1", timeout=60)
            session.alloc(16)
            for gradients in (numpy.ones(16, "float32"), other.alloc(16)):
                request = hub.push_async("fc", gradients)
                request._go_on()
                other.send(gradients, to=1, timeout=60)
                request.wait(timeout=60)
            hub.free(60)

    def test_masks_are_never_left_out_in_silence(self):
        with gradcube.Session(self.socket, job="job") as session:
            masked = numpy.ma.array(numpy.ones(4), mask=[0, 1, 0, 0])
            for call in (session.allreduce, session.broadcast, session.compare):
                with self.assertRaisesRegex(gradcube.InvalidError, "mask would be left out"):
                    call(masked, timeout=60)
            with self.assertRaisesRegex(gradcube.InvalidError, "mask would be left out"):
                session.send(masked, to=1, timeout=60)
            for view in (memoryview(masked), memoryview(masked)[1:], pickle.PickleBuffer(masked)):
                with self.assertRaisesRegex(gradcube.InvalidError, "mask would be left out"):
                    session.send(view, to=1, timeout=60)
            filled = masked.filled(0)
            session.allreduce(filled, timeout=60)
            self.assertEqual(filled.tolist(), [SIZE, 0, SIZE, SIZE])

    def test_messages_of_no_bytes_are_sent_of_any_shape(self):
        with gradcube.Session(self.socket, job="job") as session:
            for empty in (numpy.zeros((0, 3)), numpy.zeros(0), bytearray()):
                session.send(memoryview(empty), to=1, timeout=60)
                session.compare(memoryview(empty), timeout=60)
                session.recv(memoryview(empty), source=1, timeout=60)

    def test_a_copy_of_a_request_is_that_request(self):
        with gradcube.Session(self.socket, job="hold") as session:
            request = session.allreduce_async(numpy.ones(10))
            for other in (copy.copy(request), copy.deepcopy([request])[0]):
                self.assertIs(other, request)
            self.release()
            request.wait(timeout=60)


if __name__ == "__main__":
    unittest.main()
