#!/usr/bin/env python3
"""A model in two halves, each on every second rank: activations are sent on, and the copies of a half are averaged."""

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

half, copies = rank % 2, [dist.new_group(list(range(which, size, 2))) for which in (0, 1)]
layers = [nn.Sequential(nn.Linear(10, 16), nn.ReLU()), nn.Linear(16, 5)]
model = DistributedDataParallel(layers[half], process_group=copies[half])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(100 + rank // 2)
for step in range(10):
    inputs, labels = torch.randn(20, 10), torch.randn(20, 5)
    optimizer.zero_grad()
    if half == 0:
        activations = model(inputs)
        dist.send(activations.detach(), rank + 1)
        gradient = torch.empty_like(activations)
        dist.recv(gradient, rank + 1)
        activations.backward(gradient)
    else:
        activations = torch.empty(20, 16).requires_grad_()
        dist.recv(activations.detach(), rank - 1)
        loss = nn.functional.mse_loss(model(activations), labels)
        loss.backward()
        dist.send(activations.grad, rank - 1)
    optimizer.step()
if rank == 1:
    print("loss:", loss.item())
print("weights:", *[parameter.abs().sum().item() for parameter in model.parameters()])

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
