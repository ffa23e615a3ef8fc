"""The Python package against the fake daemon: sessions, memory and failures.

Usage: python_test.py FAKE_DAEMON. The package and the library are found through PYTHONPATH and GRADCUBE_LIBRARY.
"""

import gc
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

from python_control_c import WithControlC
from python_daemon import FAKE_DAEMON, RANK, SIZE, WithDaemon

import gradcube
import numpy
from gradcube._library import library


class SessionTest(WithDaemon):
    def test_rank_and_size_are_the_daemons(self):
        with gradcube.Session(self.socket, job="job") as session:
            self.assertEqual((session.rank, session.size, session.server), (RANK, SIZE, 5))

    def test_the_only_server_of_the_run_directory_is_found(self):
        os.environ["GRADCUBE_RUN"] = self.directory.name
        self.addCleanup(os.environ.pop, "GRADCUBE_RUN")
        gradcube.Session(job="job").close()

    def test_every_type_is_allocated_and_reduced_in_place(self):
        with gradcube.Session(self.socket, job="job") as session:
            for name in ("float32", "float64", "int32", "int64", "int16", "int8", "uint8"):
                array = session.alloc((3, 5), name)
                self.assertEqual((array.shape, array.dtype.name), ((3, 5), name))
                self.assertEqual(array.ctypes.data % 64, 0)
                self.assertTrue((array == 0).all())
                array[:] = 2
                session.allreduce(array, op="sum")
                self.assertTrue((array == 2 * SIZE).all())
                session.allreduce(array, op="average" if array.itemsize >= 4 else "min")
                self.assertTrue((array == 2 * SIZE).all())
            half = session.alloc(10, numpy.float16)
            session.allreduce(half, op="max")
            bits = session.alloc(10, "bfloat16")
            self.assertEqual(bits.dtype, numpy.uint16)
            session.allreduce(bits, op="min", dtype="bfloat16")
            session.barrier()

    def test_foreign_arrays_and_views_are_staged(self):
        with gradcube.Session(self.socket, job="job") as session:
            foreign = numpy.ones((4, 4))
            session.allreduce(foreign)
            self.assertTrue((foreign == SIZE).all())
            shared = session.alloc(100)
            shared[:] = 1
            session.allreduce(shared[1:99])
            self.assertEqual((shared[0], shared[1], shared[98], shared[99]), (1, SIZE, SIZE, 1))

    def test_unfit_arrays_are_refused(self):
        with gradcube.Session(self.socket, job="job") as session:
            strided = numpy.ones((4, 4))[:, ::2]
            frozen = numpy.ones(4)
            frozen.flags.writeable = False
            for array in (strided, frozen, numpy.ones(4, ">f4"), numpy.ones(4, "uint16"), [1.0]):
                with self.assertRaises(gradcube.InvalidError):
                    session.allreduce(array)
            with self.assertRaises(ValueError):
                session.allreduce(numpy.ones(4), op="product")
            with self.assertRaises(ValueError):
                session.allreduce(numpy.ones(4), dtype="float32")
            with self.assertRaises(ValueError):
                session.alloc(4, "U8")

    def test_memory_returns_when_the_array_is_collected_not_before(self):
        with gradcube.Session(self.socket, job="job") as session:
            for _ in range(10):
                array = session.alloc(10 << 20, "float32")  # 40 of 64 MiB
                view = array[100:]
                del array
                gc.collect()
                with self.assertRaises(gradcube.MemoryFullError):
                    session.alloc(10 << 20, "float32")
                del view

    def test_arrays_outlive_their_session(self):
        session = gradcube.Session(self.socket, job="job")
        array = session.alloc(1000)
        session.close()
        session.close()
        del session
        gc.collect()
        array[:] = 3
        self.assertEqual(array.sum(), 3000)

    def test_a_collected_session_leaves_at_once_though_its_arrays_live(self):
        session = gradcube.Session(self.socket, job="job")
        array = session.alloc(1000)
        del session
        gc.collect()
        self.assert_leaves(1)
        array[:] = 3
        self.assertEqual(array.sum(), 3000)

    def test_a_session_that_could_not_be_opened_is_collected_quietly(self):
        with self.assertRaises(gradcube.JobError):
            gradcube.Session(self.socket, job="refuse")
        gc.collect()
        self.assertEqual(self.leaves(), 0)

    def test_the_version_is_that_of_the_library(self):
        major, minor, patch = (int(part) for part in gradcube.__version__.split("."))
        self.assertEqual(library().gradcube_version(), major * 10000 + minor * 100 + patch)

    def test_invalid_jobs_are_refused(self):
        for job in ("a\0b", "a b", "", "x" * 64, "\udc80"):
            with self.assertRaises(gradcube.JobError, msg=repr(job)):
                gradcube.Session(self.socket, job=job)
        for job in (None, 7, b"job"):
            with self.assertRaises(gradcube.InvalidError, msg=repr(job)):
                gradcube.Session(self.socket, job=job)

    def test_invalid_sockets_are_refused(self):
        for socket in (7, 2.5, [self.socket], self.socket + "\0"):
            with self.assertRaises(gradcube.InvalidError, msg=repr(socket)):
                gradcube.Session(socket, job="job")
        gradcube.Session(pathlib.Path(self.socket), job="job").close()

    def test_invalid_shapes_and_types_are_refused(self):
        with gradcube.Session(self.socket, job="job") as session:
            for shape in (2.5, (2, 2.5), "3", None, -1, (3, -1), 1 << 62, {"a": 1}):
                with self.assertRaises(gradcube.InvalidError, msg=repr(shape)):
                    session.alloc(shape)
            for dtype in ("nonsense", object(), 7, "U8"):
                with self.assertRaises(gradcube.InvalidError, msg=repr(dtype)):
                    session.alloc(3, dtype)
            for shape in (3, numpy.int64(3), [3], (numpy.int32(1), 3), numpy.array([3, 1])):
                self.assertEqual(session.alloc(shape).size, 3)
            self.assertEqual(session.alloc(()).shape, ())

    def test_invalid_operations_and_types_of_a_collective_are_refused(self):
        with gradcube.Session(self.socket, job="job") as session:
            for op in (None, 7, ["sum"], "product"):
                with self.assertRaises(gradcube.InvalidError, msg=repr(op)):
                    session.allreduce(numpy.ones(4), op=op)
            for dtype in ("nonsense", 7, object(), "float32"):
                with self.assertRaises(gradcube.InvalidError, msg=repr(dtype)):
                    session.allreduce(numpy.ones(4), dtype=dtype)
            for dtype in ("float64", numpy.float64, numpy.dtype("float64")):
                session.allreduce(numpy.ones(4), dtype=dtype)

    def test_a_closed_session_says_so(self):
        session = gradcube.Session(self.socket, job="hold")
        request = session.allreduce_async(session.alloc(10))
        session.close()
        for call in (request.wait, lambda: session.alloc(1), session.barrier):
            with self.assertRaises(gradcube.InvalidError):
                call()

    def test_requests_run_side_by_side_and_end_once_released(self):
        with gradcube.Session(self.socket, job="hold") as session:
            arrays = [session.alloc(10) for _ in range(1024)]
            requests = []
            for i, array in enumerate(arrays):
                array[:] = i
                requests.append(session.allreduce_async(array))
            self.assertFalse(requests[0].test())
            with self.assertRaises(gradcube.AgainError):
                session.allreduce_async(session.alloc(1))
            self.release()
            for i, request in reversed(list(enumerate(requests))):
                request.wait(timeout=60)
                request.wait()
                self.assertTrue(request.test())
                self.assertEqual(arrays[i][9], SIZE * i)

    def test_forgotten_requests_make_room(self):
        with gradcube.Session(self.socket, job="job") as session:
            for _ in range(3000):
                try:
                    session.allreduce_async(numpy.ones(10))
                except gradcube.AgainError:
                    time.sleep(0.001)  # the daemon has all 1,024 still

    def test_what_has_ended_and_nobody_keeps_is_freed(self):
        with gradcube.Session(self.socket, job="poor") as session:  # 4 MiB
            arrays = []
            for _ in range(20):
                array = numpy.ones(1 << 18, "float32")
                arrays.append(weakref.ref(array))
                session.allreduce_async(array)
                del array
                session.barrier(timeout=60)
            self.assertLess(sum(array() is not None for array in arrays), 3)
            session.allreduce_async(numpy.ones(3 << 18, "float32"))
            session.barrier(timeout=60)
            session.alloc(3 << 18)


class FailureTest(WithControlC):
    def test_a_timeout_says_who_is_missing_and_the_request_goes_on(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = session.alloc(10)
            array[:] = 1
            request = session.allreduce_async(array)
            with self.assertRaisesRegex(gradcube.TimeoutError, "have not submitted"):
                request.wait(timeout=0.25)
            with self.assertRaises(TimeoutError):
                request.wait(timeout=0)
            self.release()
            request.wait(timeout=60)
            self.assertEqual(array[0], SIZE)

    def test_a_timeout_names_the_time_that_was_waited(self):
        with gradcube.Session(self.socket, job="hold") as session:
            with self.assertRaises(gradcube.TimeoutError) as caught:
                session.allreduce(session.alloc(10), timeout=0.2)
            waited = re.match(r"not done after (\d+) ms: ", str(caught.exception))
            self.assertIsNotNone(waited, str(caught.exception))
            self.assertGreaterEqual(int(waited[1]), 100)  # the first of its short waits at least
            self.assertLessEqual(int(waited[1]), 201)
            self.assertIn("it goes on, and this error's .request waits for it", str(caught.exception))

    def test_memory_of_a_call_whose_time_was_up_is_refused_until_it_was_waited_for(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array, other = numpy.ones(10), session.alloc(10)
            with self.assertRaises(gradcube.TimeoutError) as caught:
                session.allreduce(array, timeout=0.2)
            request = caught.exception.request
            with self.assertRaises(gradcube.TimeoutError):
                session.send_async(other, 1).wait(timeout=0)
            session.send_async(other, 1)  # both only read it
            with self.assertRaisesRegex(gradcube.InvalidError, r"request \d+, whose time was up"):
                session.recv(other, 1)
            self.release()
            session.barrier(timeout=60)
            array[:] = 5
            for call in (
                lambda: session.allreduce(array),
                lambda: session.broadcast(array[9:], root=1),
                lambda: session.send(array, 1),
                lambda: session.compare(array),
            ):
                with self.assertRaisesRegex(gradcube.InvalidError, r"request \d+, whose time was up"):
                    call()
            request.wait(timeout=60)
            self.assertEqual(array[0], SIZE)
            array[:] = 5
            session.allreduce(array, timeout=60)
            self.assertEqual(array[0], 5 * SIZE)

    def test_memory_of_a_call_whose_time_was_up_is_no_other_arrays_where_nobody_waits(self):
        with gradcube.Session(self.socket, job="hold") as session:
            late = weakref.ref(array := numpy.ones(10))
            with self.assertRaises(gradcube.TimeoutError):
                session.allreduce(array, timeout=0.05)
            del array
            self.release()
            session.barrier(timeout=60)
            self.wait_for(lambda: session._reap_abandoned(1) or not session._abandoned)
            gc.collect()
            self.assertIsNotNone(late())
            session.close()
            gc.collect()
            self.assertIsNone(late())

    def test_a_negative_timeout_means_no_limit(self):
        with gradcube.Session(self.socket, job="hold") as session:
            releaser = threading.Timer(0.2, self.release)
            releaser.start()
            session.allreduce(session.alloc(10), timeout=-1)
            releaser.join()
            session.barrier(timeout=float("-inf"))
            session.barrier(timeout=float("inf"))

    def test_invalid_timeouts_are_refused_before_anything_is_submitted(self):
        with gradcube.Session(self.socket, job="job") as session:
            for timeout in (float("nan"), "soon", [1], object()):
                with self.assertRaises(gradcube.InvalidError, msg=repr(timeout)):
                    session.barrier(timeout=timeout)
            request = session.allreduce_async(session.alloc(1))
            with self.assertRaises(gradcube.InvalidError):
                request.wait(timeout=float("nan"))
            request.wait()
            self.assertEqual(request._number.value, 1)

    @staticmethod
    def refusals(session, request):
        """What each kind of call on the session says."""
        said = []
        for call in (
            lambda: session.alloc(1),
            lambda: session.barrier(timeout=5),
            lambda: request.wait(timeout=5),
            request.test,
        ):
            try:
                call()
                said.append("done")
            except gradcube.InvalidError as error:
                said.append(str(error))
        return said

    def test_a_forked_child_is_refused_and_its_parent_goes_on(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = session.alloc(10)
            array[:] = 1
            request = session.allreduce_async(array)
            ours, theirs = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.write(theirs, json.dumps(self.refusals(session, request)).encode())
                    session.close()
                finally:
                    os._exit(0)
            os.close(theirs)
            with open(ours, "rb") as pipe:
                said = json.loads(pipe.read())
            os.waitpid(child, 0)
            self.assertEqual(said, [f"this session belongs to process {os.getpid()}; open one in the child"] * 4)
            self.release()
            request.wait(timeout=60)
            self.assertEqual(array[9], SIZE)
            session.allreduce(array)
            self.assertEqual(array[9], SIZE * SIZE)
            self.assertEqual(self.leaves(), 0)

    def test_a_failure_is_the_exception_of_its_code(self):
        with gradcube.Session(self.socket, job="fail") as session:
            request = session.allreduce_async(numpy.ones(10))
            for _ in range(2):
                with self.assertRaisesRegex(gradcube.PeerError, "died") as caught:
                    request.wait()
                self.assertEqual(caught.exception.code, -6)

    def test_a_refused_job(self):
        with self.assertRaisesRegex(gradcube.JobError, "taken"):
            gradcube.Session(self.socket, job="refuse")

    def test_a_daemon_that_dies_ends_the_wait(self):
        with gradcube.Session(self.socket, job="hold") as session:
            request = session.allreduce_async(session.alloc(10))
            stopper = threading.Timer(0.2, self.daemon.kill)
            stopper.start()
            with self.assertRaises(gradcube.NoDaemonError):
                request.wait()
            stopper.join()

    def test_no_daemon(self):
        missing = os.path.join(self.directory.name, "server-0-0.sock")
        with self.assertRaisesRegex(gradcube.NoDaemonError, "gradcube up"):
            gradcube.Session(missing)
        with self.assertRaises(ConnectionError):
            gradcube.Session(missing)

    def test_control_c_ends_a_wait(self):
        with gradcube.Session(self.socket, job="hold") as session:
            array = session.alloc(10)
            self.interrupted(lambda: session.allreduce(array))
            self.release()


class DigitsTest(unittest.TestCase):
    EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "trainer" / "examples"

    @unittest.skipUnless(
        importlib.util.find_spec("torch") and importlib.util.find_spec("sklearn"), "needs PyTorch and scikit-learn"
    )
    def test_a_job_of_one_trains_to_the_same_bits_as_without_gradcube(self):
        with tempfile.TemporaryDirectory(prefix="gradcube-") as directory:
            socket = os.path.join(directory, "server-0-0.sock")
            results = []
            with subprocess.Popen(
                [FAKE_DAEMON, socket, "0", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as daemon:
                self.assertEqual(daemon.stdout.readline(), b"ready\n")
                for way in (["--socket", socket], ["--alone", "1"]):
                    output = os.path.join(directory, "result.json")
                    command = [sys.executable, str(self.EXAMPLES / "digits.py"), "--steps", "20", "--output", output]
                    subprocess.run(command + way, check=True, stdout=subprocess.DEVNULL)
                    results.append(json.loads(pathlib.Path(output).read_text()))
            self.assertEqual(results[0]["sha256"], results[1]["sha256"])
            self.assertEqual(len(results[0]["steps"]), 20)


if __name__ == "__main__":
    unittest.main()
