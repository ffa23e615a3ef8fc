"""Scenarios of torch_ranks.py in which some ranks of four miss a call that the others make, or make it wrongly."""

import datetime
import os
import re
import signal
import threading
import time

import torch
import torch.distributed as dist

import torch_collectives

SOON = datetime.timedelta(milliseconds=500)
LATER = datetime.timedelta(seconds=120)


def refusal(call, *words):
    """The message of the RuntimeError that the call must raise."""
    try:
        call()
    except RuntimeError as error:
        text = str(error)
    else:
        raise AssertionError(f"no error that says {words}")
    for word in words:
        assert word in text, (word, text)
    assert "Exception raised from" not in text, text
    return text


def messages_work():
    torch_collectives.gather_and_scatter()
    torch_collectives.all_to_all()
    torch_collectives.messages()


def barrier(timeout=LATER, every=False):
    dist.monitored_barrier(timeout=timeout, wait_all_ranks=every)


def miss(*missing):
    """A monitored barrier without these ranks fails on all others.

    On a busy host a rank may come when rank 0's time is up. Then it is there at rank 0's next attempt.
    """
    rank = dist.get_rank()
    if rank in missing:
        return
    if rank != 0:
        refusal(barrier, f"Rank {rank} successfully reached monitoredBarrier", "rank 0 has given it up")
        return
    never_seen = set(range(1, dist.get_world_size()))
    deadline = time.monotonic() + LATER.total_seconds()
    while never_seen != set(missing):
        assert never_seen > set(missing) and time.monotonic() < deadline, never_seen
        try:
            barrier(SOON, every=True)
        except RuntimeError as error:
            named = re.search(r"^(Rank|Ranks) ([\d, ]+) failed to pass monitoredBarrier in 500 ms", str(error))
        else:
            raise AssertionError(f"the barrier has passed without ranks {missing}")
        assert (named[1] == "Ranks") == ("," in named[2]), named
        never_seen &= {int(number) for number in named[2].split(", ")}


def missed_barriers():
    """Ranks miss monitored barriers, or wait in one alone: later ones in which all take part let them pass."""
    for missing in ((3,), (3,), (1, 2)):
        dist.barrier()
        miss(*missing)
        messages_work()
    barrier()
    barrier(every=True)
    messages_work()


def interrupted_barriers():
    """Ctrl-C on rank 0 ends its barrier, and those of the ranks that have come: once more where one came too late."""
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    dist.barrier()
    if rank == 0:
        while store.add("interrupted", 0) < 2:
            try:
                threading.Timer(SOON.total_seconds(), os.kill, (os.getpid(), signal.SIGINT)).start()
                barrier()
            except KeyboardInterrupt:
                time.sleep(0.1)  # usually enough for the others to learn it
            else:
                raise AssertionError("the barrier has passed without rank 3")
    elif rank != 3:
        refusal(barrier, "rank 0 has given it up")
        store.add("interrupted", 1)
    dist.barrier()
    barrier()


def abandoned_barriers():
    """What a rank has sent in a monitored barrier that it left counts for none that the others call later."""
    rank = dist.get_rank()
    for _ in range(2):
        if rank == 3:
            refusal(lambda: barrier(datetime.timedelta(milliseconds=100)), "Rank 3 successfully", "100 ms")
        dist.barrier()
        for _ in range(2):
            miss(3)
            dist.barrier()
        barrier()
        messages_work()
    # What rank 0 tells rank 3 of a barrier that it had come to, but left, is not about its next one.
    if rank == 0:
        refusal(lambda: barrier(2 * SOON), "Rank 1 failed")
    elif rank == 3:
        refusal(lambda: barrier(SOON / 3), "Rank 3 successfully")
    dist.barrier()
    barrier()


def wrong_lists():
    """A rank whose list is refused takes part in the later calls as if it had not been."""
    rank = dist.get_rank()
    short = [torch.zeros(1)]
    calls = [
        lambda is_wrong: dist.all_to_all(
            short if is_wrong else list(torch.zeros(4, 1)), list(torch.zeros(4, 1)), async_op=True
        ),
        lambda is_wrong: dist.all_to_all_single(
            torch.zeros(4), torch.zeros(4), input_split_sizes=[1] if is_wrong else [1, 1, 1, 1], async_op=True
        ),
        lambda is_wrong: dist.gather(torch.zeros(1), short if is_wrong else None, 2, async_op=True),
        lambda is_wrong: dist.scatter(torch.zeros(1), short if is_wrong else None, 2, async_op=True),
    ]
    for call in calls:
        if rank == 2:
            refusal(lambda: call(True), "expected")
        else:
            work = call(False)
            try:
                work.wait(datetime.timedelta(milliseconds=100))
            except RuntimeError:
                pass  # rank 2 takes no part
        dist.barrier()
        messages_work()


def sequence_numbers():
    """They count collectives, so they are the same on all ranks whatever messages each has sent."""
    rank = dist.get_rank()
    group = dist.distributed_c10d._get_default_group()
    before = group._get_sequence_number_for_group()
    if rank == 0:
        dist.send(torch.ones(1), 1)
    elif rank == 1:
        dist.recv(torch.ones(1), 0)
    barrier()
    assert group._get_sequence_number_for_group() == before
    dist.barrier()
    dist.all_to_all_single(torch.ones(4), torch.ones(4))
    assert group._get_sequence_number_for_group() == before + 2
