"""The Python package's collectives, options and threads against the fake daemon.

Usage: python_calls_test.py FAKE_DAEMON. The package and the library are found through PYTHONPATH and GRADCUBE_LIBRARY.
"""

import asyncio
import copy
import os
import pickle
import select
import signal
import threading
import unittest
from unittest import mock

from python_control_c import WithControlC
from python_daemon import BROADCAST, RANK, SIZE
from python_library import NeverEnds

import gradcube
import numpy
from gradcube._late_memory import LateMemory, check_late


class KindsTest(WithControlC):
    def test_every_kind_works_in_place(self):
        with gradcube.Session(self.socket, job="job") as session:
            numbers = numpy.arange(SIZE * 2, dtype="int32")
            session.reduce_scatter(numbers, op="sum", timeout=60)
            expected = numpy.arange(SIZE * 2, dtype="int32")
            expected[RANK * 2 : RANK * 2 + 2] *= SIZE
            self.assertEqual(numbers.tolist(), expected.tolist(), "the own chunk alone")
            gathered = numpy.zeros((SIZE, 3), "int64")
            gathered[RANK] = 1, 2, 3
            session.allgather(gathered, timeout=60)
            self.assertEqual(gathered.tolist(), [[1, 2, 3]] * SIZE)
            received = session.alloc(10, "uint8")
            session.broadcast(received, root=0, timeout=60)
            self.assertEqual(received.tolist(), [BROADCAST] * 10)
            numbers = numpy.ones(5, "int8")
            session.reduce(numbers, root=RANK, timeout=60)
            self.assertEqual(numbers.tolist(), [SIZE] * 5)
            session.reduce(numbers, root=0, timeout=60)
            self.assertEqual(numbers.tolist(), [SIZE] * 5, "a copied buffer is no output but at the root")
            session.barrier(timeout=60)

    def test_memory_of_a_call_whose_time_was_up_is_refused_in_other_sessions_too(self):
        with gradcube.Session(self.socket, job="hold") as late, gradcube.Session(self.socket, job="job") as session:
            array = numpy.ones(10)
            with self.assertRaises(gradcube.TimeoutError) as caught:
                late.allreduce(array, timeout=0.05)
            array[:] = 5
            with self.assertRaisesRegex(gradcube.InvalidError, r"request \d+, whose time was up"):
                session.allreduce(array, timeout=60)
            self.release()
            caught.exception.request.wait(timeout=60)
            array[:] = 5
            session.allreduce(array, timeout=60)
            self.assertEqual(array[0], 5 * SIZE)

    def test_bytes_of_any_type_are_gathered_and_broadcast(self):
        with gradcube.Session(self.socket, job="job") as session:
            flags = numpy.zeros(SIZE, "bool")
            flags[RANK] = True
            session.allgather(flags, dtype="bytes", timeout=60)
            self.assertTrue(flags.all())
            pairs = numpy.zeros(3, "complex64")
            session.broadcast(pairs, root=1, dtype="bytes", timeout=60)
            self.assertEqual(pairs.tobytes(), bytes([BROADCAST]) * 24)
            session.allreduce(pairs, timeout=60)
            with self.assertRaises(gradcube.InvalidError):
                session.allreduce(pairs, dtype="bytes")
            with self.assertRaises(gradcube.InvalidError):
                session.broadcast(numpy.array([None]), dtype="bytes")

    def test_types_that_are_not_added_are_copied_by_their_names(self):
        with gradcube.Session(self.socket, job="job") as session:
            for dtype in ("bool", "int16", "uint16", "uint32", "uint64", "complex64", "complex128"):
                array = session.alloc(6, dtype)
                session.broadcast(array, root=0, timeout=60)
                self.assertEqual(array.tobytes(), bytes([BROADCAST]) * array.nbytes)
                with self.assertRaisesRegex(gradcube.InvalidError, f"{dtype} cannot be combined|ha(s|ve) no"):
                    session.allreduce(array, op="average" if dtype in ("bool", "int16") else "max")

    def test_late_messages_are_withdrawn(self):
        array = numpy.zeros(4)
        with gradcube.Session(self.socket, job="hold") as session:
            for call in (
                lambda: session.recv(array, 1, tag=3, timeout=0.05),
                lambda: session.send(array, 1, tag=3, timeout=0.05),
                lambda: session.recv_bytes(4, 1, tag=3, timeout=0.05),
            ):
                with self.assertRaisesRegex(gradcube.TimeoutError, "with tag 3 is not done after .* it was withdrawn"):
                    call()
            request = session.recv_async(array, 1)
            request.cancel()
            request.cancel()
            for _ in range(2):
                with self.assertRaisesRegex(gradcube.CanceledError, "it has taken nothing"):
                    request.wait(timeout=60)
            with self.assertRaisesRegex(gradcube.InvalidError, "is no message"):
                session.barrier_async().cancel()
            session.send_async(array, 1)  # which belongs to nobody else
            self.release()
        with gradcube.Session(self.socket, job="job") as session:
            request = session.recv_async(array, 1, tag=8)
            request.wait(timeout=60)
            request.cancel()
            self.assertEqual(request.received, 8)

    def test_a_failure_can_be_brought_to_another_process(self):
        with gradcube.Session(self.socket, job="hold") as session:
            with self.assertRaises(gradcube.TimeoutError) as caught:
                session.allreduce(numpy.ones(9), timeout=0.05)
            self.assertIsNotNone(caught.exception.request)
            brought = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual((str(brought), brought.request), (str(caught.exception), None))

    def test_control_c_withdraws_a_receive(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = session.alloc(4)
            self.interrupted(lambda: session.recv(array, 1))
            self.wait_for(lambda: session._reap_abandoned(1) or not session._abandoned)
            with self.assertRaises(gradcube.TimeoutError):
                session.recv(array, 1, timeout=0.05)

    def test_what_cannot_be_is_refused(self):
        with gradcube.Session(self.socket, job="job") as session:
            for call in (
                lambda: session.allgather(numpy.ones(SIZE + 1)),
                lambda: session.reduce_scatter(numpy.ones(SIZE - 1)),
                lambda: session.broadcast(numpy.ones(1), root=SIZE),
                lambda: session.broadcast(numpy.ones(1), root=-1),
                lambda: session.reduce(numpy.ones(1), root=1.5),
                lambda: session.allreduce(numpy.ones(1), lane=1),
                lambda: session.allreduce(numpy.ones(1), lane=1 << 32),
                lambda: session.allreduce(numpy.ones(1, "int8"), op="average"),
                lambda: session.barrier(lane="0"),
            ):
                with self.assertRaises(gradcube.InvalidError):
                    call()

    def test_lanes_and_other_wishes_are_accepted(self):
        wishes = {"lanes": [None, ("bml", 3), "ring"], "weight": 2, "rank": 1, "members": [4, numpy.int32(2)]}
        with gradcube.Session(self.socket, job="job", **wishes) as session:
            session.barrier(lane=2, timeout=60)
            session.compare(b"the same everywhere", lane=2, timeout=60)
            with self.assertRaises(gradcube.InvalidError):
                session.barrier(lane=3)
        gradcube.Session(self.socket, job="job", algorithm="ring").close()

    def test_wishes_that_cannot_be_are_refused(self):
        for wishes in (
            {"algorithm": 7},
            {"algorithm": "x" * 56},
            {"algorithm": "a\0b"},
            {"algorithm": "a", "lanes": ["a"]},
            {"lanes": []},
            {"lanes": ["a"] * 9},
            {"lanes": "ab"},
            {"lanes": [("a", "b")]},
            {"lanes": [7]},
            {"weight": 0},
            {"weight": 1 << 32},
            {"weight": None},
            {"rank": -1},
            {"rank": 65536},
            {"reproducible": 1},
            {"reproducible": None},
            {"members": []},
            {"members": [1, 1]},
            {"members": [-1]},
            {"members": 3},
        ):
            with self.assertRaises(gradcube.InvalidError, msg=repr(wishes)):
                gradcube.Session(self.socket, job="job", **wishes)


class ThreadsTest(WithControlC):
    def test_threads_share_a_session(self):
        with gradcube.Session(self.socket, job="slow") as session:
            failures = []

            def work(number):
                try:
                    for _ in range(10):
                        array = session.alloc(100)
                        array[:] = number
                        session.allreduce(array, timeout=60)
                        self.assertEqual(array[99], SIZE * number)
                except Exception as failure:
                    failures.append(failure)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_several_threads_may_wait_for_one_request(self):
        with gradcube.Session(self.socket, job="hold") as session:
            request = session.allreduce_async(numpy.ones(10))
            ended = []
            threads = [threading.Thread(target=lambda: ended.append(request.wait(60))) for _ in range(4)]
            for thread in threads:
                thread.start()
            self.release()
            for thread in threads:
                thread.join()
            self.assertEqual(ended, [None] * 4)

    def test_a_handler_of_a_signal_may_wait_for_what_the_program_waits_for(self):
        with gradcube.Session(self.socket, job="hold") as session:
            request, said = session.allreduce_async(numpy.ones(10)), []

            def handler(*_):
                for timeout in (0.2, 60):
                    try:
                        said.append(request.wait(timeout))
                    except gradcube.TimeoutError as late:
                        said.append(type(late))
                    self.release()

            self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, handler))
            sender = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
            sender.start()
            request.wait(timeout=60)
            sender.join()
            self.assertEqual(said, [gradcube.TimeoutError, None])

    def test_a_child_is_refused_though_another_thread_waited_at_the_fork(self):
        with gradcube.Session(self.socket, job="hold") as session:
            request = session.allreduce_async(numpy.ones(10))
            waiter = threading.Thread(target=request.wait)
            waiter.start()
            self.wait_for(lambda: not request._lock.acquire(False) or request._lock.release())
            child = os.fork()
            if child == 0:
                try:
                    request.wait(timeout=0.2)
                except gradcube.InvalidError as refusal:
                    os._exit(0 if "belongs to process" in str(refusal) else 1)
                finally:
                    os._exit(1)
            killer = threading.Timer(30, os.kill, (child, signal.SIGKILL))  # one that hangs
            killer.start()
            _, status = os.waitpid(child, 0)
            killer.cancel()
            self.assertEqual(status, 0)
            self.release()
            waiter.join()

    def test_an_abort_ends_the_waits_of_other_threads(self):
        with gradcube.Session(self.socket, job="hold") as session:
            request = session.allreduce_async(session.alloc(10))
            aborter = threading.Timer(0.1, session.abort)
            aborter.start()
            with self.assertRaises(gradcube.AbortedError):
                request.wait(timeout=60)
            aborter.join()
            with self.assertRaises(gradcube.AbortedError):
                session.barrier()
        self.wait_for(lambda: self.ask(b"a") == 1)
        self.assertEqual(self.leaves(), 0)

    def test_control_c_ends_the_wait_of_the_main_thread_beside_another(self):
        with gradcube.Session(self.socket, job="hold") as session:
            first, second = (session.allreduce_async(session.alloc(10)) for _ in range(2))
            other = threading.Thread(target=first.wait)
            other.start()
            self.interrupted(second.wait)
            self.release()
            other.join()

    def test_a_session_that_is_being_opened_is_not_asked_by_other_threads(self):
        made = []

        def make(late):
            check_late([(1, 1, True)])
            made.append(late)
            late._requests, late._ended = {}, set()

        with mock.patch.object(LateMemory, "__init__", make):
            gradcube.Session(self.socket, job="job").close()
        self.assertTrue(made)

    def test_control_c_in_a_checkpoint_keeps_the_hub_until_that_call_has_ended(self):
        with gradcube.Session(self.socket, job="unheard") as session:
            hub = gradcube.Hub(session, {"fc": numpy.ones(10, "float32")}, timeout=60)
            hub.begin_checkpoint(os.path.join(self.directory.name, "model.hub"), 1)
            self.interrupted(hub.end_checkpoint, "wait", lambda: self.ask(b"g"))
            with self.assertRaisesRegex(gradcube.AgainError, "another thread"):
                hub.free(0.3)
            self.release()
            hub.free(60)

    def test_a_session_and_its_memory_are_not_copied(self):
        with gradcube.Session(self.socket, job="job") as session:
            array = session.alloc(8)
            for call in (copy.copy, copy.deepcopy, pickle.dumps):
                for each, why in ((session, "open one there"), (array.base, "copy that")):
                    with self.assertRaisesRegex(TypeError, why):
                        call(each)
                call(array)
            session.allreduce(array, timeout=60)
            self.assertFalse(numpy.shares_memory(array, session.alloc(8)))

    def test_a_hub_that_could_not_be_restored_makes_room_for_another(self):
        weights = {"fc": numpy.ones(10, "float32")}
        path = os.path.join(self.directory.name, "model.hub")
        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, weights, timeout=60)
            hub.checkpoint(path, 1, 60)
            hub.free(60)
            (file,) = (one for one in os.listdir(self.directory.name) if one.startswith("model.hub"))
            with open(os.path.join(self.directory.name, file), "r+b") as damaged:
                damaged.seek(-8, os.SEEK_END)
                damaged.write(b"xxxx")
            failures = []  # which have the frame of the constructor, and so the hub that was not made
            for _ in range(2):
                with self.assertRaisesRegex(gradcube.InvalidError, "checksum") as caught:
                    gradcube.Hub(session, weights, restore=path, timeout=60)
                failures.append(caught.exception)
            gradcube.Hub(session, weights, timeout=60).free(60)

    def test_an_aggregator_is_a_number_or_some_of_any_type_that_are_whole(self):
        weights = {"fc": numpy.ones(10, "float32")}
        wrong = ([], (), numpy.array([], int), "7", "78", "", b"\x07", bytearray(b"\x07"), 8.0, numpy.array(8.0), ["7"])
        with gradcube.Session(self.socket, job="job") as session:
            for aggregator in (*wrong, [7, None], [[7]], -1, [1 << 16], object()):
                with self.subTest(aggregator=aggregator), self.assertRaisesRegex(gradcube.InvalidError, "aggregator"):
                    gradcube.Hub(session, weights, aggregator=aggregator, timeout=60)
            for aggregator in (7, numpy.array(7), numpy.int64(7), [7], numpy.array([7, 8]), {7, 8}, iter((7, 8)), None):
                with self.subTest(aggregator=aggregator):
                    gradcube.Hub(session, weights, aggregator=aggregator, timeout=60).free(60)

    def test_arrays_of_weights_that_are_not_set_in_time_are_refused_until_they_are(self):
        arrays = {name: numpy.full(10, 7, "float32") for name in ("first", "second", "third")}
        with gradcube.Session(self.socket, job="job") as session:
            hub = gradcube.Hub(session, arrays, timeout=60)
            native = session._handle.native
            session._handle.native = NeverEnds(session._handle)
            with self.assertRaises(gradcube.TimeoutError):
                hub.set_weights(arrays, timeout=0)
            for name, array in arrays.items():
                with self.subTest(name=name), self.assertRaisesRegex(gradcube.AgainError, "being pushed"):
                    hub.pull(name, array)
            session._handle.native = native
            self.wait_for(lambda: session._reap_abandoned(3) or not session._abandoned)
            for name in ("second", "third"):
                hub.pull(name, arrays[name])
            hub.free(60)

    def test_select_sees_the_end_of_requests(self):
        with gradcube.Session(self.socket, job="hold") as session:
            requests = [session.allreduce_async(session.alloc(10)) for _ in range(3)]
            self.assertEqual(select.select([session], [], [], 0)[0], [])
            self.release()
            while requests:
                self.assertEqual(select.select([session], [], [], 60)[0], [session])
                requests = [request for request in requests if not request.test()]
            self.assertEqual(select.select([session], [], [], 0)[0], [])

    def test_asyncio_sees_the_end_of_requests(self):
        async def reduce(session, array):
            loop = asyncio.get_running_loop()
            request, ended = session.allreduce_async(array), loop.create_future()

            def look():
                if request.test() and not ended.done():
                    ended.set_result(None)

            loop.add_reader(session, look)
            try:
                await asyncio.wait_for(ended, 60)
            finally:
                loop.remove_reader(session)

        with gradcube.Session(self.socket, job="slow") as session:
            array = session.alloc(10)
            array[:] = 1
            asyncio.run(reduce(session, array))
            self.assertEqual(array[9], SIZE)


if __name__ == "__main__":
    unittest.main()
