"""What the ranks of merging_test.py do with merged_gradient_hook: DistributedDataParallel trains as it does without."""

import copy

import gradcube.torch
import torch
import torch.distributed as dist
from gradcube import _merge_planner
from gradcube.torch import MergedGradientState, merged_gradient_hook
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from merging_models import POLICIES, SlowBackward, SlowLayer, averaged_by_hand, batches, loss_of, model_of
from merging_models import raises, same_on_all_ranks, sgd_of, slow_by_clock, weights

ENDLESS = (1000.0, 0.0)  # costs that no time of a layer outweighs: all buckets share a message


def ddp_of(model, state=None, **options):
    """With a bucket for each parameter."""
    before, dist._DEFAULT_FIRST_BUCKET_BYTES = dist._DEFAULT_FIRST_BUCKET_BYTES, 1  # else it is of up to 1 MiB
    try:
        model = DistributedDataParallel(model, bucket_cap_mb=1 / (1 << 20), **options)
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = before
    if state is not None:
        model.register_comm_hook(state, merged_gradient_hook)
    return model


def train(model, optimizer, some):
    for batch in some:
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()


def hook_policies():
    """Every policy comes to what averages by hand come to. Merged buckets are one message, and nothing is copied."""
    expected = averaged_by_hand(12)
    for policy in POLICIES:
        state = MergedGradientState(policy, ENDLESS)
        model = ddp_of(model_of(dist.get_rank()), state, gradient_as_bucket_view=policy != "wfbp")
        optimizer, some = sgd_of(model), list(batches(12))
        train(model, optimizer, some[:9])
        before = gradcube.torch.statistics()["all_reduce"]
        train(model, optimizer, some[9:])
        after = gradcube.torch.statistics()["all_reduce"]
        messages = 12 if policy == "wfbp" else 1
        assert sum(state.messages, []) == list(range(12)) and len(state.messages) == messages, state.messages
        assert after["requests"] == before["requests"] + 3 * messages, (policy, before, after)
        assert after["staged_bytes"] == before["staged_bytes"], (policy, before, after)
        same_on_all_ranks(weights(model))
        assert torch.allclose(weights(model), expected, atol=1e-5), (policy, weights(model) - expected)


@slow_by_clock()
def hook_planning():
    """Buckets are biases and weights."""
    _merge_planner._BETWEEN_LOOKS = 6
    model = nn.Sequential(SlowLayer("first"), SlowLayer("second"), nn.Linear(30, 7))
    state = MergedGradientState(costs=(0.1, 1e-5))
    model = ddp_of(model, state)
    optimizer = sgd_of(model)
    SlowBackward.seconds = {"first": 0.3}
    train(model, optimizer, batches(2))
    assert state.messages == [[0], [1], [2], [3], [4], [5]], state.messages
    train(model, optimizer, batches(6))
    assert state.messages == [[0, 1, 2, 3], [4, 5]], state.messages
    SlowBackward.seconds = {"second": 0.3}
    train(model, optimizer, batches(11))
    assert state.messages == [[0, 1], [2, 3, 4, 5]], state.messages
    SlowBackward.seconds = {}
    same_on_all_ranks(weights(model))


def compared(make, steps, **options):
    """Trains with the hook and without: the weights are those of the other, but for the order of additions."""
    trained, group = [], options.get("process_group")
    for state in (None, *(MergedGradientState(policy, ENDLESS, group) for policy in ("synceasgd", "optimal"))):
        torch.manual_seed(1)
        model = ddp_of(make(), state, **options)
        steps(model)
        same_on_all_ranks(weights(model).double())
        trained.append(weights(model))
    for one in trained[1:]:
        assert torch.allclose(one, trained[0], atol=1e-5), one - trained[0]


def hook_uneven_inputs():
    """Ranks that are ready with their data go on with gradients of zero, which lie elsewhere than buckets do."""

    def steps(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with model.join():
            train(model, optimizer, batches(8 + 2 * dist.get_rank()))

    compared(lambda: nn.Sequential(nn.Linear(30, 5), nn.Linear(5, 7)), steps)


class Halves(nn.Module):
    """Of two types, and one layer has no part in the loss."""

    def __init__(self):
        super().__init__()
        self.first, self.unused, self.last = nn.Linear(30, 9).double(), nn.Linear(3, 3), nn.Linear(9, 7)

    def forward(self, numbers):
        return self.last(self.first(numbers.double()).float())


def hook_kinds_of_models():
    def steps(model):
        optimizer = sgd_of(model)
        for batch in batches(9):
            optimizer.zero_grad()
            with model.no_sync():
                loss_of(model, batch).backward()
            loss_of(model, batch).backward()
            optimizer.step()

    compared(Halves, steps, find_unused_parameters=True)
    torch.manual_seed(1)
    alone, batch = Halves(), next(batches(1))
    model = ddp_of(copy.deepcopy(alone), MergedGradientState("synceasgd"), find_unused_parameters=True)
    for one in (alone, model):
        loss_of(one, batch).backward()
    dist.all_reduce(alone.first.weight.grad, dist.ReduceOp.AVG)
    assert torch.allclose(model.module.first.weight.grad, alone.first.weight.grad, rtol=0, atol=1e-14)
    group = dist.new_group(pg_options=gradcube.torch.Options(reproducible=True))
    compared(lambda: model_of(0), steps, process_group=group)
    compared(lambda: model_of(0), steps, process_group=dist.new_group(backend="gloo"))


def hook_static_graph():
    """In the first pass all buckets have the same number, and none is the last."""

    def steps(model):
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), batches(5))

    compared(lambda: nn.Sequential(nn.Linear(30, 9), nn.Linear(9, 7)), steps, static_graph=True)


def hook_failures():
    raises(ValueError, lambda: MergedGradientState("all"), "unknown policy 'all'")
    model = ddp_of(nn.Sequential(nn.Linear(30, 5), nn.Linear(5, 7)), MergedGradientState("synceasgd"))
    batch = next(batches(1))
    loss = loss_of(model, batch)
    if dist.get_rank() == 2:
        raises(RuntimeError, lambda: dist.all_reduce(torch.ones(5)), "5")
    else:
        raises(RuntimeError, loss.backward, "5")
    table = ddp_of(nn.Sequential(nn.Embedding(9, 4, sparse=True)), MergedGradientState("synceasgd"))
    raises(RuntimeError, table(torch.tensor([1])).sum().backward, "sparse")


SCENARIOS = [hook_policies, hook_planning, hook_uneven_inputs, hook_kinds_of_models, hook_static_graph, hook_failures]
