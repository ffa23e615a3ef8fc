"""PyTorch's first tutorial of DistributedDataParallel, with this backend: `torch_spawned.py PORT RANKS`.

torch.multiprocessing starts the ranks, which know their numbers and where to meet, and nothing of servers. They end
without destroy_process_group(), which a forked process does without atexit.
"""

import os
import sys

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


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = sys.argv[1]
    ranks = int(sys.argv[2])
    mp.start_processes(demo_basic, args=(ranks,), nprocs=ranks, join=True, start_method=sys.argv[3] if sys.argv[3:] else "fork")
