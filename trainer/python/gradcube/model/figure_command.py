"""`gradcube model figure`."""

import os

from . import blueconnect_figures, gst_figures, training_figure
from .command_line import JSON, Command, Option, any_text, require_known
from .failure import UsageError
from .figures import Assumed, place
from .measured_run import read_measured
from .printable import printable, quoted
from .report import TextTable, json_text, write_output
from .units import parse_duration

FIGURES = {
    "hips-6": gst_figures.hips_6,
    "hips-7": gst_figures.hips_7,
    "bml-5": gst_figures.bml_5,
    "bml-6": gst_figures.bml_6,
    "bml-7": gst_figures.bml_7,
    "blueconnect-5": blueconnect_figures.figure_5,
    "blueconnect-6": blueconnect_figures.figure_6,
    "scale": gst_figures.scale,
    "choosing": gst_figures.choosing,
    "mg-wfbp-9": training_figure.figure_9,
}


def _require_use(name, option, value, some):
    """A number that changes nothing would be left out without a word. some: one of its kind."""
    if value == 0 or FIGURES[name](some) != FIGURES[name](Assumed()):
        return
    raise UsageError(
        f"{option}: {name} has nothing that it changes; `gradcube model figure --help` says which figures have"
    )


def _figure_of(values):
    require_known("figure", "figure", values.name, FIGURES)
    assumed = Assumed(
        parse_duration(values.latency, "--latency") / 1e9, parse_duration(values.computation, "--computation") / 1e9
    )
    _require_use(values.name, "--latency", assumed.latency_seconds, Assumed(latency_seconds=1.0))
    _require_use(values.name, "--computation", assumed.seconds_per_sample, Assumed(seconds_per_sample=1.0))
    figure = FIGURES[values.name](assumed)
    for path in values.measured:
        run = read_measured(path)
        if not place(figure, run):
            what = printable(f"{run.algorithm} on {run.topology}")
            no_rate = ", whose links have no one rate" if run.bits_per_second is None else ""
            raise UsageError(
                f"--measured {quoted(path)}: {values.name} has no place for an all-reduce by {what}{no_rate}; "
                "docs/figures.md lists what has one"
            )
    return figure


def _panel_text(panel):
    """A row for each point, of each series in turn."""
    table = TextTable(["<series", panel.x_label, panel.y_label])
    for series in panel.series:
        for x, y in zip(series.x, series.y):
            table.rows.append([series.name, panel.categories[int(x)] if panel.categories else f"{x:.6g}", f"{y:.4g}"])
    return (f"# {panel.title}\n" if panel.title else "") + table.text()


def _run(values):
    if values.out and not values.out.endswith((".svg", ".png")):
        raise UsageError(f"--out {quoted(values.out)}: expected a file that ends in .svg or .png")
    if values.out and not os.access(os.path.dirname(values.out) or ".", os.W_OK | os.X_OK):
        raise UsageError(f"--out {quoted(values.out)}: its folder is not there, or closed to you")
    figure = _figure_of(values)
    if values.out:
        from .drawing import draw_figure

        draw_figure(figure, values.out)
    if values.json:
        write_output(json_text(figure.json()) + "\n")
    elif not values.out:
        write_output(f"# {figure.title}\n" + "".join(map(_panel_text, figure.panels)))


COMMAND = Command(
    "figure",
    "A figure of a paper, as its equations give it; draws it",
    _run,
    (
        Option("name", ", ".join(FIGURES), required=True, check=any_text),
        Option("--out", "Draw it into this file, .svg or .png; needs python3-matplotlib"),
        Option(
            "--measured",
            "Show beside it what `gradcube perf allreduce --json` has written into this file; may be repeated",
            default=[],
        ),
        Option(
            "--latency",
            "Time of each message, in blueconnect-5 and blueconnect-6; in scale and choosing, 0 stands for 5us",
            default="0",
        ),
        Option("--computation", "Time that a server computes for each sample, in bml-6 and bml-7: 5ms", default="0"),
        JSON,
    ),
    """Without --out the numbers are printed. docs/figures.md says what the papers give of each
figure, and what is assumed.
Examples:
  gradcube model figure hips-6 --out hips-6.svg
  gradcube perf allreduce --sizes 12.5M --json > run.json
  gradcube model figure hips-6 --measured run.json --out hips-6.png""",
)
