#!/usr/bin/env python3
"""PostLocalSGD: after some steps gradients are averaged among neighbours, and weights among all now and then."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
backend = parser.parse_args().backend
if backend == "gradcube":
    import gradcube.torch  # makes the backend known

dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)

model = DistributedDataParallel(nn.Linear(10, 5))
pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
state = PostLocalSGDState(process_group=None, subgroup=pairs[rank // 2], start_localSGD_iter=4)
model.register_comm_hook(state, post_localSGD_hook)
averager = PeriodicModelAverager(period=4, warmup_steps=4)
optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), averager)
torch.manual_seed(100 + rank)
for step in range(17):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(torch.randn(20, 10)), torch.randn(20, 5)).backward()
    optimizer.step()
print("weights:", *model.module.weight.flatten().tolist())

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
