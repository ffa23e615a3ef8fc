"""Scenarios of torch_ranks.py in which the ranks of four leave their group at different times."""

import contextlib
import os
import signal
import sys
import threading
import time

import gradcube.torch
import torch
import torch.distributed as dist

from torch_missed import LATER, refusal


def await_departure(rank):
    """Until the rank is known to have left: what it had not sent is not waited for."""
    refusal(lambda: dist.recv(torch.zeros(1), rank, tag=99), f"rank {rank} exchanges no more messages", "left")


def parting(leave=dist.destroy_process_group):
    """The last rank is done, with messages that nobody has asked for, long before the others are: they go on, and what
    needs it fails by its name. The receiver of a scatter may be late, too."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    got = torch.zeros(1)
    parts = [torch.tensor([10.0 + part]) for part in range(last + 1)]
    if rank == last:
        dist.isend(torch.tensor([7.0]), 1)
        dist.scatter(got, src=0)
        return leave()
    if rank == 1:
        await_departure(last)
        dist.recv(got, last)
        assert int(got) == 7
    dist.scatter(got, parts if rank == 0 else None, src=0)
    assert int(got) == 10 + rank
    await_departure(last)
    for _ in range(2):
        refusal(dist.barrier, "collective", f"needs rank {last}", "left")
        receive = dist.irecv(got, (rank - 1) % last)
        dist.send(torch.tensor([float(rank)]), (rank + 1) % last)
        receive.wait()
        assert int(got) == (rank - 1) % last


def short_of_memory():
    """Rank 0 has no room for what it gives. Its group ends: else the others' would be added to its next one."""
    rank = dist.get_rank()
    if rank == 0:
        os.environ["GRADCUBE_HEAP"] = "4Mi"
    group = dist.new_group()
    if rank == 0:
        with gradcube.torch.shared_memory(group):
            held = torch.zeros(700_000)
    for number in range(2):
        mine = torch.full((500_000,), float(number))
        refusal(lambda: dist.all_reduce(mine, group=group), "its order is lost" if rank == 0 else "rank 0")
    if rank == 0:
        assert float(held.sum()) == 0
    dist.barrier()
    # The same where it has none for a copy of what it gives.
    group = dist.new_group()
    if rank == 0:
        endless = torch.zeros(1).expand(2**46)
        refusal(lambda: dist.all_reduce(endless, group=group), "memory")
    for number in range(2):
        mine = torch.full((3,), float(number))
        refusal(lambda: dist.all_reduce(mine, group=group), "its order is lost" if rank == 0 else "rank 0")
    dist.barrier()


def undestroyed():
    """The same, and the scripts end without destroy_process_group()."""
    parting(leave=sys.exit)
    sys.exit(0)


def listening():
    """Daemon threads wait for messages that do not come, or come all the time, when the scripts end: rank 0 by an
    exception."""
    rank, size = dist.get_rank(), dist.get_world_size()

    def listen(tag):
        while True:
            with contextlib.suppress(RuntimeError):
                dist.recv(torch.zeros(1), (rank - 1) % size, tag=tag)

    def speak():
        while True:
            with contextlib.suppress(RuntimeError):
                dist.send(torch.zeros(1), (rank + 1) % size, tag=1)

    for function, arguments in ((listen, [0]), (listen, [1]), (speak, [])):
        threading.Thread(target=function, args=arguments, daemon=True).start()
    future = dist.irecv(torch.zeros(1), (rank - 1) % size, tag=2).get_future()
    threading.Thread(target=future.wait, daemon=True).start()
    while gradcube.torch.statistics()["messages"]["requests"] < 10:
        time.sleep(0.01)
    if rank == 0:
        raise RuntimeError("the script of rank 0 fails")
    sys.exit(0)


def stopped_store():
    """Rank 0, which has PyTorch's store, stands still when the others leave: rank 1 by the end of its script."""
    rank = dist.get_rank()
    process = torch.tensor([os.getpid()])
    dist.broadcast(process, 0)
    if rank == 0:
        dist.barrier()
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    dist.barrier()
    while True:
        with open(f"/proc/{int(process)}/stat") as status:
            if status.read().rsplit(")", 1)[1].split()[0] == "T":
                break
        time.sleep(0.01)
    if rank == 1:
        sys.exit(0)


def ending_callbacks():
    """A group ends though the callback of a work that fails waits for another one, which has yet to fail."""
    group = dist.new_group()
    if dist.get_rank() == 0:
        works = [dist.all_reduce(torch.ones(3), group=group, async_op=True) for _ in range(3)]

        def await_next(place):
            return works[place].get_future().then(lambda _: refusal(works[place + 1].wait, "destroyed"))

        futures = [await_next(place) for place in (0, 1)]
        destroyer = threading.Thread(target=dist.destroy_process_group, args=[group], daemon=True)
        destroyer.start()
        destroyer.join(LATER.total_seconds())
        assert not destroyer.is_alive()
        for future in futures:
            assert "destroyed" in future.wait()
    dist.barrier()
