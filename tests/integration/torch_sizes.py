"""Scenarios of torch_ranks.py in which a rank gives a tensor other memory while a call uses what it had."""

import mmap
import os

import torch
import torch.distributed as dist

from torch_late import LONG, Meetings, interrupt
from torch_missed import LATER, SOON, refusal

LOST = "does not have the result"
SHORT = "longer than its storage"
MAP_NORESERVE = 0x4000  # mmap has the name from Python 3.13 on


def storage_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()


def sizes():
    """Storages that calls use get no other memory; where they lose theirs, it stays, and the result fails."""
    moved_in_flight()
    looked_at_in_flight()
    read_in_flight()
    moved_when_late()
    interrupted_and_moved()
    too_long()
    too_long_to_copy()


def beginnings(group):
    """What begins a call whose tensor of rank 0 is 4 everywhere in the end."""
    rank = dist.get_rank()

    def all_reduce(tensor):
        return dist.all_reduce(tensor, group=group, async_op=True)

    def scatter(tensor):
        return dist.reduce_scatter(tensor, [torch.ones(LONG)] * 4, group=group, async_op=True)

    def gather(tensor):
        return dist.all_gather(list(tensor.chunk(4)), torch.full((LONG // 4,), 4.0), group=group, async_op=True)

    def message(tensor):
        if rank == 0:
            return dist.irecv(tensor, 1, group=group)
        return dist.isend(tensor * 4, 0, group=group) if rank == 1 else None

    return all_reduce, scatter, gather, message


def let_go(tensor):
    storage_of(tensor).resize_(0)


def grow(tensor):
    storage_of(tensor).resize_(storage_of(tensor).nbytes() + 64)


def share(tensor):
    tensor.share_memory_()


def replace(tensor):
    tensor.data = torch.zeros(LONG)


def moved_in_flight():
    rank, meet, group = dist.get_rank(), Meetings("moved in flight"), dist.new_group(timeout=LATER)
    for begin in beginnings(group):
        for move in (let_go, share, replace):
            for is_plain in (True, False):
                tensor = torch.ones(LONG) if is_plain else torch.ones(2 * LONG)[::2]
                if rank != 0:
                    meet()
                work = begin(tensor)
                if rank == 0:
                    former = tensor.detach()
                    refusal(lambda tensor=tensor: grow(tensor), "cannot be resized while a call uses it")
                    move(tensor)
                    others = [torch.full((LONG,), 7.0) for _ in range(4)]  # in what is free now
                    meet()
                    if move in (let_go, share):
                        refusal(work.wait, LOST)
                        refusal(work.wait, LOST)
                    else:
                        work.wait()
                        assert torch.equal(former, torch.full_like(former, 4)), (begin, move, is_plain, former)
                    if move is not share:  # whose storage has no other size any more
                        grow(tensor)
                    assert all(torch.equal(other, torch.full_like(other, 7)) for other in others), (begin, move)
                elif work is not None:
                    work.wait()
    dist.destroy_process_group(group)


def looked_at_in_flight():
    """PyTorch resizes no tensor that an array of NumPy's looks at: nor does it after a call."""
    rank, meet, group = dist.get_rank(), Meetings("looked at in flight"), dist.new_group(timeout=LATER)
    tensor = torch.ones(LONG)
    if rank != 0:
        meet()
    work = dist.all_reduce(tensor, group=group, async_op=True)
    array = tensor.numpy()
    if rank == 0:
        meet()
    work.wait()
    refusal(lambda: storage_of(tensor).resize_(8 * LONG), "resiz")
    assert (array == 4).all(), array
    dist.destroy_process_group(group)


def read_in_flight():
    """A rank that only gives may free what it has given; and a forked child, what its parent's call uses."""
    rank, meet, group = dist.get_rank(), Meetings("read in flight"), dist.new_group(timeout=LATER)
    for begin in (dist.broadcast, lambda tensor, root, **options: dist.reduce(tensor, 1 - root, **options)):
        tensor = torch.ones(LONG)
        if rank != 0:
            meet()
        work = begin(tensor, 0, group=group, async_op=True)
        if rank == 0:
            child = os.fork()
            if child == 0:
                grow(tensor)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            let_go(tensor)
            meet()
        work.wait()
        if rank == 1:
            assert torch.equal(tensor, torch.full_like(tensor, 1 if begin is dist.broadcast else 4)), tensor
    dist.destroy_process_group(group)


def moved_when_late():
    """A call that has failed has let go of its tensors, though it goes on for the others."""
    rank, meet, group = dist.get_rank(), Meetings("moved when late"), dist.new_group(timeout=LATER)
    mine = torch.ones(LONG)
    if rank == 0:
        refusal(lambda: dist.all_reduce(mine, group=group, async_op=True).wait(SOON), "timeout")
        let_go(mine)
    meet()
    if rank != 0:
        dist.all_reduce(mine, group=group)
        assert torch.equal(mine, torch.full_like(mine, 4)), mine
    dist.barrier(group=group)
    dist.destroy_process_group(group)


def interrupted_and_moved():
    """Memory that calls still write to after Ctrl-C is freed by the last of them. Memory that is shared with other
    processes does not move."""
    rank, meet, group = dist.get_rank(), Meetings("interrupted and moved"), dist.new_group(timeout=LATER)
    for is_shared in (False, True):
        mine = torch.ones(2 * LONG)
        if is_shared:
            mine.share_memory_()
        halves, works = mine.chunk(2), []
        if rank == 0:
            works = [dist.all_reduce(half, group=group, async_op=True) for half in halves]
            for work in works:
                interrupt(work)
            if not is_shared:
                let_go(mine)
        others = [torch.full((2 * LONG,), 7.0) for _ in range(4)]
        for number, half in enumerate(halves):
            meet()
            if rank == 0 and not is_shared:
                refusal(works[number].wait, LOST)
            else:
                (works[number] if works else dist.all_reduce(half, group=group, async_op=True)).wait()
        assert all(torch.equal(other, torch.full_like(other, 7)) for other in others)
        if rank != 0 or is_shared:
            assert torch.equal(mine, torch.full_like(mine, 4)), mine
    dist.destroy_process_group(group)


def too_long():
    """A tensor whose storage is shorter, as its resize() leaves it, is refused on all ranks, which go on."""
    tensor = torch.ones(LONG)
    storage_of(tensor).resize_(16)
    for call in (dist.all_reduce, lambda one: dist.broadcast(one, 0), lambda one: dist.all_gather([one] * 4, one)):
        refusal(lambda call=call: call(tensor), SHORT)
    mine = torch.ones(3)
    dist.all_reduce(mine)
    assert mine.tolist() == [4.0] * 3, mine


def too_long_to_copy():
    """Of a tensor that has to be copied there is no copy on this rank, for want of memory. Its group ends: else the
    others' tensor would be added to its next one."""
    rank, group, long = dist.get_rank(), dist.new_group(), 1 << 41
    mine = torch.ones((3, 2), dtype=torch.uint8)
    if rank == 0:
        reserved = mmap.mmap(-1, 2 * long, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
        spread = torch.frombuffer(reserved, dtype=torch.uint8)[::2]
        refusal(lambda: dist.all_reduce(spread, group=group), "memory")
    for number in range(2):
        refusal(lambda: dist.all_reduce(mine, group=group), "its order is lost" if rank == 0 else "rank 0")
    dist.barrier()
