"""Models and data of the ranks of merging_test.py, and what they compare."""

import contextlib
import hashlib
import time
import types

import torch
import torch.distributed as dist
from gradcube import _backward_times
from torch import nn

POLICIES = ("wfbp", "synceasgd", "mgwfbp", "optimal")


def model_of(seed):
    torch.manual_seed(seed)
    hidden = [layer for _ in range(4) for layer in (nn.Linear(30, 30), nn.ReLU())]
    return nn.Sequential(*hidden, nn.BatchNorm1d(30), nn.Linear(30, 7))


def sgd_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def batches(count, salt=0):
    generator = torch.Generator().manual_seed(1000 * salt + dist.get_rank())
    for _ in range(count):
        yield torch.randn(16, 30, generator=generator), torch.randint(0, 7, (16,), generator=generator)


def loss_of(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def same_on_all_ranks(tensor):
    digests = [None] * dist.get_world_size()
    dist.all_gather_object(digests, hashlib.sha256(tensor.numpy().tobytes()).hexdigest())
    assert len(set(digests)) == 1, digests


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(f"no {kind.__name__} that says {words}")


def averaged_by_hand(steps):
    """What all policies must come to, but for the order of additions."""
    model = model_of(0)
    optimizer = sgd_of(model)
    for batch in batches(steps):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
        optimizer.step()
    return weights(model)


class SlowBackward(torch.autograd.Function):
    """Nothing but time."""

    seconds = {}
    pass_by = time.sleep

    @staticmethod
    def forward(context, numbers, name):
        context.name = name
        return numbers.clone()

    @staticmethod
    def backward(context, gradient):
        SlowBackward.pass_by(SlowBackward.seconds.get(context.name, 0))
        return gradient.clone(), None


@contextlib.contextmanager
def slow_by_clock():
    """Slow layers take no time, but what measures layers sees a clock by which they do, and nothing of a busy host."""
    now = [0.0]

    def pass_by(seconds):
        now[0] += seconds

    before = _backward_times.time, SlowBackward.pass_by
    _backward_times.time = types.SimpleNamespace(perf_counter=lambda: now[0])
    SlowBackward.pass_by = pass_by
    try:
        yield
    finally:
        _backward_times.time, SlowBackward.pass_by = before


class SlowLayer(nn.Linear):
    def __init__(self, name):
        super().__init__(30, 30)
        self.called = name

    def forward(self, numbers):
        return SlowBackward.apply(super().forward(numbers), self.called)
