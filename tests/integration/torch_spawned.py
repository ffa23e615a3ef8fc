"""What ranks do that torch.multiprocessing starts: `torch_spawned.py PORT RANKS [START_METHOD [FUNCTION]]`.

They know their numbers and where to meet, and nothing of servers. They end without destroy_process_group(), which a
forked process does without atexit. As a rule they do PyTorch's first tutorial of DistributedDataParallel.
"""

import concurrent.futures
import os
import sys
import threading
import time

import gradcube.torch  # noqa: F401
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def demo_basic(rank, world_size):
    dist.init_process_group("gradcube", rank=rank, world_size=world_size)
    torch.set_num_threads(1)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    optimizer.zero_grad()
    loss = nn.MSELoss()(model(torch.randn(20, 10)), torch.randn(20, 5))
    loss.backward()
    optimizer.step()
    sums = [torch.zeros(1) for _ in range(world_size)]
    dist.all_gather(sums, sum(one.detach().sum() for one in model.parameters()).reshape(1))
    assert all(torch.equal(one, sums[0]) for one in sums), sums
    print("trained", flush=True)


def threads(rank, world_size):
    """The rank's function returns before its threads have begun."""
    dist.init_process_group("gradcube", rank=rank, world_size=world_size)
    groups = [None, dist.new_group()]

    def add(group):
        time.sleep(0.5)
        for number in range(20):
            numbers = torch.full((1000,), float(number))
            dist.all_reduce(numbers, group=group)
            assert torch.equal(numbers, torch.full((1000,), float(number * world_size))), numbers
        print("added", flush=True)

    threading.Thread(target=add, args=groups[:1]).start()
    concurrent.futures.ThreadPoolExecutor().submit(add, groups[1])


def left(rank, world_size):
    """A framework whose processes end in an order of their own, as billiard's, leaves before threads have ended."""
    dist.init_process_group("gradcube", rank=rank, world_size=world_size)

    def call():
        for function in (lambda: dist.recv(torch.zeros(1), (rank + 1) % world_size), dist.barrier):
            try:
                function()
            except RuntimeError as error:
                print(f"told: {error}", flush=True)

    threading.Thread(target=call).start()
    while gradcube.torch.statistics()["messages"]["requests"] == 0:
        time.sleep(0.01)
    gradcube.torch._leave_all()


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = sys.argv[1]
    ranks = int(sys.argv[2])
    start_method = sys.argv[3] if len(sys.argv) > 3 else "fork"
    function = globals()[sys.argv[4]] if len(sys.argv) > 4 else demo_basic
    mp.start_processes(function, args=(ranks,), nprocs=ranks, join=True, start_method=start_method)
