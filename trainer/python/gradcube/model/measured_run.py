"""What `gradcube perf allreduce --json` has measured, read from a file for a figure."""

from .figures import MeasuredRun
from .grid import product_of
from .json_file import JsonFile, count_field, field, items, number_field, text_field

# What nothing that was measured exceeds; beyond, a figure would have no numbers for it.
_MOST_SECONDS = 1e9
_MOST_BITS_PER_SECOND = 1e15


def read_measured(path):
    """Raises a UsageError if the file cannot be read, is no such report, or is one of another collective or of a part
    of the servers. Results of several collectives in flight are left out."""
    file = JsonFile("--measured", path, "what `gradcube perf allreduce --json` printed")
    report = file.content()
    topology = field(report, "topology")
    for refused, what in (
        (not isinstance(field(report, "results"), list), "it is no report"),
        (field(report, "collective") is not None, "it is one of another collective"),
        (field(report, "members") is not None, "it is one of a part of the servers"),
        (field(report, "reproducible") is True, "it is one of a reproducible job, which carries more bytes"),
        (count_field(report, "trainers_per_server") not in (None, 1), "it is one of several trainers on a server"),
        (items(topology, "absent"), "servers of its topology are absent"),
        (not text_field(topology, "spec"), "it does not say on which topology it was measured, or an older version wrote it"),
    ):
        if refused:
            file.refuse(what)
    results = []
    for result in items(report, "results"):
        size, seconds = count_field(result, "bytes"), number_field(result, "seconds_median")
        if size is None or seconds is None or not 0 < seconds < _MOST_SECONDS:
            file.refuse("it has a result without a time")
        if count_field(result, "in_flight") in (None, 1):  # several in flight share their time
            results.append((size, seconds))
    if not results:
        file.refuse("it has no result of one collective at a time")
    spec = text_field(topology, "spec")
    algorithm = text_field(report, "algorithm")
    algorithm = _default_of(spec) if algorithm is None else algorithm
    rates = _rates_of(report)
    like = _star_like(topology, rates)
    is_one_rate = like or len(set(rates)) == 1
    return MeasuredRun(spec, algorithm, rates[0] if is_one_rate else None, results, like)


def _default_of(spec):
    """By which all-reduces are where nobody asks for another algorithm: reports without a name are of it. A figure says
    itself which topologies it has."""
    defaults = {"bcube": "bml", "star": "bml", "torus": "hips:ring", "tree": "blueconnect"}
    return defaults.get(spec.partition(":")[0], "")


def _rates_of(report):
    """Of the levels, in bits per second, or one of all links; empty if they have none."""
    rate = field(report, "rate_bps")
    rates = rate if isinstance(rate, list) else [rate]
    for each in rates:
        if isinstance(each, bool) or not isinstance(each, (int, float)) or not 0 < each <= _MOST_BITS_PER_SECOND:
            return []
    return [float(each) for each in rates]


def _star_like(topology, rates):
    """ "star:16" of a tree whose uplinks bind nobody: it is a Fat-Tree, and like a star of as many servers, whose links
    are those of level 0. Empty of all others."""
    radices = items(topology, "radices")
    if field(topology, "kind") != "tree" or not radices or len(radices) != len(rates):
        return ""
    try:
        shared = [rate / product_of(radices[:level]) for level, rate in enumerate(rates) if level > 0]
        return f"star:{product_of(radices)}" if min(shared, default=rates[0]) >= rates[0] else ""
    except ValueError:
        return ""  # no tree has these
