"""Draws a timeline, a file in Chrome's trace format, as a picture:

    python3 -m gradcube.draw_timeline trace.json timeline.svg
    python3 -m gradcube.draw_timeline trace.json timeline.png --process "rank 0" --from 120 --until 180

Traces are written by `MergedGradientOptimizer.record()`, whose processes are the ranks, and by `gradcube model merge
--timeline`, whose processes are the policies. Each process has a row for what it computes and one for what travels.
Needs Debian's python3-matplotlib.
"""

import argparse
import json
import math
import sys

MOST_DRAWN = 5_000  # spans: more would take minutes, and could not be told apart
_COLOURS = (("#7fa7d6", "#b9d4f0"), ("#f9a750", "#ffd3a3"))  # of rows in turn; of neighbours in a row
_NAMED = 0.03  # the least part of the width that a span has to have for its name


class Refused(Exception):
    """The message says what is wrong with the file or with what was asked for."""


def read_trace(path):
    """{process: {track: [(begin, end, name)]}}, by names, in the file's order; times in milliseconds."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{path} is not JSON") from None
    events = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(events, list):
        raise Refused(f'{path} is not a trace: it has no "traceEvents"')
    names = {}
    spans = {}
    for event in events:
        if not isinstance(event, dict):
            raise Refused(f"{path} is not a trace: an event is no object")
        kind, process, track = event.get("ph"), event.get("pid"), event.get("tid")
        if not isinstance(process, (int, str)) or not isinstance(track, (int, str, type(None))):
            continue
        if kind == "M":
            _take_name(event, process, track, names)
        elif kind == "X":
            spans.setdefault((process, track), []).append(_span(event, path))
    processes = {}
    for (process, track), row in spans.items():
        process_name = names.get(("process_name", process), f"process {process}")
        track_name = names.get(("thread_name", process, track), f"track {track}")
        processes.setdefault(process_name, {})[track_name] = sorted(row)
    if not processes:
        raise Refused(f"{path} has no spans (events of the kind X)")
    return processes


def _take_name(event, process, track, names):
    arguments = event.get("args")
    name = arguments.get("name") if isinstance(arguments, dict) else None
    if isinstance(name, str):
        key = (event.get("name"), process) + ((track,) if event.get("name") == "thread_name" else ())
        names[key] = name


def _span(event, path):
    begin, length = event.get("ts"), event.get("dur")
    for number in (begin, length):
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise Refused(f'{path} is not a trace: the "ts" and "dur" of an event are no numbers')
    if length < 0:
        raise Refused(f'{path} is not a trace: the "dur" of an event is below 0')
    return begin / 1e3, (begin + length) / 1e3, str(event.get("name", ""))


def selected(processes, wanted, begin, end):
    """The processes of these names, or all, with the spans that touch the time from begin to end."""
    for name in wanted:
        if name not in processes:
            raise Refused(f'--process "{name}": there is none; the trace has {", ".join(processes)}')
    if not begin < end:
        raise Refused(f"--from {begin:g} --until {end:g}: the first must be before the second")
    result = {}
    for name, tracks in processes.items():
        if wanted and name not in wanted:
            continue
        result[name] = {
            track: [span for span in row if span[1] > begin and span[0] < end] for track, row in tracks.items()
        }
    drawn = sum(len(row) for tracks in result.values() for row in tracks.values())
    if drawn == 0:
        raise Refused("nothing is left to draw: --from and --until leave no span")
    if drawn > MOST_DRAWN:
        raise Refused(
            f"{drawn} spans are too many for one picture, whose most is {MOST_DRAWN}: "
            "give --process, or --from and --until"
        )
    return result


def _draw_row(axes, number, row, limits):
    width = limits[1] - limits[0]
    for i, (begin, end, name) in enumerate(row):
        colour = _COLOURS[number % 2][i % 2]
        axes.barh(-number, end - begin, left=begin, height=0.8, color=colour, edgecolor="white", linewidth=0.3)
        shown = min(end, limits[1]) - max(begin, limits[0])
        if shown >= _NAMED * width:
            middle = (min(end, limits[1]) + max(begin, limits[0])) / 2
            text = axes.text(middle, -number, name.replace("$", r"\$"), ha="center", va="center", fontsize=6)
            text.set_clip_on(True)


def draw(processes, limits, path):
    """Writes the picture; the suffix of its path is its format. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # Texts stay texts in an SVG, and the same timeline is the same file.
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "gradcube"
    rows = sum(len(tracks) for tracks in processes.values())
    height = 0.8 + 0.45 * rows + 0.45 * len(processes)
    figure, all_axes = plt.subplots(
        len(processes), 1, figsize=(12, height), squeeze=False, sharex=True, layout="constrained"
    )
    for axes, (process, tracks) in zip(all_axes[:, 0], processes.items()):
        for number, row in enumerate(tracks.values()):
            _draw_row(axes, number, row, limits)
        axes.set_title(process.replace("$", r"\$"), loc="left", fontsize=9)
        axes.set_yticks([-n for n in range(len(tracks))], [t.replace("$", r"\$") for t in tracks], fontsize=8)
        axes.set_ylim(0.5 - len(tracks), 0.5)
        axes.grid(axis="x", alpha=0.3)
    all_axes[-1, 0].set_xlim(*limits)
    all_axes[-1, 0].set_xlabel("ms")
    metadata = {"Date": None} if path.lower().endswith(".svg") else None
    try:
        figure.savefig(path, dpi=120, metadata=metadata)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}") from None


def _arguments():
    parser = argparse.ArgumentParser(
        prog="python3 -m gradcube.draw_timeline",
        description="Draws a timeline in Chrome's trace format as a picture.",
        epilog='example: python3 -m gradcube.draw_timeline trace.json timeline.svg --process "rank 0" --until 50',
    )
    parser.add_argument("trace", help="of MergedGradientOptimizer.record(), or of gradcube model merge --timeline")
    parser.add_argument("picture", help="the file to write: .svg, .png or .pdf")
    parser.add_argument(
        "--process", action="append", default=[], metavar="NAME",
        help='draw this one alone, "rank 0" or a policy; may be repeated',
    )
    parser.add_argument("--from", dest="begin", type=float, metavar="MS", help="draw from this time on")
    parser.add_argument("--until", dest="end", type=float, metavar="MS", help="draw up to this time")
    arguments = parser.parse_args()
    if not arguments.picture.lower().endswith((".svg", ".png", ".pdf")):
        parser.error(f"{arguments.picture}: expected a file that ends in .svg, .png or .pdf")
    return arguments


def main():
    arguments = _arguments()
    try:
        processes = read_trace(arguments.trace)
        spans = [span for tracks in processes.values() for row in tracks.values() for span in row]
        begin = min(span[0] for span in spans) if arguments.begin is None else arguments.begin
        end = max(span[1] for span in spans) if arguments.end is None else arguments.end
        draw(selected(processes, arguments.process, begin, end), (begin, end), arguments.picture)
    except Refused as error:
        sys.exit(f"gradcube.draw_timeline: {error}")
    except ImportError:
        sys.exit("gradcube.draw_timeline: there is no matplotlib: apt-get install python3-matplotlib")


if __name__ == "__main__":
    main()
