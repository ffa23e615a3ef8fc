#!/usr/bin/env python3
"""Each rank evaluates its share of the samples. Rank 0 gathers what came out."""

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
torch.manual_seed(1)

model = nn.Linear(10, 3)
samples, labels = torch.randn(40 * size, 10), torch.randint(0, 3, (40 * size,))
share = slice(40 * rank, 40 * (rank + 1))
predicted = model(samples[share]).argmax(1)

right = (predicted == labels[share]).sum()
dist.reduce(right, 0)
counts = [torch.zeros(3, dtype=torch.int64) for _ in range(size)]
dist.all_gather(counts, predicted.bincount(minlength=3))
all_predicted = [torch.empty_like(predicted) for _ in range(size)] if rank == 0 else None
dist.gather(predicted, all_predicted)
worst = (model(samples[share]).softmax(1).amax(1)).amin()
dist.all_reduce(worst, dist.ReduceOp.MIN)
confusion = torch.zeros(3, 3, dtype=torch.int64)
confusion.index_put_((labels[share], predicted), torch.tensor(1), accumulate=True)
works = [dist.all_reduce(row, async_op=True) for row in confusion]
for work in works:
    work.wait()
reports = [None] * size if rank == 0 else None
dist.gather_object({"rank": rank, "first": predicted[:3].tolist()}, reports)
if rank == 0:
    print("right:", right.item(), "of", len(labels))
    print("predicted:", torch.stack(counts).tolist())
    print("the same when gathered:", torch.equal(torch.cat(all_predicted).bincount(minlength=3), sum(counts)))
    print("least certain:", worst.item())
    print("confusion:", confusion.tolist())
    print("reports:", reports)

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
