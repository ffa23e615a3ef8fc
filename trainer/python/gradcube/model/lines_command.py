"""`gradcube model fit --nodes`: an all-reduce of M bytes as a line a + bM, by the four rows of MG-WFBP's Table II.

Without --nodes `gradcube model fit` measures the running cluster; that is the tool's own.
"""

from . import tool
from .command_line import JSON, Command, Option, flag
from .grid import is_power_of_two
from .mgwfbp import binary_tree_cost, halving_doubling_cost, recursive_doubling_cost, ring_cost
from .node_costs import OPTIONS, node_costs
from .report import Report, count_cell, human_bytes, human_seconds, seconds_cell, text_cell
from .units import parse_node_counts, parse_size

_ANY_NUMBER = {"ring": ring_cost}  # of nodes
_POWERS_OF_TWO = {
    "binary_tree": binary_tree_cost,
    "recursive_doubling": recursive_doubling_cost,
    "halving_doubling": halving_doubling_cost,
}


def _report_of(nodes, size, costs):
    """Where nodes are no power of two, the ring alone has a row."""
    length = float(parse_size(size, "--bytes"))
    report = Report(
        "rows", ("<algorithm", "algorithm"), ("nodes", "nodes"), ("a", "a"), ("b, ns/B", "b"), ("a + bM", "seconds")
    )
    report.lines.append(
        f"# M is {human_bytes(length)}; a message takes {human_seconds(costs.alpha)}, each byte sent "
        f"{costs.beta * 1e9:.4g} ns and each added {costs.gamma * 1e9:.4g} ns"
    )
    for N in parse_node_counts(nodes, "--nodes"):
        rows = {**_POWERS_OF_TWO, **_ANY_NUMBER} if is_power_of_two(N) else _ANY_NUMBER
        for name, cost_of in rows.items():
            cost = cost_of(N, costs)
            report.add(
                text_cell(name),
                count_cell(N),
                seconds_cell(cost.a),
                (f"{cost.b * 1e9:.4g}", cost.b),
                seconds_cell(cost.seconds(length)),
            )
    return report


def _run(values):
    if not values.nodes:
        tool.replace_with("model", "fit")
    _report_of(values.nodes, values.bytes, node_costs(values)).write(values.json)


COMMAND = Command(
    "fit",
    "What messages and bytes cost: on the running cluster, or by MG-WFBP's Table II",
    _run,
    (
        Option("--nodes", "Numbers of nodes"),
        Option("--bytes", "M", default="100M"),
        *OPTIONS,
        JSON,
    ),
    "",
)
