"""Every element on every server has the bits of the plan's order of addition."""

import hashlib
import json

import numpy

from fabrics import GRID, PATIENCE, SERVERS, faults, few, needs_faults, needs_many_servers, only_on, some
from harness import Cluster, TestCase, all_of, job, main, wait_until

DTYPES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8, "int8": 1, "uint8": 1, "int16": 2
}
OPERATIONS = ["sum", "average", "min", "max"]
SMALL = ["int16", "int8", "uint8"]  # without an average
PAIRS = [
    (dtype, operation) for dtype in DTYPES for operation in OPERATIONS if operation != "average" or dtype not in SMALL
]
ONE_OF_EACH_SIZE = [("float64", "sum"), ("int32", "min"), ("bfloat16", "average"), ("int8", "max")]


def edge_counts(servers, segment, size):
    """Element counts at which cutting into pieces and segments has its edges."""
    elements = segment // size
    counts = {0, 1, servers - 1, servers, servers + 1, 7919, 100003}
    for pieces in (1, servers, 2 * servers):
        for around in (-1, 0, 1):
            counts.add(pieces * elements + around)
    return sorted(counts)


def run_fit(cluster, *options):
    """`gradcube model fit`. On a busy machine a link may seem down for a moment."""
    answers = []

    def fits():
        answers.append(cluster.tool("model", "fit", *options, "--json"))
        return "is not as configured: down" not in answers[-1].stderr

    wait_until(fits, "links none of which seems down")
    return answers[-1]


class Check(TestCase):
    def check_all(self, topology, pairs):
        with Cluster("--topology", topology) as cluster:
            status = cluster.status()
            for dtype, operation in few(pairs):
                size = DTYPES[dtype]
                counts = edge_counts(len(status["servers"]), status["segment_bytes"], size)
                sizes = ",".join(str(count * size) for count in counts)
                with self.subTest(topology=topology, dtype=dtype, operation=operation):
                    results = cluster.perf(
                        "--sizes", sizes, "--iterations", "1", "--warmup", "0", "--dtype", dtype, "--op", operation
                    )
                    self.assertEqual([row["count"] for row in results], counts)
                    self.assert_right(results)

    def test_every_type_is_right_on_a_grid(self):
        self.check_all(GRID, PAIRS[::4] + PAIRS[1::8] + PAIRS[-1:])

    @needs_many_servers
    def test_every_size_of_a_type_is_right_with_three_levels(self):
        self.check_all("bcube:2,3", ONE_OF_EACH_SIZE)

    @needs_many_servers
    def test_every_size_of_a_type_is_right_with_a_radix_per_level(self):
        self.check_all("bcube:4x3x2", ONE_OF_EACH_SIZE)

    @needs_many_servers
    def test_every_algorithm_is_right_with_a_radix_per_level(self):
        with Cluster("--topology", "bcube:2x3x4", "--loss", "0.01") as cluster:
            for algorithm in ["bml", "hips:ring", "hips:mesh,ring,mesh", "mesh", "ring", "auto"]:
                with self.subTest(algorithm=algorithm):
                    self.assert_right(
                        cluster.perf("--algorithm", algorithm, "--sizes", "0,4,1K,300K", "--iterations", "1")
                    )

    def test_links_of_a_rate_per_level_are_right_and_are_shown(self):
        rates = [800_000_000, 200_000_000]
        with Cluster("--topology", "bcube:3x2", "--rate", "level0=800mbit,level1=200mbit") as cluster:
            status = cluster.status()
            self.assertEqual(status["rate_bps"], rates)
            for server in status["servers"]:
                self.assertEqual([port["rate_bps"] for port in server["ports"]], rates)
            self.assert_right(cluster.perf("--sizes", "0,4,1K,1M", "--iterations", "2"))

    def test_blueconnect_begins_with_the_fastest_level_and_is_right(self):
        links = ["--topology", GRID, "--rate", "level0=200mbit,level1=800mbit"]
        with Cluster(*links) as cluster:
            plan = cluster.answer("plan", *links, "--algorithm", "blueconnect", "--server", "0,0")
            (server,) = plan["servers"]
            self.assertEqual([step["level"] for step in server["threads"][0]["steps"]], [1, 0, 0, 1])
            for kind in ("allreduce", "reduce_scatter", "reduce"):
                with self.subTest(kind=kind):
                    flags = ["--algorithm", "blueconnect", "--sizes", "100,1K,300K", "--iterations", "2"]
                    self.assert_right(cluster.answer("perf", kind, "--check", *flags)["results"])

    def test_every_operation_is_right_on_a_star(self):
        self.check_all("star:3", [pair for pair in PAIRS if pair[0] in ("float32", "bfloat16")])

    def test_every_size_of_a_type_is_right_with_two_servers(self):
        self.check_all("bcube:2,1", ONE_OF_EACH_SIZE)

    def test_a_mesh_over_relays_is_right_and_the_relays_count(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01")) as cluster:
            self.assert_right(cluster.perf("--algorithm", "mesh", "--sizes", "0,4,1K,1M", "--iterations", "2"))
            self.assertGreater(cluster.status()["counters"]["relayed"], 0)

    def test_auto_takes_other_plans_for_other_sizes_and_is_right_in_each(self):
        with Cluster("--topology", "bcube:2,2", "--rate", "1gbit") as cluster:
            results = cluster.perf(
                "--algorithm", "auto:20us,5us", "--sizes", "0,4,1K,20K,300K,3M", "--iterations", "2"
            )
            self.assert_right(results)
            self.assertGreater(len({row["algorithm"] for row in results}), 1)

    def test_perf_and_plan_why_take_the_name_that_the_fit_prints(self):
        with Cluster("--topology", "bcube:3x2", "--rate", "level0=1gbit,level1=500mbit") as cluster:
            fit = json.loads(run_fit(cluster, "--iterations", "2").stdout)
            self.assertEqual([level["rate_bps"] for level in fit["levels"]], [10**9, 5 * 10**8])
            self.assertTrue(fit["algorithm"].startswith("auto:"), fit["algorithm"])
            self.assert_right(cluster.perf("--sizes", "1K", "--iterations", "1", "--algorithm", fit["algorithm"]))
            why = cluster.answer("plan", "--why", "1K", "--algorithm", fit["algorithm"])
            self.assertTrue(why["running"])
            self.assertEqual(why["costs"], fit["algorithm"])

    @needs_faults
    def test_a_doubtful_fit_says_why_and_fails(self):
        with Cluster("--topology", "star:2", "--rate", "500mbit") as cluster:
            cluster.answer("impair", "--loss", "0.1")
            done = run_fit(cluster, "--iterations", "1")
            self.assertEqual(done.returncode, 1)
            self.assertIn("of the segments were sent again", done.stderr)
            self.assertRegex(json.loads(done.stdout)["algorithm"], "^auto:")

    @only_on("embedded", why="elsewhere no daemon knows how many servers share a core")
    def test_auto_alone_knows_how_many_servers_share_a_core(self):
        with Cluster("--topology", "star:4") as cluster:
            shared = -(-4 // len(cluster.status()["lcores"]))
            with job(cluster, "alone", algorithm="auto"):
                (alone,) = cluster.status()["jobs"]
                self.assertRegex(alone["lanes"][0]["algorithm"], f"^auto:.*/{shared}$" if shared > 1 else "^auto$")

    @needs_many_servers
    def test_every_algorithm_is_right_where_it_fits(self):
        with Cluster("--topology", "bcube:2,3", "--loss", "0.01") as cluster:
            self.check_algorithms(cluster, [
                "blueconnect", "blueconnect:ring", "blueconnect:4x2,ring", "halving_doubling", "hips:mesh",
                "hips:mesh,mesh,mesh", "hips:mesh,root,ring", "hips:ring", "hips:root", "ps", "ps:1,0,1",
                "recursive_doubling", "ring", "two-level",
            ])  # fmt: skip

    def test_every_algorithm_is_right_with_two_levels(self):
        with Cluster("--topology", "bcube:2,2", *faults("--loss", "0.01")) as cluster:
            self.check_algorithms(cluster, [
                "blueconnect", "bml", "halving_doubling", "hips:mesh", "hips:mesh,ring", "hips:root", "hips:2xroot",
                "mesh", "ps:1,0", "ps:1,0 0,1", "recursive_doubling", "ring",
            ])  # fmt: skip

    def check_algorithms(self, cluster, algorithms):
        for algorithm in few(algorithms, 4):
            with self.subTest(algorithm=algorithm):
                self.assert_right(cluster.perf("--algorithm", algorithm, "--sizes", "0,4,1K,1M", "--iterations", "2"))

    def test_rings_and_roots_are_right_for_every_type_and_operation(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01")) as cluster:
            algorithms = ["blueconnect", "ring", "hips:ring", "hips:mesh,ring", "hips:ring,root", "ps:1,1", "two-level"]
            # Each pair with one of the algorithms, as the simulation draws all of them together.
            cases = [(pair, algorithms[number % len(algorithms)]) for number, pair in enumerate(PAIRS)]
            for (dtype, operation), algorithm in few(cases, 4):
                with self.subTest(algorithm=algorithm, dtype=dtype, operation=operation):
                    self.assert_right(
                        cluster.perf(
                            "--algorithm", algorithm, "--sizes", "0,8,1K,300K", "--iterations", "1"
                            , "--warmup", "0", "--dtype", dtype, "--op", operation
                        )
                    )

    def test_short_all_reduces_by_recursive_doubling_are_right_for_every_type_and_operation(self):
        for topology in some([GRID, f"star:{SERVERS}"], 1):
            with Cluster("--topology", topology, *faults("--loss", "0.01"), "--mtu", "1500") as cluster:
                for dtype, operation in few(PAIRS):
                    size = DTYPES[dtype]
                    counts = [0, 1, 2, 17, 333, 1001, 10_000 // size, 10_240 // size - 1, 10_240 // size]
                    with self.subTest(topology=topology, dtype=dtype, operation=operation):
                        self.assert_right(
                            cluster.perf(
                                "--algorithm", "recursive_doubling", "--dtype", dtype, "--op", operation
                                , "--sizes", ",".join(str(count * size) for count in counts)
                                , "--iterations", "3", "--warmup", "0"
                            )
                        )

    def test_short_all_reduces_by_recursive_doubling_are_right_in_every_kind_of_job(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01")) as cluster:
            for flags in (["--trainers", "3"], ["--reproducible"], ["--in-flight", "8"], ["--members", "0,0 0,1"]):
                with self.subTest(flags=flags):
                    answer = cluster.answer(
                        "perf", "allreduce", "--check", "--algorithm", "recursive_doubling"
                        , "--sizes", "0,4,1K,8K", "--iterations", "20", *flags
                    )
                    self.assert_right(answer["results"])
                    self.assertIn("recursive_doubling", {row["algorithm"] for row in answer["results"]})
            for flags in ([], ["--algorithm", "recursive_doubling"]):
                longer = cluster.answer("perf", "allreduce", *flags, "--sizes", "1K,64K")
                self.assertEqual([row["algorithm"] for row in longer["results"]], ["recursive_doubling", "bml"])

    def test_the_foot_says_what_the_default_ran(self):
        with Cluster("--topology", GRID) as cluster:
            run = ["perf", "allreduce", "--sizes", "1K,64K", "--iterations", "2", "--check"]
            self.assertIn("# the default ran 1 KB by recursive_doubling, 64 KB by bml\n", cluster.tool(*run).stdout)

    @only_on("embedded", why="one daemon counts the segments of all servers")
    def test_recursive_doubling_sends_each_neighbour_one_segment(self):
        with Cluster("--topology", GRID) as cluster:

            def segments(algorithm):
                flags = ["--sizes", "1K", "--iterations", "100", "--warmup", "0", "--verbose"]
                (row,) = cluster.perf("--algorithm", algorithm, *flags)
                self.assertGreater(row["cpu_seconds_each"], 0)
                return row["segments_each"]

            # Two at each of two levels, and at most two collectives more, in which the trainers meet.
            self.assertLessEqual(segments("recursive_doubling"), SERVERS * 4 * 1.02)
            self.assertGreaterEqual(segments("bml"), SERVERS * 16)

    def test_small_packets_are_cut_right(self):
        with Cluster("--topology", GRID, "--mtu", "1500") as cluster:
            self.assert_right(cluster.perf("--sizes", "1400,1404,26K,1M", "--iterations", "2"))


class Reproducible(TestCase):
    def digests(self, *flags):
        """SHA-256 of the sums of the same float32 gradients, as each trainer sees them."""
        with Cluster("--topology", GRID, *flags) as cluster, job(cluster, "bits") as sessions:

            def work(session):
                generator = numpy.random.default_rng([self.seed, session.rank])
                digest = hashlib.sha256()
                for count in (1, 8, 12345, 700001):
                    gradients = session.alloc(count)
                    gradients[:] = generator.standard_normal(count, dtype=numpy.float32)
                    session.allreduce(gradients, op="sum", timeout=PATIENCE)
                    digest.update(gradients.tobytes())
                return digest.hexdigest()

            return all_of(work, sessions)

    def test_two_runs_with_and_without_faults_give_the_same_bits(self):
        first = self.digests()
        self.assertEqual(len(set(first)), 1, first)
        self.assertEqual(self.digests(), first)
        harm = faults("--loss", "0.02", "--duplicate", "0.02", "--reorder", "0.05", "--corrupt", "0.01")
        self.assertEqual(self.digests(*harm, "--seed", str(self.seed)), first)


if __name__ == "__main__":
    main()
