#!/usr/bin/env python3
"""Ranks with different numbers of batches train until the last one has none left."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
backend = parser.parse_args().backend
if backend == "gradcube":
    import gradcube.torch  # makes the backend known

dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)

model = DistributedDataParallel(nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(100 + rank)
batches = [torch.randn(8, 10) for _ in range(5 + 2 * rank)]
with Join([model]):
    for batch in batches:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
print("weights after", len(batches), "batches:", *model.module.weight.flatten().tolist())

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
