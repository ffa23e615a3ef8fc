"""`gradcube model` is the package's program, started by the tool. What it prints is in transcript.txt."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from gradcube.model import commands

TOOL = os.environ["GRADCUBE_TOOL"]


class Tool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def run_tool(self, *words, tool=TOOL, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60, "cwd": self.path, **options}
        environment = dict(os.environ, GRADCUBE_RUN=str(self.path / "run"))
        return subprocess.run([tool, *words], env=environment, check=False, **options)

    def failed(self, code, *words, **options):
        """Its one line on standard error."""
        done = self.run_tool(*words, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertFalse(done.stdout)
        self.assertTrue(done.stderr.startswith(b"gradcube: ") and done.stderr.count(b"\n") == 1, done.stderr)
        return done.stderr.decode()

    def test_has_the_words_as_they_are(self):
        (row,) = json.loads(self.run_tool("model", "gst", "--algorithm", "bml", "--json").stdout)["rows"]
        self.assertEqual((row["topology"], row["source"]), ("bcube:3,2", "BML 3.2"))
        self.assertIn(r'"\xff: é"', self.failed(2, "model", "gst", "--topology", b"\xff: \xc3\xa9"))
        self.assertIn("the models are gst, merge, training, hub, figure, fit", self.failed(2, "model"))
        self.assertIn("there is no flag", self.failed(2, "--bogus", "model", "gst"))
        self.assertIn("gradcube model gst --json`", self.failed(2, "--json", "model", "gst"))

    def test_merges_layers_as_trainers_do(self):
        done = self.run_tool(
            "model", "training", "--network", "lenet5", "--nodes", "2", "--policy", "optimal", "--json"
        )
        self.assertEqual(len(json.loads(done.stdout)["rows"]), 1, done.stderr)

    def test_is_not_led_astray_by_what_lies_in_the_working_directory(self):
        for name in ("json.py", "dataclasses.py"):
            (self.path / name).write_text("raise SystemExit('astray')")
        (self.path / "gradcube").mkdir()
        self.assertEqual(self.run_tool("model", "gst").returncode, 0)

    def test_has_the_lines_of_table_2_behind_fit(self):
        done = self.run_tool(
            "model", "fit", "--nodes", "8", "--alpha", "1us", "--beta", "2ns", "--gamma", "8ns", "--json"
        )
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual([row["algorithm"] for row in rows][-1], "ring")
        self.assertAlmostEqual(rows[-1]["a"], 14e-6, delta=1e-15)
        self.assertIn("--iterations excludes --nodes", self.failed(2, "model", "fit", "--nodes", "8", "-n", "2"))
        self.assertIn("--beta requires --nodes", self.failed(2, "model", "fit", "--beta", "1ns"))
        for text, what in (("1", "--nodes"), ("64..4", "expected 4..64")):
            self.assertIn(what, self.failed(2, "model", "fit", "--nodes", text))
        for words in (("-h", "fit"), ("fit", "--help")):
            said = self.run_tool("model", *words).stdout.decode()
            self.assertIn("Usage: gradcube model fit", said)
            self.assertNotIn("\n\n\n", said)

    def test_fails_when_its_output_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            for words in (("gst",), ("hub", "--json"), ("--help",)):
                self.assertIn("cannot write to standard output", self.failed(1, "model", *words, stdout=full))

    def test_without_the_package_it_says_what_to_install(self):
        tool = shutil.copy(TOOL, self.path / "gradcube")
        said = self.failed(1, "model", "gst", tool=tool)
        self.assertIn("the Python package gradcube, which belongs to this tool, is not in ", said)

    def test_has_all_models_in_the_order_of_the_help(self):
        self.assertEqual(
            [command.name for command in commands.COMMANDS], ["gst", "merge", "training", "hub", "figure", "fit"]
        )


if __name__ == "__main__":
    unittest.main()
