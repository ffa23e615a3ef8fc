"""What the ranks of merging_test.py ask of a training that goes on: its progress and its timeline, and new costs."""

import json
import time

import torch.distributed as dist
from gradcube import _merge_planner
from gradcube.torch import MergedGradientOptimizer, MergedGradientState
from torch import nn

from merging_hook import ENDLESS, ddp_of
from merging_models import SlowBackward, SlowLayer, batches, loss_of, model_of, same_on_all_ranks, sgd_of
from merging_models import slow_by_clock, weights

NOTHING_TO_TELL = "0 iterations, 0.0 ms each; 0 all-reduces in 0.0 ms, 0% hidden"


def train(model, optimizer, some, between=lambda number: None):
    for number, batch in enumerate(some):
        between(number)
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()


def slow_optimizer(**options):
    """Whose first layer takes long: what the others send is on its way meanwhile, and has come long before it ends."""
    SlowBackward.seconds = {"first": 0.2}
    model = nn.Sequential(SlowLayer("first"), SlowLayer("second"), nn.Linear(30, 7))
    return model, MergedGradientOptimizer(sgd_of(model), model, "wfbp", **options)


def check(progress, iterations, messages):
    assert progress.iterations == iterations and len(progress.messages) == messages, progress
    assert 0 < progress.communication_seconds < progress.iteration_seconds, progress
    assert 0 <= progress.waiting_seconds <= progress.iteration_seconds, progress
    assert 0 <= progress.hidden <= 1, progress
    assert str(progress).startswith(f"{iterations} iterations, "), progress
    assert f"; {messages} all-reduces in " in str(progress), progress


def progress_of_the_optimizer():
    """What of it was hidden depends on the cores: tests/unit/trainer/progress_test.py has its arithmetic."""
    model, optimizer = slow_optimizer()
    assert optimizer.progress.iterations == 0 and optimizer.progress.hidden == 0, optimizer.progress
    train(model, optimizer, batches(4))
    check(optimizer.progress, 4, 3)
    assert optimizer.progress.messages == optimizer.messages
    assert optimizer.progress.iteration_seconds > 0.2, optimizer.progress
    SlowBackward.seconds = {}


def progress_by_need():
    """Between two iterations ranks do something else, and messages go on meanwhile."""
    model, optimizer = slow_optimizer(priority="need")
    train(model, optimizer, batches(4), lambda number: time.sleep(0.2))
    check(optimizer.progress, 4, 3)
    assert optimizer.progress.iteration_seconds > 0.4, optimizer.progress
    SlowBackward.seconds = {}


def progress_of_the_hook():
    SlowBackward.seconds = {"first": 0.2}
    state = MergedGradientState("wfbp")
    assert str(state.progress) == NOTHING_TO_TELL, state.progress
    model = ddp_of(nn.Sequential(SlowLayer("first"), nn.Linear(30, 7)), state)
    train(model, sgd_of(model), batches(4))
    check(state.progress, 4, 4)
    assert state.progress.iteration_seconds > 0.2, state.progress
    SlowBackward.seconds = {}


@slow_by_clock()
def costs_that_change():
    """They are measured again, and messages planned anew, though layers take as long as before; not where costs are
    given."""
    before = _merge_planner._BETWEEN_LOOKS, _merge_planner._BETWEEN_COSTS, _merge_planner.measure_costs
    _merge_planner._BETWEEN_LOOKS, _merge_planner._BETWEEN_COSTS = 6, 2
    SlowBackward.seconds = {"first": 0.05, "second": 0.05}
    cheap, alone, merged = (0.0, 1e-9), [["2"], ["1"], ["0"]], [["2", "1", "0"]]
    for given, later, expected in ((None, ENDLESS, merged), (None, cheap, alone), (cheap, ENDLESS, alone)):
        model = nn.Sequential(SlowLayer("first"), SlowLayer("second"), nn.Linear(30, 7))
        _merge_planner.measure_costs = lambda *_: cheap
        optimizer = MergedGradientOptimizer(sgd_of(model), model, costs=given)
        _merge_planner.measure_costs = lambda *_: later
        train(model, optimizer, batches(11))
        assert (optimizer.messages, optimizer.costs) == (alone, cheap), (optimizer.messages, optimizer.costs)
        train(model, optimizer, batches(1))
        assert optimizer.messages == expected, (optimizer.messages, expected)
        assert optimizer.costs == (later if given is None else cheap), optimizer.costs
        same_on_all_ranks(weights(model))
    SlowBackward.seconds = {}
    _merge_planner._BETWEEN_LOOKS, _merge_planner._BETWEEN_COSTS, _merge_planner.measure_costs = before


def events_of(path):
    """Of all ranks, when rank 0 has written it."""
    dist.barrier()
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in events), events
    return [sorted(event["name"] for event in events if event["pid"] == rank) for rank in range(dist.get_world_size())]


def timeline_of_the_optimizer(path):
    model = model_of(0)
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "synceasgd")
    train(model, optimizer, batches(4), lambda number: number == 1 and optimizer.record(path, iterations=2))
    for names in events_of(path):
        assert names == sorted(2 * ["0", "2", "4", "6", "8", "9", "9, 8, 6, 4, 2, 0"]), names


def timeline_of_the_hook(path):
    """The file is there when the backward pass of the last iteration has ended."""
    for policy, merged in (("synceasgd", ["buckets 0-11"]), ("wfbp", [f"bucket {number}" for number in range(12)])):
        state = MergedGradientState(policy)
        model = ddp_of(model_of(0), state, gradient_as_bucket_view=True)
        train(model, sgd_of(model), batches(4), lambda number: number == 2 and state.record(path, iterations=2))
        for names in events_of(path):
            assert names == sorted(2 * [*(f"bucket {number}" for number in range(1, 12)), *merged]), names
        same_on_all_ranks(weights(model))


SCENARIOS = [progress_of_the_optimizer, progress_by_need, progress_of_the_hook, costs_that_change]
TIMELINES = [timeline_of_the_optimizer, timeline_of_the_hook]
