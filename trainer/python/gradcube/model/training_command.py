"""`gradcube model training`."""

from .command_line import JSON, Command, Option, any_text, require_known
from .failure import UsageError
from .json_file import write_text_file
from .merge_command import POLICY, policies_of
from .merge_profile import merge_profile_text
from .mgwfbp import ring_cost
from .networks import NAMES, network
from .node_costs import OPTIONS, node_costs
from .report import Report, count_cell, human_bytes, human_seconds, seconds_cell, shown_cell, text_cell
from .training import gpu_seconds, iteration_of, policy_times
from .units import parse_duration, parse_node_counts

_KNOWN = ("all", *NAMES)


def _networks_of(asked):
    """Those that are asked for, in their order."""
    networks = []
    for name in asked:
        require_known("--network", "network", name, _KNOWN)
        networks += [network(each) for each in NAMES if name in ("all", each)]
    return networks


def _computing_seconds(net, compute):
    if not compute:
        return gpu_seconds(net.name)
    nanoseconds = parse_duration(compute, "--compute")
    if nanoseconds == 0:
        raise UsageError('--compute "0": an iteration computes something; expected 1ns or more')
    return nanoseconds * 1e-9


def _network_text(net, computing, is_asked_for):
    whose = "as asked for" if is_asked_for else "on the paper's GPU"
    return (
        f"# {net.name}: {len(net.layers)} layers, {human_bytes(4.0 * net.parameters)}, batches of {net.batch}; both "
        f"passes take {human_seconds(computing)} {whose}, {computing / net.cpu_seconds:.3g} times a CPU's"
    )


def _add_rows(report, net, N, policies, iteration, computing):
    for time in policy_times(iteration):
        if time.policy in policies:
            report.add(
                text_cell(net.name),
                count_cell(N),
                text_cell(time.policy),
                shown_cell(f"{time.messages:,}"),
                seconds_cell(time.seconds),
                shown_cell(f"{computing / time.seconds:.3f}"),
                (f"{time.over_wfbp:.2f}", time.over_wfbp),
                (f"{time.over_synceasgd:.2f}", time.over_synceasgd),
            )


def _write_profile(path, networks, nodes, costs, compute):
    if len(networks) != 1 or len(nodes) != 1:
        raise UsageError(
            "--write-profile: a profile is of one network on one number of nodes; expected it with such as --network "
            "resnet50 --nodes 64"
        )
    net = networks[0]
    iteration = iteration_of(net, _computing_seconds(net, compute), ring_cost(nodes[0], costs))
    write_text_file("--write-profile", path, merge_profile_text(iteration, [layer.name for layer in net.layers]))


def _run(values):
    networks = _networks_of(values.network)
    nodes = parse_node_counts(values.nodes, "--nodes")
    policies = policies_of(values.policy)
    costs = node_costs(values)
    computing = [_computing_seconds(net, values.compute) for net in networks]
    report = Report(
        "rows",
        ("<network", "network"),
        ("nodes", "nodes"),
        ("<policy", "policy"),
        ("messages", ""),
        ("iteration", "iteration_seconds"),
        ("efficiency", ""),
        ("over wfbp", "speedup_over_wfbp"),
        ("over synceasgd", "speedup_over_synceasgd"),
    )
    report.lines += [_network_text(net, seconds, values.compute) for net, seconds in zip(networks, computing)]
    report.lines.append(
        f"# all-reduces are rings: {human_seconds(costs.alpha)} for each of 2(N-1) messages, {costs.beta * 1e9:.4g} ns "
        f"for each byte sent and {costs.gamma * 1e9:.4g} ns for each added"
    )
    for net, seconds in zip(networks, computing):
        for N in nodes:
            _add_rows(report, net, N, policies, iteration_of(net, seconds, ring_cost(N, costs)), seconds)
    if values.write_profile:
        _write_profile(values.write_profile, networks, nodes, costs, values.compute)
    report.write(values.json)


COMMAND = Command(
    "training",
    "What an iteration of training takes on some nodes, by when gradients travel",
    _run,
    (
        Option(
            "--network",
            f"{', '.join(_KNOWN)}; may be repeated",
            default=["googlenet", "resnet50"],  # of the paper's Fig. 9
            check=any_text,
        ),
        Option(
            "--nodes", "Numbers of nodes: 64, 4,8,64, or 4..64 for each that is twice the one before", default="4..64"
        ),
        POLICY,
        *OPTIONS,
        Option("--compute", "Time of the forward and backward pass on one node [that of the paper's GPU]"),
        Option(
            "--write-profile",
            "Write the one network on the one number of nodes into this file, for `gradcube model merge --profile`",
        ),
        JSON,
    ),
    """This is the simulation of MG-WFBP's Fig. 9. Each layer's time was measured on a CPU, and
all times of a network are scaled by one factor to a GPU's. docs/mg-wfbp.md compares the
result with the paper.
Examples:
  gradcube model training
  gradcube model training --network resnet50 --nodes 64 --policy mgwfbp --json
  gradcube model training --network vgg19 --nodes 9 --alpha 5us --beta 0.2ns --compute 300ms
  gradcube model training --network resnet50 --nodes 64 --write-profile resnet50.json""",
)
