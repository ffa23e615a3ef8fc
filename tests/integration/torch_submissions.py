"""Scenarios of torch_ranks.py in which Ctrl-C comes in the midst of the call that begins something."""

import ctypes
import functools
import signal

import gradcube.torch
import torch
import torch.distributed as dist

from torch_late import LONG, Meetings
from torch_missed import LATER, refusal


def set_interrupt(*call):
    """Ctrl-C comes before the call, but Python handles it after that: no code of its own is run between the two."""
    steps = [functools.partial(ctypes.pythonapi.PyErr_SetInterrupt), functools.partial(*call)]
    list(map(functools.partial.__call__, steps))


def interrupt_within(*call):
    try:
        set_interrupt(*call)
    except KeyboardInterrupt:
        return
    raise AssertionError("Ctrl-C has not come")


def interrupted_submissions():
    """Ctrl-C in the midst of the call that begins something is as if it had ended the wait() for that."""
    rank, meet = dist.get_rank(), Meetings("interrupted submissions")
    group = dist.new_group(timeout=LATER)
    ours = gradcube.torch.ours(group)
    mine, sparse = torch.full((LONG,), rank + 1.0), torch.eye(4).to_sparse()
    if rank == 0:
        interrupt_within(ours.allreduce, [mine])
        mine.fill_(5)
        interrupt_within(ours.allreduce, [sparse])
        interrupt_within(ours.send, [torch.full((1,), 7.0)], 1, 0)
    meet()
    if rank != 0:
        dist.all_reduce(mine, group=group)
        assert torch.equal(mine, torch.full_like(mine, 10)), mine
        dist.all_reduce(sparse, group=group)
    if rank == 0:
        dist.send(torch.full((1,), 9.0), 1, group=group)
    elif rank == 1:
        got = torch.zeros(1)
        dist.recv(got, 0, group=group)
        assert float(got) == 9, got
    dist.barrier(group=group)
    assert torch.equal(sparse.to_dense(), torch.eye(4) * (1 if rank == 0 else 4)), sparse
    words = ["this process group has ended", "whose wait() a signal has ended"] * (rank == 0)
    refusal(lambda: dist.all_reduce(mine, group=group), *words)
    meet()
    dist.destroy_process_group(group)
    interrupted_backward()
    interrupted_hook()
    handled_submissions()
    dropped_works()


def interrupted_backward():
    """Ctrl-C in backward(), where PyTorch knows its own exceptions alone, is raised when that has ended."""
    group = dist.new_group(timeout=LATER)
    layer = torch.nn.Linear(1, 1, bias=False)
    parallel = torch.nn.parallel.DistributedDataParallel(layer, process_group=group)
    interrupt_soon = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("PyErr_SetInterrupt", ctypes.pythonapi))
    hook = layer.weight.register_hook(interrupt_soon)  # no code of Python's is run between it and the submission
    try:
        parallel(torch.full((1, 1), dist.get_rank() + 1.0)).sum().backward()
        raise AssertionError("Ctrl-C has not come")
    except KeyboardInterrupt:
        hook.remove()
    assert float(layer.weight.grad) == 2.5, layer.weight.grad
    dist.barrier(group=group)
    dist.destroy_process_group(group)


def interrupted_hook():
    """So is one in a call that a hook of Python's makes in backward()."""
    rank, meet = dist.get_rank(), Meetings("interrupted hook")
    group = dist.new_group(timeout=LATER)
    ours = gradcube.torch.ours(group)
    mine, weight = torch.full((LONG,), rank + 1.0), torch.ones(1, requires_grad=True)
    if rank == 0:
        weight.register_hook(lambda _: set_interrupt(ours.allreduce, [mine]))
        try:
            weight.sum().backward()
            raise AssertionError("Ctrl-C has not come")
        except KeyboardInterrupt:
            mine.fill_(5)
    meet()
    if rank != 0:
        dist.all_reduce(mine, group=group)
    words = ["this process group has ended", "whose wait() a signal has ended"] * (rank == 0)
    refusal(lambda: dist.all_reduce(mine, group=group), *words)
    meet()
    dist.destroy_process_group(group)


def handled_submissions():
    """What the handler of a signal makes in the midst of a call is as it is elsewhere."""
    group, made, rank = dist.new_group(timeout=LATER), [], dist.get_rank()
    ours = gradcube.torch.ours(group)
    before = signal.signal(signal.SIGUSR1, lambda *_: made.append(torch.ones(1)))
    calls = [
        functools.partial(ours.allreduce, [torch.ones(3)]),
        functools.partial(ours.allreduce, [torch.eye(4).to_sparse()]),
        functools.partial(ours.send, [torch.ones(1)], rank ^ 1, 0),
        functools.partial(ours.recv, [torch.ones(1)], rank ^ 1, 0),
        functools.partial(ours.recv_anysource, [torch.ones(1)], 1),
        functools.partial(ours.send, [torch.ones(1)], rank ^ 1, 1),
    ]
    works = []
    for call in calls:
        steps = [functools.partial(ctypes.pythonapi.PyErr_SetInterruptEx, int(signal.SIGUSR1)), call]
        _, work = map(functools.partial.__call__, steps)
        works.append(work)
    for work in works:
        work.wait()
    assert len(made) == len(calls) and not any(one.is_inference() for one in made), made
    signal.signal(signal.SIGUSR1, before)
    dist.barrier(group=group)
    dist.destroy_process_group(group)


def dropped_works():
    """A work that an exception of the program's own drops is as any other for which nobody waits."""
    group = dist.new_group(timeout=LATER)
    with gradcube.torch.shared_memory(group):
        mine = torch.full((3,), dist.get_rank() + 1.0)
    try:
        _ = [dist.all_reduce(mine, group=group, async_op=True), 1 / 0]
        raise AssertionError("nothing was raised")
    except ZeroDivisionError:
        dist.barrier(group=group)
    assert float(mine[0]) == 10, mine
    dist.all_reduce(mine, group=group)
    assert float(mine[0]) == 40, mine
    try:
        type(dist.barrier(group=group, async_op=True))()
        raise AssertionError("a work without a call")
    except TypeError as refused:
        assert "only the calls of a process group" in str(refused), refused
    dist.destroy_process_group(group)
