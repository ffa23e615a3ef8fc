"""What the commands refuse, and what they read from files. What they print is in transcript.txt."""

import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from gradcube.model import commands, printable, report, units
from gradcube.model.failure import Failure, UsageError

THREE_LAYERS = {"alpha": 2, "beta": 1, "layers": [{"bytes": 1, "backward_seconds": 1}] * 3}


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def run_command(self, *words):
        """(exit code, standard output, standard error)"""
        err = []
        with tempfile.TemporaryFile() as out, mock.patch.object(report, "_STANDARD_OUTPUT", out.fileno()):
            with mock.patch.object(commands, "_complain", err.append):
                code = commands.run([str(word) for word in words])
            out.seek(0)
            return code, out.read().decode(), "".join(err)

    def output(self, *words):
        code, out, err = self.run_command(*words)
        self.assertEqual((code, err), (0, ""), words)
        return out

    def rows(self, *words):
        return json.loads(self.output(*words, "--json"))["rows"]

    def refused(self, what, *words):
        code, out, err = self.run_command(*words)
        self.assertEqual((code, out), (2, ""), words)
        self.assertIn(what, err)
        self.assertNotIn("\n", printable.printable(err, 4000))
        return err

    def file(self, content, name="file.json"):
        path = self.path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


class Words(Commands):
    def test_foreign_text_is_shortened_and_escaped(self):
        foreign = "x" * 20_000 + "\x1b[2J\nsecond line"
        for words in (
            (foreign,),
            ("gst", foreign),
            ("gst", "--topology", foreign),
            ("gst", "--topology", f"bcube:{foreign},2"),
            ("gst", "--algorithm", foreign),
            ("gst", "--switches", "--topology", foreign),
            ("gst", "--factors", foreign, "--rates", "1gbit"),
            ("gst", "--factors", "2", "--rates", foreign),
            ("gst", "--network", foreign, "--factors", "2", "--rates", "1gbit"),
        ):
            err = self.refused("", *words)
            self.assertLess(len(err), 1000)
            self.assertNotIn("\x1b", err)
        self.assertIn(r'"\xff\x00\ty\xc2\x9bé"', self.refused("", "gst", "--topology", "\udcff\0\ty\u009bé"))

    def test_numbers_of_nodes_are_lists_and_ranges_that_double(self):
        for text, counts in (
            ("64", [64]),
            ("4..64", [4, 8, 16, 32, 64]),
            ("3..13", [3, 6, 12]),
            ("7..7", [7]),
            ("9,2..4,9", [9, 2, 4, 9]),
        ):
            self.assertEqual(units.parse_node_counts(text, "--nodes"), counts)
        for text in ("", "1", "0..4", "x", "4..", "..4", "4..x", "4,", ",4", "4...8", "-4", "4.5", "1000000001"):
            self.assertRaises(UsageError, units.parse_node_counts, text, "--nodes")
        self.assertRaises(UsageError, units.parse_node_counts, "9" * 5000, "--nodes")

    def test_times_of_a_byte_have_decimals_and_their_unit(self):
        for text, seconds in (("0ns", 0), ("0.8ns", 0.8e-9), (".5ns", 0.5e-9), ("1e3ns", 1e-6), ("1000000ns", 1e-3)):
            self.assertAlmostEqual(units.parse_seconds_per_byte(text, "--beta"), seconds, delta=1e-20)
        for text in ("0.8", "ns", "-1ns", "nanns", "infns", "1e300ns", "1e-400ns", "0.8us", "1 ns", "-0ns", "1_0ns"):
            self.assertRaises(UsageError, units.parse_seconds_per_byte, text, "--beta")

    def test_sizes_and_durations_are_whole_however_they_are_written(self):
        for text, size in (("12.500M", 12_500_000), ("0.5Ki", 512), ("1000000G", 10**15), ("007", 7), ("1gIb", 2**30)):
            self.assertEqual(units.parse_size(text, "--bytes"), size)
        for text in ("0.1Ki", "1.0000000000000000001K", "9" * 25, ".5K", "5.K", "1..2", "-1", "1e3", "1 K"):
            self.assertRaises(UsageError, units.parse_size, text, "--bytes")
        for text, nanoseconds in (("0", 0), ("0.5ns", 1), ("0.4ns", 0), ("2.5ns", 3), ("3600s", 3600 * 10**9)):
            self.assertEqual(units.parse_duration(text, "--latency"), nanoseconds)
        for text in ("5", "3601s", "-1s", "1h", "9" * 400 + "s"):
            self.assertRaises(UsageError, units.parse_duration, text, "--latency")
        self.assertEqual(units.parse_rate("2.5GBIT", "--rate"), 2.5e9)
        for text in ("0.9mbit", "10.1tbit", "10", "0", "9" * 400 + "bit"):
            self.assertRaises(UsageError, units.parse_rate, text, "--rate")


class Training(Commands):
    COSTS = ("--beta", "0ns", "--gamma", "0ns")

    def test_takes_the_costs_and_the_time_of_computing_that_it_is_given(self):
        # Without messages that cost anything all policies take what is computed.
        free = ("training", "--network", "resnet50", "--nodes", "8", "--alpha", "0", *self.COSTS, "--compute", "200ms")
        for row in self.rows(*free):
            self.assertAlmostEqual(row["iteration_seconds"], 0.2, delta=1e-9)
        # A ring of 2 nodes: a = 2 alpha, b = beta + gamma / 2.
        costs = ("--alpha", "5ms", "--beta", "1.5ns", "--gamma", "1ns", "--compute", "1s")
        (row,) = self.rows("training", "--network", "vgg19", "--nodes", "2", "--policy", "synceasgd", *costs)
        self.assertAlmostEqual(row["iteration_seconds"], 1 + 0.01 + 2e-9 * 4 * 143_667_240, delta=1e-9)

    def test_writes_a_profile_that_merge_reads(self):
        path = self.path / "profile.json"
        rows = self.rows("training", "--network", "googlenet", "--nodes", "64", "--write-profile", path)
        profile = json.loads(path.read_text())
        self.assertEqual((len(profile["layers"]), profile["layers"][0]["name"]), (64, "conv1"))
        self.assertAlmostEqual(profile["alpha"], 126 * 45.26e-6, delta=1e-12)
        merged = json.loads(self.output("merge", "--profile", path, "--json"))["policies"]
        for policy, row in zip(merged, rows, strict=True):
            self.assertEqual(policy["policy"], row["policy"])
            self.assertAlmostEqual(policy["iteration_seconds"], row["iteration_seconds"], delta=1e-12)

    def test_refuses_at_once_to_draw_into_a_folder_that_is_not_there(self):
        self.refused("its folder is not there", "figure", "scale", "--out", self.path / "none" / "f.svg")

    def test_says_where_a_profile_cannot_be_written(self):
        none = self.path / "none" / "p.json"
        code, _, err = self.run_command("training", "--network", "lenet5", "--nodes", "2", "--write-profile", none)
        self.assertEqual(code, 1)
        self.assertIn("--write-profile: cannot write", err)
        self.assertIn("No such file", err)
        path = self.path / "p.json"
        for more in ((), ("--nodes", "64"), ("--network", "vgg19")):
            self.refused("of one network on one number of nodes", "training", "--write-profile", path, *more)
        self.assertFalse(path.exists())


class Merge(Commands):
    def test_takes_the_forward_pass_of_a_profile_and_ignores_fields_that_it_does_not_know(self):
        layer = {"name": "fc", "bytes": 4e3, "backward_seconds": 0.25}
        profile = {"network": "mine", "alpha": 0, "beta": 0, "forward_seconds": 0.5, "layers": [layer]}
        answer = json.loads(self.output("merge", "--profile", self.file(profile), "--json"))
        self.assertEqual([row["iteration_seconds"] for row in answer["policies"]], [0.75] * 4)

    def test_has_a_process_of_the_timeline_for_each_policy_with_the_forward_pass(self):
        trace = self.path / "trace.json"
        profile = {"alpha": 1, "beta": 0, "forward_seconds": 2, "layers": [{"bytes": 1, "backward_seconds": 1}]}
        self.output("merge", "--profile", self.file(profile), "--timeline", trace)
        events = json.loads(trace.read_text())["traceEvents"]
        processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
        self.assertEqual(processes, ["wfbp", "synceasgd", "mgwfbp", "optimal"])
        forward = [(event["ts"], event["dur"]) for event in events if event["name"] == "forward"]
        self.assertEqual(forward, [(0, 2e6)] * 4)

    def test_says_what_is_wrong_with_a_profile(self):
        def layers(*listed):
            return {"alpha": 1, "beta": 1, "layers": list(listed)}

        good = {"bytes": 1, "backward_seconds": 1}
        for content, what in (
            ("", "it is empty"),
            ("{", "it is no JSON"),
            ('{"alpha": NaN}', "it is no JSON"),
            ('{"alpha": 1e999}', "it is no JSON"),
            (b"\x00\xff", "it is no JSON"),
            ("[" * 100_000, "it is no JSON"),
            ("[]", "it is no profile"),
            ({"beta": 1, "layers": []}, '"alpha" is no time in seconds'),
            ({"alpha": True, "beta": 1}, '"alpha" is no time in seconds'),
            ({"alpha": 1, "beta": -1}, '"beta" is no time in seconds for a byte'),
            ({"alpha": 1, "beta": 1.001}, '"beta" is no time in seconds for a byte, 0 to 1'),
            ({"alpha": 1, "beta": "1"}, '"beta" is no time in seconds for a byte'),
            ({"alpha": 1.001e9, "beta": 1}, '"alpha" is no time in seconds, 0 to 10^9'),
            ({"alpha": 1, "beta": 1, "forward_seconds": "1"}, '"forward_seconds" is no time'),
            (layers(), '"layers" is no list with a layer'),
            ({"alpha": 1, "beta": 1, "layers": {}}, '"layers" is no list with a layer'),
            (layers(7), 'layer 1: "bytes" is no whole number'),
            (layers({"bytes": 0, "backward_seconds": 1}), "add its time to the layer before it"),
            (layers({"bytes": 1.5, "backward_seconds": 1}), 'layer 1: "bytes"'),
            (layers({"bytes": 1e18, "backward_seconds": 1}), 'layer 1: "bytes"'),
            (layers({"bytes": 10**400, "backward_seconds": 1}), "it is no JSON"),
            (layers(good, {"bytes": 1}), 'layer 2: "backward_seconds" is no time in seconds'),
            (layers(*[good] * 10_001), '"layers" has 10001 layers, but at most 10000 can be merged'),
        ):
            with self.subTest(what):
                self.refused(what, "merge", "--profile", self.file(content))

    def test_says_which_file_is_none(self):
        self.refused("it cannot be read: No such file or directory; expected", "merge", "--profile", "/none/such")
        self.refused("it cannot be read: Is a directory", "merge", "--profile", self.path)
        self.refused("it is longer than 16 MiB", "merge", "--profile", "/dev/zero")
        pipe = self.path / "pipe"
        os.mkfifo(pipe)
        self.refused("it is empty", "merge", "--profile", pipe)


class Measured(Commands):
    def report(self, **changes):
        """What `gradcube perf allreduce --json` prints, as far as it is read."""
        content = {
            "topology": {"spec": "bcube:4,2", "kind": "bcube", "servers": 16},
            "rate_bps": 8_000_000,
            "results": [
                {"bytes": 1000, "in_flight": 1, "seconds_median": 0.01},
                {"bytes": 1_000_000, "in_flight": 1, "seconds_median": 1.25},
            ],
        }
        content.update(changes)
        return self.file({key: value for key, value in content.items() if value is not None})

    def panel(self, name, path):
        return json.loads(self.output("figure", name, "--measured", path, "--json"))["panels"][0]

    def test_is_shown_beside_the_model(self):
        path = self.report()
        expected = {"name": "measured: bml on bcube:4,2", "origin": "measured", "x": [0.0], "y": [1.25], "beside": 0}
        self.assertEqual(self.panel("hips-6", path)["series"][-1], expected)
        line = self.panel("blueconnect-5", path)["series"][-1]
        self.assertEqual((line["x"], line["y"]), ([250.0, 250_000.0], [10.0, 1250.0]))
        torus = self.report(topology={"spec": "torus:4,2", "kind": "torus", "servers": 16})
        self.assertEqual(self.panel("hips-7", torus)["series"][-1]["name"], "measured: hips:ring on torus:4,2")

    def test_of_a_tree_stands_beside_the_fat_trees_bar_if_its_uplinks_bind_nobody(self):
        tree = {"spec": "tree:4x4", "kind": "tree", "radices": [4, 4], "k": 2, "servers": 16}
        point = self.panel("bml-5", self.report(topology=tree, rate_bps=[8_000_000, 32_000_000]))["series"][-1]
        expected = {"name": "measured: blueconnect on tree:4x4", "origin": "measured", "x": [0.0], "y": [1.25]}
        self.assertEqual(point, {**expected, "beside": 2})
        for changes in (
            {"rate_bps": [8_000_000, 31_000_000]},  # they bind
            {"rate_bps": 8_000_000},
            {"rate_bps": [8_000_000, 32_000_000, 128_000_000]},
            {"rate_bps": None},
            {"topology": {**tree, "radices": [4, 2**60]}},
            {"topology": {**tree, "radices": [0, 4]}},
        ):
            report = self.report(**{"topology": tree, "rate_bps": [8_000_000, 32_000_000], **changes})
            self.refused("no place", "figure", "bml-5", "--measured", report)

    def test_is_refused_where_it_has_no_place_in_the_figure(self):
        no_rate = "no one rate"
        for changes, what in (
            ({"algorithm": "ps"}, "no place"),
            ({"rate_bps": None}, no_rate),
            ({"rate_bps": [1_000_000, 8_000_000]}, no_rate),
            ({"rate_bps": 1e300}, no_rate),
        ):
            self.refused(what, "figure", "hips-6", "--measured", self.report(**changes))
        hostile = {"spec": "\x1b", "kind": 5, "servers": 1e99}
        path = self.report(algorithm="\n\x1b[2J", topology=hostile)
        self.assertNotIn("\x1b", self.refused("", "figure", "hips-6", "--measured", path))
        self.refused("no place", "figure", "bml-7", "--measured", self.report())

    def test_is_refused_where_it_is_no_report_of_an_all_reduce(self):
        self.refused("cannot be read", "figure", "hips-6", "--measured", self.path / "none.json")
        for path, what in ((self.file("{}", "1"), "no report"), (self.file("[1", "2"), "no JSON")):
            self.refused(what, "figure", "hips-6", "--measured", path)
        for what, changes in {
            "another collective": {"collective": "reduce"},
            "a part of the servers": {"members": [[0, 1]]},
            "a reproducible job": {"reproducible": True},
            "several trainers on a server": {"trainers_per_server": 4},
            "are absent": {"topology": {"kind": "star", "servers": 3, "absent": [[1]]}},
            "on which topology": {"topology": {}},
            "no result": {"results": []},
            "without a time": {"results": [{"bytes": -1, "seconds_median": 1}]},
            "a result without a time": {"results": [{"bytes": 8, "seconds_median": "1"}]},
            "it has a result without a time": {"results": [{"bytes": 8, "seconds_median": 1e300}]},
            "it has no result": {"results": [{"bytes": 8, "seconds_median": 1, "in_flight": 4}]},
        }.items():
            with self.subTest(what):
                self.refused(what, "figure", "hips-6", "--measured", self.report(**changes))

    def test_options_that_change_nothing_are_refused(self):
        self.refused("--latency: hips-6 has nothing that it changes", "figure", "hips-6", "--latency", "5us")
        self.refused("--computation: scale has nothing", "figure", "scale", "--computation", "5ms")
        self.refused("--latency", "figure", "blueconnect-6", "--latency", "5")
        self.refused("--computation", "figure", "bml-7", "--computation", "x")


class Output(Commands):
    def test_fails_where_it_cannot_be_written(self):
        full = os.open("/dev/full", os.O_WRONLY)
        self.addCleanup(os.close, full)
        with mock.patch.object(report, "_STANDARD_OUTPUT", full):
            with self.assertRaisesRegex(Failure, "cannot write to standard output: No space left on device"):
                report.write_output("text")

    def test_shows_numbers_for_people(self):
        for seconds, text in (
            (0, "0 s"),
            (1.5e-9, "1.5 ns"),
            (0.00123456, "1.23 ms"),
            (0.9999, "1 s"),
            (1.5, "1.5 s"),
            (125, "2 min 5 s"),
            (7325, "2 h 2 min"),
            (1e21, "1e+21 s"),
        ):
            self.assertEqual(report.human_seconds(seconds), text)
        self.assertEqual(report.human_bytes(999), "999 B")
        self.assertEqual(report.human_bytes(1234567), "1.23 MB")
        self.assertEqual(report.human_rate(2e8), "200 Mbit/s")
        self.assertEqual(report.count_cell(1234567), ("1,234,567", 1234567))


if __name__ == "__main__":
    unittest.main()
