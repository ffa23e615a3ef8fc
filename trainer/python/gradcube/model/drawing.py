"""Draws a figure with Matplotlib, into a file whose suffix is its format.

What is drawn is named in an SVG: the bar or the point i of series s in panel p is the group "p-s-i", a line is "p-s".
"""

import io
import logging
import os
import pathlib
import traceback
import warnings

from .failure import Failure
from .figures import MEASURED, MODEL, PAPER
from .printable import printable

_MARKERS = {PAPER: "x", MEASURED: "D"}
_WIDTH = 0.8  # of all bars of a category


def _label(text):
    return text.replace("$", r"\$")


def _draw_bars(axes, panel, number):
    width = _WIDTH / sum(series.origin == MODEL for series in panel.series)
    for s, series in enumerate(panel.series):
        place = s if series.origin == MODEL else series.beside
        x = [value - _WIDTH / 2 + width * (place + 0.5) for value in series.x]
        if series.origin == MODEL:
            for i, bar in enumerate(axes.bar(x, series.y, width, label=_label(series.name))):
                bar.set_gid(f"{number}-{s}-{i}")
        else:
            marks = axes.plot(x, series.y, _MARKERS[series.origin], color="black", label=_label(series.name))
            marks[0].set_gid(f"{number}-{s}")
    axes.set_xticks(range(len(panel.categories)), [_label(category) for category in panel.categories])
    axes.set_ylim(0, None)


def _draw_lines(axes, panel, number):
    for s, series in enumerate(panel.series):
        if series.origin == MODEL:
            style = {"marker": ".", "linestyle": ("-", "--", ":")[s % 3]}
        else:
            style = {"marker": _MARKERS[series.origin], "linestyle": "none"}
        axes.plot(series.x, series.y, label=_label(series.name), **style)[0].set_gid(f"{number}-{s}")
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, None)


def _draw(figure, suffix):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # Texts stay texts in an SVG, and the same figure is the same file.
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "gradcube"
    count = len(figure.panels)
    drawn, all_axes = plt.subplots(1, count, figsize=(1.5 + 5.5 * count, 4.5), squeeze=False, layout="constrained")
    drawn.suptitle(_label(figure.title))
    for number, (axes, panel) in enumerate(zip(all_axes[0], figure.panels)):
        (_draw_bars if panel.categories else _draw_lines)(axes, panel, number)
        axes.set(title=_label(panel.title), xlabel=_label(panel.x_label), ylabel=_label(panel.y_label))
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    content = io.BytesIO()
    drawn.savefig(content, format=suffix, dpi=120, metadata={"Date": None} if suffix == "svg" else None)
    return content.getvalue()


def _write(path, content):
    # A pipe that nobody reads is an error, and not waited for.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o666)
    with open(descriptor, "wb") as file:
        os.set_blocking(descriptor, True)
        file.write(content)


def draw_figure(figure, path):
    """Raises a Failure where Matplotlib is missing or the file cannot be written."""
    logging.disable()  # what Matplotlib has to say is not for who asked for a figure
    warnings.simplefilter("ignore")
    try:
        _write(path, _draw(figure, pathlib.Path(path).suffix[1:]))
        return
    except ImportError:
        what = (
            "figures are drawn by /usr/bin/python3 with matplotlib, and matplotlib is missing; install "
            "python3-matplotlib, or see the figure's numbers without --out"
        )
    except OSError as error:
        what = f"the figure was not drawn: {printable(f'cannot write {path}: {error.strerror}', 4096)}"
    except Exception as error:  # noqa: BLE001 - what Matplotlib raises is not ours to list
        last = traceback.format_exception_only(error)[-1].strip()
        what = f"the figure was not drawn: {printable(last, 4096)}"
    raise Failure(what)
