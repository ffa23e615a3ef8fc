"""What scenarios of torch_ranks.py and torch_device.py have in common."""

import datetime
import json

import torch
import torch.distributed as dist
from torch import nn

PATIENCE = datetime.timedelta(seconds=240)  # also for ranks that start late on a busy host


def say(**facts):
    print(json.dumps(facts), flush=True)


def works(group=None):
    """The group still adds."""
    one = torch.ones(10)
    dist.all_reduce(one, group=group)
    assert float(one[0]) == dist.get_world_size(group), one


def model_of(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 300), nn.ReLU(), nn.Linear(300, 10))
