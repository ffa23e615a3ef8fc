"""`gradcube model hub`."""

from . import phub
from .command_line import JSON, Command, Option, any_text, require_known
from .failure import UsageError
from .report import Report, count_cell, human_bytes, human_rate, rate_cell, seconds_cell, shown_cell, text_cell
from .units import parse_duration, parse_node_counts, parse_rate, parse_size

_KNOWN = ("all", *(network.name for network in phub.NETWORKS))


def _own_network(values):
    """The network that --bytes and --compute describe."""
    if values.network != "all":
        raise UsageError(
            "--network: --bytes and --compute are a network of your own; expected one of them, or --network alone"
        )
    if not values.bytes or not values.compute:
        raise UsageError(
            "--bytes and --compute: a network has a size and a time; expected both, for example --bytes 97M --compute "
            "161ms"
        )
    size, nanoseconds = parse_size(values.bytes, "--bytes"), parse_duration(values.compute, "--compute")
    if size == 0 or nanoseconds == 0:
        raise UsageError("--bytes and --compute: expected more than 0 of both")
    return phub.PhubNetwork("own", float(size), nanoseconds * 1e-9)


def _networks_of(values):
    if values.bytes or values.compute:
        return [_own_network(values)]
    require_known("--network", "network", values.network, _KNOWN, ", or --bytes and --compute")
    return [network for network in phub.NETWORKS if values.network in ("all", network.name)]


def _bandwidth_report(values):
    workers = parse_node_counts(values.workers, "--workers")
    report = Report(
        "rows",
        ("<network", "network"),
        ("workers", "workers"),
        ("<layout", "layout"),
        ("at least", "bits_per_second"),
        ("<parameter servers", ""),
    )
    report.lines.append(
        "# sent and received together, by the host of a parameter server, so that communication is hidden"
    )
    for network in _networks_of(values):
        for N in workers:
            for layout, description in phub.LAYOUTS.items():
                report.add(
                    text_cell(network.name),
                    count_cell(N),
                    text_cell(layout),
                    rate_cell(phub.hiding_bits_per_second(layout, N, network.bytes, network.seconds)),
                    shown_cell(description),
                )
    return report


def _hierarchy_report(values):
    """Whether hubs that add up each rack's gradients first save time."""
    size = float(parse_size(values.bytes or "97M", "--bytes"))
    if size == 0:
        raise UsageError('--bytes "0": nothing takes no time; expected 1 byte or more')
    rates = phub.HubRates(
        parse_rate(values.hub_rate, "--hub-rate"),
        parse_rate(values.core_rate, "--core-rate"),
        parse_rate(values.worker_rate, "--worker-rate"),
    )
    report = Report(
        "rows",
        ("workers/rack", "workers_per_rack"),
        ("racks", "racks"),
        ("flat", "flat_seconds"),
        ("hierarchical", "hierarchical_seconds"),
        ("relative", ""),
        ("pays", "pays"),
    )
    report.lines.append(
        f"# {human_bytes(size)}; a hub has {human_rate(rates.hub)}, a rack's uplink {human_rate(rates.core)}, a worker "
        f"{human_rate(rates.worker)}"
    )
    for workers in parse_node_counts(values.workers, "--workers"):
        for racks in parse_node_counts(values.racks, "--racks"):
            times = phub.hierarchy_times(workers, racks, rates, size)
            report.add(
                count_cell(workers),
                count_cell(racks),
                seconds_cell(times.flat),
                seconds_cell(times.hierarchical),
                shown_cell(f"{times.hierarchical / times.flat:.3f}"),
                ("yes" if times.pays() else "no", times.pays()),
            )
    return report


def _run(values):
    report = _hierarchy_report(values) if values.racks else _bandwidth_report(values)
    report.write(values.json)


COMMAND = Command(
    "hub",
    "Parameter servers: the least bandwidth that hides communication, or hubs of racks",
    _run,
    (
        Option("--network", ", ".join(_KNOWN), default="all", excludes=("--racks",)),
        Option("--bytes", "Gradients of a network of your own, with --compute"),
        Option("--compute", "What a worker computes in an iteration: 161ms", excludes=("--racks",)),
        Option("--workers", "Numbers of workers: 8, 4,8, or 4..64 for each that is twice the one before", default="8"),
        Option(
            "--racks",
            "Whether hubs that add up each rack's gradients first save time: 4, 2,3 or 2..16 racks of --workers each, "
            "with gradients of --bytes [97M]",
            check=any_text,
            excludes=("--network", "--compute"),
        ),
        Option("--hub-rate", "Rate of a rack's hub", default="100gbit", check=any_text, needs=("--racks",)),
        Option("--core-rate", "Rate of a rack's uplink", default="20gbit", check=any_text, needs=("--racks",)),
        Option("--worker-rate", "Rate of a worker", default="10gbit", check=any_text, needs=("--racks",)),
        JSON,
    ),
    """PHub, Figure 4 and Table 2. The networks and their times on a GTX 1080 Ti are those of
its section 4.2.
With --racks its section 3.4: `flat` is the traffic that crosses racks when all hubs
share the model, `hierarchical` the sum within each rack and then a ring of the hubs.
Examples:
  gradcube model hub --network resnet50 --workers 8..64
  gradcube model hub --bytes 12.5M --compute 20ms --json
  gradcube model hub --racks 2..16 --workers 44 --core-rate 400gbit""",
)
