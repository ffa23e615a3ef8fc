"""What a rank of merging_test.py runs: `merging_ranks.py DIRECTORY`. It says on stdout which scenarios went well."""

import json
import os
import pathlib
import sys
from unittest import mock

import gradcube.torch
import torch
import torch.distributed as dist
from gradcube import _merge_planner
from gradcube.torch import MergedGradientOptimizer
from torch import nn

import merging_hook
import merging_need
import merging_progress
from merging_models import POLICIES, SlowBackward, SlowLayer, averaged_by_hand, batches, loss_of, model_of
from merging_models import raises, same_on_all_ranks, sgd_of, slow_by_clock, weights


def policies():
    expected = averaged_by_hand(12)
    for policy in POLICIES:
        model = model_of(dist.get_rank())  # rank 0's weights are taken
        optimizer = MergedGradientOptimizer(sgd_of(model), model, policy)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100)
        for batch in batches(12):
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, batch).backward()
            optimizer.step()
            schedule.step()
        names = [name for message in optimizer.messages for name in message]
        assert sorted(names) == ["0", "2", "4", "6", "8", "9"], (policy, optimizer.messages)
        assert policy != "wfbp" or len(optimizer.messages) == 6
        assert policy != "synceasgd" or len(optimizer.messages) == 1
        same_on_all_ranks(weights(model))
        assert torch.allclose(weights(model), expected, atol=1e-5), (policy, weights(model) - expected)


def in_place():
    model = model_of(0)
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp")
    before = gradcube.torch.statistics()["all_reduce"]
    for batch in batches(3):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
    after = gradcube.torch.statistics()["all_reduce"]
    assert after["requests"] == before["requests"] + 3 * 6, (before, after)
    assert after["staged_bytes"] == before["staged_bytes"], (before, after)


@slow_by_clock()
def planning():
    _merge_planner._BETWEEN_LOOKS = 6
    model = nn.Sequential(SlowLayer("first"), SlowLayer("second"), nn.Linear(30, 7))
    optimizer = MergedGradientOptimizer(sgd_of(model), model, costs=(0.1, 1e-5))

    def train(steps):
        for batch in batches(steps):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()

    SlowBackward.seconds = {"first": 0.3}
    train(1)
    assert optimizer.messages == [["2"], ["1"], ["0"]], optimizer.messages
    train(5)
    assert optimizer.messages == [["2", "1"], ["0"]], optimizer.messages
    SlowBackward.seconds = {"second": 0.3}
    train(6)
    assert optimizer.messages == [["2"], ["1", "0"]], optimizer.messages
    same_on_all_ranks(weights(model))


class Branches(nn.Module):
    """Written down in another order than that of the forward pass; one branch is not always taken."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(30, 7)
        self.side = nn.Linear(30, 30)
        self.first = nn.Linear(30, 30)

    def forward(self, numbers, aside=True):
        numbers = self.first(numbers)
        return self.last(numbers + self.side(numbers) if aside else numbers)


def layers_that_rest():
    for policy in ("wfbp", "optimal"):
        model = Branches()
        optimizer = MergedGradientOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model, policy, (1e-3, 1e-9))
        for number, batch in enumerate(batches(14)):
            before = weights(model.side)
            model.zero_grad(set_to_none=True)  # not the optimizer's, which keeps the gradients' memory
            aside = number == 0 or (number % 2 == 1 and dist.get_rank() == 1)
            nn.functional.cross_entropy(model(batch[0], aside), batch[1]).backward()
            optimizer.step()
            rested = number != 0 and number % 2 == 0
            assert torch.equal(before, weights(model.side)) == rested, (policy, number)
        assert policy != "wfbp" or optimizer.messages == [["last"], ["side"], ["first"]], optimizer.messages
        same_on_all_ranks(weights(model))


def clipping():
    """Gradients are averages when backward() returns; where a layer had no part in the loss, after synchronize()."""
    for policy in POLICIES:
        model = model_of(0)
        optimizer = MergedGradientOptimizer(sgd_of(model), model, policy, (1e-3, 1e-9))
        for batch in batches(8):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            same_on_all_ranks(gradients(model))
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        same_on_all_ranks(weights(model))
    model = Branches()
    optimizer = MergedGradientOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model, "wfbp")
    for batch in batches(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch[0], False), batch[1]).backward()
        optimizer.synchronize()
        same_on_all_ranks(gradients(model))
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    same_on_all_ranks(weights(model))


def gradients(model):
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def accumulation():
    model, other = model_of(0).eval(), model_of(0).eval()  # in training a batch's normalization depends on its size
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp")
    first, second, third = batches(3)
    optimizer.zero_grad()
    with optimizer.no_sync():
        with optimizer.no_sync():
            loss_of(model, first).backward()
        loss_of(model, second).backward()  # the outer scope goes on
    (loss_of(other, first) + loss_of(other, second)).backward()
    assert torch.allclose(gradients(model), gradients(other), atol=1e-5)
    loss_of(model, third).backward()
    raises(RuntimeError, loss_of(model, third).backward, "second backward pass", "no_sync")
    optimizer.step()
    same_on_all_ranks(gradients(model))
    same_on_all_ranks(weights(model))


def refusals():
    model = model_of(0)
    raises(ValueError, lambda: MergedGradientOptimizer(sgd_of(model), model, "all"), "unknown policy 'all'", "optimal")
    raises(ValueError, lambda: MergedGradientOptimizer(sgd_of(model), model[0]), "are not the model's")
    mixed = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3).double())
    raises(ValueError, lambda: MergedGradientOptimizer(sgd_of(mixed), mixed), "one type", "float64")
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp")
    raises(ValueError, lambda: optimizer.step(lambda: 0), "closure")
    raises(ValueError, lambda: optimizer.add_param_group({}), "fixed")
    for priority in ("ready", "need"):
        part = nn.Linear(30, 7)
        inner = torch.optim.SGD(part.parameters(), lr=0.1)
        outer = MergedGradientOptimizer(inner, part, "wfbp", priority=priority)
        added = nn.Parameter(torch.ones(1))
        inner.add_param_group({"params": [added]})
        loss_of(part, next(batches(1))).backward()
        added.grad = torch.ones(1)
        raises(RuntimeError, outer.step, "was added to the wrapped optimizer")
        added.grad = None  # one without a gradient takes no step
        outer.step()
        outer.finish_step()
    for costs in ((-1, 0), (0, float("nan")), (1, 2, 3)):
        raises(ValueError, lambda: MergedGradientOptimizer(sgd_of(model), model, costs=costs), "invalid costs")
    raises(OSError, lambda: optimizer.record("/nowhere/trace.json"), "/nowhere/trace.json")
    raises(gradcube.InvalidError, lambda: gradcube.merge_layers([], 0, 0), "0 layers")
    raises(gradcube.InvalidError, lambda: gradcube.merge_layers([(1, -1)], 0, 0), "layer 0")
    assert gradcube.merge_layers([(10**6, 0.002), (10**6, 0.001), (10**6, 0.001)], 0.002, 1e-9) == [[2], [0, 1]]


def a_message_that_fails():
    model = model_of(0)
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp")
    before = weights(model).clone()
    all_reduce = optimizer._lanes.all_reduce
    left_out = iter([int(dist.get_rank() == 0)])  # of the first message's elements
    optimizer._lanes.all_reduce = lambda memory, share: all_reduce(memory[next(left_out, 0) :], share)
    (batch,) = batches(1)
    raises(RuntimeError, lambda: loss_of(model, batch).backward(), "disagree")
    for _ in range(2):
        raises(RuntimeError, optimizer.step, "disagree")
    assert torch.equal(weights(model), before), "a step was taken with a part of the averages"


def an_iteration_that_is_cut():
    """Whatever failed behind a step: there is no second one, nor a gradient for a plan that others do not have."""
    model = model_of(0)
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp")
    first, second = batches(2)
    loss_of(model, first).backward()
    with mock.patch.object(optimizer._planner, "finish_iteration", side_effect=KeyboardInterrupt):
        raises(KeyboardInterrupt, optimizer.step)
    stepped = weights(model).clone()
    for again in (optimizer.step, optimizer.synchronize, lambda: loss_of(model, second).backward()):
        raises(RuntimeError, again, "interrupted")
    assert torch.equal(weights(model), stepped), "a step was taken twice"
    same_on_all_ranks(stepped)


class FailsBackward(torch.autograd.Function):
    @staticmethod
    def forward(_, numbers):
        return numbers.clone()

    @staticmethod
    def backward(_, gradients):
        raise RuntimeError("the backward pass fails")


class FailsOnRank0(nn.Module):
    def forward(self, numbers):
        return FailsBackward.apply(numbers) if dist.get_rank() == 0 else numbers


def gradients_that_are_wiped_on_their_way():
    """After a backward pass that has failed, zero_grad() does not make a step of some averages and some zeros."""
    group = dist.new_group()
    model = nn.Sequential(nn.Linear(30, 30), FailsOnRank0(), nn.Linear(30, 7))
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp", group=group)
    before = weights(model).clone()
    (batch,) = batches(1)
    loss = loss_of(model, batch)
    if dist.get_rank() == 0:
        raises(RuntimeError, loss.backward, "the backward pass fails")
        optimizer.zero_grad()
        for again in (optimizer.step, optimizer.synchronize, lambda: loss_of(model, batch).backward()):
            raises(RuntimeError, again, "zero_grad()")
        dist.destroy_process_group(group)
    else:
        raises(RuntimeError, loss.backward, "rank 0")
    assert torch.equal(weights(model), before)


class FailsLast(nn.Module):
    """In the backward pass behind it all gradients are there, and on their way."""

    fails = False

    def forward(self, numbers):
        return FailsBackward.apply(numbers.requires_grad_()) if self.fails else numbers


def gradients_that_one_rank_wipes_while_they_are_added():
    """Rank 0 makes them zero in place of its step, and others begin later: they have the right averages."""
    expected, rank, store = averaged_by_hand(2), dist.get_rank(), dist.distributed_c10d._get_default_store()
    for priority in ("need", "ready"):
        last = FailsLast()
        model = nn.Sequential(last, *model_of(0))
        optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp", group=dist.new_group(), priority=priority)
        first, second = batches(2)
        loss_of(model, first).backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            last.fails = priority == "ready"
            loss = loss_of(model, second)
            if last.fails:
                raises(RuntimeError, loss.backward, "the backward pass fails")
            else:
                loss.backward()
            optimizer.zero_grad()
            optimizer._optimizer.zero_grad(set_to_none=False)
            store.set(f"wiped {priority}", "all")
            raises(RuntimeError, optimizer.step, "zero_grad()")
        else:
            store.wait([f"wiped {priority}"])
            loss_of(model, second).backward()
            optimizer.step()
            optimizer.finish_step()
            assert torch.allclose(weights(model), expected, atol=1e-5), (priority, weights(model) - expected)
        dist.barrier()


def main(directory):
    torch.set_num_threads(1)
    dist.init_process_group("gradcube")
    scenarios = [policies, in_place, planning, layers_that_rest, accumulation, clipping, refusals]
    scenarios += [a_message_that_fails, an_iteration_that_is_cut, gradients_that_are_wiped_on_their_way]
    scenarios += [gradients_that_one_rank_wipes_while_they_are_added]
    scenarios += merging_need.SCENARIOS + merging_hook.SCENARIOS + merging_progress.SCENARIOS
    for scenario in scenarios:
        scenario()
        print(json.dumps({"done": scenario.__name__}), flush=True)
    for scenario in merging_progress.TIMELINES:
        scenario(pathlib.Path(directory) / f"{scenario.__name__}.json")
        print(json.dumps({"done": scenario.__name__}), flush=True)
    dist.barrier()
    os._exit(0)  # one of the groups is gloo's, whose destructor of PyTorch 1.13 hangs now and then


main(sys.argv[1])
