#!/usr/bin/env python3
"""ZeroRedundancyOptimizer: each rank has the optimizer's state of a part of the parameters."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
backend = parser.parse_args().backend
if backend == "gradcube":
    import gradcube.torch  # makes the backend known

dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)

model = DistributedDataParallel(nn.Sequential(*[nn.Linear(20, 20) for _ in range(8)]))
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
torch.manual_seed(100 + rank)
inputs, labels = torch.randn(20, 20), torch.randn(20, 20)
for step in range(10):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
optimizer.consolidate_state_dict(to=0)
if rank == 0:
    print("loss:", loss.item())
    print("parameters with a state:", len(optimizer.state_dict()["state"]))

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
