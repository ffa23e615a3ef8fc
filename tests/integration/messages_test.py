"""Messages between trainers of a real cluster: right bytes, matched by rank and tag; clear failures."""

import concurrent.futures
import contextlib

import gradcube
import numpy

from fabrics import GRID, PATIENCE, faults, needs_many_servers
from harness import Cluster, TestCase, main


class Messages(TestCase):
    def join(self, stack, cluster, name, per_server=1):
        """By rank."""
        return [
            stack.enter_context(gradcube.Session(socket, name, trainers_per_server=per_server, local=local))
            for socket in cluster.sockets()
            for local in range(per_server)
        ]

    def test_all_to_all_arrives(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01"), "--seed", str(self.seed)) as cluster:
            with contextlib.ExitStack() as stack:
                sessions = self.join(stack, cluster, "all")

                def exchange(session):
                    random = numpy.random.default_rng(session.rank)
                    out = [random.integers(0, 256, 40_000 * (r + 1), "uint8") for r in range(session.size)]
                    boxes = [numpy.zeros(40_000 * (session.rank + 1), "uint8") for _ in range(session.size)]
                    requests = [session.recv_async(boxes[r], r, tag=9) for r in range(session.size)]
                    requests += [session.send_async(out[r], r, tag=9) for r in range(session.size)]
                    for request in requests:
                        request.wait(timeout=PATIENCE)
                    return out, boxes

                with concurrent.futures.ThreadPoolExecutor(len(sessions)) as pool:
                    results = list(pool.map(exchange, sessions))
                for source, (out, _) in enumerate(results):
                    for target, (_, boxes) in enumerate(results):
                        numpy.testing.assert_array_equal(boxes[source], out[target])

    def test_bytes_and_arrays_of_any_type_arrive_in_their_order(self):
        with Cluster("--topology", "star:2") as cluster, contextlib.ExitStack() as stack:
            first, second = self.join(stack, cluster, "order")
            texts = [b"one", b"", b"three" * 30_000]
            sends = [first.send_async(text, 1, tag=3) for text in texts]
            numbers = numpy.arange(12, dtype="float64").reshape(3, 4)
            sends.append(first.send_async(numbers, 1, tag=4))
            box = first.alloc(12, "float64")
            shared = second.alloc(16, "float64")
            request = second.recv_async(shared, 0, tag=4)
            self.assertIsNone(first.recv_async(box, 1).received)
            for text in texts:
                self.assertEqual(second.recv_bytes(200_000, 0, tag=3, timeout=PATIENCE), text)
            request.wait(timeout=PATIENCE)
            self.assertEqual(request.received, 96)
            numpy.testing.assert_array_equal(shared[:12], numbers.ravel())
            for send in sends:
                send.wait(timeout=PATIENCE)
            second.send(numpy.ones(12), 0, timeout=PATIENCE)

    def test_trainers_of_one_server_and_a_trainer_itself_exchange(self):
        with Cluster("--topology", "star:2") as cluster, contextlib.ExitStack() as stack:
            sessions = self.join(stack, cluster, "local", 2)
            for source, target in [(0, 1), (1, 1), (1, 0), (2, 0)]:
                data = numpy.random.default_rng(target).bytes(700_001)
                send = sessions[source].send_async(data, target)
                self.assertEqual(sessions[target].recv_bytes(700_001, source, timeout=PATIENCE), data)
                send.wait(timeout=PATIENCE)

    def test_collectives_go_on_beside_messages(self):
        with Cluster("--topology", "bcube:2,2") as cluster, contextlib.ExitStack() as stack:
            sessions = self.join(stack, cluster, "both")
            waiting = sessions[0].send_async(b"late", 3, tag=1)

            def add(session):
                array = numpy.full(10_000, session.rank, "float32")
                session.allreduce(array, timeout=PATIENCE)
                return array[-1]

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                self.assertEqual(list(pool.map(add, sessions)), [6.0] * 4)
            self.assertFalse(waiting.test())
            self.assertEqual(sessions[3].recv_bytes(10, 0, tag=1, timeout=PATIENCE), b"late")
            waiting.wait(timeout=PATIENCE)

    def test_failures_are_told_with_rank_and_tag(self):
        with Cluster("--topology", "star:2") as cluster, contextlib.ExitStack() as stack:
            first, second = self.join(stack, cluster, "failing")
            send = first.send_async(b"x" * 100, 1, tag=77)
            with self.assertRaises(gradcube.MismatchError) as failure:
                second.recv(bytearray(99), 0, tag=77, timeout=PATIENCE)
            self.assertIn("receive of up to 99 bytes from rank 0 with tag 77", str(failure.exception))
            self.assertIn('job "failing" failed: the message has 100 bytes', str(failure.exception))
            with self.assertRaisesRegex(gradcube.MismatchError, "send of 100 bytes to rank 1 with tag 77"):
                send.wait(timeout=PATIENCE)
            with self.assertRaises(gradcube.TimeoutError) as late:
                first.recv(bytearray(10), 1, tag=78, timeout=0.1)
            for words in ["10 bytes from rank 1 with tag 78", "not done after", 'a message of job "failing" waits']:
                self.assertIn(words, str(late.exception))
            # What was late has taken nothing.
            box = numpy.zeros(1)
            with self.assertRaisesRegex(gradcube.TimeoutError, "it was withdrawn"):
                first.recv(box, 1, tag=5, timeout=0.1)
            withdrawn = first.recv_async(box[:0], 1, tag=5)
            withdrawn.cancel()
            with self.assertRaises(gradcube.CanceledError):
                withdrawn.wait(timeout=PATIENCE)
            with self.assertRaisesRegex(gradcube.TimeoutError, "it was withdrawn"):
                second.send(numpy.zeros(1), 0, tag=5, timeout=0.1)
            sends = [second.send_async(numpy.full(1, number), 0, tag=5) for number in (1.0, 2.0)]
            for number in (1.0, 2.0):
                first.recv(box, 1, tag=5, timeout=PATIENCE)
                self.assertEqual(box[0], number)
            for each in sends:
                each.wait(timeout=PATIENCE)
            # Nor is a number taken for one of another type.
            send = first.send_async(numpy.ones(3, "int32"), 1, tag=6)
            with self.assertRaisesRegex(gradcube.MismatchError, "rank 0 sends int32, and this trainer receives float32"):
                second.recv(numpy.ones(3, "float32"), 0, tag=6, timeout=PATIENCE)
            with self.assertRaisesRegex(gradcube.MismatchError, "rank 1 receives float32, and this trainer sends int32"):
                send.wait(timeout=PATIENCE)
            pending = first.recv_async(bytearray(10), 1, tag=79)
            second.close()
            with self.assertRaisesRegex(gradcube.PeerError, "failing"):
                pending.wait(timeout=PATIENCE)
            with self.assertRaises(gradcube.PeerError):
                first.send(b"x", 1, timeout=PATIENCE)

    def test_a_trainer_that_has_not_joined_is_named(self):
        with Cluster("--topology", "star:2") as cluster:
            with gradcube.Session(cluster.sockets()[0], "alone") as session:
                with self.assertRaisesRegex(gradcube.TimeoutError, r"has not joined job \"alone\".*\[1\]"):
                    session.send(b"x", 1, timeout=0.1)

    def test_bad_arguments_are_refused(self):
        with Cluster("--topology", "star:2") as cluster, contextlib.ExitStack() as stack:
            session, _ = self.join(stack, cluster, "bad")
            array = numpy.zeros(10, "uint8")
            for call, words in [
                (lambda: session.send(array, 2), "rank 2"),
                (lambda: session.send(array, -1), "rank -1"),
                (lambda: session.send(array, 1, tag=-1), "tag -1"),
                (lambda: session.send(array, 1, tag=1 << 64), "tag"),
                (lambda: session.send(5, 1), "invalid data"),
                (lambda: session.send(array[::2], 1), "C-contiguous"),
                (lambda: session.send(array.view(">f2"), 1), "order of this processor"),
                (lambda: session.recv(b"fixed", 1), "not writeable"),
                (lambda: session.recv(numpy.array([None]), 1), "objects"),
                (lambda: session.recv_bytes(-1, 1), "length -1"),
                (lambda: session.send(array, 1, timeout="soon"), "timeout"),
            ]:
                with self.assertRaisesRegex(gradcube.InvalidError, words):
                    call()
            receive = session.recv_async(session.alloc(64, "uint8"), 1)
            shared = session.alloc(64, "uint8")
            session.recv_async(shared, 1)
            with self.assertRaisesRegex(gradcube.InvalidError, "overlaps"):
                session.send_async(shared, 1)
            self.assertFalse(receive.test())

    def test_perf_measures_and_checks_messages(self):
        with Cluster("--topology", "bcube:2,2", "--rate", "200mbit") as cluster:
            answer = cluster.answer(
                "perf", "sendrecv", "--from", "0", "--to", "3", "--sizes", "0,1K,400K", "--check", "--iterations", "2"
            )
            self.assertEqual((answer["from"], answer["to"]), (0, 3))
            self.assertEqual([row["paths"] for row in answer["results"]], [1, 1, 2])
            self.assertEqual([row["wrong"] for row in answer["results"]], [0, 0, 0])
            self.assertAlmostEqual(answer["results"][2]["bound_seconds"], 400e3 * 8 / 400e6)
            one = cluster.answer("perf", "sendrecv", "--sizes", "400K", "--paths", "1", "--in-flight", "3", "--check")
            self.assertEqual(one["results"][0]["paths"], 1)
            table = cluster.tool("perf", "sendrecv", "--sizes", "1K", "--check").stdout
            self.assertIn("# every byte was received as it was sent", table)
            for flags, words in [
                (["--from", "4"], "--from: there is no rank 4; expected 0 to 3"),
                (["--paths", "0"], "--paths"),
                (["--paths", "9"], "--paths: \"9\": expected a whole number in 1..8"),
                (["--dtype", "float32"], "there is no flag \"--dtype\""),
            ]:
                refused = cluster.tool("perf", "sendrecv", *flags)
                self.assertEqual(refused.returncode, 2)
                self.assertIn(words, refused.stderr)

    @needs_many_servers
    def test_servers_that_are_too_far_apart_are_told(self):
        with Cluster("--topology", "torus:18,1") as cluster:
            refused = cluster.tool("perf", "sendrecv", "--from", "0", "--to", "9")
            self.assert_one_message(refused, 2, "ranks 0 and 9 are on [0] and [9], which are 9 hops apart", "at most 8")
            near = cluster.tool("perf", "sendrecv", "--from", "0", "--to", "8", "--sizes", "1K", "--check")
            self.assertEqual(near.returncode, 0, near.stderr)


if __name__ == "__main__":
    main()
