"""Ctrl-C at every place of a call of the Python package, against the fake daemon: nothing is lost.

Usage: python_interrupts_test.py FAKE_DAEMON. The package and the library are found through PYTHONPATH and
GRADCUBE_LIBRARY.
"""

import ctypes
import importlib.util
import itertools
import os
import unittest
from unittest import mock

from python_control_c import ControlC, WithControlC
from python_daemon import RECEIVED, SIZE
from python_library import ComesLate, Frees

import gradcube
import numpy
from gradcube._interruptible_call import Call
from gradcube._request import Request

EINVAL = gradcube.InvalidError.code
MOST_PLACES = 2000  # of a call: fewer have it


class ControlCTest(WithControlC):
    def interrupt(self, call, afterwards):
        """Once at each place."""
        for place in range(1, MOST_PLACES):
            with self.subTest(place=place):
                if ControlC(place).run(call):
                    self.assertGreater(place, 10)
                    return
                afterwards()
        self.fail("the call never ends")

    def assert_nothing_is_lost(self, session):
        """Each request that the library has is known here, too."""
        self.wait_for(lambda: session._reap_abandoned(1000) or not session._abandoned)
        last = session.barrier_async()
        last.wait(timeout=60)
        done = ctypes.c_int()
        native = session._handle.native
        for number in range(max(1, last._number.value - 20), last._number.value):
            code = native.gradcube_poll(session._handle.session, number, 0, ctypes.byref(done))
            self.assertEqual((code, done.value), (EINVAL, 0), f"request {number} is nobody's")

    def assert_is_usable(self, session, array):
        """It is refused once at most, where the interrupted call has left it."""
        try:
            session.allreduce(array, timeout=60)
        except gradcube.InvalidError as refusal:
            self.assertIn("write there anew", str(refusal))
            session.allreduce(array, timeout=60)

    def test_no_collective_and_no_message_is_lost(self):
        array = numpy.zeros(4)
        with gradcube.Session(self.socket, job="job") as session:
            for call in (
                lambda: session.allreduce(array, timeout=60),
                lambda: [session.barrier_async() and None for _ in range(3)],  # which nobody keeps
                lambda: session.send(array, 1, timeout=60),
                lambda: session.recv(array, 1, timeout=60),
            ):
                self.interrupt(call, lambda: self.assert_nothing_is_lost(session) or self.assert_is_usable(session, array))

    def test_memory_can_be_given_back_after_a_call_that_ctrl_c_has_ended_anywhere(self):
        memory = bytearray(40)

        def array():
            return numpy.ndarray(10, "float32", buffer=memory)

        def give_back():
            self.assert_nothing_is_lost(session)
            self.assert_is_usable(session, array())
            memory.append(0)  # refused while it is held
            memory.pop()

        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, {"fc": array()}, timeout=60)
            for call in (
                lambda: session.allreduce(array(), timeout=60),
                lambda: session.recv(memory, 1, timeout=60),
                lambda: hub.push_pull("fc", numpy.ones(10, "float32"), array(), timeout=60),
                lambda: hub.pull("fc", array()),
            ):
                self.interrupt(call, give_back)
            hub.free(60)

    @staticmethod
    def end_of(request, timeout=60):
        try:
            request.wait(timeout)
        except gradcube.Error as failure:
            return type(failure)
        return None

    def test_a_wait_can_be_repeated(self):
        ends = (("job", None), ("fail", gradcube.PeerError))
        for (job, end), timeout in itertools.product(ends, (60, 0)):
            with gradcube.Session(self.socket, job=job) as session:
                if timeout == 0:
                    session._handle.native = ComesLate(session._handle)
                for place in itertools.count(1):
                    request = session.allreduce_async(numpy.zeros(4))
                    never_came = ControlC(place).run(lambda: self.end_of(request, timeout))
                    self.assertIs(self.end_of(request), end, f"{job}, place {place}")
                    if never_came:
                        break

    def test_a_message_that_has_come_or_gone_all_the_same_is_told(self):
        caught, requests = [], []

        def told(call):
            try:
                call()
            except KeyboardInterrupt as stop:
                caught.append(stop)

        with gradcube.Session(self.socket, job="job") as session:
            array, message = session.alloc(4, "uint8"), session._message
            session._message = lambda *asked: requests.append(message(*asked)) or requests[-1]
            calls = (  # of as many bytes as the tag says
                (lambda: session.recv(array, 1, tag=4, timeout=timeout), 4),
                (lambda: session.recv_bytes(4, 1, tag=4, timeout=timeout), bytes([RECEIVED] * 4)),
                (lambda: session.send(array, 1, timeout=timeout), None),
            )
            for timeout, (call, received) in itertools.product((60, 0), calls):
                if timeout == 0:
                    session._handle.native = ComesLate(session._handle)
                count = 0
                for place in itertools.count(1):
                    requests.clear()
                    if ControlC(place).run(lambda: told(call)):
                        break
                    submitted = [request for request in requests if request._number.value]
                    has_met = [self.end_of(request) for request in submitted] == [None]
                    stop = caught.pop()
                    self.assertEqual("a signal has ended the call" in str(stop), has_met, f"place {place}")
                    self.assertEqual(getattr(stop, "received", None), received if has_met else None)
                    count += has_met
                self.assertGreater(count, 0)

    def assert_is_added(self, session, array):
        array[:] = 5
        session.allreduce(array, timeout=60)
        self.assertEqual(array.tolist(), [5 * SIZE] * 10)

    def test_memory_of_a_call_that_nobody_can_wait_for_is_refused_once_where_it_has_ended(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = session.alloc(10)
            self.assertIsInstance(self.interrupted(lambda: session.allreduce(array)).request, gradcube.Request)
            with self.assertRaisesRegex(gradcube.InvalidError, "may still read or write it"):
                session.allreduce(array)
            self.release()
            session.barrier(timeout=60)
            with self.assertRaisesRegex(gradcube.InvalidError, "write there anew"):
                session.allreduce(array)
            self.assert_is_added(session, array)

    def test_a_call_that_nobody_can_wait_for_writes_nothing_over_what_the_program_has_written_since(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = numpy.ones(10)
            self.interrupted(lambda: session.allreduce(array))
            array[:] = 5
            self.release()
            session.barrier(timeout=60)
            self.wait_for(lambda: session._reap_abandoned(1) or not session._abandoned)
            self.assertEqual(array.tolist(), [5] * 10)
            with self.assertRaisesRegex(gradcube.InvalidError, "write there anew"):
                session.allreduce(array)
            self.assert_is_added(session, array)

    def test_memory_that_a_call_nobody_can_wait_for_has_only_read_is_free(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = numpy.ones(10)
            self.interrupted(lambda: session.compare(array))
            added = session.allreduce_async(array)
            self.release()
            added.wait(timeout=60)
            self.assertEqual(array[0], SIZE)

    def test_memory_of_a_call_is_refused_until_its_request_that_the_exception_has_was_waited_for(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = numpy.ones(10)
            request = self.interrupted(lambda: session.allreduce(array)).request
            self.release()
            session.barrier(timeout=60)
            for _ in range(2):
                with self.assertRaisesRegex(gradcube.InvalidError, "wait for that request first"):
                    session.allreduce(array)
            request.wait(timeout=60)
            self.assert_is_added(session, array)

    def test_memory_of_a_call_that_ctrl_c_has_ended_anywhere_is_refused_unless_its_end_was_told(self):
        array, requests, made = numpy.zeros(10, "float32"), [], Request._of

        def is_known():
            for request in requests:
                if request._number.value and not request._ended:
                    self.assertIn(request._number.value, session._late._requests)
                    self.assertIsNone(self.end_of(request))
            requests.clear()

        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, {"fc": array}, timeout=60)
            calls = (
                lambda: session.allreduce(array, timeout=60),
                lambda: session.compare(array, timeout=60),
                lambda: hub.push("fc", array, timeout=60),
                lambda: hub.push_pull("fc", array, array, timeout=60),
                lambda: hub.set_weights({"fc": array}, timeout=60),
            )
            with mock.patch.object(Request, "_of", lambda *asked: requests.append(made(*asked)) or requests[-1]):
                for call in calls:
                    self.interrupt(call, is_known)
            hub.free(60)

    def test_no_weights_are_pulled_into_memory_of_a_call_that_ctrl_c_has_left(self):
        with gradcube.Session(self.socket, job="unheard") as session:
            weights = numpy.ones(10, "float32")
            hub = gradcube.Hub(session, {"fc": weights}, timeout=60)
            request = self.interrupted(lambda: session.allreduce(weights)).request
            with self.assertRaisesRegex(gradcube.InvalidError, "may still read or write it"):
                hub.pull("fc", weights)
            self.release()
            request.wait(timeout=60)
            hub.pull("fc", weights)
            self.assertEqual(weights.tolist(), [1] * 10)
            hub.free(60)

    def assert_makes_room(self, job, where, refusal):
        """A Hub() that Ctrl-C has left there, when what it does has ended."""
        weights, made = {"fc": numpy.ones(10, "float32")}, []

        def is_made():
            try:
                made.append(gradcube.Hub(session, weights, timeout=60))
            except gradcube.AgainError:
                return False
            return True

        with gradcube.Session(self.socket, job=job) as session:
            self.interrupted(lambda: gradcube.Hub(session, weights), where)
            with self.assertRaisesRegex(gradcube.AgainError, refusal):
                gradcube.Hub(session, weights)
            self.release()
            self.wait_for(lambda: made or is_made())
            made[0].free(60)

    def test_a_hub_that_ctrl_c_has_left_makes_room_for_another_when_it_is_made(self):
        self.assert_makes_room("hold", "take", "is being made")

    def test_a_hub_that_ctrl_c_has_left_makes_room_for_another_when_it_has_its_weights(self):
        self.assert_makes_room("unpushed", "_wait", "in flight")

    def test_a_hub_whose_making_ctrl_c_ends_anywhere_makes_room_for_another(self):
        weights = {"fc": numpy.ones(10, "float32")}
        with gradcube.Session(self.socket, job="job") as session:
            def call():
                made.append(gradcube.Hub(session, weights, timeout=60))

            def is_made():
                try:
                    call()
                except gradcube.AgainError:
                    return False
                return True

            for place in range(1, MOST_PLACES):
                made = []
                never_came = ControlC(place).run(call)
                self.wait_for(lambda: made or is_made())
                made[0].free(60)
                if never_came:
                    return
            self.fail("the call never ends")

    def test_a_call_that_ctrl_c_has_ended_twice_before_it_began_never_begins(self):
        decide, stops, begun = Call._decide, [KeyboardInterrupt], []

        def stop(call, maker):
            if maker is None and stops:
                raise stops.pop()
            return decide(call, maker)

        with gradcube.Session(self.socket, job="job") as session:
            call = Call(session._handle, lambda: begun.append(call) or 0)
            with mock.patch.object(Call, "_decide", stop), mock.patch.object(Call, "_run"):
                with mock.patch.object(Call, "wait", mock.Mock(side_effect=KeyboardInterrupt)):
                    with self.assertRaises(KeyboardInterrupt):
                        call.take()
            call._run()  # as its thread does late
            self.assertEqual((stops, begun, call.is_void()), ([], [], True))

    def assert_freed_once(self, free):
        """Wherever Ctrl-C ends `free`, which gets the C hub's handle, and though the session leaves while it is freed."""
        for place in range(1, MOST_PLACES):
            session = gradcube.Session(self.socket, job="job")
            handle = session._handle
            made = gradcube.Hub(session, {"fc": numpy.ones(10, "float32")}, timeout=60)._handle
            frees = handle.native = Frees(handle)
            never_came = ControlC(place).run(lambda: free(made))
            made = frees.handle = handle = None
            session.close()
            del session
            self.assertEqual(frees.ended, 1, f"place {place}")
            if never_came:
                return
        self.fail("the call never ends")

    def test_a_hub_whose_hub_was_never_returned_is_freed_once(self):
        def discard(made):
            made.is_left = True
            made.discard()

        self.assert_freed_once(discard)

    def test_a_hub_that_is_freed_as_its_session_leaves_is_freed_once(self):
        def leave(made):
            session, address = made.session, made.hub
            made.hub = None
            session.drop_hub(address)
            session.leave()

        self.assert_freed_once(leave)

    def test_a_hub_that_is_dropped_when_its_session_has_left_is_freed_once(self):
        def drop(made):
            session, address = made.session, made.hub
            made.hub = None
            session.leave()
            session.drop_hub(address)

        self.assert_freed_once(drop)

    def test_a_hub_goes_on(self):
        gradients, weights = numpy.ones(10, "float32"), numpy.zeros(10, "float32")

        def is_there(call):
            try:
                call()
            except (gradcube.AgainError, gradcube.InvalidError):  # which is of memory that the call has left
                return False
            return True

        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, {"fc": gradients}, timeout=60)
            self.interrupt(
                lambda: hub.push_pull("fc", gradients, weights, timeout=60),
                lambda: self.wait_for(lambda: is_there(lambda: hub.pull("fc", weights))),
            )
            hub.free(60)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_a_step_that_ctrl_c_has_ended_can_be_repeated_where_it_does_not_count(self):
        import torch
        from gradcube._hub_optimizer import HubOptimizer  # which needs no backend

        weights = torch.nn.Parameter(torch.zeros(10))
        with gradcube.Session(self.socket, job="job") as session:
            optimizer = HubOptimizer([weights], "sgd", lr=0.1, session=session, timeout=60)
            for place in range(1, MOST_PLACES):
                (weights * place).sum().backward()
                never_came = ControlC(place).run(optimizer.step)
                if optimizer.steps < place:
                    optimizer.step()
                self.assertEqual(optimizer.steps, place)
                self.assertEqual(weights.tolist(), [place] * 10, "the fake daemon's weights are what was pushed last")
                if never_came:
                    optimizer.free(60)
                    return
            self.fail("the call never ends")

    def test_a_session_that_nobody_got_has_left(self):
        def descriptors():
            return len(os.listdir("/proc/self/fd"))

        gradcube.Session(self.socket, job="job").close()
        before = descriptors()
        self.interrupt(
            lambda: gradcube.Session(self.socket, job="job").close(),
            lambda: self.assertEqual(descriptors(), before),
        )


if __name__ == "__main__":
    unittest.main()
