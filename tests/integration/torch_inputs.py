"""What ranks of the tests of gradcube.torch give, and what comes of it: every rank computes the same for itself.

Sums are of small whole numbers, so they are exact in any order and type; an average's are multiples of the ranks.
"""

import torch
import torch.distributed as dist

ADDED = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64]
SMALL = [torch.int8, torch.uint8, torch.int16]
COPIED = [*ADDED, *SMALL, torch.bool, torch.complex64]
COUNT = 1009  # no multiple of the ranks


def ranks():
    return range(dist.get_world_size())


def input_of(rank, dtype, shape=(COUNT,), salt=0):
    """What `rank` gives: the same numbers wherever this is asked."""
    generator = torch.Generator().manual_seed(1000 * salt + rank)
    numbers = torch.randint(0, 4, shape, generator=generator) * len(ranks())
    return (numbers > 4 if dtype == torch.bool else numbers).to(dtype)


def inputs_of(dtype, shape=(COUNT,), salt=0):
    return [input_of(rank, dtype, shape, salt) for rank in ranks()]


def same(left, right):
    assert left.dtype == right.dtype and left.shape == right.shape, (left.dtype, right.dtype, left.shape, right.shape)
    assert torch.equal(left, right), (left.flatten()[:8], right.flatten()[:8])


def expected(op, inputs):
    whole = torch.stack([one.to(torch.float64) for one in inputs])
    combined = {"SUM": whole.sum, "AVG": whole.mean, "MIN": whole.amin, "MAX": whole.amax}[op](0)
    return combined.to(inputs[0].dtype)
