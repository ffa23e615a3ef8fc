"""A tree of switches from the command line: racks whose servers share uplinks."""

from fabrics import FABRIC, some
from harness import Cluster, TestCase, main


class Tree(TestCase):
    def test_every_kind_is_right_and_status_counts_what_passes_the_uplinks(self):
        flags = ("--rate", "level0=200mbit,level1=100mbit")
        with Cluster("--topology", "tree:2x2", *flags, "--seed", str(self.seed)) as cluster:
            status = cluster.status()
            expected = {"spec": "tree:2x2", "kind": "tree", "radices": [2, 2], "k": 2, "servers": 4}
            self.assertEqual(status["topology"], expected)
            self.assertEqual(status["algorithm"], "blueconnect")
            self.assertEqual(status["rate_bps"], [200_000_000, 100_000_000])
            for server in status["servers"]:
                self.assertEqual([port["rate_bps"] for port in server["ports"]], [200_000_000])
            for algorithm in some(("blueconnect", "ring", "two-level", "bml", "hips:root", "mesh", "auto"), 3):
                with self.subTest(algorithm=algorithm):
                    self.assert_right(cluster.perf("--sizes", "0,4,1K,300K", "--algorithm", algorithm))
            for kind in ("reduce_scatter", "allgather", "broadcast", "reduce", "barrier"):
                flags = [] if kind == "barrier" else ["--sizes", "72,8129,100K"]
                flags += ["--root", "3"] if kind in ("broadcast", "reduce") else []
                with self.subTest(kind=kind):
                    self.assert_right(cluster.answer("perf", kind, "--check", "--iterations", "1", *flags)["results"])
            before = self.crossed(cluster)
            self.assert_right(cluster.perf("--sizes", "1M", "--iterations", "1", "--members", "2 3"))
            between = self.crossed(cluster)
            self.assert_right(cluster.perf("--sizes", "1M", "--iterations", "1", "--members", "1 2"))
            if FABRIC == "veth":  # its bridges count nothing
                return
            # Greetings and messages between daemons alone pass an uplink then.
            self.assertLess(between - before, 1_000_000)
            # Up and down, each way half of the buffer in each of the two stages, warm-up included.
            self.assertGreater(self.crossed(cluster) - between, 4_000_000)

    def crossed(self, cluster):
        return sum(switch["bytes"] for switch in cluster.status()["switches"] if "link [" in switch["name"])

    def test_perf_knows_the_bound_of_an_oversubscribed_uplink(self):
        with Cluster("--topology", "tree:2x2", "--rate", "200mbit", "--oversubscription", "4") as cluster:
            self.assertEqual(cluster.status()["rate_bps"], [200_000_000, 100_000_000])
            report = cluster.answer("perf", "allreduce", "--check", "--sizes", "1M", "--algorithm", "ring")
            self.assert_right(report["results"])
            row = report["results"][0]
            # A ring brings 2(N-1)/N of the buffer to each uplink.
            self.assertAlmostEqual(row["bound_seconds"], 1.5 * 8e6 / 100e6, delta=0.001)
            self.assertGreater(row["seconds_median"], 0.9 * row["bound_seconds"])


if __name__ == "__main__":
    main()
