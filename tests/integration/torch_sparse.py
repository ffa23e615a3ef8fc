"""Scenarios of torch_ranks.py: sums of sparse tensors."""

import datetime
import time

import numpy
import torch
import torch.distributed as dist
from torch import nn

from torch_amid import amid
from torch_late import interrupt
from torch_missed import refusal


def sparse_of(rank, dtype=torch.float32):
    """Rows that ranks have alone, rows that several have, one twice; rank 2 has none."""
    count = 0 if rank == 2 else 3 + rank
    rows = torch.tensor([[(rank + index) % 7 for index in range(count)] + [rank] * (count > 0)], dtype=torch.int64)
    values = torch.arange(1.0, rows.shape[1] * 2 + 1).view(-1, 2).to(dtype) * (rank + 1)
    return torch.sparse_coo_tensor(rows, values, (8, 2))


def sparse_sums():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in (torch.float32, torch.float64, torch.int64):
        expected = sum(sparse_of(other, dtype).to_dense() for other in range(size))
        mine = sparse_of(rank, dtype)
        works = [dist.all_reduce(mine, async_op=True)]
        dense = torch.ones(3)  # what comes meanwhile has its own order
        works.append(dist.all_reduce(dense, async_op=True))
        for work in works:
            work.wait()
        assert mine.is_sparse and torch.equal(mine.to_dense(), expected), (mine, expected)
        assert float(dense[0]) == size
    shaped = torch.eye(2 + (rank == 3)).to_sparse()
    refusal(lambda: dist.all_reduce(shaped), "another shape")
    refusal(lambda: dist.all_reduce(shaped, dist.ReduceOp.MAX), "ReduceOp.SUM alone")
    group = dist.new_group()
    if rank != 3:
        work = dist.all_reduce(sparse_of(rank), group=group, async_op=True)
        refusal(lambda: work.wait(datetime.timedelta(milliseconds=100)), "the timeout has passed")
    dist.barrier()
    interrupted()
    of_numpy()
    embeddings()


def interrupted():
    """What a rank writes to a tensor once Ctrl-C has ended its wait() stays there, unless it waits again."""
    rank, size, store = dist.get_rank(), dist.get_world_size(), dist.distributed_c10d._get_default_store()
    expected = sum(sparse_of(other).to_dense() for other in range(size))
    for waits_again in (False, True):
        go_on = [f"sparse {waits_again}", "go on"]
        mine = sparse_of(rank).coalesce()
        if rank == 0:
            work = dist.all_reduce(mine, async_op=True)
            interrupt(work)
            mine.values().fill_(77)
            if waits_again:
                amid(work.wait, lambda: store.set(*go_on))
            else:
                store.set(*go_on)
        else:
            store.wait(go_on[:1])
            dist.all_reduce(mine)
        if rank == 0 and not waits_again:
            while not work.is_completed():
                time.sleep(0.01)
            assert mine.values().eq(77).all() and mine._nnz() == 3, mine
            refusal(work.wait, "a signal has ended the wait()", "another wait()")
        if rank != 0 or waits_again:
            assert torch.equal(mine.to_dense(), expected), (mine, expected)
        dist.barrier()


def of_numpy():
    """A sum lets go of NumPy's memory while another thread, which has the interpreter, asks whether it is there."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(20):
        rows, values = numpy.array([[rank, size]]), numpy.ones(2, "float32")
        mine = torch.sparse_coo_tensor(torch.from_numpy(rows), torch.from_numpy(values), (size + 1,))
        del rows, values
        work = dist.all_reduce(mine, async_op=True)
        while not work.is_completed():
            pass
        assert mine.to_dense().tolist() == [1.0] * size + [size], mine


def embeddings():
    """The same weights as where the gradients are dense."""

    def trained(is_sparse):
        torch.manual_seed(4)
        model = nn.Sequential(nn.EmbeddingBag(50, 8, sparse=is_sparse), nn.Linear(8, 3))
        parallel = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(3):
            optimizer.zero_grad()
            words = (torch.arange(12).view(3, 4) * (dist.get_rank() + 2) + step) % 50
            nn.functional.cross_entropy(parallel(words), torch.arange(3)).backward()
            assert model[0].weight.grad.is_sparse == is_sparse
            optimizer.step()
        return [parameter.detach() for parameter in model.parameters()]

    for one, other in zip(trained(True), trained(False)):
        torch.testing.assert_close(one, other)
