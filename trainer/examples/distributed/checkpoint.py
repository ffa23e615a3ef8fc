#!/usr/bin/env python3
"""Rank 0 saves a checkpoint of a DistributedDataParallel model, and all ranks go on from it."""

import argparse
import os
import tempfile

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
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
inputs, labels = torch.randn(size, 20, 10)[rank], torch.randn(size, 20, 5)[rank]


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), labels)
        loss.backward()
        optimizer.step()
    return loss


folder = tempfile.TemporaryDirectory() if rank == 0 else None
path = [os.path.join(folder.name, "model.pt") if rank == 0 else None]
dist.broadcast_object_list(path)

train(5)
if rank == 0:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path[0])
first = train(5)
dist.barrier()  # the file is complete
saved = torch.load(path[0], map_location="cpu")
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
second = train(5)
dist.barrier()  # all have read it

same = [None] * size
dist.all_gather_object(same, torch.equal(first, second))
if rank == 0:
    folder.cleanup()
    print("loss:", first.item())
    print("the same after the checkpoint was loaded:", same)

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
