"""`python3 -m gradcube.draw_timeline`: what is drawn are the trace's spans.

Usage: draw_timeline_test.py GRADCUBE
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

tool = sys.argv.pop(1)
PROFILE = {"alpha": 1e-3, "beta": 1e-9, "layers": [{"bytes": 1000, "backward_seconds": 5e-3}] * 3}


def name(what, process, text, **more):
    return {"ph": "M", "name": what, "pid": process, "args": {"name": text}, **more}


def span(process, track, text, begin, length):
    return {"ph": "X", "name": text, "pid": process, "tid": track, "ts": begin * 1e3, "dur": length * 1e3}


RANKS = [
    name("process_name", 0, "rank 0"),
    name("thread_name", 0, "backward pass", tid=0),
    name("thread_name", 0, "all-reduces", tid=1),
    name("process_name", 1, "rank 1"),
    span(0, 0, "fc2.$weight", 0, 40),
    span(0, 0, "fc1", 40, 50),
    span(0, 1, "both", 45, 55),
    span(1, 0, "late", 80, 20),
]


class DrawTimeline(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        self.picture = self.path / "timeline.svg"

    def run_on(self, content, *arguments):
        trace = self.path / "trace.json"
        trace.write_text(content if isinstance(content, str) else json.dumps(content))
        return self.run_tool(trace, self.picture, *arguments)

    def run_tool(self, *arguments):
        command = [sys.executable, "-m", "gradcube.draw_timeline", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=100)

    def drawn(self, content, *arguments):
        result = self.run_on(content, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return {text.text for text in ElementTree.parse(self.picture).iter("{http://www.w3.org/2000/svg}text")}

    def refused(self, content, *arguments):
        result = self.run_on(content, *arguments)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertFalse(self.picture.exists())
        return result.stderr

    def test_draws_the_rows_of_all_ranks_with_the_names_of_their_spans(self):
        texts = self.drawn({"traceEvents": RANKS})
        expected = {"rank 0", "rank 1", "backward pass", "all-reduces", "fc2.$weight", "fc1", "both", "late", "ms"}
        self.assertLessEqual(expected, texts)

    def test_leaves_out_the_ranks_and_times_that_are_not_asked_for(self):
        texts = self.drawn(RANKS, "--process", "rank 0", "--until", "39")
        self.assertIn("fc2.$weight", texts)
        for other in ("fc1", "both", "rank 1", "late"):
            self.assertNotIn(other, texts)

    def test_names_no_span_that_is_too_short_for_its_name(self):
        texts = self.drawn([span(0, 0, "long", 0, 99), span(0, 0, "short", 99, 1)])
        self.assertIn("long", texts)
        self.assertNotIn("short", texts)

    def test_the_same_trace_gives_the_same_file(self):
        self.drawn(RANKS)
        first = self.picture.read_bytes()
        self.drawn(RANKS)
        self.assertEqual(self.picture.read_bytes(), first)

    def test_draws_what_model_merge_writes(self):
        profile, trace = self.path / "profile.json", self.path / "policies.json"
        profile.write_text(json.dumps(PROFILE))
        command = [tool, "model", "merge", "--profile", str(profile), "--timeline", str(trace)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        texts = self.drawn(trace.read_text())
        self.assertLessEqual({"layer 3", "layers 1-3"}, texts)
        self.assertTrue(any("synceasgd" in text for text in texts if text), texts)

    def test_says_why_it_draws_nothing(self):
        for content, why in (
            ("{", "is not JSON"),
            ("[" * 100_000, "is not JSON"),
            ("{}", 'it has no "traceEvents"'),
            ([1], "an event is no object"),
            ([], "has no spans"),
            ([{**span(0, 0, "x", 0, 1), "ts": "0"}], '"ts" and "dur" of an event are no numbers'),
            ([{**span(0, 0, "x", 0, 1), "dur": float("nan")}], '"ts" and "dur" of an event are no numbers'),
            ([span(0, 0, "x", 0, -1)], "is below 0"),
            ([span(0, 0, "x", i, 1) for i in range(5001)], "5001 spans are too many"),
        ):
            with self.subTest(why):
                self.assertIn(why, self.refused(content))
        self.assertIn("there is none; the trace has rank 0, rank 1", self.refused(RANKS, "--process", "rank 2"))
        self.assertIn("the first must be before the second", self.refused(RANKS, "--from", "5", "--until", "5"))
        self.assertIn("leave no span", self.refused(RANKS, "--from", "200", "--until", "300"))

    def test_names_the_file_that_it_cannot_read_or_write(self):
        absent = self.run_tool(self.path / "absent.json", self.picture)
        self.assertEqual(absent.returncode, 1)
        self.assertIn("absent.json: No such file or directory", absent.stderr)
        self.picture = self.path / "absent" / "timeline.svg"
        self.assertIn("No such file or directory", self.refused(RANKS))

    def test_refuses_a_format_that_it_does_not_know(self):
        result = self.run_tool(self.path / "trace.json", self.path / "timeline.txt")
        self.assertEqual(result.returncode, 2)
        self.assertIn("ends in .svg, .png or .pdf", result.stderr)


unittest.main()
