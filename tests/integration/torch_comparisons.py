"""Scenarios of torch_ranks.py: ranks find out whether their tensors are the same."""

import gradcube.torch
import torch
import torch.distributed as dist
from torch import nn

from torch_missed import refusal


def comparisons():
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(50, 300), nn.BatchNorm1d(300), nn.Linear(300, 3))
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters())
    staged = gradcube.torch.statistics()["compare"]["staged_bytes"]
    for step in range(3):
        optimizer.zero_grad()
        parallel(torch.randn(8, 50, generator=torch.Generator().manual_seed(100 * step + rank))).sum().backward()
        optimizer.step()
        gradcube.torch.compare(model)
    assert gradcube.torch.statistics()["compare"]["staged_bytes"] == staged
    gradcube.torch.compare([torch.arange(12.0).view(3, 4).t()[1:], torch.zeros(0), torch.tensor(True)])
    gradcube.torch.compare([])

    if rank == 2:  # the lowest bit of one weight
        model[2].weight.data.view(torch.int32)[1, 17] ^= 1
    text = refusal(lambda: gradcube.torch.compare(model), "2.weight", "rank 2 differs", f"other {size - 1}")
    assert "0.weight" not in text and "bias" not in text, text
    named = {"learning rate": torch.tensor([0.1 + (rank == 0)]), "step": torch.tensor(3)}
    refusal(lambda: gradcube.torch.compare(named), "learning rate", "rank 0 differs")
    one = torch.ones(3)
    dist.all_reduce(one)  # the group goes on
    assert float(one[0]) == size
