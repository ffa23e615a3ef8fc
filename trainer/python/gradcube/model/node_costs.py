"""What a message between two nodes costs in `gradcube model training` and `gradcube model fit --nodes`: what the
options say, else what MG-WFBP measured."""

from .command_line import Option
from .training import paper_costs
from .units import parse_duration, parse_seconds_per_byte

OPTIONS = (
    Option("--alpha", "Time of a message between two nodes whatever its size [45.26us]"),
    Option("--beta", "Time of each byte between two nodes [0.8ns, which is 10 Gbit/s]"),
    Option("--gamma", "Time to add one byte to another [0.1143ns]"),
)


def node_costs(values):
    """The costs of a ring (MG-WFBP, Table II)."""
    costs = paper_costs()
    if values.alpha:
        costs.alpha = parse_duration(values.alpha, "--alpha") * 1e-9
    if values.beta:
        costs.beta = parse_seconds_per_byte(values.beta, "--beta")
    if values.gamma:
        costs.gamma = parse_seconds_per_byte(values.gamma, "--gamma")
    return costs
