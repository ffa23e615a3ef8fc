"""What a message between two nodes costs in `gradcube model training` and `gradcube model fit --nodes`: what the
options say, else what was fitted on the running cluster, if that is asked for, else what MG-WFBP measured."""

import json
import subprocess
import sys

from . import tool
from .command_line import Option, flag
from .failure import Failure
from .mgwfbp import NodeCosts
from .training import paper_costs
from .units import parse_duration, parse_seconds_per_byte

OPTIONS = (
    Option("--alpha", "Time of a message between two nodes whatever its size [45.26us]"),
    Option("--beta", "Time of each byte between two nodes [0.8ns, which is 10 Gbit/s]"),
    Option("--gamma", "Time to add one byte to another [0.1143ns]"),
    flag(
        "--fitted",
        "Those that are not given: alpha as `gradcube model fit` has found it on the running cluster, beta by its "
        "slowest link, and gamma 0",
    ),
)


def _fitted_costs():
    """Those of the running cluster, which the tool knows. Where it refuses, it has said why."""
    asked = subprocess.run([tool.path(), "model", "kept"], stdout=subprocess.PIPE, check=False)
    if asked.returncode != 0:
        sys.exit(asked.returncode)
    kept = json.loads(asked.stdout)
    return NodeCosts(alpha=kept["alpha"], beta=kept["beta"])


def node_costs(values):
    """The costs of a ring (MG-WFBP, Table II). Of a cluster the rate is that of the slowest level, and nothing is said
    of additions."""
    costs = _fitted_costs() if values.fitted else paper_costs()
    if values.alpha:
        costs.alpha = parse_duration(values.alpha, "--alpha") * 1e-9
    if values.beta:
        costs.beta = parse_seconds_per_byte(values.beta, "--beta")
    if values.gamma:
        costs.gamma = parse_seconds_per_byte(values.gamma, "--gamma")
    if values.fitted and costs.beta == 0 and not values.beta:
        raise Failure("--fitted: the links of the running cluster have no rate; expected a --beta")
    return costs
