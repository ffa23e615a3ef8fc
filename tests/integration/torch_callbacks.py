"""Scenarios of torch_ranks.py: callbacks of futures that call the group themselves."""

import signal
import threading
import time

import torch
import torch.distributed as dist

from torch_missed import refusal
from torch_scenarios import PATIENCE, works


def barrier_in_callback(group, store):
    """Rank 0's callback calls a monitored barrier while another thread is in one: they come one after the other."""
    limit = PATIENCE / 8

    def second(_):
        time.sleep(0.5)  # the main thread is in the first one
        store.set("both barriers", "called")
        dist.monitored_barrier(group, limit)

    if dist.get_rank() == 0:
        future = dist.all_reduce(torch.ones(3), group=group, async_op=True).get_future().then(second)
        store.set("barrier in a callback", "there")
        dist.monitored_barrier(group, limit)
        future.wait()
    else:
        store.wait(["barrier in a callback"], PATIENCE)
        dist.all_reduce(torch.ones(3), group=group)
        store.wait(["both barriers"], PATIENCE)
        for _ in range(2):
            dist.monitored_barrier(group, limit)


def callbacks():
    """What a callback of a future begins and waits for comes to its end, as in PyTorch's PowerSGD hook."""

    def begin(group, depth):
        work = dist.all_reduce(torch.full((5,), float(depth)), group=group, async_op=True)
        return work.get_future().then(lambda done: wait_in(group, depth - 1) + float(done.value()[0][0]))

    def wait_in(group, depth):
        if depth % 2 == 0:
            begin(group, depth).wait()
        else:
            dist.all_reduce(torch.ones(3), group=group)
        return 1

    size, group = dist.get_world_size(), dist.new_group()
    for _ in range(20):
        assert begin(group, 3).wait() == 1 + 3 * size
    works(group)
    store = dist.distributed_c10d._get_default_store()
    barrier_in_callback(group, store)
    # The callback of rank 0 waits for others, which do not come, when its group is destroyed. What it would start gets
    # the signals that the program gets.
    begun, blocked = threading.Event(), []

    def alone(_):
        blocked.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        begun.set()
        work.wait()

    # Where all others had come before, it would be called by this thread, which has yet to destroy the group.
    if dist.get_rank() != 0:
        store.wait(["callback"], PATIENCE)
    future = dist.all_reduce(torch.ones(3), group=group, async_op=True).get_future()
    if dist.get_rank() == 0:
        future = future.then(alone)
        store.set("callback", "there")
        assert begun.wait(PATIENCE.total_seconds())
        assert blocked == [signal.pthread_sigmask(signal.SIG_BLOCK, ())], blocked
        dist.destroy_process_group(group)
        refusal(future.wait, "destroyed")
    else:
        future.wait()
    works()
