"""A reproducible job yields the same bits whatever the algorithm, the topology, the cores and the length."""

import contextlib
import functools
import hashlib

import gradcube
import numpy

from fabrics import GRID, PATIENCE, faults, needs_many_servers, some
from harness import Cluster, TestCase, all_of, main

NINE = ["bml", "ring", "mesh", "hips:ring", "hips:mesh,ring", "hips:root", "blueconnect", "ps", "two-level", "recursive_doubling"]
FOUR = ["bml", "ring", "mesh", "halving_doubling", "hips:mesh", "ps:1,0", "recursive_doubling"]
FLOATS = ["float32", "float64", "float16"]
OPERATIONS = ["sum", "average", "min", "max"]
COUNT = 5003


@contextlib.contextmanager
def sessions_of(cluster, **wishes):
    sessions = []
    try:
        for socket in cluster.sockets():
            sessions.append(gradcube.Session(socket, "bits", reproducible=True, **wishes))
        yield sessions
    finally:
        for session in sessions:
            session.close()


@functools.lru_cache(64)
def inputs(seed, rank, dtype):
    """COUNT values of very different sizes, most of which cancel each other; some are special."""
    generator = numpy.random.default_rng([seed, rank])
    shared = numpy.random.default_rng([seed, 1 << 20])
    exponents = generator.integers(-9, 5, COUNT)
    values = numpy.ldexp(generator.standard_normal(COUNT), exponents)
    values += numpy.ldexp(shared.standard_normal(COUNT), 6) * (-1) ** rank
    specials = numpy.array([0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, -numpy.nan, 1e-40, 6e4])
    places = generator.integers(0, 40 * len(specials), COUNT)
    special = places < len(specials)
    values[special] = specials[places[special]]
    with numpy.errstate(over="ignore"):
        return values.astype(dtype)


class Reproducible(TestCase):
    def inputs(self, rank, dtype):
        return inputs(self.seed, rank, dtype).copy()

    def results(self, session):
        """SHA-256 of what each collective leaves in this rank's buffer where the kind defines it."""
        found = {}
        for dtype in FLOATS:
            for operation in OPERATIONS:
                values = session.alloc(COUNT, dtype)
                values[:] = self.inputs(session.rank, dtype)
                session.allreduce(values, op=operation, timeout=PATIENCE)
                found[dtype, operation] = hashlib.sha256(values.tobytes()).hexdigest()
                # In memory of its own, and a part: an element does not depend on the others.
                part = self.inputs(session.rank, dtype)[:-1000]
                session.allreduce(part, op=operation, timeout=PATIENCE)
                self.assertEqual(part.tobytes(), values[:-1000].tobytes())
                rooted = self.inputs(session.rank, dtype)
                session.reduce(rooted, op=operation, root=1, timeout=PATIENCE)
                if session.rank == 1:
                    self.assertEqual(rooted.tobytes(), values.tobytes())
                chunk = COUNT // session.size
                scattered = self.inputs(session.rank, dtype)[: chunk * session.size]
                session.reduce_scatter(scattered, op=operation, timeout=PATIENCE)
                mine = slice(chunk * session.rank, chunk * (session.rank + 1))
                self.assertEqual(scattered[mine].tobytes(), values[mine].tobytes())
        averages = numpy.full(COUNT, 2147483647 - session.rank, dtype="int32")
        session.allreduce(averages, op="average", timeout=PATIENCE)
        self.assertTrue((averages == 2147483647 - session.size // 2).all(), averages[:3])
        copied = self.inputs(0, "float32") if session.rank == 0 else numpy.zeros(COUNT, "float32")
        session.broadcast(copied, root=0, timeout=PATIENCE)
        self.assertEqual(copied.tobytes(), self.inputs(0, "float32").tobytes())
        return found

    def assert_same_everywhere(self, clusters):
        """clusters: (flags of `up`, algorithms)"""
        first = None
        for flags, algorithms in clusters:
            with Cluster(*flags) as cluster:
                for algorithm in some(algorithms):
                    with self.subTest(flags=flags, algorithm=algorithm), sessions_of(
                        cluster, algorithm=algorithm
                    ) as sessions:
                        for result in all_of(self.results, sessions):
                            self.assertIsInstance(result, dict, f"{result!r}")
                            first = first or result
                            self.assertEqual(result, first)

    @needs_many_servers
    def test_nine_trainers_get_the_same_bits_by_every_algorithm_on_every_topology(self):
        self.assert_same_everywhere(
            [
                (("--topology", "bcube:3,2"), NINE),
                (("--topology", "bcube:3,2", "--lcores", "0", "--mtu", "1500"), ["bml", "ring"]),
                (("--topology", "star:9"), ["bml", "ring", "ps"]),
                (("--topology", "bcube:3,2", "--loss", "0.02", "--reorder", "0.05"), ["bml"]),
            ]
        )

    def test_four_trainers_get_the_same_bits_by_every_algorithm_on_every_topology(self):
        self.assert_same_everywhere(
            [(("--topology", "bcube:2,2"), FOUR), (("--topology", "star:4"), ["bml", "ring"])]
        )

    def test_two_trainers_get_the_same_bits_by_every_algorithm(self):
        self.assert_same_everywhere([(("--topology", "star:2"), ["bml", "ring", "ps"])])

    @needs_many_servers
    def test_eighteen_trainers_get_the_same_bits_by_every_algorithm(self):
        self.assert_same_everywhere([(("--topology", "bcube:6x3"), ["bml", "ring"]), (("--topology", "star:18"), ["bml"])])

    def test_perf_checks_every_kind_and_says_that_it_is_reproducible(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01")) as cluster:
            kinds = ("allreduce", "reduce_scatter", "reduce", "allgather", "broadcast", "barrier")
            cases = [(kind, "float32") for kind in kinds] + [("allreduce", "bfloat16"), ("reduce", "int64")]
            for kind, dtype in some(cases, 3):
                asked = ["perf", kind, "--reproducible", "--check", "--iterations", "2"]
                if kind != "barrier":
                    asked += ["--sizes", "720,300K", "--dtype", dtype]
                if kind in ("allreduce", "reduce"):
                    asked += ["--op", "average"]
                with self.subTest(kind=kind, dtype=dtype):
                    report = cluster.answer(*asked)
                    self.assertTrue(report["reproducible"])
                    self.assert_right(report["results"])

    def test_trainers_that_disagree_are_told_so(self):
        with Cluster("--topology", "star:2") as cluster:
            one, other = cluster.sockets()
            with gradcube.Session(one, "bits", reproducible=True):
                with self.assertRaises(gradcube.Error) as refused:
                    gradcube.Session(other, "bits")
                self.assert_fails(gradcube.Error, refused.exception, "reproducible", "expected")
                self.assertTrue(cluster.job("bits")["reproducible"])


if __name__ == "__main__":
    main()
