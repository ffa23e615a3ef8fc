#!/usr/bin/env python3
"""A pipeline with a stage on each rank: micro-batches go forward and their gradients back, by isend and recv."""

import argparse

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
backend = parser.parse_args().backend
if backend == "gradcube":
    import gradcube.torch  # makes the backend known

dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1 + rank)

stage = nn.Sequential(nn.Linear(12, 12), nn.Tanh())
optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
torch.manual_seed(7)
for step in range(5):
    inputs, labels = torch.randn(4, 6, 12), torch.randn(4, 6, 12)  # four micro-batches, the same on all ranks
    optimizer.zero_grad()
    sent, forward = [], []
    for micro, batch in enumerate(inputs):
        entering = batch.clone() if rank == 0 else torch.empty_like(batch)
        if rank > 0:
            dist.recv(entering, rank - 1, tag=micro)
        entering.requires_grad_(rank > 0)
        leaving = stage(entering)
        if rank < size - 1:
            sent.append(dist.isend(leaving.detach(), rank + 1, tag=micro))
        forward.append((entering, leaving))
    losses = []
    for micro, (entering, leaving) in enumerate(forward):
        if rank == size - 1:
            losses.append(nn.functional.mse_loss(leaving, labels[micro]))
            losses[-1].backward()
        else:
            gradient = torch.empty_like(leaving)
            dist.recv(gradient, rank + 1, tag=100 + micro)
            leaving.backward(gradient)
        if rank > 0:
            sent.append(dist.isend(entering.grad, rank - 1, tag=100 + micro))
    for work in sent:
        work.wait()
    optimizer.step()
if rank == size - 1:
    print("loss:", sum(loss.item() for loss in losses))
print("weights:", *[parameter.abs().sum().item() for parameter in stage.parameters()])

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
