"""`gradcube model figure --out`: what is drawn are the figure's numbers."""

import os
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

from gradcube.model import commands, drawing
from gradcube.model.failure import Failure
from gradcube.model.figure_command import FIGURES
from gradcube.model.figures import Assumed, Figure, MeasuredRun, Panel, Series, place

try:
    import matplotlib
except ImportError:
    matplotlib = None
SVG = "{http://www.w3.org/2000/svg}"


class Files(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)

    def test_without_matplotlib_it_says_what_to_install(self):
        with mock.patch.object(drawing, "_draw", side_effect=ImportError):
            with self.assertRaisesRegex(Failure, "matplotlib is missing; install python3-matplotlib, or see"):
                drawing.draw_figure(FIGURES["bml-5"](Assumed()), "figure.svg")


@unittest.skipIf(matplotlib is None, "there is no matplotlib")
class Drawing(Files):
    def draw(self, figure):
        path = self.path / "figure.svg"
        drawing.draw_figure(figure, str(path))
        return ElementTree.parse(path).getroot()

    def test_has_all_series_of_every_figure(self):
        for name, make in FIGURES.items():
            with self.subTest(name):
                figure = make(Assumed())
                root = self.draw(figure)
                texts = {"".join(text.itertext()) for text in root.iter(SVG + "text")}
                groups = {group.get("id") for group in root.iter(SVG + "g")}
                self.assertIn(figure.title, texts)
                for p, panel in enumerate(figure.panels):
                    self.assertIn(panel.y_label, texts)
                    for s, series in enumerate(panel.series):
                        self.assertIn(series.name, texts)
                        expected = [f"{p}-{s}-{i}" for i in range(len(series.x))]
                        self.assertTrue(f"{p}-{s}" in groups or groups.issuperset(expected), series.name)

    def test_has_bars_as_high_as_their_numbers(self):
        figure = FIGURES["hips-6"](Assumed())
        bars = list(figure.panels[0].series)
        self.assertTrue(place(figure, MeasuredRun("bcube:4,2", "bml", 8e6, [(10**6, 1.25)])))
        heights = {}
        for group in self.draw(figure).iter(SVG + "g"):
            if re.fullmatch(r"\d-\d-\d", group.get("id", "")):
                y = [float(v) for v in re.findall(r"[ML] \S+ (\S+)", group.find(SVG + "path").get("d"))]
                heights[group.get("id")] = max(y) - min(y)
        self.assertEqual(len(heights), 9)
        scale = heights["0-0-0"] / 0.9375
        for s, series in enumerate(bars):
            for i, value in enumerate(series.y):
                self.assertAlmostEqual(heights[f"0-{s}-{i}"], scale * value, delta=scale * 1e-3)

    def test_is_a_png_where_that_is_asked_for_and_prints_nothing(self):
        path = self.path / "figure.png"
        self.assertEqual(commands.run(["figure", "bml-5", "--out", str(path)]), 0)
        self.assertEqual(path.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_says_where_a_file_cannot_be_written(self):
        path = self.path / "none" / "figure.svg"
        with self.assertRaisesRegex(Failure, f"was not drawn: cannot write {path}: No such file or directory"):
            drawing.draw_figure(FIGURES["bml-5"](Assumed()), str(path))

    def test_is_not_written_to_a_pipe_that_nobody_reads(self):
        path = self.path / "figure.svg"
        os.mkfifo(path)
        figure = Figure("test", "a test", [Panel("", "x", "y", [Series("a line", [1.0, 2.0], [1.0, 2.0])])])
        with self.assertRaisesRegex(Failure, f"was not drawn: cannot write {path}: No such device"):
            drawing.draw_figure(figure, str(path))


if __name__ == "__main__":
    unittest.main()
