"""Scenarios of merging_ranks.py: MergedGradientOptimizer(priority="need"), whose steps the next forward pass takes."""

import copy
from unittest import mock

import gradcube.torch
import torch
import torch.distributed as dist
from gradcube.torch import MergedGradientOptimizer
from torch import nn
from torch.nn.utils import prune

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


class Folded(nn.Module):
    """Reads a child's parameters before it calls it, as convolutions do that are fused with a norm."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(30)
        self.last = nn.Linear(30, 7)

    def forward(self, numbers):
        scaled = nn.functional.linear(numbers, torch.diag(self.norm.weight))
        return self.last(self.norm(scaled)) + nn.functional.linear(numbers, self.last.weight)


def pruned():
    """Its hooks read parameters before the layer is called."""
    model = nn.Sequential(nn.Linear(30, 30), nn.Linear(30, 7))
    for layer in model:
        prune.l1_unstructured(layer, "weight", 0.5)
    return model


def normalized():
    return nn.Sequential(nn.utils.weight_norm(nn.Linear(30, 30)), nn.utils.spectral_norm(nn.Linear(30, 7)))


def scripted():
    """Nobody sees who reads the parameters of the inner one."""
    return nn.Sequential(torch.jit.script(nn.Sequential(nn.Linear(30, 30))), nn.Linear(30, 7))


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


def need_keeps_rates_that_are_tensors():
    """As they were at step(), where they are changed in place before the parameters are needed."""
    results = []
    for priority in ("ready", "need"):
        model = model_of(0)
        rates = [torch.tensor(0.1), torch.tensor(0.5)]
        optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp", priority=priority)
        optimizer.param_groups[0].update(lr=rates[0], more=(rates[1], 1))
        for batch in batches(4):
            train_a_step(model, optimizer, batch)
            for rate in rates:
                rate.mul_(0.5)
            if priority == "need":
                kept = [options["more"][0] for options in optimizer._deferred._options]
            optimizer.finish_step()
            optimizer.zero_grad()
        assert optimizer.param_groups[0]["lr"] is rates[0]
        results.append(weights(model))
    assert torch.equal(*results), results[0] - results[1]
    assert [float(one) for one in kept] == [0.5 / 2**3]


def need_kinds_of_models():
    for kind in (Attention, Folded, Recurrent, Tied, Resting, pruned, normalized, scripted):
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
    layers = [list(model[place].parameters()) for place in (0, 2, 9)]  # looking at these needs nothing
    seen = []

    def values():
        return [torch.cat([parameter.detach().flatten() for parameter in layer]) for layer in layers]

    def stepped(*_):
        seen.append([not torch.equal(then, now) for then, now in zip(before, values())])

    for number, batch in enumerate(batches(4)):
        if number == 3:
            before = values()
            model[1].register_forward_pre_hook(stepped)
            model[3].register_forward_pre_hook(stepped)
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        at_backward = values()
        optimizer.step()
        if number > 0:  # after the first, layers are put into another order
            assert all(map(torch.equal, values(), at_backward))
            assert all(parameter.grad is None for layer in layers for parameter in layer)
    assert seen == [[True, False, False], [True, True, False]], seen
    optimizer.state_dict()
    assert not any(map(torch.equal, values(), at_backward))
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


def train_a_step(model, optimizer, batch):
    loss_of(model, batch).backward()
    optimizer.step()


def need_weights_are_right_whoever_reads_or_writes_them():
    """After each step another one does so, and nobody has called finish_step()."""
    encoder = nn.TransformerEncoderLayer(30, 2, 16, batch_first=True, dropout=0)
    model = nn.Sequential(encoder, nn.Linear(30, 7))
    for module in model.modules():
        torch.manual_seed(0)
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    twin = copy.deepcopy(model)
    need = MergedGradientOptimizer(sgd_of(model), model, "wfbp", priority="need")
    ready = MergedGradientOptimizer(sgd_of(twin), twin, "wfbp")
    kept = None
    for number, batch in enumerate(batches(10)):
        batch = (batch[0].unsqueeze(1), batch[1])
        outputs = []
        for one, optimizer in ((model, need), (twin, ready)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(one(batch[0])[:, 0], batch[1]).backward()
            optimizer.step()
            if number == 2:
                outputs.append(torch.cat([value.flatten() for value in one.state_dict().values()]))
            elif number == 3:
                outputs.append(weights(copy.deepcopy(one)))
            elif number == 4:
                with torch.no_grad():
                    outputs.append(one.eval()(batch[0]))  # takes another way than training
                one.train()
            elif number == 5:
                kept = kept or {name: value.clone() for name, value in one.state_dict().items()}
            elif number == 7:
                one.load_state_dict(kept)
            elif number == 8:
                for parameter in one.parameters():
                    parameter.data.clamp_(-0.1, 0.1)
            elif number == 9:
                outputs.append(one[1].weight.detach().clone())
        assert not outputs or torch.equal(*outputs), (number, outputs[0] - outputs[1])
    assert torch.equal(weights(model), weights(twin))
    same_on_all_ranks(weights(model))


def need_uses_gradients_up():
    """A loop that forgets zero_grad() trains as one that does not."""
    expected = averaged_by_hand(6)
    for zeroed in (True, False):
        model = model_of(0)
        optimizer = MergedGradientOptimizer(sgd_of(model), model, "wfbp", priority="need")
        for number, batch in enumerate(batches(6)):
            if zeroed:
                model.zero_grad()
            loss_of(model, batch).backward()
            if number == 3:
                optimizer.synchronize()
            optimizer.step()
        assert torch.allclose(weights(model), expected, atol=1e-5), (zeroed, weights(model) - expected)


class CountingSGD(torch.optim.SGD):
    def step(self, closure=None):
        self.steps = getattr(self, "steps", 0) + 1
        return super().step(closure)


def need_refusals():
    model = model_of(0)
    for optimizer in (CountingSGD(model.parameters(), lr=0.1), torch.optim.LBFGS(model.parameters())):
        kind = type(optimizer).__name__
        raises(ValueError, lambda: MergedGradientOptimizer(optimizer, model, priority="need"), kind)
    parts = [nn.Linear(30, 30), nn.Linear(30, 7)]
    model = nn.Sequential(*parts)
    optimizer = MergedGradientOptimizer(sgd_of(model), nn.ModuleList(parts), "wfbp", priority="need")
    first, second, third = batches(3)
    train_a_step(model, optimizer, first)
    loss_of(model, second).backward()
    with optimizer.no_sync():
        raises(RuntimeError, loss_of(model, second).backward, "second backward pass", "no_sync", "step()")
    optimizer.step()
    loss_of(model, third).backward()
    assert all(parameter.grad is None for parameter in parts[1].parameters())  # nothing to clip: they travel
    optimizer.step()
    frozen = nn.Sequential(nn.Linear(30, 30), nn.Linear(30, 7))
    frozen[0].weight.requires_grad_(False)
    optimizer = MergedGradientOptimizer(sgd_of(frozen), frozen, "wfbp", priority="need")
    frozen[0].weight.requires_grad_(True)
    loss_of(frozen, third).backward()
    raises(RuntimeError, optimizer.step, "had none when the optimizer was made")
    optimizer.synchronize()
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


def need_tells_of_a_step_that_was_cut():
    """Also where nothing else is pending: nobody reads parameters of which some are of the step before."""
    model = model_of(0)
    optimizer = MergedGradientOptimizer(sgd_of(model), model, "synceasgd", priority="need")
    *rest, (last, _) = batches(3)
    for batch in rest:
        train_a_step(model, optimizer, batch)
    with mock.patch.object(optimizer._optimizer, "step", side_effect=KeyboardInterrupt):
        raises(KeyboardInterrupt, optimizer.finish_step)
    for read in (model.state_dict, lambda: list(model.parameters()), lambda: model(last), optimizer.finish_step):
        raises(RuntimeError, read, "a step was interrupted")


SCENARIOS = [
    need_trains_the_same,
    need_keeps_rates_that_are_tensors,
    need_kinds_of_models,
    need_steps_layer_by_layer,
    need_waits_where_it_is_told_to,
    need_weights_are_right_whoever_reads_or_writes_them,
    need_uses_gradients_up,
    need_tells_of_a_step_that_was_cut,
    need_refusals,
]
