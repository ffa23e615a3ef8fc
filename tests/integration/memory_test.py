"""What the trainers' shared memory may cost: by trainers that mean harm, and by those that want too much."""

import ctypes
import errno
import fcntl
import mmap
import os

import gradcube
import numpy

import raw_session
from fabrics import PATIENCE, only_on
from harness import Clockwork, Cluster, TestCase, WithACluster, all_of, job, main, wait_until
from raw_session import HEAP, RawSession

ENOMEM = -2
EPROTOCOL = -8
MADV_REMOVE = 9


class HostileMemory(WithACluster):
    """Trainers whose shared memory is not what the library would make it."""

    GIGABYTES = 8 << 30

    def daemon_bytes(self):
        with open(f"/proc/{self.daemon}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    def test_gigabytes_that_nobody_touched(self):
        """Submitted, or reported as touched: the daemon takes no memory for them."""
        with Clockwork(self.cluster) as other:
            before = self.daemon_bytes()
            for size in (self.GIGABYTES, 1 << 22):
                with job(self.cluster, "greed", self.others) as sessions:
                    with RawSession(self.path, "greed", heap_bytes=self.GIGABYTES) as culprit:
                        answer = culprit.grow(HEAP + size)
                        self.assertLess(answer.code, 0)
                        requests = [session.allreduce_async(numpy.ones(5000, "float32")) for session in sessions]
                        culprit.put(count=size // 4)
                        code, text = culprit.farewell()
                        self.assertEqual(code, EPROTOCOL)
                        self.assertIn("daemon has confirmed", text)
                        for failure in all_of(lambda request: request.wait(PATIENCE), requests):
                            self.assert_fails(gradcube.PeerError, failure, "[1,1]")
            grown = self.daemon_bytes() - before
            self.assertLess(grown, 64 << 20)
        self.assert_undisturbed(other)

    def test_a_quota_that_reports_do_not_exceed(self):
        quota = self.cluster.status()["memory"]["trainer_quota_bytes"]
        with RawSession(self.path, "rich", heap_bytes=1 << 40) as culprit:
            too_much = HEAP + quota // mmap.PAGESIZE * mmap.PAGESIZE + (1 << 20)
            answer = culprit.grow(HEAP + (1 << 20), wanted=too_much)
            self.assertEqual(answer.code, ENOMEM)
            self.assertIn("--trainer-memory", answer.text)

    def test_holes_and_cuts_that_the_kernel_refuses(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        keep_size, punch_hole = 1, 2
        with Clockwork(self.cluster) as other, RawSession(self.path, "holes") as culprit:
            for _ in range(1000):
                for offset, length in ((0, 4096), (HEAP, 1 << 20)):
                    self.assertEqual(libc.fallocate(culprit.file, keep_size | punch_hole, offset, length), -1)
                    self.assertEqual(ctypes.get_errno(), errno.EPERM)
            for size in (0, HEAP, 1 << 30):
                self.assertRaises(PermissionError, os.ftruncate, culprit.file, size)
            self.assertRaises(OSError, culprit.memory.madvise, MADV_REMOVE, HEAP, 1 << 20)
            self.assertRaises(PermissionError, mmap.mmap, culprit.file, 0)
        self.assert_undisturbed(other)

    def test_memory_that_is_not_sealed(self):
        for seals in (None, 0x10, 0x17 & ~0x10, 0x17 & ~1):
            with raw_session.connect(self.path) as connection:
                connection.send(raw_session.hello("unsealed"))
                _, file = raw_session.receive_descriptor(connection, raw_session.OFFER)
                if seals is not None:
                    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
                os.close(file)
                connection.send(raw_session.bare(raw_session.MAPPED))
                notice = raw_session.read_notice(connection.recv(4096))
                self.assertEqual((notice.kind, notice.code), (raw_session.REFUSED, EPROTOCOL))
                self.assertIn("sealed", notice.text)

    def test_reports_without_end_of_memory_that_is_not_there(self):
        with Clockwork(self.cluster) as other:
            with RawSession(self.path, "liar", heap_bytes=self.GIGABYTES) as culprit:
                lie = lambda: self.assertLess(culprit.grow(HEAP + (self.GIGABYTES >> 2)).code, 0)
                self.assertTrue(other.goes_on_beside(lie), "the other job stood still")
        self.assert_undisturbed(other)


@only_on("embedded", why="daemons of one server each divide the quota")
class Quota(TestCase):
    def test_refuses_what_is_too_large_as_a_whole_before_any_of_it_is_touched(self):
        with Cluster("--topology", "star:2", "--trainer-memory", "1200M") as cluster:
            with job(cluster, "large") as sessions:
                with self.assertRaises(gradcube.MemoryFullError) as refusal:
                    sessions[0].alloc(2_000_000_000, "uint8")
                self.assertIn("asked for 2.00", str(refusal.exception))
                self.assertEqual(cluster.status()["memory"]["users"], [])
                sessions[1].alloc(1000, "uint8")

    def test_of_a_user_is_shared_by_its_trainers_and_shown(self):
        with Cluster("--topology", "star:2", "--trainer-memory", "24Mi") as cluster:
            with job(cluster, "quota") as sessions:
                first = sessions[0].alloc(4 << 20, "float32")
                with self.assertRaises(gradcube.MemoryFullError) as refusal:
                    sessions[1].alloc(4 << 20, "float32")
                for word in ("user", "25.165824M", "--trainer-memory"):
                    self.assertIn(word, str(refusal.exception))
                memory = cluster.status()["memory"]
                self.assertEqual(memory["trainer_quota_bytes"], 24 << 20)
                self.assertEqual([user["uid"] for user in memory["users"]], [os.getuid()])
                used = memory["users"][0]["bytes"]
                self.assertGreaterEqual(used, first.nbytes)
                trainers = cluster.job("quota")["trainers"]
                self.assertEqual(sum(trainer["heap_bytes"] for trainer in trainers), used)
                # What is left can be used, and collectives run in it.
                buffers = [first[:1000], sessions[1].alloc(1000, "float32")]
                for buffer in buffers:
                    buffer[:] = 1
                pairs = list(zip(sessions, buffers))
                self.assertEqual(all_of(lambda pair: pair[0].allreduce(pair[1], timeout=PATIENCE), pairs), [None, None])
                self.assertEqual([float(buffer[0]) for buffer in buffers], [2.0, 2.0])
            wait_until(lambda: cluster.status()["memory"]["users"] == [], "the memory to be given back")
            self.assert_works(cluster)


if __name__ == "__main__":
    main()
