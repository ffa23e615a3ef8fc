#!/usr/bin/env python3
"""The communication hooks of PyTorch that send gradients as float16, and as low-rank matrices (PowerSGD)."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
backend = parser.parse_args().backend
if backend == "gradcube":
    import gradcube.torch  # makes the backend known

dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)

low_rank = PowerSGDState(process_group=None, matrix_approximation_rank=2, start_powerSGD_iter=3, min_compression_rate=1)
for state, hook in [(None, fp16_compress_hook), (low_rank, powerSGD_hook)]:
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10)))
    model.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + rank)
    inputs, labels = torch.randn(20, 20), torch.randn(20, 10)
    for step in range(20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(hook.__name__, "loss:", loss.item())

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
