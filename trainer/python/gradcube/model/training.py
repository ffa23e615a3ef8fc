"""What an iteration of training takes on N nodes whose gradients travel by a policy: the simulation of MG-WFBP's
section V-C, whose Fig. 9 it makes.

A network gives the bytes of each layer. The time of each layer is one that was measured on a CPU (networks), and so is
the forward pass; all are scaled by one factor for the network, so that both passes together take what they take on the
paper's GPU, a Tesla K80. The paper shows that time only in a picture, Fig. 8. gpu_seconds() is the one with which, at
64 nodes, an iteration by WFBP takes as many times that by MG-WFBP as the text says: 1.78 for GoogleNet, 1.75 for
ResNet-50. What the text says of SyncEASGD and of other numbers of nodes is then for the model to tell. The text has no
ratio for other networks: they take the geometric mean of the two factors.

An all-reduce is the paper's ring (Table II) on 10 Gbit/s Ethernet, with

    alpha  45.26 us: the text's a is 90.52, 271.56 and 633.64 us on 2, 4 and 8 nodes, 2(N-1) alpha
    beta   0.8 ns per byte, 10 Gbit/s
    gamma  0.1143 ns per byte: on 8 nodes, 200 KB take "about 1.5 ms" and 400 KB 1.8 ms (section I), so b = 1.5 ns =
           14/8 beta + 7/8 gamma
"""

import math
import typing

from .._merging import POLICIES, Layer
from .iteration import Iteration, messages_of
from .mgwfbp import NodeCosts
from .networks import network

_GPU_SECONDS = {"googlenet": 0.3509, "resnet50": 0.6193}


def paper_costs():
    return NodeCosts(alpha=45.26e-6, beta=0.8e-9, gamma=(1.5e-9 - 1.75 * 0.8e-9) / 0.875)


def gpu_seconds(name):
    """t_f + t_b on the paper's GPU."""
    if name in _GPU_SECONDS:
        return _GPU_SECONDS[name]
    googlenet, resnet50 = (network(each).cpu_seconds for each in ("googlenet", "resnet50"))
    return math.sqrt(_GPU_SECONDS["googlenet"] / googlenet * _GPU_SECONDS["resnet50"] / resnet50) * (
        network(name).cpu_seconds
    )


def iteration_of(net, computing_seconds, cost):
    """The layers of the network with the times of the CPU, scaled to `computing_seconds` together."""
    scale = computing_seconds / net.cpu_seconds * 1e-6
    layers = [Layer(layer.bytes, scale * layer.microseconds) for layer in net.layers]
    return Iteration(cost, layers, scale * net.forward_microseconds)


class PolicyTime(typing.NamedTuple):
    policy: str
    messages: int
    seconds: float  # t_iter
    # How many times as long an iteration by these takes.
    over_wfbp: float
    over_synceasgd: float


def policy_times(iteration):
    """Of all policies, in their order."""
    found = {}
    for policy in POLICIES:
        messages = messages_of(policy, iteration)
        found[policy] = (len(messages), iteration.seconds(messages))
    wfbp, synceasgd = found["wfbp"][1], found["synceasgd"][1]
    return [
        PolicyTime(policy, count, seconds, wfbp / seconds, synceasgd / seconds)
        for policy, (count, seconds) in found.items()
    ]
