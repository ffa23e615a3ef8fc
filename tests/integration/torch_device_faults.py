"""Scenarios of torch_device.py on the device "late": what a timeout, Ctrl-C, a failed call or a lost device leaves."""

import datetime
import signal
import threading

import gradcube.torch
import torch
import torch.distributed as dist
from harness import wait_until

import torch_on_device as chosen
from torch_inputs import ranks, same
from torch_missed import refusal
from torch_on_device import busy, here, there, zeros
from torch_scenarios import say, works
from torch_submissions import interrupt_within


def lateness():
    """No rank gets what is written to a tensor after a timeout that came before its copy."""
    rank = dist.get_rank()
    group = dist.new_group()
    given = there(torch.full((7,), rank + 1.0))
    if rank == 0:
        chosen.late.hold_departures()
        work = dist.all_reduce(given, group=group, async_op=True)
        refusal(lambda: work.wait(datetime.timedelta(milliseconds=100)), "the timeout has passed", "its device")
        given.fill_(100)
        chosen.late.release_departures()
        same(here(given), torch.full((7,), 100.0))
        refusal(lambda: dist.all_reduce(given, group=group), "this process group has ended")
    else:
        refusal(lambda: dist.all_reduce(given, group=group), "rank 0")
    dist.destroy_process_group(group)
    works()


def departed():
    """After a timeout the others still get what was copied before, though the caller's tensor is gone by then."""
    rank, size = dist.get_rank(), len(ranks())
    group, clock = dist.new_group(), dist.new_group()
    one = there(torch.zeros(7))
    given = there(torch.full((7 * size,), rank + 1.0))
    if rank != 0:
        dist.barrier(clock)
    work = dist.reduce_scatter_tensor(one, given, group=group, async_op=True)
    if rank == 0:
        wait_until(chosen.late.all_are_idle, "the copies")
        refusal(lambda: work.wait(datetime.timedelta(milliseconds=100)), "the timeout has passed")
        given.fill_(100)
        del given, work
        here(one)  # what is freed is used again
        dist.barrier(clock)
    else:
        work.wait()
        same(here(one), torch.full((7,), size * (size + 1) / 2))
    dist.barrier(group)
    for each in (group, clock):
        dist.destroy_process_group(each)


def lost_order():
    """Where the device cannot be asked about a collective, the group ends: no rank gets what belongs to another one."""
    rank = dist.get_rank()
    group = dist.new_group()
    one = there(torch.ones(7))
    dist.all_reduce(one, group=group)
    here(one)
    if rank == 0:
        with busy(one):
            work = dist.all_reduce(one, group=group, async_op=True)
            chosen.late.fail_queries(1)
            refusal(work.wait, "this process group has ended", "the device cannot be asked")
        refusal(lambda: dist.all_reduce(one, group=group), "this process group has ended")
    else:
        refusal(lambda: dist.all_reduce(one, group=group), "rank 0")
    dist.destroy_process_group(group)
    works()


def completion():
    """A work is completed when its own result is on the device, and waits for no copy of a later call."""
    one, other = there(torch.ones(7)), there(torch.ones(7))
    chosen.late.hold_arrivals()
    work = dist.all_reduce(one, async_op=True)
    work.wait()
    assert not work.is_completed()
    chosen.late.release_arrivals()
    wait_until(work.is_completed, "the result to be on the device")
    if dist.get_rank() == 0:
        work = dist.all_reduce(one, async_op=True)
        chosen.late.hold_departures()
        later = dist.all_reduce(other, async_op=True)
        dist.barrier(small := dist.new_group())
        work.wait()
        wait_until(lambda: work.is_completed() and chosen.late.is_idle(one), "the first of two calls")
        chosen.late.release_departures()
        later.wait()
    else:
        dist.barrier(small := dist.new_group())
        dist.all_reduce(one)
        dist.all_reduce(other)
    dist.destroy_process_group(small)
    same(here(other), torch.full((7,), float(len(ranks()))))


def partly_copied():
    """What came of a call that fails is copied back before that is told, or comes before what the caller does then."""
    rank, size = dist.get_rank(), len(ranks())
    part = (4 << 20) // 4
    given = there(torch.full((2 * part if rank == 0 else part + 10,), 7.0))
    chosen.late.hold_arrivals()
    threading.Timer(0.2, chosen.late.release_arrivals).start()
    refusal(lambda: dist.all_reduce(given))
    given.fill_(1)
    chosen.late.add_later(given, 1)
    same(here(given), torch.full_like(here(given), 2))
    one = there(torch.ones(7))
    dist.all_reduce(one)
    same(here(one), torch.full((7,), float(size)))


def interrupted():
    """Where Ctrl-C comes as a call has ended, what its copy back brings comes before what the caller does then."""
    rank, size, ours = dist.get_rank(), len(ranks()), gradcube.torch.ours(None)
    given, got = there(torch.ones(1009)), there(torch.zeros(1009))

    def handler(*_):
        dist.barrier()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    for tensor, call, others in (
        (given, lambda: interrupt_within(ours.allreduce, [given]), lambda: dist.all_reduce(given)),
        (got, lambda: interrupt_within(ours.recv, [got], 1, 0), lambda: rank == 1 and dist.send(given, 0)),
    ):
        if rank == 0:
            chosen.late.hold_arrivals()
            call()
            threading.Timer(0.2, chosen.late.release_arrivals).start()
        else:
            others()
            dist.barrier()
        tensor.fill_(5)
        chosen.late.add_later(tensor, 1)
        same(here(tensor), torch.full((1009,), 6.0))
    signal.signal(signal.SIGINT, before)
    dist.all_reduce(given)
    same(here(given), torch.full((1009,), 6.0 * size))


def shared_memory():
    """Tensors of a call that share memory are refused on a device as on the CPU, and nothing is written."""
    size = len(ranks())
    for whole in (torch.ones(3 * size), there(torch.ones(3 * size))):
        refusal(lambda: dist.all_reduce_coalesced([whole, whole[:3]]), "share memory")
        gathered = zeros(size, (3,))
        refusal(lambda: dist.all_to_all(gathered, [there(torch.ones(3)) for _ in ranks()]), "one device for all")
        assert not any(one.any() for one in gathered)
        same(here(whole), torch.ones(3 * size))
    works()


def alone():
    """A group of one rank waits for a device no longer than its timeout."""
    group = [dist.new_group([rank], timeout=datetime.timedelta(seconds=1)) for rank in ranks()][dist.get_rank()]
    one = there(torch.ones(7))
    with busy(one):
        refusal(lambda: dist.all_reduce(one, group=group), "the timeout has passed", "the device")
    same(here(one), torch.full((7,), 2.0))
    dist.destroy_process_group(group)


def faults():
    for scenario in (lateness, departed, lost_order, completion, partly_copied, interrupted, shared_memory, alone):
        if chosen.late is not None:
            scenario()
            say(passed=scenario.__name__)
