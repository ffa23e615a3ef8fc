"""Scenarios of torch_ranks.py in which some ranks of four miss a call that the others make, or make it wrongly."""

import datetime
import functools
import os
import re
import signal
import threading
import time

import torch
import torch.distributed as dist

import torch_collectives
from torch_amid import amid

SOON = datetime.timedelta(milliseconds=500)
LATER = datetime.timedelta(seconds=120)


def refusal(call, *words):
    """The message of the error that the call must raise: ours is a RuntimeError, PyTorch's own may be a ValueError."""
    try:
        call()
    except (RuntimeError, ValueError) as error:
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


def nested_barriers():
    """A signal's handler is refused a monitored barrier in the midst of one, and so is a child that was forked then."""
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    dist.barrier()
    if rank == 0:
        texts = []

        def handler(*_):
            texts.append(refusal(barrier, "in the midst of another one"))
            store.set("nested", "refused")

        before = signal.signal(signal.SIGUSR1, handler)
        group = dist.distributed_c10d._get_default_group()
        amid(functools.partial(group.monitored_barrier, LATER), lambda: os.kill(os.getpid(), signal.SIGUSR1))
        signal.signal(signal.SIGUSR1, before)
        assert len(texts) == 1, texts
    elif rank == 1:
        inside = threading.Thread(target=barrier)
        inside.start()
        store.wait(["nested"], LATER)
        child = os.fork()
        if child == 0:
            try:
                refusal(barrier, f"belongs to process {os.getppid()}")
                os._exit(0)
            finally:
                os._exit(1)
        killer = threading.Timer(LATER.total_seconds() / 4, os.kill, (child, signal.SIGKILL))  # one that hangs
        killer.start()
        assert os.waitpid(child, 0)[1] == 0
        killer.cancel()
        store.set("nested child", "refused")
        inside.join()
    else:
        store.wait(["nested child"], LATER)
        barrier()
    dist.barrier()


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


def unmet(work):
    """Messages that some rank may not meet are withdrawn."""
    try:
        work.wait(datetime.timedelta(milliseconds=100))
    except RuntimeError:
        pass


def shared_outputs():
    """Tensors of one call that share memory are refused where they are written by copies, too; the group goes on."""
    rank, own = dist.get_rank(), torch.ones(3)
    one, whole = torch.zeros(3), torch.zeros(4, 4)
    overlapping = [whole.view(-1)[place : place + 3] for place in range(0, 8, 2)]
    row, others = whole.view(-1), list(torch.zeros(2, 3))
    meshed = [row[0:7:3], row[1:6:2], *others]  # the fourth is of both, and an end of none
    within = [row[5:8], row[2:11:4], *others]
    columns = [whole[:3, 1], whole[:3, 0], whole[1:, 0], others[0]]  # the third has rows of the second
    words, expanded = "share memory", [torch.zeros(1).expand(3) for _ in range(4)]
    for outputs in ([one] * 4, overlapping, meshed, within, columns, expanded):
        refusal(lambda: dist.all_gather(outputs, own), words)
        refusal(lambda: dist.all_to_all(outputs, list(torch.ones(4, 3))), words)
        dist.barrier()
        if rank == 1:
            refusal(lambda: dist.gather(own, outputs, 1), words)
        else:
            unmet(dist.gather(own, None, 1, async_op=True))
        dist.barrier()
    refusal(lambda: dist.all_reduce_coalesced([whole.t()[1:3], whole[:, 1]], dist.ReduceOp.PRODUCT), words)
    refusal(lambda: dist.reduce_scatter(expanded[0], list(torch.ones(4, 3)), dist.ReduceOp.PRODUCT), words)
    twice = row.as_strided((2, 2), (1, 1))  # one element is of both rows
    refusal(lambda: dist.all_gather([twice, *torch.zeros(3, 2, 2)], torch.ones(2, 2)), words)
    if rank == 1:
        refusal(lambda: dist.scatter(expanded[0], list(torch.ones(4, 3)), 1), words)
    else:
        unmet(dist.scatter(torch.zeros(3), None, 1, async_op=True))
    chunks, flat = torch.zeros(12), torch.zeros(16)  # what a rank gives is its own output in part
    given = chunks[3 * rank - 1 :][:3] if rank else chunks[1:4]
    refusal(lambda: dist._all_gather_base(chunks, given), words)
    refusal(lambda: dist.all_gather(list(chunks.view(4, 3)), given), words)
    refusal(lambda: dist.all_gather(list(flat.view(4, 2, 2)), flat.view(4, 2, 2)[rank].t()), words)
    assert not one.any() and not whole.any() and not any(each.any() for each in (chunks, flat, *expanded))
    chunks[3 * rank : 3 * rank + 3] = rank
    dist.all_gather(list(chunks.view(4, 3)), chunks[3 * rank : 3 * rank + 3])  # as a whole it may be
    assert torch.equal(chunks, torch.arange(4.0).repeat_interleave(3)), chunks
    for rows in ([0, 0, 0, 0], [1, 0, 1, 0]):  # columns side by side, which begin in one row or in two
        columns = torch.zeros(4, 4)
        outputs = [columns[row : row + 3, place] for place, row in enumerate(rows)]
        dist.all_gather(outputs, torch.full((3,), float(rank)))
        assert [one.tolist() for one in outputs] == [[float(place)] * 3 for place in range(4)], columns
    cube = torch.zeros(3, 5, 8)
    outputs = list(cube[:, 1:4].chunk(4, dim=2))  # columns in each row of rows that are not all
    dist.all_gather(outputs, torch.full((3, 3, 2), rank + 1.0))
    assert torch.equal(cube[:, 1:4], torch.arange(1.0, 5).repeat_interleave(2).expand(3, 3, 8)), cube
    assert not cube[:, 0].any() and not cube[:, 4].any(), cube
    cube = torch.zeros(2, 5, 8)
    outputs = list(cube[:, ::2].chunk(4, dim=2))  # of two steps, and what divides both shows that they are apart
    dist.all_gather(outputs, torch.full((2, 3, 2), rank + 1.0))
    assert torch.equal(cube[:, ::2], torch.arange(1.0, 5).repeat_interleave(2).expand(2, 3, 8)), cube
    hidden = [torch.zeros(8).as_strided((2, 3), (3, 2)), *torch.zeros(3, 2, 3)]  # they share none, which no step shows
    refusal(lambda: dist.all_gather(hidden, torch.ones(2, 3)), words, "among each other")
    dist.all_gather([whole[:3, 0], whole[1, 1:], *others], own * rank)  # a part of a row beside a column
    assert whole.sum() == 3, whole
    dist.barrier()
    messages_work()


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
        lambda is_wrong: dist.reduce_scatter(
            torch.zeros(1), short if is_wrong else list(torch.zeros(4, 1)), dist.ReduceOp.PRODUCT, async_op=True
        ),
        lambda is_wrong: dist.gather(torch.zeros(1), short if is_wrong else None, 2, async_op=True),
        lambda is_wrong: dist.scatter(torch.zeros(1), short if is_wrong else None, 2, async_op=True),
    ]
    if hasattr(dist, "gather_single"):  # in PyTorch 2.15
        for bad in (torch.zeros(3), torch.zeros(4, 2)[:, 0]):  # too short; not in one piece
            calls.append(
                lambda is_wrong, bad=bad: dist.gather_single(torch.zeros(1), bad if is_wrong else None, 2, async_op=True)
            )
    for call in calls:
        if rank == 2:
            refusal(lambda: call(True), "expected")
        else:
            unmet(call(False))  # rank 2 takes no part
        dist.barrier()
        messages_work()


def types():
    """Ranks whose tensors have as many bytes, and not the same types, learn both; the group goes on."""
    rank = dist.get_rank()

    def name(dtype):
        return str(dtype).split(".")[1]

    pairs = [(torch.int32, torch.float32), (torch.bool, torch.uint8), (torch.int16, torch.bfloat16)]
    # Later versions of PyTorch give complex numbers as floats to all calls.
    complexes = [(torch.complex64, torch.float64), (torch.complex64, torch.int64)] * torch.__version__.startswith("1.")
    for pair in pairs + complexes:
        mine, words = pair[rank == 2], [name(dtype) for dtype in pair]

        def zeros(*shape):
            return torch.zeros(*shape, dtype=mine)

        calls = [lambda: dist.broadcast(zeros(4), 1)]
        if torch.complex64 not in pair:  # which PyTorch itself gives as floats to all calls but broadcast and messages
            calls.append(lambda: dist.all_gather(list(zeros(4, 4)), zeros(4)))
        if torch.int16 not in pair and torch.complex64 not in pair:
            calls.append(lambda: dist.all_reduce(zeros(4)))
            calls.append(lambda: dist.reduce_scatter(zeros(4), list(zeros(4, 4))))
        for call in calls:
            refusal(call, *words)
            dist.barrier()
    for pair in (pairs[0], pairs[2]):
        mine, words, other = pair[rank % 2], [name(dtype) for dtype in pair], rank ^ 1
        refusal(lambda: dist.all_to_all_single(zeros(4), zeros(4)), *words)
        dist.barrier()
        call = dist.send if rank % 2 == 0 else dist.recv
        refusal(lambda: call(zeros(4), other), *words)
        lists = list(zeros(4, 4)) if rank == 0 else None
        for call in (lambda: dist.gather(zeros(4), lists, 0), lambda: dist.scatter(zeros(4), lists, 0)):
            if rank == 2:
                call()  # as rank 0 has it
            else:
                refusal(call, *words)
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
