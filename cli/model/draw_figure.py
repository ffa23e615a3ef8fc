"""Draws a figure with matplotlib: `gradcube model figure` runs this text, it is no program of its own.

Standard input: {"title":..,"panels":[{"title":..,"x_label":..,"y_label":..,"categories":[..],"logarithmic":..,
"series":[{"name":..,"origin":"model"|"paper"|"measured","x":[..],"y":[..],"beside":..}]}]}. The argument is the file
to write; its suffix is the format. Exits with 3 if there is no matplotlib. What is drawn is named in an SVG: the bar
or the point i of series s in panel p is the group "p-s-i", a line is "p-s".
"""

import json
import sys

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit(3)

# Texts stay texts in an SVG, and the same figure is the same file.
plt.rcParams["svg.fonttype"] = "none"
plt.rcParams["svg.hashsalt"] = "gradcube"
MARKERS = {"paper": "x", "measured": "D"}
WIDTH = 0.8  # of all bars of a category


def label(text):
    return text.replace("$", r"\$")


def draw_bars(axes, panel, number):
    models = [s for s in panel["series"] if s["origin"] == "model"]
    width = WIDTH / len(models)
    for s, series in enumerate(panel["series"]):
        place = s if series["origin"] == "model" else series["beside"]
        x = [value - WIDTH / 2 + width * (place + 0.5) for value in series["x"]]
        if series["origin"] == "model":
            for i, bar in enumerate(axes.bar(x, series["y"], width, label=label(series["name"]))):
                bar.set_gid(f"{number}-{s}-{i}")
        else:
            marks = axes.plot(x, series["y"], MARKERS[series["origin"]], color="black", label=label(series["name"]))
            marks[0].set_gid(f"{number}-{s}")
    axes.set_xticks(range(len(panel["categories"])), [label(c) for c in panel["categories"]])
    axes.set_ylim(0, None)


def draw_lines(axes, panel, number):
    for s, series in enumerate(panel["series"]):
        if series["origin"] == "model":
            style = {"marker": ".", "linestyle": ("-", "--", ":")[s % 3]}
        else:
            style = {"marker": MARKERS[series["origin"]], "linestyle": "none"}
        axes.plot(series["x"], series["y"], label=label(series["name"]), **style)[0].set_gid(f"{number}-{s}")
    if panel["logarithmic"]:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, None)


def main():
    path = sys.argv[1]
    content = json.load(sys.stdin)
    panels = content["panels"]
    figure, all_axes = plt.subplots(
        1, len(panels), figsize=(1.5 + 5.5 * len(panels), 4.5), squeeze=False, layout="constrained"
    )
    figure.suptitle(label(content["title"]))
    for number, (axes, panel) in enumerate(zip(all_axes[0], panels)):
        (draw_bars if panel["categories"] else draw_lines)(axes, panel, number)
        axes.set(title=label(panel["title"]), xlabel=label(panel["x_label"]), ylabel=label(panel["y_label"]))
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    metadata = {"Date": None} if path.lower().endswith(".svg") else None
    try:
        figure.savefig(path, dpi=120, metadata=metadata)
    except OSError as error:
        sys.exit(f"cannot write {path}: {error.strerror}")


main()
