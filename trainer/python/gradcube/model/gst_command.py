"""`gradcube model gst`: times, from which size on an algorithm wins, and switches."""

from . import blueconnect, bml
from .command_line import JSON, Command, Option, any_text, flag, require_known, whole_number_in
from .crossover import crossovers, gst_lines
from .failure import UsageError
from .grid import MOST_SERVERS, transfer_seconds
from .gst_table import ALGORITHMS, Load, Row, gst_row
from .printable import quoted
from .report import Report, bytes_cell, count_cell, human_bytes, human_rate, human_seconds, seconds_cell, text_cell
from .topology import parse_topology
from .units import parse_duration, parse_integer, parse_rate, parse_size

_ASKABLE = ("all", *ALGORITHMS)
_MOST_FACTOR = 65536


def _plain_cell(value):
    return f"{value:.4g}", value


def _load_of(values):
    size = parse_size(values.bytes, "--bytes")
    if size == 0:
        raise UsageError('--bytes "0": nothing takes no time; expected 1 byte or more')
    latency = values.latency or ("5us" if values.crossover else "0")
    rate = parse_rate(values.rate, "--rate")
    return Load(float(size), rate, parse_duration(latency, "--latency") / 1e9, int(values.group or 0))


def _algorithms_of(values):
    """Those that are asked for, each once and in the order of the table."""
    asked = set(values.algorithm)
    for name in sorted(asked):
        require_known("--algorithm", "algorithm", name, _ASKABLE)
    return [name for name in ALGORITHMS if "all" in asked or name in asked]


def _rows_of(topology, algorithms, load):
    """Those that no paper gives are left out."""
    rows = (gst_row(topology, algorithm, load) for algorithm in algorithms)
    return [row for row in rows if row is not None]


def _require_row(algorithm, topologies, load):
    """An algorithm that was named must have a row on one of the topologies at least."""
    if any(gst_row(topology, algorithm, load) for topology in topologies):
        return
    first = topologies[0]
    why = "no paper gives its time"
    if algorithm == "two-level" and first.levels == 1:
        why = "its time depends on how many servers are in a group: name with --group a number that divides those"
    raise UsageError(
        f"--algorithm {algorithm}: {why} on {', '.join(topology.spec for topology in topologies)}; expected, on "
        f"{first.spec}, {', '.join(row.algorithm for row in _rows_of(first, ALGORITHMS, load))}"
    )


def _gst_rows(values, topologies, load):
    algorithms = _algorithms_of(values)
    if len(algorithms) < len(ALGORITHMS):
        for algorithm in algorithms:
            _require_row(algorithm, topologies, load)
    return [row for topology in topologies for row in _rows_of(topology, algorithms, load)]


def _times_report(rows, load):
    """Its first line is on the load, and names T_F of it."""
    report = Report(
        "rows",
        ("<topology", "topology"),
        ("<algorithm", "algorithm"),
        ("servers", "servers"),
        ("time", "seconds"),
        ("time/T_F", "relative"),
        ("<source", "source"),
    )
    latency = f", {human_seconds(load.latency_seconds)} for each message" if load.latency_seconds > 0 else ""
    t_f = human_seconds(transfer_seconds(load.bytes, load.bits_per_second))
    report.lines.append(
        f"# {human_bytes(load.bytes)} at {human_rate(load.bits_per_second)}{latency}: T_F, one transfer over one link, "
        f"is {t_f}"
    )
    for row in rows:
        report.add(
            text_cell(row.topology),
            text_cell(row.algorithm),
            count_cell(row.servers),
            seconds_cell(row.seconds),
            _plain_cell(row.relative),
            text_cell(row.source),
        )
    return report


def _crossover_report(topologies, load):
    """Each topology's algorithms of the least time, by size. Every time is a line over the bytes."""
    report = Report(
        "rows",
        ("<topology", "topology"),
        ("from", "from_bytes"),
        ("<least time by", "algorithms"),
        ("latency", "latency_seconds"),
        ("time/T_F", "relative"),
    )
    report.lines.append(f"# {human_rate(load.bits_per_second)}, {human_seconds(load.latency_seconds)} for each message")
    for topology in topologies:
        for from_bytes, lines in crossovers(gst_lines(topology, load)):
            names = [line.algorithm for line in lines]
            report.add(
                text_cell(topology.spec),
                bytes_cell(from_bytes),
                (", ".join(names), names),
                seconds_cell(lines[0].latency_seconds),
                _plain_cell(lines[0].seconds_per_byte * load.bits_per_second / 8),
            )
    return report


def _switches_report(topologies):
    """Of each BCube(n,k), and of Fat-Trees of n-port switches for as many servers: with one NIC, and with k."""
    report = Report(
        "rows",
        ("<topology", "topology"),
        ("servers", "servers"),
        ("NICs/server", "nics_per_server"),
        ("ports/switch", "ports_per_switch"),
        ("switches", "switches"),
        ("relative", "relative"),
    )
    for bcube in topologies:
        if bcube.kind != "bcube" or not bcube.uniform:
            raise UsageError(
                f"--topology {quoted(bcube.spec)}: the paper counts the switches of BCube, next to a Fat-Tree of the "
                "same switches for as many servers; expected bcube:n,k, for example bcube:3,2"
            )
        servers, n, k = bcube.servers, bcube.radices[0], bcube.levels
        least = bml.fat_tree_switches(servers, n)
        rows = [(bcube.spec, k, bml.bcube_switches(n, k)), (f"fattree:{servers}", 1, least)]
        if k > 1:
            rows.append((f"fattree:{servers}", k, bml.fat_tree_switches(servers, n, k)))
        for spec, nics, switches in rows:
            report.add(
                text_cell(spec),
                count_cell(servers),
                (str(nics), nics),
                count_cell(n),
                count_cell(int(switches)),
                _plain_cell(switches / least),
            )
    return report


def _stages_of(values):
    factors, rates = values.factors, values.rates
    if len(factors) != len(rates):
        raise UsageError(
            f"--rates has {len(rates)} and --factors {len(factors)}; expected a rate for each factor, for example "
            "--factors 3x2x2 --rates 256gbit,100gbit,200gbit"
        )
    stages, learners = [], 1
    for i, (factor, rate) in enumerate(zip(factors, rates)):
        may_be_one = i == 0 and values.network == "torus" and len(factors) > 1
        p = parse_integer(factor, "--factors", 1 if may_be_one else 2, _MOST_FACTOR)
        learners *= p
        if learners > MOST_SERVERS:
            raise UsageError(f"--factors {'x'.join(factors)}: expected at most {MOST_SERVERS} learners")
        stages.append(blueconnect.Stage(p, parse_rate(rate, "--rates")))
    return stages, learners


def _blueconnect_rows(values, load):
    """Networks of different rates, by BlueConnect's Eq. 6 to 10: one level, two levels and BlueConnect. The load's rate
    becomes the slowest one."""
    require_known("--network", "network", values.network, ("tree", "torus"))
    stages, learners = _stages_of(values)
    size, alpha, w = load.bytes, load.latency_seconds, min(stage.w for stage in stages)
    load.bits_per_second = w
    p0, w0 = stages[0]
    if values.network == "tree":
        best = blueconnect.tree_seconds(stages, size, alpha), "BlueConnect Eq. 9"
    else:
        best = blueconnect.torus_seconds(stages, size, alpha), "BlueConnect Eq. 10"
    name = f"{values.network}:{'x'.join(values.factors)}"
    rows = {
        "ring": (blueconnect.one_level_seconds(learners, size, alpha, w), "BlueConnect Eq. 6"),
        "two-level": (blueconnect.two_level_seconds(p0, learners // p0, size, alpha, w0, w), "BlueConnect Eq. 7"),
        "blueconnect": best,
    }
    t_f = transfer_seconds(size, w)
    return [Row(name, each, learners, seconds, seconds / t_f, source) for each, (seconds, source) in rows.items()]


def _report_of(values):
    load = _load_of(values)
    if values.factors:
        rows = _blueconnect_rows(values, load)
        return _times_report(rows, load)
    topologies = [parse_topology(spec, "--topology") for spec in values.topology]
    if values.switches:
        return _switches_report(topologies)
    if values.crossover:
        return _crossover_report(topologies, load)
    return _times_report(_gst_rows(values, topologies, load), load)


COMMAND = Command(
    "gst",
    "The gradient synchronization time of the papers' algorithms on some topologies",
    lambda values: _report_of(values).write(values.json),
    (
        Option(
            "--topology",
            "bcube:n,k, bcube:4x3x2, torus:n,h, star:N or fattree:N; may be repeated",
            default=["bcube:3,2"],
            check=any_text,
            excludes=("--factors",),
        ),
        Option(
            "--algorithm",
            f"{', '.join(_ASKABLE)}; may be repeated",
            default=["all"],
            check=any_text,
            excludes=("--crossover", "--switches", "--factors"),
        ),
        Option("--rate", "Rate of every link: 200mbit, 10gbit", default="10gbit", excludes=("--switches", "--factors")),
        Option(
            "--group",
            "Of two-level on star:N and fattree:N: servers under one switch; it divides N",
            kind="UINT:2..1000000",
            check=whole_number_in(2, 1_000_000),
            excludes=("--crossover", "--switches", "--factors"),
        ),
        Option(
            "--bytes", "Gradient of each server: 12.5M, 64Ki", default="100M", excludes=("--crossover", "--switches")
        ),
        Option(
            "--latency",
            "Time of each message whatever its size: 5us [0; 5us with --crossover]",
            excludes=("--switches",),
        ),
        flag(
            "--crossover",
            "From which size on which algorithms take the least time",
            excludes=("--algorithm", "--group", "--bytes", "--switches", "--factors"),
        ),
        flag(
            "--switches",
            "The switches of a BCube, next to those of Fat-Trees for as many servers",
            excludes=("--algorithm", "--rate", "--group", "--bytes", "--latency", "--crossover", "--factors"),
        ),
        Option(
            "--factors",
            "Networks of different rates, by BlueConnect's Eq. 6 to 10: learners of each level, from inside a node up: "
            "3x2x2",
            default=[],
            check=any_text,
            delimiter="x",
            needs=("--rates",),
            excludes=("--topology", "--algorithm", "--rate", "--group", "--crossover", "--switches"),
        ),
        Option(
            "--rates",
            "Rate of each level of --factors: 256gbit,100gbit,200gbit",
            default=[],
            check=any_text,
            delimiter=",",
            needs=("--factors",),
        ),
        Option("--network", "Of --factors: tree (Eq. 9) or torus (Eq. 10)", default="tree", needs=("--factors",)),
        JSON,
    ),
    """An algorithm has no row on a topology for which no paper gives its time; two-level has
one on star:N and fattree:N with --group. ps is a parameter server on one of the servers,
mesh one that is spread over all of them. docs/models.md lists what is assumed.
With --crossover an algorithm that is not listed is nowhere the first. A server's
messages pass one after the other here; `gradcube plan --why` counts those of a step at
the same time, and finds other sizes.
With --switches the Fat-Tree has three layers of switches with as many ports as the
BCube's (BML, section 3.1); `relative` is by the one whose servers have one NIC.
With --factors all learners below a port of a tree share its rate. In a torus, those of
one node (the first factor) share the cables of each dimension. T_F is at the slowest
rate.
Examples:
  gradcube model gst --topology bcube:4,2 --bytes 100M --rate 10gbit
  gradcube model gst --topology bcube:32,2 --topology fattree:1024 --algorithm bml --algorithm ps
  gradcube model gst --topology star:64 --bytes 64Ki --latency 5us --json
  gradcube model gst --crossover --topology bcube:16,4
  gradcube model gst --switches --topology bcube:4,2 --topology bcube:16,4
  gradcube model gst --factors 3x2x2 --rates 256gbit,100gbit,200gbit""",
)
