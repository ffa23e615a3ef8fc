"""The timeline of an iteration in Chrome's trace format, which chrome://tracing and Perfetto show: the picture of
MG-WFBP's Fig. 1 to 4 for a profile.

A process for each policy, with a track for what is computed, the forward pass and each layer's part of the backward
pass, and one for its messages. Times in microseconds from the begin of the iteration; layers count from 1.
"""

from .report import json_text

_COMPUTATION, _COMMUNICATION = 1, 2  # tracks


def _name(what, process, track, name):
    return {"name": what, "ph": "M", "pid": process, "tid": track, "args": {"name": name}}


def _span(name, process, track, begin, end, arguments):
    times = {"ts": begin * 1e6, "dur": (end - begin) * 1e6}
    return {"name": name, "ph": "X", "pid": process, "tid": track, **times, "args": arguments}


def _computation(process, iteration):
    if iteration.forward_seconds > 0:
        yield _span("forward", process, _COMPUTATION, 0.0, iteration.forward_seconds, {})
    ready, begin = iteration.ready_seconds(), iteration.forward_seconds
    for number in range(len(ready), 0, -1):
        size = {"bytes": iteration.layers[number - 1].bytes}
        yield _span(f"layer {number}", process, _COMPUTATION, begin, ready[number - 1], size)
        begin = ready[number - 1]


def _communication(process, iteration, messages):
    for message, times in zip(messages, iteration.times(messages)):
        first, last = message.first + 1, message.last + 1
        layers = f"layer {first}" if first == last else f"layers {first}-{last}"
        arguments = {"bytes": iteration.bytes_of(message), "ready_us": times.ready * 1e6}
        yield _span(layers, process, _COMMUNICATION, times.begin, times.end, arguments)


def merge_timeline(iteration, policies):
    """policies: the messages of each, in the order of sending, by its name."""
    events = []
    for process, (policy, messages) in enumerate(policies.items(), start=1):
        events.append(_name("process_name", process, _COMPUTATION, policy))
        events.append(_name("thread_name", process, _COMPUTATION, "computation"))
        events.append(_name("thread_name", process, _COMMUNICATION, "communication"))
        events += _computation(process, iteration)
        events += _communication(process, iteration, messages)
    return json_text({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n"
