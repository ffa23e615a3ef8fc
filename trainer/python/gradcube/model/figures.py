"""The figures of the papers, as data: what their series are by the equations of the models.

    hips-6, hips-7   GST of HiPS, PSS/MS and RS on BCube and on Torus, of (n,h) = (4,2), (8,3) and (16,4) (HiPS, section
                     4.2)
    bml-5            GST of BML and PS on BCube and on Fat-Tree, with 16 and with 1024 servers
    bml-6, bml-7     time of 1000 iterations of LeNet-5 and of VGG-19 on BCube(3,2) and on a Fat-Tree
    blueconnect-5    all-reduce on two nodes of four learners, over the number of floats
    blueconnect-6    ResNet-50 on up to 192 learners: overhead, scaling efficiency, images per second
    scale, choosing  not of a paper: every row of gst_table over the bytes, on BCube(16,4), and of 16 servers with one
                     NIC or two
    mg-wfbp-9        speedup of training on 4 to 64 nodes over one, by policy

docs/figures.md says what the papers' texts give of them, and what is assumed. A figure has panels, a panel has series.
What the papers' authors measured is a series where their text says it in numbers; place() adds what a cluster of one's
own has measured.
"""

import dataclasses
import typing

from .grid import transfer_seconds

# Where a series has its numbers from.
MODEL, PAPER, MEASURED = "model", "paper", "measured"


@dataclasses.dataclass
class Series:
    name: str
    x: list = dataclasses.field(default_factory=list)  # of bars, the number of the category
    y: list = dataclasses.field(default_factory=list)
    origin: str = MODEL
    # Of bars that a cluster can measure: the topology in each category, and the names of the algorithms that are this
    # series.
    topologies: tuple = ()
    algorithms: tuple = ()
    beside: typing.Optional[int] = None  # of points that belong to bars: the number of the series that these are

    def add(self, x, y):
        self.x.append(float(x))
        self.y.append(y)

    def json(self):
        content = {"name": self.name, "origin": self.origin, "x": self.x, "y": self.y}
        return content if self.beside is None else {**content, "beside": self.beside}


# What place() makes of a measured time. A panel without a measure has no place for one.
RELATIVE = "relative"  # time / T_F, beside the bars of its topology and algorithm (Panel.of_relative)
OVER_FLOATS = "over_floats"  # milliseconds over the number of 4-byte floats
OVER_BYTES = "over_bytes"


@dataclasses.dataclass
class Panel:
    title: str
    x_label: str
    y_label: str
    series: list = dataclasses.field(default_factory=list)
    categories: list = dataclasses.field(default_factory=list)  # of bars; empty: lines over x
    logarithmic: bool = False  # both axes
    measure: str = ""
    # Of bars: what T_F is on the y axis, and what each category has beside the synchronization.
    unit: float = 1.0
    base: tuple = ()

    def of_relative(self, category, relative):
        """The y of a synchronization that takes `relative` times T_F."""
        return (self.base[category] if self.base else 0.0) + self.unit * relative

    def json(self):
        return {
            "title": self.title,
            "x_label": self.x_label,
            "y_label": self.y_label,
            "categories": self.categories,
            "logarithmic": self.logarithmic,
            "series": [series.json() for series in self.series],
        }


@dataclasses.dataclass
class Figure:
    name: str
    title: str
    panels: list

    def json(self):
        """docs/figures.md has the fields."""
        return {"name": self.name, "title": self.title, "panels": [panel.json() for panel in self.panels]}


@dataclasses.dataclass(frozen=True)
class Assumed:
    latency_seconds: float = 0.0  # of a message, where the figure's equations have one
    seconds_per_sample: float = 0.0  # that a server computes; in bml-6 and bml-7


class MeasuredRun(typing.NamedTuple):
    """What a cluster has measured: `gradcube perf allreduce`."""

    topology: str  # "bcube:4,2"
    algorithm: str
    bits_per_second: typing.Optional[float]  # of all links
    results: list  # (bytes, the median time in seconds)
    like: str = ""  # another topology, whose bars it belongs to as well: of a tree that is a Fat-Tree "star:16"


def place(figure, run):
    """Adds it to every panel that it fits; False if it fits none. Beside bars goes the result of the most bytes."""
    name = f"measured: {run.algorithm} on {run.topology}"
    added = []
    for panel in figure.panels:
        if panel.measure == RELATIVE:
            points = _points_beside_bars(panel, run, name)
        else:
            points = _line_over_sizes(panel.measure, run, name) if panel.measure else []
        panel.series += points
        added += points
    return bool(added)


def _points_beside_bars(panel, run, name):
    if run.bits_per_second is None or not run.results:
        return []
    size, seconds = max(run.results)
    t_f = transfer_seconds(size, run.bits_per_second)
    if t_f <= 0:
        return []
    points = []
    for number, bars in enumerate(panel.series):
        beside = Series(name, origin=MEASURED, beside=number)
        for category, topology in enumerate(bars.topologies):
            if run.algorithm in bars.algorithms and topology in (run.topology, run.like):
                beside.add(category, panel.of_relative(category, seconds / t_f))
        if beside.x:
            points.append(beside)
    return points


def _line_over_sizes(measure, run, name):
    line = Series(name, origin=MEASURED)
    for size, seconds in run.results:
        if size > 0:
            line.add(size / 4 if measure == OVER_FLOATS else size, seconds * 1e3)
    return [line] if line.x else []
