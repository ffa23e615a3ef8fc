"""Scenarios of torch_ranks.py in which a rank writes to tensors of a call that it has given up, and that goes on."""

import contextlib
import os
import signal
import sys
import threading
import time
import weakref

import gradcube.torch
import numpy
import torch
import torch.distributed as dist

from torch_amid import amid
from torch_missed import LATER, SOON, refusal

LONG = 1 << 20  # elements


class Meetings:
    """Of all ranks, beside their groups."""

    def __init__(self, name):
        self.name, self.number, self.store = name, 0, dist.distributed_c10d._get_default_store()

    def __call__(self):
        self.number += 1
        key = f"{self.name} {self.number}"
        self.store.set(f"{key} {dist.get_rank()}", "there")
        self.store.wait([f"{key} {other}" for other in range(4)], LATER)


def made_in(group, is_shared):
    """Where tensors are made: memory that is shared with the group's daemon, or any."""
    return gradcube.torch.shared_memory(group) if is_shared else contextlib.nullcontext()


def expect_right_or_refused(call, result, right):
    with contextlib.suppress(RuntimeError):
        call()
        assert torch.equal(result, torch.full_like(result, right)), result


def late_memory():
    """What a rank writes to a tensor once it was told that its collective is late reaches no other rank as a result, and
    what the collective brings does not reach that tensor. It can be used again, also in another group."""
    rank, meet = dist.get_rank(), Meetings("late memory")
    cases = [  # shared memory, reproducible, the type; whether the daemon works in place, and so the group is left
        (False, False, torch.float32, False),
        (True, False, torch.float32, True),
        (True, True, torch.float32, False),
        (True, True, torch.int64, True),
    ]
    for is_shared, is_reproducible, dtype, is_left in cases:
        group = dist.new_group(timeout=LATER, pg_options=gradcube.torch.Options(reproducible=is_reproducible))
        with made_in(group, is_shared):
            mine = torch.full((LONG,), rank + 1, dtype=dtype)
        if rank != 3:
            work = dist.all_reduce(mine, group=group, async_op=True)
            refusal(lambda: work.wait(SOON), "the timeout has passed")
            mine.fill_(100)
        meet()
        if is_left and rank != 3:
            refusal(lambda: dist.all_reduce(mine, group=group), "this process group has ended", "the timeout")
        meet()
        if rank == 3:
            other = mine.clone()
            expect_right_or_refused(lambda: dist.all_reduce(other, group=group), other, 10)
            mine.fill_(100)
        for each in [None] if is_left else [None, group]:  # an older call of the second one has ended then
            dist.all_reduce(mine, group=each)
            assert torch.equal(mine, torch.full_like(mine, 400)), mine
            mine.fill_(100)
        meet()
        assert torch.equal(mine, torch.full_like(mine, 100)), mine
        dist.destroy_process_group(group)


def told_messages():
    """So it is with the other messages of a call of which one has failed."""
    rank, meet = dist.get_rank(), Meetings("told messages")
    for is_shared in (False, True):
        for gives in (False, True):
            group = dist.new_group(timeout=LATER)
            with made_in(group, is_shared):
                parts = [torch.full((LONG,), 7.0) for _ in range(4)]
            mine = torch.full((LONG,), float(rank), dtype=torch.int32 if rank == 2 else torch.float32)

            def call():
                lists = parts if rank == 0 else None
                exchange = dist.scatter if gives else dist.gather
                exchange(mine, lists, 0, group=group)

            if rank in (0, 2):  # the others have not come
                refusal(call, "int32", "float32")
            for part in parts:
                part.fill_(100)
            meet()
            if rank in (1, 3):
                expect_right_or_refused(call, mine, 7 if gives else rank)
            meet()
            if is_shared and rank == 0:
                refusal(lambda: dist.barrier(group=group), "this process group has ended", "int32")
            if not is_shared:
                dist.barrier(group=group)
            meet()
            for part in parts:
                assert torch.equal(part, torch.full_like(part, 100)), part
            dist.destroy_process_group(group)


def interrupt(work):
    try:
        amid(work.wait, lambda: os.kill(os.getpid(), signal.SIGINT))
    except KeyboardInterrupt:
        return
    raise AssertionError("it has ended without the other ranks")


def interrupted_memory():
    """What a rank writes to a tensor once Ctrl-C has ended its wait() reaches no other rank as a result."""
    interrupted_in_place()
    interrupted_and_copied()
    interrupted_and_exchanged()
    interrupted_again()
    interrupted_comparison()


def interrupted_in_place():
    rank, meet = dist.get_rank(), Meetings("interrupted in place")
    for is_reproducible, dtype in (False, torch.float32), (True, torch.int64):
        group = dist.new_group(timeout=LATER, pg_options=gradcube.torch.Options(reproducible=is_reproducible))
        with gradcube.torch.shared_memory(group):
            mine = torch.full((LONG,), rank + 1, dtype=dtype)
        if rank == 0:
            interrupt(dist.all_reduce(mine, group=group, async_op=True))
            mine.fill_(5)
        meet()
        if rank == 0:  # it has left the job before
            refusal(lambda: dist.all_reduce(torch.ones(1), group=group), "this process group has ended", "a signal")
        else:
            expect_right_or_refused(lambda: dist.all_reduce(mine, group=group), mine, 10)
        meet()
        dist.destroy_process_group(group)


def interrupted_and_copied():
    """Until it was waited for again, other calls with the tensor are refused, also those of other groups."""
    rank, meet = dist.get_rank(), Meetings("interrupted and copied")

    def empty():
        return [torch.empty(9) for _ in range(4)]

    later_calls = [  # with the tensor itself, and by copies
        lambda mine, group: dist.all_reduce(mine[7:], group=group),
        lambda mine, group: dist.all_reduce(mine[::2], group=group),
        lambda mine, group: dist.all_reduce(mine[7:], dist.ReduceOp.PRODUCT, group),
        lambda mine, group: dist.all_gather(empty(), mine[:9], group),
        lambda mine, group: dist.reduce_scatter(torch.empty(9), empty()[1:] + [mine[:9]], group=group),
    ]
    for later_call in [None] + later_calls:
        group, next_group = dist.new_group(timeout=LATER), dist.new_group(timeout=LATER)
        mine = torch.full((LONG,), rank + 1.0)
        if rank == 0:
            work = dist.all_reduce(mine, group=group, async_op=True)
            interrupt(work)
            mine.fill_(5)
        meet()
        if rank != 0:
            dist.all_reduce(mine, group=group)
            assert torch.equal(mine, torch.full((LONG,), 10.0)), mine
        other = torch.ones(3)
        dist.all_reduce(other, group=group)
        assert float(other[0]) == 4
        meet()
        if rank == 0:
            words = "whose wait() a signal has ended"
            for each in (group, next_group):
                for part in (mine[5:9], mine[::2]):
                    refusal(lambda: dist.send(part, 3, group=each), words)
                refusal(lambda: dist.gather(mine[:9], empty(), rank, each), words)
        if later_call is None:
            if rank == 0:
                work.wait()
                assert torch.equal(mine, torch.full((LONG,), 10.0)), mine
            for each in (group, next_group):
                mine.fill_(rank + 5)
                dist.all_reduce(mine, group=each)
                assert float(mine[9]) == 26
        else:
            words = ["this process group has ended", "whose wait() a signal has ended"] * (rank == 0)
            for each in (next_group, group):
                if rank == 0:
                    refusal(lambda: later_call(mine, each), *words)
                meet()
                if rank != 0:
                    refusal(lambda: dist.all_reduce(mine, group=each))
        meet()
        dist.destroy_process_group(group)
        dist.destroy_process_group(next_group)


def interrupted_and_exchanged():
    """A tensor that is given other memory leaves its former memory to the call, which does not touch the new one."""
    rank, meet, group = dist.get_rank(), Meetings("interrupted and exchanged"), dist.new_group(timeout=LATER)
    for give in (lambda mine, new: setattr(mine, "data", new), lambda mine, new: mine.set_(new)):
        for is_strided in (False, True):
            array = numpy.full(2 * LONG, rank + 1, numpy.float32)
            mine, kept = torch.from_numpy(array), weakref.ref(array)
            mine = mine[::2] if is_strided else mine
            del array
            if rank == 0:
                interrupt(dist.all_reduce(mine, group=group, async_op=True))
                give(mine, torch.full((len(mine),), 5.0))
                assert kept() is not None, "it is written to when the collective ends"
            meet()
            if rank != 0:
                dist.all_reduce(mine, group=group)
            dist.barrier(group=group)
            assert torch.equal(mine, torch.full_like(mine, 5 if rank == 0 else 10)), mine
    dist.destroy_process_group(group)


def interrupted_again():
    """Signals that come while the group is left run their handlers after that: the daemon reads the tensor until then."""
    rank, meet, group = dist.get_rank(), Meetings("interrupted again"), dist.new_group(timeout=LATER)
    with gradcube.torch.shared_memory(group):
        mine = torch.ones(LONG)
    begun, release, calls = threading.Event(), threading.Event(), []

    def hold_up(future):
        begun.set()
        release.wait()

    def handler(*_):
        calls.append(release.is_set())
        if len(calls) == 1:
            raise KeyboardInterrupt

    def again():
        main = threading.main_thread().ident
        while not calls or sys._current_frames()[main].f_code is handler.__code__:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.5, release.set).start()  # what looks for signals has done so by then

    if rank != 0:
        meet()
    first = dist.all_reduce(torch.ones(1), group=group, async_op=True)
    if rank == 0:
        first.get_future().then(hold_up)
        meet()
        begun.wait()
        before = signal.signal(signal.SIGINT, handler)
        interrupter = threading.Thread(target=again)
        interrupter.start()
        interrupt(dist.all_reduce(mine, group=group, async_op=True))
        interrupter.join()
        signal.signal(signal.SIGINT, before)
        assert calls == [False, True], calls
        refusal(lambda: dist.all_reduce(torch.ones(1), group=group), "this process group has ended", "a signal")
    first.wait()
    meet()
    dist.destroy_process_group(group)


def interrupted_comparison():
    """It has read the tensor when Ctrl-C comes, so what is written there later changes nothing."""
    rank, meet, group = dist.get_rank(), Meetings("interrupted comparison"), dist.new_group(timeout=LATER)
    with gradcube.torch.shared_memory(group):
        mine = torch.ones(LONG)
    if rank == 0:
        work = gradcube.torch.ours(group).compare(mine)
        interrupt(work)
        mine.fill_(5)
    meet()
    if rank != 0:
        work = gradcube.torch.ours(group).compare(mine)
    work.wait()
    dist.barrier(group=group)
    dist.destroy_process_group(group)
