"""Checkpoints of the Python package's hubs under Ctrl-C, against the fake daemon.

Usage: python_checkpoints_test.py FAKE_DAEMON. The package and the library are found through PYTHONPATH and
GRADCUBE_LIBRARY.
"""

import os
import signal
import threading
import unittest
import unittest.mock

from python_control_c import ControlC, WithControlC
from python_library import Checkpoints

import gradcube
import numpy
from gradcube._hub_checkpoints import HubCheckpoints

MOST_PLACES = 2000  # of a call: fewer have it


class CheckpointsTest(WithControlC):
    def with_checkpoints(self):
        """For each end that a checkpoint can have: the library, a hub, and what tells the end."""
        for code, end in ((0, None), (gradcube.PeerError.code, gradcube.PeerError)):
            with gradcube.Session(self.socket, job="job") as session:
                hub = gradcube.Hub(session, {"fc": numpy.ones(10, "float32")}, timeout=60)
                session._handle.native = library = Checkpoints(session._handle, code)
                yield library, hub, end
                session._handle.native = library.library
                hub.free(60)

    @staticmethod
    def told(call):
        try:
            call()
        except gradcube.Error as failure:
            return type(failure)
        return None

    def test_a_checkpoint_whose_end_ctrl_c_has_left_is_told_as_it_has_ended(self):
        for library, hub, end in self.with_checkpoints():
            library.may_begin.set()
            hub.begin_checkpoint("model.hub", 1)
            self.interrupted(hub.end_checkpoint, "wait", lambda: library.ends)
            self.assertIs(self.told(lambda: hub.end_checkpoint(0)), gradcube.TimeoutError)
            library.may_end.set()
            for _ in range(2):
                self.assertIs(self.told(lambda: hub.end_checkpoint(60)), end)
            self.assertEqual(library.ends, 1)

    def test_a_checkpoint_whose_beginning_ctrl_c_has_left_ends_when_it_has_begun(self):
        for library, hub, end in self.with_checkpoints():
            library.may_end.set()
            self.interrupted(lambda: hub.begin_checkpoint("model.hub", 1), "wait", lambda: library.beginnings)
            ends = []
            thread = threading.Thread(target=lambda: ends.append(self.told(lambda: hub.end_checkpoint(60))))
            thread.start()
            self.wait_for(lambda: ends or "wait" in self.names_in(thread.ident))
            library.may_begin.set()
            thread.join()
            self.assertEqual(ends, [end])

    def test_a_hubs_checkpoints_end_as_they_have_wherever_ctrl_c_comes(self):
        for library, hub, end in self.with_checkpoints():
            library.may_begin.set()
            library.may_end.set()
            for place in range(1, MOST_PLACES):
                checkpoints, ends = HubCheckpoints("model.hub", 1), []
                checkpoints.begin(hub, place, 60)
                never_came = ControlC(place).run(
                    lambda: ends.append(self.told(lambda: checkpoints.end(hub, place, 60)))
                )
                if not never_came:
                    self.assertEqual(ends, [])
                    ends.append(self.told(lambda: checkpoints.end(hub, place, 60)))
                self.assertEqual(ends, [end], f"place {place}")
                self.assertEqual(library.ends, place)
                if never_came:
                    break

    def assert_not_begun_before_it_is_told(self, hub):
        for begin in (hub.begin_checkpoint, hub.checkpoint):
            with self.assertRaisesRegex(gradcube.AgainError, "end_checkpoint"):
                begin("model.hub", 2)

    def test_no_checkpoint_is_begun_before_the_end_that_ctrl_c_has_left_is_told(self):
        for library, hub, end in self.with_checkpoints():
            library.may_begin.set()
            hub.begin_checkpoint("model.hub", 1)
            self.interrupted(hub.end_checkpoint, "wait", lambda: library.ends)
            self.assert_not_begun_before_it_is_told(hub)
            library.may_end.set()
            self.wait_for(lambda: not hub._ending.is_under_way())
            self.assert_not_begun_before_it_is_told(hub)
            self.assertIs(self.told(lambda: hub.end_checkpoint(60)), end)
            self.assertIs(self.told(lambda: hub.checkpoint("model.hub", 2, 60)), end)
            self.assertEqual(library.ends, 2)

    def left_before_it_begins(self, call, stop):
        """The thread that would have made it."""
        threads = []

        def start(thread):
            threads.append(thread)
            raise stop

        with unittest.mock.patch.object(threading.Thread, "start", start), self.assertRaises(type(stop)):
            call()
        return threads[0]

    def test_a_call_that_is_left_before_it_begins_is_never_made(self):
        for stop in (KeyboardInterrupt(), RuntimeError("can't start new thread")):
            for library, hub, end in self.with_checkpoints():
                library.may_begin.set()
                library.may_end.set()
                self.left_before_it_begins(lambda: hub.begin_checkpoint("model.hub", 1), stop).run()
                self.assertFalse(library.is_begun)
                hub.begin_checkpoint("model.hub", 1)
                self.left_before_it_begins(hub.end_checkpoint, stop).run()
                self.assertEqual(library.ends, 0)
                self.assertIs(self.told(lambda: hub.end_checkpoint(5)), end)
                self.assertGreaterEqual(library.milliseconds, 0, "the timeout is that of this call")

    def test_a_forked_child_waits_for_no_call_that_ctrl_c_has_left(self):
        for library, hub, _ in self.with_checkpoints():
            library.may_end.set()
            self.interrupted(lambda: hub.begin_checkpoint("model.hub", 1), "wait", lambda: library.beginnings)
            child = os.fork()
            if child == 0:
                signal.alarm(10)  # where it waits all the same
                os._exit(1 if self.told(hub.end_checkpoint) is None else 0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            library.may_begin.set()
            self.told(hub.end_checkpoint)


if __name__ == "__main__":
    unittest.main()
