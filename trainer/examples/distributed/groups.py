#!/usr/bin/env python3
"""Groups of ranks: rows and columns of a grid, beside the group of all. Sums by rows, then by columns, are those of
all."""

import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="gradcube", help="of torch.distributed (default: gradcube)")
backend = parser.parse_args().backend
if backend == "gradcube":
    import gradcube.torch  # makes the backend known

dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)

side = int(size**0.5)
rows = [dist.new_group(list(range(first, first + side))) for first in range(0, side * side, side)]
columns = [dist.new_group(list(range(first, side * side, side))) for first in range(side)]
row, column = rows[rank // side], columns[rank % side]

mine = torch.arange(1000) * (rank + 1)
whole, parts = mine.clone(), mine.clone()
dist.all_reduce(whole)
dist.all_reduce(parts, group=row)
dist.all_reduce(parts, group=column)
print("the same sum:", torch.equal(whole, parts), whole[-1].item())

gathered = [torch.empty_like(mine) for _ in range(side)]
dist.all_gather(gathered, mine, group=column)
print("of my column:", [one[-1].item() for one in gathered])
told = torch.tensor([rank])
dist.broadcast(told, dist.get_global_rank(row, side - 1), group=row)
print("the last of my row:", told.item())

dist.barrier()  # the first one to leave a group ends it
dist.destroy_process_group()
