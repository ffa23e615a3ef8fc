"""Scenarios of torch_ranks.py in which a rank writes to tensors of a call that it has given up, and that goes on."""

import contextlib
import os
import signal

import gradcube.torch
import torch
import torch.distributed as dist

from torch_amid import amid
from torch_missed import LATER, SOON, refusal


def late_memory():
    """What a rank writes to a tensor once it was told that its collective is late reaches no other rank as a result."""
    rank, store, size = dist.get_rank(), dist.distributed_c10d._get_default_store(), 1 << 20
    right, group = torch.full((size,), 10.0), None

    def meet(place):
        store.set(f"late memory {place} {rank}", "there")
        store.wait([f"late memory {place} {other}" for other in range(4)], LATER)

    def last_ranks(mine):
        """Either the right sum, or none."""
        try:
            dist.all_reduce(mine, group=group)
        except RuntimeError:
            return
        assert torch.equal(mine, right), mine

    def empty():
        return [torch.empty(9) for _ in range(4)]

    later_calls = [  # with the tensor itself, and by copies
        lambda mine: dist.all_reduce(mine[7:], group=group),
        lambda mine: dist.all_reduce(mine[::2], group=group),
        lambda mine: dist.all_reduce(mine[7:], dist.ReduceOp.PRODUCT, group),
        lambda mine: dist.all_gather(empty(), mine[:9], group),
        lambda mine: dist.reduce_scatter(torch.empty(9), empty()[1:] + [mine[:9]], group=group),
    ]
    for number, later_call in enumerate([None] + later_calls):
        is_shared = later_call is None
        group = dist.new_group(timeout=LATER)
        with gradcube.torch.shared_memory(group) if is_shared else contextlib.nullcontext():
            mine = torch.full((size,), rank + 1.0)
        if rank != 3:
            work = dist.all_reduce(mine, group=group, async_op=True)
            refusal(lambda: work.wait(SOON), "the timeout has passed")
            mine.fill_(100)
        meet(f"told {number}")
        if is_shared:  # the job was left before
            if rank != 3:
                refusal(lambda: dist.all_reduce(mine, group=group), "this process group has ended", "the timeout")
            meet("again")
        if rank == 3:
            last_ranks(mine)
            mine.fill_(1)
        meet(f"ended {number}")
        if not is_shared:  # other tensors' calls go on
            other = torch.ones(3)
            dist.all_reduce(other, group=group)
            assert float(other[0]) == 4
            meet(f"other {number}")
            if rank != 3:
                for part in (mine[5:9], mine[::2]):
                    refusal(lambda: dist.send(part, 3, group=group), "expected another one")
                refusal(lambda: dist.gather(mine[:9], empty(), rank, group), "expected another one")
                refusal(lambda: later_call(mine), "this process group has ended", "whose time was up")
        if rank == 3:
            refusal(lambda: dist.all_reduce(mine, group=group))
        meet(f"done {number}")
        dist.destroy_process_group(group)


def interrupt(work):
    try:
        amid(work.wait, lambda: os.kill(os.getpid(), signal.SIGINT))
    except KeyboardInterrupt:
        return
    raise AssertionError("it has ended without the other ranks")


def interrupted_memory():
    """What a rank writes to a tensor once Ctrl-C has ended its wait() reaches no other rank as a result."""
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    group = None

    def meet(place):
        store.set(f"interrupted memory {place} {rank}", "there")
        store.wait([f"interrupted memory {place} {other}" for other in range(4)], LATER)

    for case in ("waits again", "does not", "shared"):
        group = dist.new_group(timeout=LATER)
        with gradcube.torch.shared_memory(group) if case == "shared" else contextlib.nullcontext():
            mine = torch.full((1 << 20,), rank + 1.0)
        right = torch.full((1 << 20,), 10.0)
        if rank == 0:
            work = dist.all_reduce(mine, group=group, async_op=True)
            interrupt(work)
            mine.fill_(5)
        meet(f"interrupted {case}")
        if case == "shared":  # the job was left before
            if rank == 0:
                refusal(lambda: dist.all_reduce(torch.ones(1), group=group), "this process group has ended", "a signal")
            else:
                with contextlib.suppress(RuntimeError):
                    dist.all_reduce(mine, group=group)
                    assert torch.equal(mine, right), mine
            meet("shared")
            dist.destroy_process_group(group)
            continue
        if rank != 0:
            dist.all_reduce(mine, group=group)
            assert torch.equal(mine, right), mine
        other = torch.ones(3)
        dist.all_reduce(other, group=group)
        assert float(other[0]) == 4
        meet(f"ended {case}")
        if rank == 0:
            refusal(lambda: dist.send(mine[5:9], 3, group=group), "whose wait() a signal has ended")
        if case == "waits again":
            if rank == 0:
                work.wait()
                assert torch.equal(mine, right), mine
            mine.fill_(rank + 5)
            dist.all_reduce(mine, group=group)
            assert float(mine[9]) == 26
        else:
            words = ["this process group has ended", "whose wait() a signal has ended"] * (rank == 0)
            refusal(lambda: dist.all_reduce(mine, group=group), *words)
        meet(f"done {case}")
        dist.destroy_process_group(group)
