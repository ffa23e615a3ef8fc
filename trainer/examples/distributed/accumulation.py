#!/usr/bin/env python3
"""Gradients of several batches are added on each rank before they are averaged: no_sync()."""

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

layers = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5))
model = DistributedDataParallel(layers, gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
torch.manual_seed(100 + rank)
for step in range(10):
    optimizer.zero_grad(set_to_none=False)
    with model.no_sync():
        for micro in range(3):
            (nn.functional.mse_loss(model(torch.randn(5, 10)), torch.randn(5, 5)) / 4).backward()
    (nn.functional.mse_loss(model(torch.randn(5, 10)), torch.randn(5, 5)) / 4).backward()
    optimizer.step()
print("weights:", *[parameter.abs().sum().item() for parameter in model.parameters()])

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
