"""Scenarios of torch_ranks.py with child processes that have their parent's model."""

import multiprocessing
import os
import pathlib
import threading

import torch
import torch.distributed as dist
from torch import nn


class Backward(torch.utils.data.Dataset):
    """Each item is the sum of the model's gradients, after a backward pass that multiplies them."""

    def __init__(self, model):
        self.model = model

    def __len__(self):
        return 2

    def __getitem__(self, item):
        (self.model(torch.ones(1, 8)).sum() * 400).backward()
        return sum(one.grad.sum() for one in self.model.parameters())


def fill(model):
    for parameter in model.parameters():
        parameter.grad.fill_(401)


def devices_have_threads():
    """For backward passes, after the first one, as with CUDA or in Debian 13's PyTorch: then PyTorch refuses such a
    pass in a forked child."""
    return any(path.read_text().startswith("pt_autograd") for path in pathlib.Path("/proc/self/task").glob("*/comm"))


def workers():
    """Children of all kinds write to gradients that lie in shared memory; the parent's stay."""
    torch.manual_seed(1)
    inner = nn.Linear(8, 3)
    model = nn.parallel.DistributedDataParallel(inner, gradient_as_bucket_view=True)
    for _ in range(2):  # after the first, DDP has its final buckets
        model(torch.ones(1, 8)).sum().backward()
    before = [one.grad.clone() for one in inner.parameters()]

    def unchanged():
        return all(torch.equal(one.grad, was) for one, was in zip(inner.parameters(), before))

    def forked():
        child = os.fork()
        if child == 0:
            alike = unchanged()
            fill(inner)
            os._exit(0 if alike and not unchanged() else 1)
        assert os.waitpid(child, 0)[1] == 0

    ways = [] if devices_have_threads() else ["fork"]
    if dist.get_rank() == 0:
        ways += ["spawn", "forkserver"]  # these load PyTorch anew
    for way in ways:
        loader = torch.utils.data.DataLoader(Backward(inner), num_workers=1, multiprocessing_context=way)
        sums = [float(one) for one in loader]
        assert sums[0] != sums[1] and unchanged(), (way, sums)
    process = multiprocessing.get_context("fork").Process(target=fill, args=(inner,))
    process.start()
    process.join()
    assert process.exitcode == 0 and unchanged()
    for run in (forked, lambda: os.system("true")):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert unchanged()
    model(torch.ones(1, 8)).sum().backward()
    assert not unchanged()
