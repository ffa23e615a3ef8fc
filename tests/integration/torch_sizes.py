"""Scenarios of torch_ranks.py in which a rank gives a tensor another size while a call uses its memory."""

import torch
import torch.distributed as dist

from torch_late import LONG, Meetings, interrupt
from torch_missed import LATER, SOON, refusal


def storage_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()


def sizes():
    """Memory that calls use is not freed by another size of its tensor's before they have ended."""
    resized_in_flight()
    resized_when_late()
    interrupted_and_resized()


def resized_in_flight():
    rank, meet, group = dist.get_rank(), Meetings("resized in flight"), dist.new_group(timeout=LATER)

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

    for begin in (all_reduce, scatter, gather, message):
        for tensor in (torch.ones(LONG), torch.ones(2 * LONG)[::2]):
            storage, grown = storage_of(tensor), []
            if rank != 0:
                meet()
            work = begin(tensor)
            if rank == 0:
                refusal(lambda storage=storage: storage.resize_(0), "resiz")
                view = tensor[:]  # PyTorch gives what it refuses to resize its new shape all the same
                refusal(lambda view=view: view.resize_(4 * LONG), "resiz")
                work.get_future().then(lambda _, s=storage, g=grown: g.append(s.resize_(s.nbytes() + 64)))
                meet()
            if work is not None:
                work.wait()
            if rank == 0:
                assert torch.equal(tensor, torch.full_like(tensor, 4)), (begin, tensor)
                assert len(grown) == 1, begin
            storage.resize_(0)
    dist.destroy_process_group(group)


def resized_when_late():
    """A call that has failed has let go of its tensors, though it goes on for the others."""
    rank, meet, group = dist.get_rank(), Meetings("resized when late"), dist.new_group(timeout=LATER)
    mine = torch.ones(LONG)
    if rank == 0:
        refusal(lambda: dist.all_reduce(mine, group=group, async_op=True).wait(SOON), "timeout")
        storage_of(mine).resize_(0)
    meet()
    if rank != 0:
        dist.all_reduce(mine, group=group)
        assert torch.equal(mine, torch.full_like(mine, 4)), mine
    dist.barrier(group=group)
    dist.destroy_process_group(group)


def interrupted_and_resized():
    """Memory that calls still write to is not freed by another size of its tensor's, until the last of them has ended.
    Memory that is shared with other processes has no other size."""
    rank, meet, group = dist.get_rank(), Meetings("interrupted and resized"), dist.new_group(timeout=LATER)
    for is_shared in (False, True):
        mine = torch.ones(2 * LONG)
        if is_shared:
            mine.share_memory_()
        storage, halves, works = storage_of(mine), mine.chunk(2), []
        if rank == 0:
            works = [dist.all_reduce(half, group=group, async_op=True) for half in halves]
            for work in works:
                interrupt(work)
        for number, half in enumerate(halves):
            if rank == 0 and not is_shared:
                refusal(lambda: storage.resize_(0), "resiz")
            meet()
            (works[number] if works else dist.all_reduce(half, group=group, async_op=True)).wait()
        assert torch.equal(mine, torch.full_like(mine, 4)), mine
        if not is_shared:
            storage.resize_(0)
    dist.destroy_process_group(group)
