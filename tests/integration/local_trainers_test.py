"""Jobs with several trainers on each server: right to the last bit, and told by name what goes wrong."""

import concurrent.futures
import contextlib

import gradcube
import numpy

from fabrics import GRID, PATIENCE, faults, some
from harness import Cluster, TestCase, main

SIZES = "0,8,999,100003,1M"


class LocalTrainers(TestCase):
    def join(self, stack, cluster, name, per_server):
        """By rank."""
        sessions = []
        for socket in cluster.sockets():
            for local in range(per_server):
                session = gradcube.Session(socket, name, trainers_per_server=per_server, local=local)
                sessions.append(stack.enter_context(session))
        return sessions

    def all_of(self, function, sessions):
        """At once: a collective waits for all."""
        with concurrent.futures.ThreadPoolExecutor(len(sessions)) as pool:
            return list(pool.map(function, sessions))

    def test_every_kind_is_right(self):
        with Cluster("--topology", "bcube:2,2", *faults("--loss", "0.01"), "--seed", str(self.seed)) as cluster:
            for kind in ["allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "barrier"]:
                flags = [] if kind == "barrier" else ["--sizes", "96,9996,1000092"]
                flags += ["--root", "7"] if kind in ("broadcast", "reduce") else []
                with self.subTest(kind=kind):
                    answer = cluster.answer("perf", kind, "--check", "--trainers", "3", "--iterations", "2", *flags)
                    self.assertEqual(answer["trainers_per_server"], 3)
                    self.assert_right(answer["results"])

    def test_every_type_is_right_by_other_algorithms(self):
        with Cluster("--topology", GRID) as cluster:
            for algorithm in some(["bml", "hips:ring", "ps", "blueconnect"]):
                for dtype, op in some([("float32", "sum"), ("bfloat16", "average"), ("int64", "max")]):
                    with self.subTest(algorithm=algorithm, dtype=dtype, op=op):
                        flags = ("--algorithm", algorithm, "--dtype", dtype, "--op", op, "--trainers", "2")
                        self.assert_right(cluster.perf("--sizes", SIZES, "--iterations", "2", *flags))

    def test_python_trainers_have_ranks_side_by_side(self):
        with Cluster("--topology", "star:2") as cluster, contextlib.ExitStack() as stack:
            sessions = self.join(stack, cluster, "pairs", 2)
            self.assertEqual([(session.rank, session.size) for session in sessions], [(r, 4) for r in range(4)])

            def add(session):
                array = numpy.full(1000, session.rank + 1, "float32")
                session.allreduce(array, timeout=PATIENCE)
                return array

            for result in self.all_of(add, sessions):
                numpy.testing.assert_array_equal(result, numpy.full(1000, 10, "float32"))
            status = cluster.answer("status")
            (job,) = status["jobs"]
            self.assertEqual(job["trainers_per_server"], 2)
            self.assertEqual([trainer["local"] for trainer in job["trainers"]], [0, 1, 0, 1])
            self.assertEqual([trainer["submitted"] for trainer in job["trainers"]], [1] * 4)
            self.assertEqual([server["trainers"] for server in status["servers"]], [2, 2])
            self.assertIn("#1", cluster.tool("status").stdout)

    def test_who_does_not_fit_is_refused(self):
        with Cluster("--topology", "star:2") as cluster, contextlib.ExitStack() as stack:
            socket = cluster.sockets()[0]
            self.join(stack, cluster, "full", 2)
            for flags, words in [
                ({"trainers_per_server": 2}, ["already has its 2 trainers on server [0]"]),
                ({"trainers_per_server": 2, "local": 1}, ["already has a trainer 1 on server [0]"]),
                ({"trainers_per_server": 3}, ["2 trainers on each", "3 trainers on each"]),
                ({}, ["2 trainers on each"]),
            ]:
                with self.assertRaises(gradcube.JobError) as refused:
                    gradcube.Session(socket, "full", **flags)
                for word in words:
                    self.assertIn(word, str(refused.exception))
            with self.assertRaisesRegex(gradcube.InvalidError, "local"):
                gradcube.Session(socket, "full", trainers_per_server=2, local=2)

    def test_who_leaves_is_named(self):
        with Cluster("--topology", "star:2") as cluster, contextlib.ExitStack() as stack:
            sessions = self.join(stack, cluster, "parted", 2)
            sessions[3].close()
            for session in sessions[:3]:
                with self.assertRaises(gradcube.PeerError) as failure:
                    session.allreduce(numpy.ones(10, "float32"), timeout=PATIENCE)
                self.assertIn("trainer 1 of job \"parted\" on server [1]", str(failure.exception))


if __name__ == "__main__":
    main()
