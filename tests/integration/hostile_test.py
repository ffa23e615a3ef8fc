"""Trainers and clients that mean harm: their session is closed, and nobody else notices."""

import contextlib
import json
import mmap
import os
import random
import select
import socket
import struct
import subprocess
import threading

import gradcube
import numpy

import raw_session
from fabrics import PATIENCE, RADIX, SERVERS, needs_many_servers, rounds, some
from harness import Clockwork, Cluster, TestCase, WithACluster, all_of, job, main, wait_until
from raw_session import HEAP, RECEIVE, RING_ENTRIES, SEND, SUBMISSION_ENTRIES, RawSession

EPROTOCOL = -8
EPEER = -6
HUGE = (1 << 64) - 1


@contextlib.contextmanager
def inquirers(cluster, name, count):
    """`count` trainers of a complete job, each a process that asks until it is killed (clients/inquirer.cc)."""
    sockets = cluster.sockets()
    with contextlib.ExitStack() as stack:
        for path in sockets[count:]:
            stack.enter_context(RawSession(path, name))
        yield [stack.enter_context(inquirer(path, name)) for path in sockets[:count]]


@contextlib.contextmanager
def inquirer(path, name):
    process = subprocess.Popen(
        [os.environ["GRADCUBE_INQUIRER"], "1000000", path, name, "1"], stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdout.readline() != "joined\n":
            raise AssertionError("it could not join")
        yield process
    finally:
        process.kill()
        process.communicate()


class HostileTrainer(WithACluster):
    def check_closed(self, crime, *words):
        """Does the crime in a job that waits for others, and in one that is complete."""
        for others in ([], self.others):
            with job(self.cluster, "victims", others) as sessions, RawSession(self.path, "victims") as culprit:
                requests = [session.allreduce_async(numpy.ones(5000, "float32")) for session in sessions]
                crime(culprit)
                said = culprit.farewell()
                self.assertIsNotNone(said, "closed without a word")
                self.assertEqual(said[0], EPROTOCOL)
                for word in words:
                    self.assertIn(word, said[1])
                for failure in all_of(lambda request: request.wait(PATIENCE), requests):
                    self.assert_fails(gradcube.PeerError, failure, "[1,1]", *words)
            wait_until(lambda: self.cluster.job("victims") is None, "the job to be forgotten")

    def test_a_tail_far_ahead(self):
        def crime(culprit):
            culprit.set_word(raw_session.SUBMISSION_TAIL, SUBMISSION_ENTRIES + 1)
            culprit.ring()

        self.check_closed(crime, "tail is out of range")

    def test_a_tail_that_goes_back(self):
        def crime(culprit):
            culprit.set_word(raw_session.SUBMISSION_TAIL, -1)
            culprit.ring()

        self.check_closed(crime, "tail is out of range")

    def test_a_completion_head_ahead_of_the_tail(self):
        def crime(culprit):
            culprit.set_word(raw_session.COMPLETION_HEAD, 1)
            culprit.put()

        self.check_closed(crime, "head is out of range")

    def test_an_unknown_type(self):
        self.check_closed(lambda culprit: culprit.put(dtype=9), "element type")

    def test_an_unknown_operation(self):
        self.check_closed(lambda culprit: culprit.put(op=255), "operation")

    def test_an_operation_that_does_not_fit_its_type(self):
        for dtype, op in some(((6, 1), (7, 1), (8, 0)), 1):  # averages of int8 and uint8, a sum of bytes
            with self.subTest(dtype=dtype, op=op):
                self.check_closed(lambda culprit: culprit.put(dtype=dtype, op=op), "does not fit its element type")

    def test_an_unknown_kind(self):
        self.check_closed(lambda culprit: culprit.put(kind=6), "kind")

    def test_a_submission_that_is_nothing(self):
        self.check_closed(lambda culprit: culprit.put(submission=4), "unknown type")

    def test_messages_to_nobody_and_outside_the_heap(self):
        end = HEAP + (1 << 20)
        for direction in (SEND, RECEIVE):
            for fields, words in some((
                ({"peer": SERVERS}, "none of its job"),
                ({"peer": HUGE % (1 << 32)}, "none of its job"),
                ({"offset": end - 64, "count": 65}, "outside its heap"),
                ({"offset": HEAP, "count": HUGE}, "outside its heap"),
                ({"offset": 64, "count": 0}, "outside its heap"),
            )):
                message = {"peer": 0, **fields}
                with self.subTest(direction=direction, **fields):
                    self.check_closed(lambda culprit: culprit.put_message(direction, **message), words)

    def test_buffers_outside_the_heap(self):
        end = HEAP + (1 << 20)
        for offset, count in some((
            (0, 1),  # the control words themselves
            (HEAP - 64, 1),
            (HEAP + 4, 1),
            (end, 1),
            (end - 64, 17),
            (HUGE - 63, 1),
            (HEAP, (1 << 18) + 1),
            (HEAP, HUGE),
            (HEAP, 1 << 62),  # whose bytes are none, modulo 2^64
            (end - 64, HUGE // 4),
        )):
            with self.subTest(offset=offset, count=count):
                self.check_closed(lambda culprit: culprit.put(offset=offset, count=count), "outside its heap")

    def test_random_bytes_over_all_control_pages(self):
        generator = random.Random(self.seed)
        sockets = self.cluster.sockets()
        with Clockwork(self.cluster) as other:
            for attempt in range(rounds(12, 6, deep=30)):
                server = generator.randrange(SERVERS)
                others = [] if attempt % 2 else [rank for rank in range(SERVERS) if rank != server]
                with contextlib.ExitStack() as stack:
                    sessions = stack.enter_context(job(self.cluster, "noise", others))
                    culprit = stack.enter_context(RawSession(sockets[server], "noise"))
                    requests = [session.allreduce_async(numpy.ones(700, "float32")) for session in sessions]
                    for _ in range(generator.randrange(3)):
                        culprit.put(count=700)
                    culprit.memory[: raw_session.CONTROL_PAGES] = generator.randbytes(raw_session.CONTROL_PAGES)
                    culprit.ring()
                    code, _ = culprit.farewell()
                    self.assertEqual(code, EPROTOCOL)
                    for result in all_of(lambda request: request.wait(PATIENCE), requests):
                        if result is not None:  # whose collective had ended before
                            self.assert_fails(gradcube.PeerError, result, self.address(server))
        self.assert_undisturbed(other)

    def address(self, server):
        return f"[{server // RADIX},{server % RADIX}]"

    def test_bits_flipped_while_collectives_run(self):
        """What is not the daemon's own to keep may hang or break the culprit's job, but nothing else."""
        generator = random.Random(self.seed)
        with Clockwork(self.cluster) as other:
            for _ in range(rounds(10, 3, deep=10)):
                with job(self.cluster, "flips", self.others) as sessions, RawSession(self.path, "flips") as culprit:
                    requests = [session.allreduce_async(numpy.ones(20000, "float32")) for session in sessions]
                    culprit.put(count=20000)
                    for _ in range(200):
                        where = generator.randrange(raw_session.CONTROL_PAGES)
                        culprit.memory[where] ^= 1 << generator.randrange(8)
                        culprit.ring()
                    culprit.socket.close()
                    for result in all_of(lambda request: request.wait(PATIENCE), requests):
                        if result is not None:
                            self.assert_fails(gradcube.PeerError, result)
        self.assert_undisturbed(other)

    def test_one_that_scribbles_over_its_gradients_spoils_only_its_own_job(self):
        with Clockwork(self.cluster) as other:
            with job(self.cluster, "scribble", self.others) as sessions, RawSession(self.path, "scribble") as culprit:
                stop = threading.Event()

                def scribble():
                    noise = random.Random(self.seed).randbytes(1 << 20)
                    while not stop.is_set():
                        culprit.memory[HEAP : HEAP + len(noise)] = noise

                scribbler = threading.Thread(target=scribble, daemon=True)
                scribbler.start()
                try:
                    for _ in range(8):
                        requests = [s.allreduce_async(numpy.ones(250000, "float32")) for s in sessions]
                        culprit.put(count=250000)
                        self.assertEqual(all_of(lambda request: request.wait(PATIENCE), requests), [None] * (SERVERS - 1))
                        self.assertEqual(culprit.completion()[1], 0)
                finally:
                    stop.set()
                    scribbler.join()
        self.assert_undisturbed(other)

    def test_a_doorbell_that_never_stops_ringing(self):
        with Clockwork(self.cluster) as other, RawSession(self.path, "bells") as culprit:
            noise = bytes(1 << 16)

            def ring():
                with contextlib.suppress(BlockingIOError):
                    culprit.doorbell.send(noise)

            self.assertTrue(other.goes_on_beside(ring), "the other job stood still")
        self.assert_undisturbed(other)

    def test_a_doorbell_that_is_closed(self):
        with job(self.cluster, "deaf", self.others) as sessions:
            with RawSession(self.path, "deaf") as culprit:
                culprit.doorbell.close()
                requests = [session.allreduce_async(numpy.ones(10, "float32")) for session in sessions]
                culprit.put(count=10)
                self.assertEqual(all_of(lambda request: request.wait(PATIENCE), requests), [None] * (SERVERS - 1))

    def test_one_that_says_it_sleeps_and_never_reads(self):
        with Clockwork(self.cluster) as other, RawSession(self.path, "sleepy") as culprit:
            with job(self.cluster, "sleepy", self.others) as sessions:
                culprit.set_word(raw_session.TRAINER_ASLEEP, 1)
                at_once = 64
                for _ in range(RING_ENTRIES // at_once):
                    arrays = [numpy.ones(10, "float32") for _ in range(at_once)]
                    requests = [session.allreduce_async(array) for array in arrays for session in sessions]
                    for _ in range(at_once):
                        culprit.put(count=10)
                    for request in requests:
                        request.wait(PATIENCE)
                # It has not taken one completion: nothing more of it is taken, and the others are told why.
                requests = [session.allreduce_async(numpy.ones(10, "float32")) for session in sessions]
                culprit.put(count=10)
                for failure in all_of(lambda request: request.wait(0.2), requests):
                    self.assert_fails(gradcube.TimeoutError, failure, "[1,1]")
        self.assert_undisturbed(other)

    def test_one_whose_job_is_aborted_already(self):
        with RawSession(self.path, "ruin") as culprit:
            with job(self.cluster, "ruin", [0, 1]):
                pass
            wait_until(lambda: self.cluster.job("ruin")["state"] == "aborted", "the job to be aborted")
            culprit.put()
            self.assertEqual(culprit.completion(), (1, EPEER))
            culprit.put(dtype=77)
            self.assertEqual(culprit.farewell()[0], EPROTOCOL)

    def test_the_last_of_many_inquiries_is_answered(self):
        with RawSession(self.path, "curious") as curious:
            for request in range(1, 101):
                curious.socket.send(raw_session.inquiry(request))
            answered = []
            while not answered or answered[-1] < 100:
                notice = raw_session.read_notice(curious.socket.recv(4096))
                self.assertEqual(notice.kind, raw_session.REPORT)
                self.assertIn("joined", notice.text)
                answered.append(notice.request)
            self.assertEqual(answered, sorted(set(answered)))


@needs_many_servers
class Inquirer(TestCase):
    """Compiled trainers that ask without end, in a job of many: each answer costs the daemon more than the question."""

    def test_several_do_not_keep_the_daemon_from_others(self):
        with Cluster("--topology", "star:48") as cluster, inquirers(cluster, "curious", 6) as asking:
            with RawSession(cluster.sockets()[3], "polite") as other:
                other.socket.send(raw_session.inquiry(1))
                self.assertIn("joined", raw_session.read_notice(other.socket.recv(4096)).text)
                self.assertEqual(len(cluster.job("polite")["trainers"]), 1)
            self.assert_right(cluster.perf("--sizes", "4,100K", "--iterations", "2", "--members", "0 1 47"))
            self.assertEqual([process.poll() for process in asking], [None] * 6)
            self.assertEqual(cluster.tool("down").returncode, 0)


class HostileClient(WithACluster):
    def test_garbage_instead_of_a_hello(self):
        generator = random.Random(self.seed)
        good = raw_session.hello("x")
        messages = [generator.randbytes(generator.randrange(1, 3000)) for _ in range(50)]
        messages += [good[:cut] for cut in (1, 3, 4, 20, len(good) - 1)]
        messages += [good + b"\0", struct.pack("<I", raw_session.WELCOME), raw_session.inquiry(1)]
        with Clockwork(self.cluster) as other:
            for message in messages:
                with raw_session.connect(self.path) as connection:
                    connection.send(message)
                    notice = raw_session.read_notice(connection.recv(4096))
                    self.assertIn(notice.kind, (raw_session.CLOSING, raw_session.REFUSED))
                    self.assertNotEqual((notice.code, notice.text), (0, ""))
                    self.assertEqual(connection.recv(4096), b"")
        self.assert_undisturbed(other)

    def test_hellos_that_ask_for_what_there_is_not(self):
        for message in (
            raw_session.hello("x", version=raw_session.LAYOUT_VERSION + 1),
            raw_session.hello("x", heap_bytes=0),
            raw_session.hello("x", heap_bytes=HUGE),
            raw_session.hello(""),
            raw_session.hello("n" * 64),
            raw_session.hello("../x"),
            raw_session.hello("two words"),
        ):
            with raw_session.connect(self.path) as connection:
                notice = raw_session.knock(connection, message) or raw_session.read_notice(connection.recv(4096))
                self.assertEqual(notice.kind, raw_session.REFUSED)
                self.assertLess(notice.code, 0)
                self.assertGreater(len(notice.text), 10)
                self.assertEqual(connection.recv(4096), b"")

    def test_a_second_hello(self):
        with RawSession(self.path, "twice") as culprit:
            culprit.socket.send(raw_session.hello("twice"))
            self.assertEqual(culprit.farewell()[0], EPROTOCOL)

    def test_a_place_that_is_taken(self):
        with RawSession(self.path, "taken"), self.assertRaisesRegex(gradcube.JobError, r"\[1,1\]"):
            gradcube.Session(self.path, "taken")

    def control(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(PATIENCE)
        connection.connect(str(self.cluster.directory / "control.sock"))
        return connection

    def ask(self, line):
        """The daemon's answer to one line; None if it only hangs up."""
        with self.control() as connection, connection.makefile("rb") as file:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(line)
                answer = file.readline()
                return json.loads(answer) if answer else None

    def test_garbage_on_the_control_socket(self):
        generator = random.Random(self.seed)
        for line in (
            b"\n",
            b"{}\n",
            b"[]\n",
            b"null\n",
            b'{"command":7}\n',
            b'{"command":"dance"}\n',
            b'{"command":"impair","loss":2}\n',
            b'{"command":"impair","loss":"much"}\n',
            b'{"command":"impair","gain":1}\n',
            b'{"command":"impair","up":0}\n',
            b'{"command":"\xff\xfe"}\n',
            b"[" * 60000 + b"\n",
            *(generator.randbytes(100).replace(b"\n", b" ") + b"\n" for _ in range(50)),
        ):
            with self.subTest(line=line[:60]):
                answer = self.ask(line)
                self.assertIsNotNone(answer)
                self.assertIs(answer["ok"], False)
                self.assertTrue(answer["error"])
        impairments = self.cluster.status()["impairments"]
        self.assertEqual((impairments["loss"], impairments["up"]), (0, True))

    def test_a_line_without_end_on_the_control_socket(self):
        self.assertIsNone(self.ask(b"x" * (1 << 20)))

    def resident_bytes(self):
        """Of the daemon behind the control socket."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    def test_clients_that_say_nothing_never_finish_or_never_read_are_turned_away(self):
        with contextlib.ExitStack() as stack, Clockwork(self.cluster) as other:
            *slow, glutton = [stack.enter_context(self.control()) for _ in range(11)]
            for connection in slow:
                connection.send(b'{"command":')
            glutton.setblocking(False)
            before = self.resident_bytes()
            silent = [stack.enter_context(raw_session.connect(self.path)) for _ in range(200)]
            first_ended = lambda: select.select([silent[0]], [], [], 0.001)[0]
            grown = 0
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                while not first_ended():
                    with contextlib.suppress(BlockingIOError):
                        glutton.send(b'{"command":"status"}\n' * 100)
                    grown = max(grown, self.resident_bytes() - before)
            # All answers would take far more; daemons that work touch some memory for the first time.
            self.assertLess(grown, 64 << 20, "the daemon keeps answers that nobody reads")
            for connection in slow + silent:
                self.assertEqual(connection.recv(4096), b"")
        self.assert_undisturbed(other)


if __name__ == "__main__":
    main()
