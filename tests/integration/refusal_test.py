"""What is refused, and never begins: algorithms and roots that there are not or that the topology cannot run, and flags
and files of `up`. One message says why and what could run."""

import tempfile

import gradcube
import numpy

from harness import Cluster, TestCase, job, main, wait_until

# On nine servers of two levels: the name, why it is refused, and what could run.
REFUSED = (
    ("bogus", 'algorithm "bogus": there is no such algorithm', "expected bml, blueconnect"),
    ("bml:2", "bml takes no parameters", "expected bml alone"),
    ("halving_doubling", "on 9 servers: every step halves them", "runs on these servers: bml, blueconnect"),
    ("blueconnect:3x3,halving_doubling", "3 servers cannot be halved down to one", "or the pattern ring"),
    ("blueconnect:4x3", "the product of 4x3 is not 9", "for example 3x3"),
    ("blueconnect:3x3,ring,ring,ring", "it lists 3 patterns", "expected 1 for all stages, or 2"),
    ("hips:mesh,ring,mesh", "it lists 3 patterns", "expected 1 for all stages, or 2"),
    ("hips:star", 'no stage runs the pattern "star"', "expected mesh, ring, root, or 2xroot"),
    ("ps:3,0", "is not a server's address", "must be 0..2"),
)


class Refusals(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:3,2")
        cls.addClassCleanup(cls.cluster.end)

    def test_a_session_is_told_why_and_what_could_run(self):
        path = self.cluster.sockets()[0]
        for algorithm, why, what in REFUSED:
            with self.subTest(algorithm=algorithm):
                with self.assertRaises(gradcube.InvalidError) as caught:  # GRADCUBE_EINVAL of gradcube_open()
                    gradcube.Session(path, "refused", algorithm=algorithm)
                self.assertEqual(caught.exception.code, -1)
                self.assert_fails(gradcube.InvalidError, caught.exception, why, what)
        wait_until(lambda: self.cluster.status()["jobs"] == [], "no job to be there")
        self.assert_works(self.cluster, "refused")

    def test_a_lane_is_told_as_well_as_a_job(self):
        lanes = [("ring", 0), ("hips:mesh,ring,mesh", 0)]
        with self.assertRaises(gradcube.InvalidError) as caught:
            gradcube.Session(self.cluster.sockets()[0], "refused", lanes=lanes)
        self.assertIn("it lists 3 patterns", str(caught.exception))

    def test_perf_is_told_in_one_message(self):
        for algorithm, why, what in REFUSED:
            with self.subTest(algorithm=algorithm):
                done = self.cluster.tool("perf", "allreduce", "--algorithm", algorithm, "--sizes", "1K")
                self.assert_one_message(done, 2, why.removeprefix("algorithm "), what)

    def test_ranks_and_lanes_that_are_not_there_are_told_which_there_are(self):
        with job(self.cluster, "root", lanes=["ring", None]) as sessions:
            one, ones = sessions[0], numpy.ones(9, "float32")
            for wrong in (-1, 9, 1 << 40):
                for name, call, there in (
                    ("root", lambda its: one.reduce(ones, root=its), "0 to 8"),
                    ("root", lambda its: one.broadcast(ones, root=its), "0 to 8"),
                    ("rank", lambda its: one.send(ones, its), "0 to 8"),
                    ("rank", lambda its: one.recv(ones, its), "0 to 8"),
                    ("lane", lambda its: one.allreduce(ones, lane=its), "0 to 1"),
                    ("lane", lambda its: one.barrier(lane=its), "0 to 1"),
                    ("lane", lambda its: one.compare(ones, lane=its), "0 to 1"),
                    ("lane", lambda its: gradcube.Hub(one, {"ones": ones}, lane=its, timeout=1), "0 to 1"),
                ):
                    with self.assertRaises(gradcube.InvalidError) as caught:
                        call(wrong)
                    self.assertEqual(str(caught.exception), f"invalid {name} {wrong}: expected {there}")
        done = self.cluster.tool("perf", "reduce", "--root", "9", "--sizes", "1K")
        self.assert_one_message(done, 2, "--root", "9")


class RefusedUp(TestCase):
    """One message: what, where, what is accepted; exit 2; nothing started."""

    def check(self, *words, flags):
        with Cluster(up=False) as cluster:
            self.assert_one_message(cluster.tool("up", *flags), 2, *words)
            self.assertEqual(cluster.files(), [], "something was started")

    def test_a_topology_of_no_ports(self):
        self.check("--topology", "bcube:0,2", flags=["--topology", "bcube:0,2"])

    def test_a_topology_cut_short(self):
        self.check("--topology", "bcube:3", "bcube:n,k", flags=["--topology", "bcube:3"])
        self.check("--topology", "bcube:4x", "bcube:4x3x2", flags=["--topology", "bcube:4x"])

    def test_a_topology_that_there_is_not(self):
        self.check("--topology", "ring:4", "bcube:", "star:", flags=["--topology", "ring:4"])

    def test_a_topology_of_too_many_servers(self):
        self.check("--topology", flags=["--topology", "bcube:99999999,4"])

    def test_a_rate_without_a_unit(self):
        self.check("--rate", "200", "mbit", flags=["--rate", "200"])

    def test_a_loss_above_one(self):
        self.check("--loss", flags=["--loss", "1.5"])

    def test_a_cluster_file_with_an_unknown_key(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('[link]\nrate = "1gbit"\nspeed = 3\n')
            file.flush()
            self.check(file.name, "line 3", "speed", "rate", flags=["--cluster", file.name])

    def test_a_cluster_file_that_is_none(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("topology = bcube:3,2\n")
            file.flush()
            self.check(file.name, flags=["--cluster", file.name])

    def test_a_cluster_file_that_is_not_there(self):
        self.check("/nowhere.toml", flags=["--cluster", "/nowhere.toml"])


if __name__ == "__main__":
    main()
