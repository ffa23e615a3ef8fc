"""Scenarios of merging_ranks.py: MergedGradientOptimizer(priority="need"), whose steps the next forward pass takes."""

import gradcube.torch
import torch
import torch.distributed as dist
from gradcube.torch import MergedGradientOptimizer
from torch import nn

from merging_models import POLICIES, averaged_by_hand, batches, loss_of, model_of, raises, same_on_all_ranks, sgd_of
from merging_models import weights

OPTIMIZERS = {
    "sgd": sgd_of,
    "adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.01),
    "groups": lambda model: torch.optim.AdamW(
        [{"params": list(model.parameters())[:3]}, {"params": list(model.parameters())[3:], "lr": 0.1}], lr=0.01
    ),
}


def trained(model, optimizer_of, priority, group=None, policy="wfbp", steps=12):
    optimizer = MergedGradientOptimizer(optimizer_of(model), model, policy, (1e-3, 1e-9), group, priority)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    for batch in batches(steps):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
        schedule.step()
    optimizer.finish_step()
    return weights(model)


def need_trains_the_same():
    """To the bit: with lanes and without, over gloo too, when rates change between a step and its end."""
    lanes = dist.new_group(backend="gradcube", pg_options=gradcube.torch.Options(lanes=3))
    groups = {"one lane": None, "three lanes": lanes, "gloo": dist.new_group(backend="gloo")}
    for name, optimizer_of in OPTIMIZERS.items():
        for kind, group in groups.items():
            ready = trained(model_of(0), optimizer_of, "ready", group)
            need = trained(model_of(0), optimizer_of, "need", group)
            assert torch.equal(ready, need), (name, kind, ready - need)
            same_on_all_ranks(need)
    expected = averaged_by_hand(12)
    for policy in POLICIES:
        model = model_of(0)
        optimizer = MergedGradientOptimizer(sgd_of(model), model, policy, group=lanes, priority="need")
        for batch in batches(12):
            model.zero_grad(set_to_none=True)
            loss_of(model, batch).backward()
            optimizer.step()
        optimizer.finish_step()
        assert torch.allclose(weights(model), expected, atol=1e-5), (policy, weights(model) - expected)
    assert gradcube.torch.statistics(lanes)["all_reduce"]["staged_bytes"] < 1000  # averages of times are copied


class Attention(nn.Module):
    """Reads its projection's parameters itself; its norms are one module; and it has a parameter of its own."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.norm = self.also_norm = nn.LayerNorm(6)
        self.last = nn.Linear(30, 7)

    def forward(self, numbers):
        rows = self.norm(numbers.view(-1, 5, 6) * self.scale)
        return self.last(self.also_norm(rows + self.attention(rows, rows, rows)[0]).flatten(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.LSTM(6, 6, batch_first=True)
        self.last = nn.Linear(30, 7)

    def forward(self, numbers):
        return self.last(self.rows(numbers.view(-1, 5, 6))[0].flatten(1))


class Tied(nn.Module):
    """The second layer has the first one's weights."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(30, 30)
        self.second = nn.Linear(30, 30)
        self.second.weight = self.first.weight
        self.last = nn.Linear(30, 7)

    def forward(self, numbers):
        return self.last(self.first(torch.relu(self.second(numbers))))


class Resting(nn.Module):
    """Every other pass leaves one of its layers out."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(30, 30)
        self.side = nn.Linear(30, 30)
        self.last = nn.Linear(30, 7)
        self.passes = 0

    def forward(self, numbers):
        self.passes += 1
        numbers = self.first(numbers)
        return self.last(numbers + self.side(numbers) if self.passes % 2 else numbers)


def need_kinds_of_models():
    for kind in (Attention, Recurrent, Tied, Resting):
        for optimizer_of in (sgd_of, OPTIMIZERS["adam"]):
            results = []
            for priority in ("ready", "need"):
                torch.manual_seed(0)
                results.append(trained(kind(), optimizer_of, priority))
            assert torch.equal(*results), (kind.__name__, results[0] - results[1])
            same_on_all_ranks(results[1])


def need_steps_layer_by_layer():
    model = model_of(0)
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp", priority="need")
    layers = [model[0], model[2], model[9]]
    seen = []

    def stepped(*_):
        seen.append([not torch.equal(then, weights(layer)) for then, layer in zip(before, layers)])

    for number, batch in enumerate(batches(4)):
        if number == 3:
            before = [weights(layer) for layer in layers]
            model[1].register_forward_pre_hook(stepped)
            model[3].register_forward_pre_hook(stepped)
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        at_backward = weights(model)
        optimizer.step()
        if number > 0:  # before that it is seen who needs what
            assert torch.equal(weights(model), at_backward)
            assert all(parameter.grad is None for parameter in model.parameters())
    assert seen == [[True, False, False], [True, True, False]], seen
    optimizer.state_dict()
    assert not torch.equal(weights(model), at_backward)
    assert all(parameter.grad.count_nonzero() == 0 for parameter in model.parameters())


def need_waits_where_it_is_told_to():
    """Clipping, several passes, and gradients that are made zero between the passes."""
    results = []
    for priority in ("ready", "need"):
        model = model_of(0)
        optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp", priority=priority)
        for first, second in zip(batches(6), batches(6, salt=1)):
            loss = loss_of(model, first)
            optimizer.zero_grad()
            with optimizer.no_sync():
                loss.backward()
            loss_of(model, second).backward()
            optimizer.synchronize()
            same_on_all_ranks(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        optimizer.finish_step()
        results.append(weights(model))
    assert torch.equal(*results), results[0] - results[1]


def need_refusals():
    model = model_of(0)
    raises(
        ValueError,
        lambda: MergedGradientOptimizer(sgd_of(model), model, priority="high"),
        "unknown priority 'high'",
        "ready or need",
    )
    for lanes, words in ((0, "invalid lanes 0: expected 1 to 8"), (9, "invalid lanes 9"), ("a", "whole number")):
        options = gradcube.torch.Options(lanes=lanes)
        raises(RuntimeError, lambda: dist.new_group(backend="gradcube", pg_options=options), words)


SCENARIOS = [
    need_trains_the_same,
    need_kinds_of_models,
    need_steps_layer_by_layer,
    need_waits_where_it_is_told_to,
    need_refusals,
]
