#!/usr/bin/env python3
"""DistributedDataParallel: each rank computes on inputs of its own, and all keep the same weights."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
backend = parser.parse_args().backend
if backend == "gradcube":
    import gradcube.torch  # makes the backend known

dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)

model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(100 + rank)
for step in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(20, 10)), torch.randn(20, 5))
    loss.backward()
    optimizer.step()

dist.all_reduce(loss, dist.ReduceOp.SUM)
if rank == 0:
    print("mean loss:", loss.item() / size)
    print("weights:", *[parameter.abs().sum().item() for parameter in model.parameters()])

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
