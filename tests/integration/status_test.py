"""What an operator sees of a running cluster: the straggler, the bad link, and output that cannot be written."""

import re
import subprocess
import threading

import numpy

from fabrics import FABRIC, GRID, MIDDLE, PATIENCE, RADIX, SERVERS, TOOL, faults, needs_cuts, needs_faults, only_on
from harness import Cluster, TestCase, job, main, wait_until


def dropped_by_switch(cluster):
    return {switch["name"]: switch["dropped_loss"] for switch in cluster.status()["switches"]}


class Straggler(TestCase):
    def test_status_names_the_trainer_for_whom_a_job_waits_and_since_when(self):
        with Cluster("--topology", GRID) as cluster, job(cluster, "mnist") as sessions:
            late = sessions[MIDDLE]
            threads = [
                threading.Thread(target=self.reduce_twice, args=(session,), daemon=True)
                for session in sessions
                if session is not late
            ]
            for thread in threads:
                thread.start()
            late.allreduce(numpy.ones(1000, "float32"), timeout=PATIENCE)
            wait_until(lambda: cluster.job("mnist")["waiting_for"] == [[1, 1]], "the straggler to be named")
            if FABRIC == "embedded":  # daemons of one server each do not know how long
                wait_until(lambda: cluster.job("mnist")["waiting_ms"] >= 300, "some time to pass")
            seen = cluster.job("mnist")
            trainers = {tuple(trainer["address"]): trainer for trainer in seen["trainers"]}
            self.assertEqual(len(trainers), SERVERS)
            for address, trainer in trainers.items():
                self.assertEqual(trainer["submitted"], 1 if address == (1, 1) else 2, trainer)
                self.assertEqual(trainer["completed"], 1, trainer)

            text = cluster.tool("status").stdout
            pid = trainers[(1, 1)]["pid"]
            self.assertRegex(text, rf"mnist +{seen['id']} .* has waited ([0-9.]+ m?s )?for \[1,1\] \(pid {pid}\)")
            self.assertRegex(text, rf"\[1,1\] +{pid} +1 +1 +the others have waited")
            self.assertEqual(len(re.findall(rf"\[\d,\d\] +{pid} +2 +1\n", text)), SERVERS - 1, text)

            late.allreduce(numpy.ones(1000, "float32"), timeout=PATIENCE)
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(cluster.job("mnist")["waiting_for"], [])

    def reduce_twice(self, session):
        for _ in range(2):
            session.allreduce(numpy.ones(1000, "float32"), timeout=PATIENCE)

    def test_status_names_the_servers_whose_trainers_have_not_joined(self):
        with Cluster("--topology", "star:4") as cluster, job(cluster, "early", servers=[0, 2]):
            self.assertEqual(cluster.job("early")["waiting_for"], [[1], [3]])
            since = " in " if FABRIC == "embedded" else ""
            self.assertRegex(cluster.tool("status").stdout, rf"\[3\] +- +- +- +has not joined{since}")


@needs_faults
class OneBadLink(TestCase):
    def test_is_made_found_and_taken_back(self):
        with Cluster("--topology", GRID, "--seed", str(self.seed)) as cluster:
            made = cluster.answer("impair", "--server", "1,1", "--level", "1", "--loss", "0.2")
            self.assertEqual(made["changed"], 1)

            def loses_frames():  # not while its ends, on busy cores, take it for broken and send round it
                self.assert_right(cluster.perf("--sizes", "1M", "--iterations", "3"))
                return dropped_by_switch(cluster)["1/[*,1]"] > 0

            wait_until(loses_frames, "the link to lose frames")
            dropped = {name for name, frames in dropped_by_switch(cluster).items() if frames != 0}
            self.assertEqual(dropped, {"1/[*,1]"})

            (link,) = cluster.status()["impaired_links"]
            self.assertEqual((link["server"], link["level"], link["loss"]), ([1, 1], 1, 0.2))
            self.assertRegex(cluster.tool("status").stdout, r"1/\[\*,1\] +\[1,1\] +1  loss 20 %")

            cluster.answer("impair", "--server", "1,1", "--clear")
            self.assertEqual(cluster.status()["impaired_links"], [])
            before = dropped_by_switch(cluster)
            self.assert_right(cluster.perf("--sizes", "1M", "--iterations", "3"))
            self.assertEqual(dropped_by_switch(cluster), before)

    def test_a_filter_that_fits_nothing_is_refused_and_changes_nothing(self):
        with Cluster("--topology", GRID) as cluster:
            for flags, word in (
                (["--server", f"{RADIX},0"], f"0..{RADIX - 1}"),
                (["--level", "2"], "0 to 1"),
                (["--switch", "x"], "0/[0,*]"),
                (["--switch", "1/[*,0]", "--server", "1,1"], "1/[*,1]"),
            ):
                self.assert_one_message(cluster.tool("impair", "--loss", "1", *flags), 2, word)
            status = cluster.status()
            self.assertEqual((status["impairments"]["loss"], status["impaired_links"]), (0, []))


@needs_cuts
class LinksDown(TestCase):
    def test_are_chosen_by_their_server_their_level_their_switch_or_all(self):
        with Cluster("--topology", GRID) as cluster:
            for flags, links in (
                (["--server", "1,1", "--port", "0"], {("[1,1]", "0/[1,*]")}),
                (["--server", "[1,1]"], {("[1,1]", "0/[1,*]"), ("[1,1]", "1/[*,1]")}),
                (["--server", "1,1", "--level", "1"], {("[1,1]", "1/[*,1]")}),
                (["--switch", "1/[*,1]"], {(f"[{server},1]", "1/[*,1]") for server in range(RADIX)}),
            ):
                with self.subTest(flags=flags):
                    self.assertEqual(cluster.answer("impair", "--down", *flags)["changed"], len(links))
                    self.assertEqual(self.down(cluster), links)
                    self.assertEqual(cluster.answer("impair", "--up", *flags)["impaired_links"], [])
            for back in ("--up", *faults("--clear")):
                self.assertFalse(cluster.answer("impair", "--down")["impairments"]["up"])
                self.assertRegex(cluster.tool("status").stdout, "impairments +down\n")
                self.assertTrue(cluster.answer("impair", back)["impairments"]["up"])

    def test_are_refused_where_there_are_none(self):
        with Cluster("--topology", GRID) as cluster:
            for flags, words in (
                (["--server", f"{RADIX},0"], [f'"{RADIX},0"', f"0..{RADIX - 1}"]),
                (["--server", "1,1", "--port", "2"], ["port 2", "0 to 1"]),
            ):
                self.assert_one_message(cluster.tool("impair", "--down", *flags), 2, *words)
            self.assertEqual(self.down(cluster), set())

    def down(self, cluster):
        """The links that are down, as `gradcube status` shows them: {(server, switch)}."""
        rows = re.findall(r"(\S+) +(\[\d,\d\]) +\d  down\n", cluster.tool("status").stdout)
        return {(server, switch) for switch, server in rows}


class Perf(TestCase):
    def test_measures_the_ranges_of_nccl_tests_and_prints_their_bandwidths(self):
        with Cluster("--topology", "star:3") as cluster:
            flags = ["perf", "allreduce", "-b", "1K", "-e", "16Ki", "-f", "4", "-n", "2", "-w", "0"]
            answer = cluster.answer(*flags)
            rows = answer["results"]
            self.assertEqual([row["bytes"] for row in rows], [1000, 4000, 16000])
            for row in rows:
                self.assertAlmostEqual(row["algbw"], row["bytes"] / row["seconds_median"] / 1e9)
                self.assertAlmostEqual(row["busbw"], row["algbw"] * 2 * 2 / 3)
                self.assertIsInstance(row["resent"], int)
            mean = sum(row["busbw"] for row in rows) / 3
            self.assertAlmostEqual(answer["average_busbw"], mean)
            table = cluster.tool(*flags).stdout
            self.assertRegex(table, r"algbw +busbw .* resent\n")
            self.assertRegex(table, r"# average bus bandwidth: [0-9.e-]+ GB/s\n")

    @only_on("embedded", why="daemons of one server each could not even begin a job")
    def test_a_measurement_that_takes_too_long_names_its_timeout_and_the_reason(self):
        with Cluster("--topology", "star:4") as cluster:
            cluster.answer("impair", "--loss", "1")
            done = cluster.tool("perf", "allreduce", "--sizes", "1K", "--timeout", "0.5", "--json")
            self.assert_one_message(done, 1, "not done after 0.5 s (--timeout)", "loss 100 %")


class FullDisk(TestCase):
    def test_commands_fail_when_their_output_cannot_be_written(self):
        with Cluster("--topology", "star:2") as cluster:
            links = [] if FABRIC == "udp" else [["impair", "--up"]]  # which are the network's there
            for flags in (["status"], *links, ["perf", "allreduce", "--sizes", "4"]):
                for format_flags in ([], ["--json"]):
                    with self.subTest(flags=flags + format_flags), open("/dev/full", "w") as full:
                        done = subprocess.run(
                            [TOOL, *flags, *format_flags],
                            env=cluster.environment,
                            stdin=subprocess.DEVNULL,
                            stdout=full,
                            stderr=subprocess.PIPE,
                            text=True,
                            timeout=PATIENCE,
                        )
                        self.assertEqual(done.returncode, 1, done.stderr)
                        self.assertIn("cannot write to standard output: No space left", done.stderr)


if __name__ == "__main__":
    main()
