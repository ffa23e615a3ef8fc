"""MG-WFBP's Fig. 9: the speedup of training on 4 to 64 nodes over one, by policy.

The paper's own lines cannot be read from its text; what it says of 64 nodes in numbers is shown as `paper`.
"""

from .figures import PAPER, Figure, Panel, Series
from .iteration import messages_of
from .mgwfbp import ring_cost
from .networks import network
from .training import gpu_seconds, iteration_of, paper_costs

_NODES = (4, 8, 16, 32, 64)
_LINES = {"wfbp": "WFBP", "synceasgd": "SyncEASGD", "mgwfbp": "MG-WFBP"}


def speedup(name, nodes, policy):
    """How many times as fast as one node N of them train (Eq. 4)."""
    alone = gpu_seconds(name)
    iteration = iteration_of(network(name), alone, ring_cost(nodes, paper_costs()))
    return nodes * alone / iteration.seconds(messages_of(policy, iteration))


def _panel_of(name):
    panel = Panel(network(name).title, "nodes", "speedup over one node", [Series("linear", [4.0, 64.0], [4.0, 64.0])])
    for policy, title in _LINES.items():
        line = Series(title)
        for nodes in _NODES:
            line.add(nodes, speedup(name, nodes, policy))
        panel.series.append(line)
    return panel


def _at_64(panel, **values):
    """What the text of section V-C says of policies at 64 nodes."""
    for name, value in values.items():
        panel.series.append(Series(f"{name}, the paper's text", [64.0], [value], PAPER))


def figure_9(_):
    googlenet, resnet50 = _panel_of("googlenet"), _panel_of("resnet50")
    best = googlenet.series[-1].y[-1]
    _at_64(googlenet, **{"MG-WFBP / 1.78, WFBP": best / 1.78, "MG-WFBP / 1.35, SyncEASGD": best / 1.35})
    best = resnet50.series[-1].y[-1]
    _at_64(resnet50, **{"MG-WFBP / 1.75, WFBP": best / 1.75, "MG-WFBP / 1.45, SyncEASGD": best / 1.45})
    _at_64(resnet50, **{"55 % of 64, WFBP and SyncEASGD": 0.55 * 64})
    return Figure("mg-wfbp-9", "MG-WFBP, Figure 9: training on K80s with 10 Gbit/s Ethernet", [googlenet, resnet50])
