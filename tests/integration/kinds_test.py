"""Every kind of collective, on all servers and on some, has the right bits at every rank that gets a result."""

import contextlib

import gradcube
import numpy

from fabrics import FABRIC, GRID, PATIENCE, RADIX, SERVERS, faults, needs_faults, needs_many_servers, only_on, some
from harness import Cluster, TestCase, all_of, job, main, wait_until

ADDED = ["float32", "bfloat16", "int64", "int8", "uint8"]
COPIED = ["float64", "int8", "bytes"]
REDUCING = ["reduce_scatter", "reduce"]
COPYING = ["allgather", "broadcast"]
ROOTED = ["broadcast", "reduce"]
ODD_SIZES = "72,999,8129,100003,1000001"
ROW = [[1, digit] for digit in range(RADIX)]


class Kinds(TestCase):
    def perf_kind(self, cluster, kind, *flags):
        return cluster.answer("perf", kind, "--check", "--iterations", "2", "--warmup", "0", *flags)

    def check_kind(self, cluster, kind, ranks, *flags, types=slice(None)):
        """One kind with these types of interest, and with the first, a middle and the last root in turn."""
        roots = [0, ranks // 2, ranks - 1]
        first = types.start or 0
        dtypes = (ADDED if kind in REDUCING else COPIED)[types]
        cases = [(dtype, roots[number % 3] if kind in ROOTED else None) for number, dtype in enumerate(dtypes, first)]
        for dtype, root in some(cases, 1):
            with self.subTest(kind=kind, dtype=dtype, root=root, flags=flags):
                extra = [] if root is None else ["--root", str(root)]
                answer = self.perf_kind(cluster, kind, "--sizes", ODD_SIZES, "--dtype", dtype, *extra, *flags)
                self.assertEqual(answer["collective"], kind)
                self.assertEqual(answer.get("root"), root)
                self.assertEqual(len(answer["results"]), 5)
                self.assert_right(answer["results"])

    @only_on("embedded", why="there servers share the pollers of several lcores")
    def test_short_all_reduces_wake_each_poller_that_has_a_part_in_them(self):
        """One that is not woken sleeps for 100 ms: a thousand would take longer than this waits."""
        for topology in ("bcube:3,2", "bcube:2,3"):  # the plan's thread is at the leaders', or not
            with self.subTest(topology=topology), Cluster("--topology", topology, "--greeting", "0") as cluster:
                self.assert_right(cluster.perf("--sizes", "1K", "--iterations", "1000", timeout=PATIENCE))

    def test_every_kind_is_right_on_plans_with_rings_and_roots(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01"), "--seed", str(self.seed)) as cluster:
            algorithms = ["hips:ring,2xroot", f"ps:{RADIX - 1},1 0,0", "two-level"]
            for first, algorithm in some(list(enumerate(algorithms)), 1):
                for kind in REDUCING + COPYING:
                    self.check_kind(cluster, kind, SERVERS, "--algorithm", algorithm, types=slice(first, None, 3))
                self.assert_right(self.perf_kind(cluster, "barrier", "--algorithm", algorithm)["results"])

    def test_every_kind_is_right_where_auto_takes_several_plans(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01"), "--seed", str(self.seed)) as cluster:
            for kind in REDUCING + COPYING:
                with self.subTest(kind=kind):
                    root = ["--root", str(SERVERS // 2)] if kind in ROOTED else []
                    answer = self.perf_kind(
                        cluster, kind, "--sizes", "0,36,1K,20K,300K", *root, "--algorithm", "auto:20us,5us"
                    )
                    self.assert_right(answer["results"])

    def check_all(self, topology, *flags, types=slice(None)):
        with Cluster("--topology", topology, *flags) as cluster:
            ranks = len(cluster.sockets())
            for kind in REDUCING + COPYING:
                self.check_kind(cluster, kind, ranks, types=types)
            self.assert_right(self.perf_kind(cluster, "barrier")["results"])

    def test_every_kind_is_right_on_a_grid(self):
        self.check_all(GRID)

    @needs_many_servers
    def test_every_kind_is_right_with_three_levels(self):
        self.check_all("bcube:2,3", types=slice(0, None, 2))

    def test_every_kind_is_right_on_a_star(self):
        self.check_all("star:5" if FABRIC == "embedded" else "star:3")

    @needs_faults
    def test_every_kind_is_right_with_loss(self):
        self.check_all(GRID, "--loss", "0.01", "--seed", str(self.seed), types=slice(1, None, 2))

    def test_every_operation_of_the_kinds_that_add_is_right(self):
        with Cluster("--topology", GRID) as cluster:
            for kind in REDUCING:
                for operation in some(("average", "min", "max"), 1):
                    with self.subTest(kind=kind, operation=operation):
                        flags = ("--sizes", ODD_SIZES, "--op", operation, "--dtype", "float16")
                        self.assert_right(self.perf_kind(cluster, kind, *flags)["results"])

    def test_many_collectives_in_flight_are_right(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01"), "--seed", str(self.seed)) as cluster:
            for kind in REDUCING + COPYING:
                flags = ("--sizes", "100,9999,300007", "--in-flight", "16")
                self.assert_right(self.perf_kind(cluster, kind, *flags)["results"])
            self.assert_right(self.perf_kind(cluster, "barrier", "--in-flight", "100")["results"])


class Comparisons(TestCase):
    """What is compared is the weights, say, that all have got by an all-reduce."""

    def compare(self, session, data, lane=0):
        try:
            session.compare(data, PATIENCE, lane)
        except gradcube.Error as failure:
            return failure
        return None

    def test_all_trainers_learn_who_has_other_bytes_and_the_job_goes_on(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01"), "--seed", str(self.seed)) as cluster:
            with job(cluster, "weights", lanes=[None, "auto"]) as sessions:
                for lane, count in (0, 1), (0, 100_003), (1, 4096), (0, 0):
                    weights = [numpy.arange(count, dtype="float32") for _ in sessions]
                    self.assertEqual(all_of(lambda s: self.compare(s, weights[s.rank], lane), sessions), [None] * SERVERS)
                    if count == 0:
                        continue
                    weights[1].view("uint8")[count // 2] ^= 16
                    for result in all_of(lambda s: self.compare(s, weights[s.rank], lane), sessions):
                        words = '"weights"', "rank 1 differs", f"other {SERVERS - 1}", f"lane {lane}"
                        self.assert_fails(gradcube.CorruptError, result, *words)
                for result in all_of(lambda s: self.compare(s, bytes(5 if s.rank == 2 else 4)), sessions):
                    self.assert_fails(gradcube.CorruptError, result, "rank 2 (5 bytes) differs")
                self.assertEqual(all_of(lambda s: self.compare(s, b"the same"), sessions), [None] * SERVERS)


class Members(TestCase):
    def perf_members(self, cluster, members, kind, *flags):
        text = " ".join(",".join(str(digit) for digit in address) for address in members)
        return cluster.answer(
            "perf", kind, "--check", "--iterations", "2", "--sizes", "999,100003", "--members", text, *flags
        )

    def test_every_kind_is_right_on_a_row_a_column_and_a_rectangle(self):
        column = [[digit, 1] for digit in range(RADIX)]
        rectangle = [[high, low] for high in range(RADIX) for low in (0, RADIX - 1)]
        with Cluster("--topology", GRID, *faults("--loss", "0.01"), "--seed", str(self.seed)) as cluster:
            for members in (ROW, column, rectangle):
                for kind in some(("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce")):
                    root = ["--root", str(len(members) - 1)] if kind in ROOTED else []
                    with self.subTest(kind=kind, members=members):
                        answer = self.perf_members(cluster, members, kind, *root)
                        self.assertEqual(answer["members"], members)
                        self.assert_right(answer["results"])

    def test_servers_that_are_no_members_send_and_receive_nothing(self):
        with Cluster("--topology", GRID, "--greeting", "0") as cluster:
            self.assert_right(self.perf_members(cluster, ROW, "allreduce", "--algorithm", "bml")["results"])
            for server in cluster.status()["servers"]:
                for port in server["ports"]:
                    used = server["address"] in ROW and port["level"] == 0
                    self.assertEqual(port["rx_packets"] > 0, used, server)

    def test_jobs_on_two_rows_run_side_by_side(self):
        with Cluster("--topology", GRID) as cluster, contextlib.ExitStack() as stack:
            rows = [" ".join(f"{high},{low}" for low in range(RADIX)) for high in (0, RADIX - 1)]
            tools = [
                cluster.start_tool(
                    "perf", "allreduce", "--check", "--iterations", "20", "--sizes", "1M", "--members", row
                )
                for row in rows
            ]
            for tool in tools:
                stack.enter_context(tool)
            for tool in tools:
                out, err = tool.communicate(timeout=PATIENCE)
                self.assertEqual(tool.returncode, 0, err)
                self.assertIn(f"{RADIX} of {SERVERS} servers", out)


@only_on("embedded", why="this names servers of bcube:3,2")
class Refusals(TestCase):
    def test_what_does_not_fit_the_running_cluster_is_refused_with_one_message(self):
        cases = [
            (["allreduce", "--algorithm", "bml", "--members", "0,0 0,1 1,0"], ["bml", "form no grid", "[1,1]", "mesh"]),
            (["allreduce", "--members", "0,0 0,0"], ["--members", "named twice"]),
            (["allreduce", "--members", "0,0 3,1"], ["--members"]),
            (["allreduce", "--members", "0,0"], ["one server alone"]),
            (["allreduce", "--algorithm", "magic"], ["--algorithm", "expected bml"]),
            (["broadcast", "--root", "9"], ["--root", "expected 0 to 8"]),
            (["reduce", "--root", "3", "--members", "0,0 0,1 0,2"], ["--root", "expected 0 to 2"]),
            (["allgather", "--sizes", "35"], ["35 B", "36 B or more"]),
        ]
        with Cluster("--topology", GRID) as cluster:
            for arguments, words in cases:
                with self.subTest(arguments=arguments):
                    self.assert_one_message(cluster.tool("perf", *arguments), 2, *words)
            wait_until(lambda: cluster.status()["jobs"] == [], "no job to be there")

    def test_a_reduce_scatter_that_is_not_done_is_named(self):
        with Cluster("--topology", "star:3", "--rate", "1mbit") as cluster:
            done = cluster.tool("perf", "reduce-scatter", "--sizes", "10M", "--timeout", "0.3")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("a reduce-scatter of 9999996 bytes is not done", done.stderr)


if __name__ == "__main__":
    main()
