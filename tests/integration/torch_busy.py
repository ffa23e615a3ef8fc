"""Scenarios of torch_ranks.py with much in flight at a time, and with a daemon that says nothing or is gone."""

import datetime
import json
import os
import pathlib
import signal
import threading
import time

import gradcube.torch
import torch
import torch.distributed as dist

from torch_missed import refusal
from torch_submissions import interrupt_within

MANY = 1100  # more than a session takes at a time
FEW = 400  # more receives than it takes
LONG = 240  # seconds
MOMENT = datetime.timedelta(seconds=1)


def silent():
    """All that is late when the daemon says nothing fails after an inquiry or two, not after one each."""
    told = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: told.set())
    group = dist.new_group(timeout=MOMENT)
    dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()
    print(json.dumps({"rank": dist.get_rank()}), flush=True)
    assert told.wait(LONG)
    works = [dist.all_reduce(torch.ones(1), group=group, async_op=True) for _ in range(20)]
    failures = [refusal(work.wait) for work in works]
    # Those that were late a moment before the others have had an inquiry of their own, whose answer is of them alone.
    assert len(set(failures)) < len(works) / 2 and all("did not say why" in each for each in failures), failures
    named = [each for each in failures if "request" in each]
    assert len(set(named)) == len(named) > 0, failures
    os._exit(0)  # leaving would wait for the daemon


def impatient():
    """A second Ctrl-C does not wait until a message was withdrawn. Where the daemon may still read its tensor the group is
    left, and a tensor that may still be written to is refused."""
    told, interrupted, rank = threading.Event(), threading.Event(), dist.get_rank()
    signal.signal(signal.SIGUSR1, lambda *_: told.set())
    group = dist.new_group()
    with gradcube.torch.shared_memory(group):
        mine = torch.ones(1 << 16)
    dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()
    print(json.dumps({"rank": rank}), flush=True)
    assert told.wait(LONG)

    def handler(*_):
        interrupted.set()
        raise KeyboardInterrupt

    def interrupt_again():
        interrupted.wait()
        os.kill(os.getpid(), signal.SIGINT)

    def interrupt_twice(*call):
        interrupter = threading.Thread(target=interrupt_again)
        interrupter.start()
        signal.signal(signal.SIGINT, handler)
        interrupt_within(*call)
        interrupter.join()

    ours = gradcube.torch.ours(group)
    if rank == 0:
        interrupt_twice(ours.send, [mine], 1, 0)
        words = "this process group has ended", "a signal has ended a wait()"
        refusal(lambda: dist.barrier(group=group, async_op=True), *words)  # it is not even begun
    elif rank == 1:
        got = torch.zeros(1 << 16)
        interrupt_twice(ours.recv_anysource, [got], 0)
        refusal(lambda: dist.isend(got, 0, group=group), "whose wait() a signal has ended")
    os._exit(0)  # leaving would wait for the daemon


def has_run():
    """Nanoseconds that each thread of the group has had on a core.

    PyTorch has others: one of its store runs on and on in a rank that outlives rank 0.
    """
    threads = pathlib.Path("/proc/self/task").iterdir()
    threads = [thread for thread in threads if (thread / "comm").read_text().strip() == "gc-progress"]
    return {thread.name: (thread / "schedstat").read_text().split()[0] for thread in threads}


def orphaned():
    """The daemon has ended, and nobody asks anything of it: the group's threads sleep until then.

    For a second none gets a core: one that looks for something again and again would, however busy the host is.
    """
    told = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: told.set())
    dist.all_reduce(torch.ones(10))
    print(json.dumps({"rank": dist.get_rank()}), flush=True)
    assert told.wait(LONG)
    deadline, before = time.monotonic() + LONG / 4, None
    while (now := has_run()) != before:
        assert now and time.monotonic() < deadline, (before, now)
        before = now
        time.sleep(1)
    failure = refusal(lambda: dist.all_reduce(torch.ones(10)))
    assert "went away" in str(failure), failure


def many_messages():
    """Pairs of ranks send more than a session takes before they receive: there is room for the receives."""
    other = dist.get_rank() ^ 1
    sends = [dist.isend(torch.full((1,), float(i)), other) for i in range(MANY)]
    got = [torch.zeros(1) for _ in range(MANY)]
    receives = [dist.irecv(one, other) for one in got]
    for work in sends + receives:
        work.wait()
    assert [int(one) for one in got] == list(range(MANY))
    dist.barrier()


def interrupted(call):
    """Ctrl-C ends a call that waits."""
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        call()
        time.sleep(LONG)
    except KeyboardInterrupt:
        return
    raise AssertionError("Ctrl-C has not come")


def withdrawals():
    """What is late gives and takes nothing: the stream of messages goes on where it was, and memory is free again."""
    rank, other = dist.get_rank(), dist.get_rank() ^ 1
    soon, late = datetime.timedelta(milliseconds=100), "the timeout has passed"
    box = torch.zeros(1)
    if rank % 2 == 0:
        for work in (dist.irecv(box, other), dist.irecv(box[:0], other), dist.isend(torch.full((1,), 7.0), other)):
            refusal(lambda: work.wait(soon), late)
        interrupted(lambda: dist.recv(torch.zeros(1), other))
        interrupted(lambda: dist.send(torch.full((1,), 8.0), other))
        held = dist.irecv(torch.zeros(1), other)
        interrupted(held.wait)
        refusal(held.wait, "a signal has ended a wait()")
        held = dist.barrier(async_op=True)
        interrupted(held.wait)
        dist.send(torch.zeros(1), other, tag=1)
        held.wait()
    else:
        dist.recv(torch.zeros(1), other, tag=1)
        dist.barrier()
    dist.barrier()
    for number in (1.0, 2.0):
        got = box if rank % 2 == 0 else torch.zeros(1)
        receive = dist.irecv(got, other)
        dist.send(torch.full((1,), number), other)
        receive.wait()
        assert float(got) == number, (got, number)
    # Those that were not even begun, as more than fit were before them, take nothing either.
    got = [torch.zeros(1) for _ in range(FEW)]
    if rank % 2 == 0:
        works = [dist.irecv(one, other) for one in got]
        for work in works[FEW - 20 :]:
            refusal(lambda: work.wait(soon / 100), late)
        dist.barrier()
        for work in works[: FEW - 20]:
            work.wait()
        dist.recv(got[FEW - 20], other)
        assert [int(one) for one in got] == [*range(FEW - 19), *[0] * 19], got
    else:
        dist.barrier()
        for work in [dist.isend(torch.full((1,), float(i)), other) for i in range(FEW - 19)]:
            work.wait()
    # A call of several messages withdraws all of them, and its tensor can be used again: also where one is refused.
    whole = torch.zeros(4)
    for reason in (late, "the buffer overlaps"):
        if rank == 0:
            held = dist.irecv(whole[1:2] if reason != late else box, 1, tag=9)
            work = dist.all_to_all_single(whole, torch.ones(4), async_op=True)
            refusal(lambda: work.wait(soon), reason)
            for one in (dist.irecv(whole[2:], 1, tag=10), held):
                refusal(lambda: one.wait(soon), late)
        dist.barrier()
        if rank != 0:
            work = dist.all_to_all_single(whole, torch.ones(4), async_op=True)
            refusal(lambda: work.wait(soon), late)
        dist.barrier()
    whole.fill_(1)
    dist.all_reduce(whole)
    assert float(whole[3]) == 4, whole
    # A collective waits for those before it that have its tensor, whatever has ended on which rank.
    for number in range(20):
        whole.fill_(1)
        works = [dist.all_reduce(whole, async_op=True) for _ in range(3)]
        if number % 4 == rank:
            works[0].wait()
        for work in works:
            work.wait()
        assert whole.tolist() == [64] * 4, (number, whole)
