"""`gradcube model merge`."""

from .._merging import POLICIES
from .command_line import JSON, Command, Option, any_text, require_known
from .failure import UsageError
from .iteration import messages_of
from .json_file import write_text_file
from .merge_profile import read_merge_profile
from .merge_timeline import merge_timeline
from .report import Report, human_bytes, human_seconds, seconds_cell, shown_cell, text_cell

_KNOWN = ("all", *POLICIES)
_SHOWN = 6  # messages at each end of a long list

POLICY = Option("--policy", ", ".join(_KNOWN), default="all")


def policies_of(asked):
    """Those that are asked for: `all`, or the name of one."""
    require_known("--policy", "policy", asked, _KNOWN)
    return [policy for policy in POLICIES if asked in ("all", policy)]


def _messages_text(messages):
    """ "12 9-11 1-8"; a long list has its begin and its end."""
    texts = [str(first + 1) if first == last else f"{first + 1}-{last + 1}" for first, last in messages]
    if len(texts) > 2 * _SHOWN + 1:
        texts[_SHOWN:-_SHOWN] = ["..."]
    return " ".join(texts)


def _report_of(policies, iteration):
    computing = iteration.computing_seconds()
    seconds = {policy: iteration.seconds(messages) for policy, messages in policies.items()}
    least = min(seconds.values())
    report = Report(
        "policies",
        ("<policy", "policy"),
        ("messages", ""),
        ("iteration", "iteration_seconds"),
        ("relative", ""),
        ("exposed", ""),
        ("<layers of each message", "merged"),
    )
    count = len(iteration.layers)
    size = human_bytes(float(sum(layer.bytes for layer in iteration.layers)))
    report.lines.append(
        f"# {count:,} layer{'' if count == 1 else 's'}, {size}; an all-reduce of M bytes takes "
        f"{human_seconds(iteration.cost.a)} + {iteration.cost.b * 1e9:.4g} ns * M; the forward pass takes "
        f"{human_seconds(iteration.forward_seconds)}, the backward pass "
        f"{human_seconds(computing - iteration.forward_seconds)}"
    )
    for policy, messages in policies.items():
        # Layers count from 1, as in the paper.
        merged = [list(range(message.first + 1, message.last + 2)) for message in messages]
        report.add(
            text_cell(policy),
            shown_cell(f"{len(messages):,}"),
            seconds_cell(seconds[policy]),
            shown_cell(f"{seconds[policy] / least:.3f}" if least > 0 else "-"),
            shown_cell(human_seconds(seconds[policy] - computing)),
            (_messages_text(messages), merged),
        )
    return report


def _run(values):
    if not values.profile:
        raise UsageError(
            "--profile is missing: a file with what an all-reduce costs and the layers of a network; `gradcube model "
            "merge --help` shows one"
        )
    iteration = read_merge_profile(values.profile)
    policies = {policy: messages_of(policy, iteration) for policy in policies_of(values.policy)}
    if values.timeline:
        write_text_file("--timeline", values.timeline, merge_timeline(iteration, policies))
    _report_of(policies, iteration).write(values.json)


COMMAND = Command(
    "merge",
    "Which layers' gradients to send as one message, and what an iteration takes then",
    _run,
    (
        Option("--profile", "File with a network's layers; see below", check=any_text),
        POLICY,
        Option(
            "--timeline",
            "Write when each layer is computed and each message travels into this file, in Chrome's trace format",
        ),
        JSON,
    ),
    """The profile is JSON, layers from the first to the last:
  {"alpha": 0.0006, "beta": 1.6e-9, "forward_seconds": 0.01,
   "layers": [{"bytes": 4000, "backward_seconds": 0.001},
              {"bytes": 90000, "backward_seconds": 0.002}]}
An all-reduce of M bytes takes alpha + beta M: about what `gradcube perf allreduce`
measures for few bytes, and by how much longer a byte more takes. Without forward_seconds
the forward pass takes 0. docs/mg-wfbp.md explains the policies.
Examples:
  gradcube model merge --profile resnet50.json
  gradcube model merge --profile resnet50.json --policy optimal --json
  gradcube model merge --profile resnet50.json --timeline trace.json    for chrome://tracing""",
)
