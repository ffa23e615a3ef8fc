"""A torus from the command line: cables in the place of switches, and every server's ports."""

from fabrics import FABRIC, faults, needs_many_servers, some
from harness import Cluster, TestCase, main, wait_until


class Torus(TestCase):
    def test_algorithms_are_right_bit_by_bit_also_over_lossy_cables(self):
        for topology in ("torus:3,2", "torus:4,2") if FABRIC == "embedded" else ("torus:3,1",):
            with Cluster("--topology", topology, "--seed", str(self.seed)) as cluster:
                for algorithm in some(("hips:ring", "ring", "blueconnect", "hips:mesh", "mesh", "ps"), 3):
                    self.assert_right(cluster.perf("--sizes", "1K,500K", "--algorithm", algorithm))
                self.assertEqual(cluster.status()["algorithm"], "hips:ring")
                if not faults("--loss"):
                    continue
                cluster.answer("impair", "--loss", "0.02", "--reorder", "0.05")
                before = cluster.status()["counters"]["resent"]
                self.assert_right(cluster.perf("--sizes", "1K,2M", "--iterations", "3"))
                self.assertGreater(cluster.status()["counters"]["resent"], before)

    @needs_many_servers
    def test_algorithms_are_right_in_three_dimensions(self):
        with Cluster("--topology", "torus:3,3", "--loss", "0.01", "--seed", str(self.seed)) as cluster:
            for server in cluster.status()["servers"]:
                self.assertEqual([port["level"] for port in server["ports"]], [0, 0, 1, 1, 2, 2])
            for algorithm in ("hips:ring", "hips:mesh,ring,mesh", "ring", "blueconnect"):
                with self.subTest(algorithm=algorithm):
                    self.assert_right(
                        cluster.perf("--sizes", "0,4,1K,300K", "--iterations", "1", "--algorithm", algorithm)
                    )

    def test_every_kind_is_right_with_every_pattern(self):
        topology = "torus:3,2" if FABRIC == "embedded" else "torus:3,1"
        with Cluster("--topology", topology, *faults("--loss", "0.01"), "--seed", str(self.seed)) as cluster:
            last = len(cluster.sockets()) - 1
            algorithms = ("hips:ring", "ring", "blueconnect", "hips:root")
            kinds = ("reduce_scatter", "allgather", "broadcast", "reduce", "barrier")
            # Each kind with two of the algorithms, and each algorithm with two or more kinds.
            cases = [(kind, algorithms[number % 4]) for number, kind in enumerate(sorted(2 * kinds))]
            for kind, algorithm in some(cases, 5):
                flags = [] if kind == "barrier" else ["--sizes", "72,8129,300K"]
                flags += ["--root", str(last)] if kind in ("broadcast", "reduce") else []
                with self.subTest(algorithm=algorithm, kind=kind):
                    flags += ["--algorithm", algorithm]
                    answer = cluster.answer("perf", kind, "--check", "--iterations", "1", *flags)
                    self.assertEqual(answer["collective"], kind)
                    self.assert_right(answer["results"])

    def test_status_names_the_ports_and_a_cable_that_is_down_at_both_ends(self):
        with Cluster("--topology", "torus:3,2", "--greeting", "20ms" if FABRIC == "embedded" else "80ms") as cluster:
            status = cluster.status()
            self.assertEqual(len(status["switches"]), 0 if FABRIC == "veth" else 18)  # the kernel's, or cables
            for server in status["servers"]:
                self.assertEqual([port["port"] for port in server["ports"]], [0, 1, 2, 3])
                self.assertEqual([port["level"] for port in server["ports"]], [0, 0, 1, 1])

            cluster.answer("impair", "--server", "2,1", "--port", "2", "--down")
            self.assert_right(cluster.perf("--sizes", "1K,1M", "--iterations", "3"))
            ends = [([0, 1], 3, [2, 1]), ([2, 1], 2, [0, 1])]
            wait_until(lambda: self.down(cluster) == ends, "the cable to be found to be down")
            self.assertGreater(cluster.status()["counters"]["relayed"], 0)
            _, report = cluster.check("--most-lost", "0.9", "--least-rate", "0", down=1)
            self.assertEqual(len(report["links"]), 18)
            bad = [link["between"] for link in report["links"] if link["problem"]]
            self.assertEqual(bad, [[[0, 1], [2, 1]]])
            cluster.answer("impair", "--up")
            wait_until(lambda: self.down(cluster) == [], "the cable to be found to be up")

    def down(self, cluster):
        return [
            (server["address"], port["port"], neighbour)
            for server in cluster.status()["servers"] for port in server["ports"] for neighbour in port["down"]
        ]


if __name__ == "__main__":
    main()
