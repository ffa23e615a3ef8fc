"""`gradcube check` and `gradcube paths` on a real cluster: what they say of links that are right, down, lossy and slow."""

from fabrics import faults, needs_faults
from harness import Cluster, TestCase, main, wait_until

# How fast a link is, and what is sent again, depends on what else the machine does.
LENIENT = ("--least-rate", "0.01", "--most-lost", "0.9")


class Check(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2", "--rate", "100mbit")
        cls.addClassCleanup(cls.cluster.end)

    def tearDown(self):
        self.cluster.answer("impair", *faults("--clear"), "--up")
        wait_until(lambda: not self.cluster.links_down(), "all links to be seen again")

    def test_measures_every_link_once(self):
        code, report = self.cluster.check(*LENIENT)
        self.assertEqual((code, report["ok"]), (0, True), report)
        pairs = [(link["level"], *map(tuple, link["between"])) for link in report["links"]]
        expected = [(0, (0, 0), (0, 1)), (0, (1, 0), (1, 1)), (1, (0, 0), (1, 0)), (1, (0, 1), (1, 1))]
        self.assertEqual(pairs, expected)
        for link in report["links"]:
            self.assertEqual(link["configured_bps"], 100e6)
            self.assertGreater(link["payload_bps"], 0)
            self.assertLess(link["payload_bps"], 125e6)
            self.assertGreater(link["sent"], 0)
            self.assertGreaterEqual(link["core_wait"], 0)
        wait_until(lambda: self.cluster.status()["jobs"] == [], "the jobs to be forgotten")

    def test_a_link_that_is_down_is_named_and_its_paths_are_and_no_costs_are_fitted(self):
        self.cluster.answer("impair", "--server", "1,0", "--port", "1", "--down")
        wait_until(lambda: ((1, 0), 1) in self.cluster.links_down(), "the cut to be seen")
        code, report = self.cluster.check(*LENIENT, down=1)
        self.assertEqual(code, 1)
        problems = [link["problem"] for link in report["links"] if link["problem"]]
        self.assertEqual(len(problems), 1, report)
        self.assertRegex(problems[0], r"down: \[.,0\] does not hear \[.,0\]")
        done = self.cluster.tool("model", "fit")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"the link between \[0,0\] and \[1,0\] at level 1 is not as configured: down")
        self.check_paths_are_down()

    def check_paths_are_down(self):
        paths = lambda: self.cluster.answer("paths", "--from", "0,0", "--to", "1,1")["paths"]
        expected = [([0, 1], "answers"), ([1, 0], "down")]
        wait_until(lambda: [(path["ports"], path["state"]) for path in paths()] == expected, f"{expected}")
        self.assertIsNone(paths()[1]["left_bps"])
        text = lambda: self.cluster.tool("paths", "--from", "0,0", "--to", "1,1").stdout
        wait_until(lambda: "from [0,0] to [1,1]: 1 of 2 paths answer" in text(), "the same in words")

    @needs_faults
    def test_names_links_that_lose_frames(self):
        self.cluster.answer("impair", "--loss", "0.1")
        code, report = self.cluster.check("--least-rate", "0", "--most-lost", "0.001")
        self.assertEqual(code, 1)
        self.assertIn("lossy", " ".join(link["problem"] or "" for link in report["links"]))

    def test_names_links_that_are_slow(self):
        code, report = self.cluster.check("--least-rate", "1", "--most-lost", "1")  # headers have a share
        self.assertEqual(code, 1)
        # Not each: what a bucket of the kernel's has saved up can make up for a link's headers.
        self.assertIn("slow", " ".join(link["problem"] or "" for link in report["links"]))

    def test_prints_a_table_for_people(self):
        done = None

        def all_are_up():
            nonlocal done
            done = self.cluster.tool("check", *LENIENT)
            return "down: " not in done.stdout

        wait_until(all_are_up, "all links to be seen at once")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("all 4 links of bcube:2,2 are as configured", done.stdout)

    def test_refuses_what_makes_no_sense(self):
        for arguments in (["--least-rate", "2"], ["--timeout", "nan"], ["--job", "a b"], ["--job", "x" * 49]):
            done = self.cluster.tool("check", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(arguments[0], done.stderr)

    def test_shows_what_paths_have_left(self):
        paths = []

        def all_answer():
            paths[:] = self.cluster.answer("paths", "--from", "0,0", "--to", "1,1")["paths"]
            return [path["state"] for path in paths] == ["answers", "answers"]

        wait_until(all_answer, "both paths to answer")
        self.assertEqual([path["servers"][1] for path in paths], [[0, 1], [1, 0]])
        for path in paths:
            self.assertGreater(path["round_trip_ns"], 0)
            self.assertGreater(path["left_bps"], 0)
            self.assertLessEqual(path["left_bps"], 100e6)

    def test_refuses_paths_of_servers_that_there_are_not(self):
        for arguments in (["--from", "0,2", "--to", "1,1"], ["--from", "1,1", "--to", "1,1"]):
            done = self.cluster.tool("paths", *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--from", done.stderr)


if __name__ == "__main__":
    main()
