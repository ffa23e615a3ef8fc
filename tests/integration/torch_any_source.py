"""Scenarios of torch_ranks.py: receives from any rank."""

import contextlib
import datetime
import random
import threading

import gradcube.torch
import torch
import torch.distributed as dist

from torch_missed import refusal

MANY = 40


def any_source():
    in_turns()
    alone_with_its_tag()
    of_those_that_are_left()
    of_another_length()
    for_a_tensor_that_is_refused()
    beside_those_of_other_threads()
    into_what_the_tensor_had()


def in_turns():
    """Rank 0 asks for any rank's next message, or that of one rank, at random: none is lost, and those of each rank come
    in their order, also those that came at once."""
    rank, others = dist.get_rank(), range(1, dist.get_world_size())
    if rank != 0:
        sends = [dist.isend(torch.tensor([rank, number]), 0, tag=3) for number in range(MANY)]
        for send in sends:
            send.wait()
        return dist.barrier()
    expected = dict.fromkeys(others, 0)
    chosen = random.Random(1)
    while any(number < MANY for number in expected.values()):
        wanted = chosen.choice([None, *(other for other in others if expected[other] < MANY)])
        got = torch.tensor([-1, -1])
        source = dist.recv(got, wanted, tag=3)
        assert source == int(got[0]) and wanted in (None, source), (source, got, wanted)
        assert int(got[1]) == expected[source], (source, got, expected)
        expected[source] += 1
    dist.barrier()


def alone_with_its_tag():
    """While one waits, none of its tag can begin; what is late, or of another type, takes nothing from the next."""
    rank = dist.get_rank()
    if rank == 0:
        got = torch.zeros(2)
        waiting = dist.irecv(got, None)
        for source in (None, 1):
            refusal(lambda: dist.recv(got.clone(), source), "a receive from any rank waits", "expected another tag")
        dist.barrier()
        dist.recv(got.clone(), 1, tag=1)
        refusal(lambda: waiting.wait(datetime.timedelta(milliseconds=100)), "the timeout has passed")
        dist.barrier()
        dist.recv(got, 1)
        assert got.tolist() == [1, 2], got
    else:
        dist.barrier()
        if rank == 1:
            dist.send(torch.zeros(2), 0, tag=1)
        dist.barrier()
        if rank == 1:
            dist.send(torch.tensor([1.0, 2.0]), 0)
    dist.barrier()
    if rank == 0:
        refusal(lambda: dist.recv(torch.zeros(3)), "8 bytes", "12")
        strided = torch.zeros(2, 2)
        assert dist.recv(strided[:, 1]) == 2
        assert strided.tolist() == [[0, 5], [0, 6]], strided
    elif rank == 2:
        dist.send(torch.zeros(2), 0)
        dist.send(torch.tensor([5.0, 6.0]), 0)
    dist.barrier()


def of_those_that_are_left():
    """A rank that has left is not waited for, unless there is no other."""
    rank, group = dist.get_rank(), dist.new_group()
    got = torch.zeros(1)
    if rank == 3:
        dist.destroy_process_group(group)
    dist.barrier()
    if rank == 0:
        assert dist.recv(got, group=group) in (1, 2)
        assert dist.recv(got, group=group) in (1, 2)
    elif rank != 3:
        dist.send(torch.ones(1), 0, group=group)
        dist.destroy_process_group(group)
    dist.barrier()
    if rank == 0:
        refusal(lambda: dist.recv(got, group=group), "exchanges no more messages")
        dist.destroy_process_group(group)
    pair = dist.new_group([0, 1])
    if rank == 1:
        gradcube.torch.ours(pair).send([torch.full((1,), 9.0)], 0, 0).wait()
    elif rank == 0:
        assert dist.recv(got, group=pair) == 1 and float(got) == 9


def of_another_length():
    """What is too long for a receive from any rank is told, or waits: it is never lost, nor is what came beside it."""
    rank = dist.get_rank()
    for _ in range(10):
        failures = 0
        if rank == 0:
            got = torch.zeros(2)
            while True:
                try:
                    source = dist.recv(got, None, tag=7)
                except RuntimeError:
                    failures += 1
                else:
                    break
            assert source == 2 and got.tolist() == [5, 6] and failures <= 1, (source, got, failures)
            if failures == 0:
                dist.recv(torch.zeros(3), 1, tag=7)
        elif rank == 1:
            try:
                dist.send(torch.zeros(3), 0, tag=7)
            except RuntimeError:
                failures = 1
        elif rank == 2:
            dist.send(torch.tensor([5.0, 6.0]), 0, tag=7)
        told = [None] * dist.get_world_size()
        dist.all_gather_object(told, failures)
        assert told[0] == told[1], told


def for_a_tensor_that_is_refused():
    """It takes no message from the next one, also where that came while another one was received."""
    rank = dist.get_rank()
    for wanted in (None, 1, None, 2) * 2:
        if rank in (1, 2):
            sends = [dist.isend(torch.tensor([float(rank), number]), 0, tag=8) for number in range(2)]
        dist.barrier()
        if rank == 0:
            got, sources = torch.zeros(2), []
            for refused in (wanted, None, wanted, wanted):
                sources.append(dist.recv(got, None, tag=8))
                assert got.tolist() == [sources[-1], sources.count(sources[-1]) - 1], (got, sources)
                refusal(lambda: dist.recv(torch.zeros(1).expand(2), refused, tag=8), "share memory")
            assert sorted(sources) == [1, 1, 2, 2]
        elif rank in (1, 2):
            for send in sends:
                send.wait()
        dist.barrier()


def beside_those_of_other_threads():
    """One from any rank that begins while one from this rank does is either the second one, or the other is refused."""
    rank, accepted = dist.get_rank(), torch.zeros(1)
    for length in (1 << 21, 1 << 22, 1 << 23):  # the memory for its copy takes a while
        if rank == 0:
            named, small, begins, begun = torch.zeros(length, 2)[:, 1], torch.zeros(1), threading.Event(), []

            def begin(named=named, begins=begins, begun=begun):
                begins.set()
                with contextlib.suppress(RuntimeError):
                    begun.append(dist.irecv(named, 1, tag=9))

            thread = threading.Thread(target=begin)
            thread.start()
            begins.wait()
            begun.append(dist.irecv(small, None, tag=9))
            thread.join()
            accepted[0] = len(begun) - 1
        dist.broadcast(accepted, 0)
        if rank == 1 and accepted:
            dist.send(torch.full((length,), 2.0), 0, tag=9)
        if rank == 1:
            dist.send(torch.full((1,), 3.0), 0, tag=9)
        elif rank == 0:
            for work in begun:
                work.wait()
            assert float(small) == 3 and float(named[-1]) == 2 * float(accepted), (small, named[-1])
        dist.barrier()


def into_what_the_tensor_had():
    """A tensor that is given other memory leaves its former memory to the receive."""
    rank = dist.get_rank()
    if rank == 0:
        got = torch.zeros(1)
        former = got.detach()
        receive = dist.irecv(got, None, tag=11)
        got.data = torch.full((1,), 5.0)
    dist.barrier()
    if rank == 1:
        dist.send(torch.full((1,), 7.0), 0, tag=11)
    elif rank == 0:
        receive.wait()
        assert float(got) == 5 and float(former) == 7, (got, former)
    dist.barrier()
