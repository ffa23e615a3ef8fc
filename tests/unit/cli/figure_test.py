"""`gradcube model figure`: what is drawn are the figure's numbers.

Usage: figure_test.py GRADCUBE
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = ["hips-6", "hips-7", "bml-5", "bml-7", "blueconnect-5", "blueconnect-6", "scale", "mg-wfbp-9"]
tool = sys.argv.pop(1)


def gradcube(*arguments):
    return subprocess.run([tool, "model", "figure", *arguments], capture_output=True, text=True, timeout=120)


def perf_report(**changes):
    """What `gradcube perf allreduce --json` prints, as far as it is read."""
    report = {
        "topology": {"kind": "bcube", "n": 4, "k": 2, "servers": 16},
        "rate_bps": 8_000_000,
        "results": [
            {"bytes": 1000, "in_flight": 1, "seconds_median": 0.01},
            {"bytes": 1_000_000, "in_flight": 1, "seconds_median": 1.25},
        ],
    }
    report.update(changes)
    return json.dumps({key: value for key, value in report.items() if value is not None})


class Figure(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)

    def refused(self, *arguments):
        result = gradcube(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1)
        return result.stderr

    def measured(self, text):
        path = self.path / "run.json"
        path.write_text(text)
        return str(path)


class Numbers(Figure):
    def test_prints_each_figure_as_a_table_and_as_json(self):
        for name in FIGURES:
            with self.subTest(name):
                self.assertTrue(gradcube(name).stdout.startswith("# "))
                figure = json.loads(gradcube(name, "--json").stdout)
                self.assertEqual(figure["name"], name)
                for panel in figure["panels"]:
                    for series in panel["series"]:
                        self.assertEqual(len(series["x"]), len(series["y"]))
                        self.assertIn(series["origin"], ("model", "paper"))

    def test_shows_what_was_measured_beside_the_model(self):
        path = self.measured(perf_report())
        panel = json.loads(gradcube("hips-6", "--measured", path, "--json").stdout)["panels"][0]
        self.assertEqual(
            panel["series"][-1],
            {"name": "measured: bml on bcube:4,2", "origin": "measured", "x": [0.0], "y": [1.25], "beside": 0},
        )
        lines = json.loads(gradcube("blueconnect-5", "--measured", path, "--json").stdout)["panels"][0]
        self.assertEqual(lines["series"][-1]["x"], [250.0, 250_000.0])
        self.assertEqual(lines["series"][-1]["y"], [10.0, 1250.0])

    def test_refuses_what_has_no_place_in_the_figure(self):
        self.assertIn("no place", self.refused("hips-6", "--measured", self.measured(perf_report(algorithm="ps"))))
        self.assertIn("no one rate", self.refused("hips-6", "--measured", self.measured(perf_report(rate_bps=None))))
        rates = perf_report(rate_bps=[1_000_000, 8_000_000])
        self.assertIn("no one rate", self.refused("hips-6", "--measured", self.measured(rates)))
        self.assertIn("no one rate", self.refused("hips-6", "--measured", self.measured(perf_report(rate_bps=1e300))))
        hostile = perf_report(algorithm="\n\x1b[2J", topology={"kind": "\x1b", "n": -1, "k": "x", "servers": 1e99})
        self.assertNotIn("\x1b", self.refused("hips-6", "--measured", self.measured(hostile)))
        self.assertIn("no place", self.refused("bml-7", "--measured", self.measured(perf_report())))

    def test_refuses_a_file_that_is_no_report_of_an_all_reduce(self):
        self.assertIn("cannot be read", self.refused("hips-6", "--measured", str(self.path / "none.json")))
        for text, what in {
            "{}": "no report",
            "[1": "no JSON",
            "\x00\xff": "no JSON",
            perf_report(collective="reduce"): "another collective",
            perf_report(members=[[0, 1]]): "a part of the servers",
            perf_report(reproducible=True): "a reproducible job",
            perf_report(trainers_per_server=4): "several trainers on a server",
            perf_report(topology={}): "on which topology",
            perf_report(results=[]): "no result",
            perf_report(results=[{"bytes": -1, "seconds_median": 1}]): "without a time",
            perf_report(results=[{"bytes": 8, "seconds_median": "1"}]): "without a time",
            perf_report(results=[{"bytes": 8, "seconds_median": 1e300}]): "without a time",
            perf_report(results=[{"bytes": 8, "seconds_median": 1, "in_flight": 4}]): "no result",
        }.items():
            with self.subTest(text):
                self.assertIn(what, self.refused("hips-6", "--measured", self.measured(text)))

    def test_says_what_is_wrong_with_an_option(self):
        self.assertIn("did you mean hips-6?", self.refused("hips-66"))
        self.assertIn("expected hips-6, hips-7", self.refused("x"))
        self.assertIn(".svg or .png", self.refused("hips-6", "--out", "figure.gif"))
        self.assertIn("--latency", self.refused("blueconnect-6", "--latency", "5"))
        self.assertIn("--computation", self.refused("bml-7", "--computation", "x"))
        self.assertIn("--latency: hips-6 has nothing that it changes", self.refused("hips-6", "--latency", "5us"))
        self.assertIn("--computation: scale has nothing", self.refused("scale", "--computation", "5ms"))


class Drawing(Figure):
    @classmethod
    def setUpClass(cls):
        if subprocess.run(["/usr/bin/python3", "-I", "-c", "import matplotlib"], capture_output=True).returncode != 0:
            raise unittest.SkipTest("there is no matplotlib")

    def draw(self, *arguments):
        path = self.path / "figure.svg"
        result = gradcube(*arguments, "--out", str(path))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "")
        return ElementTree.parse(path).getroot()

    def test_draws_all_series_of_every_figure(self):
        for name in FIGURES:
            with self.subTest(name):
                root = self.draw(name)
                figure = json.loads(gradcube(name, "--json").stdout)
                texts = {"".join(text.itertext()) for text in root.iter(SVG + "text")}
                groups = {group.get("id") for group in root.iter(SVG + "g")}
                self.assertIn(figure["title"], texts)
                for p, panel in enumerate(figure["panels"]):
                    self.assertIn(panel["y_label"], texts)
                    for s, series in enumerate(panel["series"]):
                        self.assertIn(series["name"], texts)
                        expected = [f"{p}-{s}-{i}" for i in range(len(series["x"]))]
                        self.assertTrue(f"{p}-{s}" in groups or groups.issuperset(expected), series["name"])

    def test_draws_bars_as_high_as_their_numbers(self):
        root = self.draw("hips-6", "--measured", self.measured(perf_report()))
        heights = {}
        for group in root.iter(SVG + "g"):
            if re.fullmatch(r"\d-\d-\d", group.get("id", "")):
                y = [float(v) for v in re.findall(r"[ML] \S+ (\S+)", group.find(SVG + "path").get("d"))]
                heights[group.get("id")] = max(y) - min(y)
        series = json.loads(gradcube("hips-6", "--json").stdout)["panels"][0]["series"]
        self.assertEqual(len(heights), 9)
        scale = heights["0-0-0"] / 0.9375
        for s, bars in enumerate(series):
            for i, value in enumerate(bars["y"]):
                self.assertAlmostEqual(heights[f"0-{s}-{i}"], scale * value, delta=scale * 1e-3)

    def test_writes_a_png(self):
        path = self.path / "figure.png"
        self.assertEqual(gradcube("bml-5", "--out", str(path)).returncode, 0)
        self.assertEqual(path.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_says_where_a_file_cannot_be_written(self):
        result = gradcube("bml-5", "--out", str(self.path / "none" / "figure.svg"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr)


if __name__ == "__main__":
    unittest.main()
