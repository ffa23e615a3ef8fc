"""Each call of torch.distributed against a reference (torch_inputs.py). Run by torch_ranks.py."""

import contextlib
import datetime
import functools
import math
import operator

import gradcube.torch
import torch
import torch.distributed as dist

from torch_inputs import ADDED, COPIED, COUNT, SMALL, expected, input_of, inputs_of, ranks, same


def all_reduce():
    for dtype in ADDED + SMALL:
        for op in ("SUM", "AVG", "MIN", "MAX"):
            if op == "AVG" and dtype in SMALL:
                continue
            mine = input_of(dist.get_rank(), dtype)
            dist.all_reduce(mine, getattr(dist.ReduceOp, op))
            same(mine, expected(op, inputs_of(dtype)))
    truth = input_of(dist.get_rank(), torch.bool)
    dist.all_reduce(truth)
    same(truth.view(torch.uint8), torch.stack(inputs_of(torch.bool)).any(0).view(torch.uint8))  # 1, not 2 or 3
    pairs = input_of(dist.get_rank(), torch.complex64) * (1 + 2j)
    dist.all_reduce(pairs)
    same(pairs, sum(inputs_of(torch.complex64)) * (1 + 2j))


def combinations():
    """What the ranks combine themselves."""
    product = torch.full((COUNT,), dist.get_rank() + 2.0)
    dist.all_reduce(product, dist.ReduceOp.PRODUCT)
    same(product, torch.full((COUNT,), float(math.prod(rank + 2 for rank in ranks()))))
    bits = [torch.tensor([3 << rank, -1, 5 + rank]) for rank in ranks()]
    for dtype in (torch.int64, torch.int16, torch.uint8):
        for op, combine in (("BAND", operator.and_), ("BOR", operator.or_), ("BXOR", operator.xor)):
            mine = bits[dist.get_rank()].to(dtype, copy=True)
            dist.all_reduce(mine, getattr(dist.ReduceOp, op))
            same(mine, functools.reduce(combine, bits).to(dtype))
    wholes = inputs_of(torch.float64, (len(ranks()), 4, 5))
    part = torch.zeros(5, 4, dtype=torch.float64).t()
    dist.reduce_scatter(part, list(wholes[dist.get_rank()]), dist.ReduceOp.PRODUCT)
    same(part.contiguous(), torch.stack(wholes).prod(0)[dist.get_rank()])
    columns = input_of(dist.get_rank(), torch.float64, (20, 30)).t()[3:9]
    dist.reduce(columns, 1, dist.ReduceOp.PRODUCT)
    if dist.get_rank() == 1:
        same(columns, torch.stack([one.t()[3:9] for one in inputs_of(torch.float64, (20, 30))]).prod(0))


def premultiplied():
    """By each rank's own factor: a number, or a tensor."""
    rank, give = dist.get_rank(), dist._make_nccl_premul_sum
    mine = torch.full((COUNT,), 2)
    dist.all_reduce(mine, give(float(rank)))
    same(mine, torch.full((COUNT,), 2 * sum(ranks())))
    large = torch.full((3,), 2**60 + 1)
    dist.all_reduce(large, give(float(rank == 1)))
    same(large, torch.full((3,), 2**60 + 1))  # no double has it
    factor = torch.tensor([0.5])
    columns = torch.full((6, 4), 4.0 * rank).t()
    dist.reduce(columns, 1, give(factor if torch.__version__[0] != "1" else [factor]))
    if rank == 1:
        same(columns.contiguous(), torch.full((4, 6), 2.0 * sum(ranks())))
    part = torch.zeros(5)
    dist.reduce_scatter(part, [torch.full((5,), float(to)) for to in ranks()], give(0.25))
    same(part, torch.full((5,), 0.25 * rank * len(ranks())))


def shapes():
    mine = input_of(dist.get_rank(), torch.float32, (30, 40))
    dist.all_reduce(mine.t()[3:9])  # neither contiguous nor dense
    reference = input_of(dist.get_rank(), torch.float32, (30, 40))
    reference.t()[3:9] = sum(one.t()[3:9] for one in inputs_of(torch.float32, (30, 40)))
    same(mine, reference)
    empty = torch.empty(0)
    dist.all_reduce(empty)
    dist.broadcast(torch.empty(3, 0), 1)
    gathered = [torch.empty(0) for _ in ranks()]
    dist.all_gather(gathered, empty)
    number = torch.tensor(float(dist.get_rank()))
    dist.all_reduce(number, dist.ReduceOp.MAX)
    same(number, torch.tensor(float(len(ranks()) - 1)))


def asynchronous():
    many = [torch.full((3,), float(dist.get_rank() + i)) for i in range(1500)]  # more than the library takes at a time
    works = [dist.all_reduce(one, async_op=True) for one in many]
    for i, (work, one) in enumerate(zip(works, many)):
        work.wait()
        assert work.is_completed() and work.is_success()
        same(one, torch.full((3,), float(sum(ranks()) + i * len(ranks()))))
    mine = torch.ones(5)
    future = dist.all_reduce(mine, async_op=True).get_future()
    doubled = future.then(lambda ended: ended.value()[0] * 2)
    same(doubled.wait(), torch.full((5,), 2.0 * len(ranks())))


def broadcast():
    for salt, dtype in enumerate(COPIED):
        for root in ranks():
            mine = input_of(dist.get_rank(), dtype, salt=salt)
            dist.broadcast(mine, root)
            same(mine, input_of(root, dtype, salt=salt))
    mine = input_of(dist.get_rank(), torch.float32, (10, 20)).t()
    dist.broadcast(mine, ranks()[-1])
    same(mine, input_of(ranks()[-1], torch.float32, (10, 20)).t())


def reduce():
    for root in ranks():
        mine = input_of(dist.get_rank(), torch.float32)
        dist.reduce(mine, root)
        if dist.get_rank() == root:
            same(mine, sum(inputs_of(torch.float32)))


def all_gather():
    for dtype in COPIED:
        lists = [torch.zeros(7, 3).to(dtype) for _ in ranks()]
        dist.all_gather(lists, input_of(dist.get_rank(), dtype, (7, 3)))
        for got, reference in zip(lists, inputs_of(dtype, (7, 3))):
            same(got, reference)
    columns = list(torch.zeros(7, 2 * len(ranks())).chunk(len(ranks()), 1))  # of one memory, but interleaved
    dist.all_gather(columns, input_of(dist.get_rank(), torch.float32, (7, 2)))
    for got, reference in zip(columns, inputs_of(torch.float32, (7, 2))):
        same(got, reference)
    whole = torch.zeros(len(ranks()) * 7)
    dist.all_gather_into_tensor(whole, input_of(dist.get_rank(), torch.float32, (7,)))
    same(whole, torch.cat(inputs_of(torch.float32, (7,))))
    lists = [[torch.zeros(3), torch.zeros(4)] for _ in ranks()]
    dist.all_gather_coalesced(lists, [torch.full((3,), float(dist.get_rank())), torch.ones(4)])
    assert [float(one[0][2]) for one in lists] == [float(rank) for rank in ranks()]
    backend = gradcube.torch.ours(None)
    if hasattr(backend, "allgather_into_tensor_coalesced"):  # from PyTorch 2.1 on
        wholes = [torch.zeros(len(ranks()) * count) for count in (3, 5)]
        mine = [torch.full((count,), dist.get_rank() + 0.5 * count) for count in (3, 5)]
        backend.allgather_into_tensor_coalesced(wholes, mine).wait()
        for whole, count in zip(wholes, (3, 5)):
            same(whole, torch.cat([torch.full((count,), rank + 0.5 * count) for rank in ranks()]))


def reduce_scatter():
    for dtype in (torch.float32, torch.int64, torch.bfloat16):
        wholes = inputs_of(dtype, (len(ranks()), 13))
        reference = expected("SUM", wholes)[dist.get_rank()]
        mine = torch.zeros(13, dtype=dtype)
        dist.reduce_scatter(mine, list(wholes[dist.get_rank()].clone()))
        same(mine, reference)
        given = wholes[dist.get_rank()].flatten()
        kept = given.clone()
        dist.reduce_scatter_tensor(mine, given)
        same(mine, reference)
        same(given, kept)
    backend = gradcube.torch.ours(None)
    if hasattr(backend, "reduce_scatter_tensor_coalesced"):
        scattered = [torch.zeros(3), torch.zeros(2)]
        given = [torch.arange(float(len(ranks()) * len(one))) for one in scattered]
        backend.reduce_scatter_tensor_coalesced(scattered, given).wait()
        for one, whole in zip(scattered, given):
            same(one, whole.chunk(len(ranks()))[dist.get_rank()] * len(ranks()))
    dist.reduce_scatter(mine, list(wholes[dist.get_rank()]), dist.ReduceOp.AVG)
    same(mine, expected("AVG", wholes)[dist.get_rank()])


def gather_and_scatter():
    for root in ranks():
        is_root = dist.get_rank() == root
        lists = [torch.zeros(6, dtype=torch.int16) for _ in ranks()] if is_root else None
        dist.gather(input_of(dist.get_rank(), torch.int16, (6,)), lists, root)
        for got, reference in zip(lists or [], inputs_of(torch.int16, (6,))):
            same(got, reference)
        mine = torch.zeros(6)
        dist.scatter(mine, inputs_of(torch.float32, (6,)) if is_root else None, root)
        same(mine, input_of(dist.get_rank(), torch.float32, (6,)))
    if hasattr(dist, "gather_single"):  # in PyTorch 2.15
        gather_into_one()


def gather_into_one():
    for root in ranks():
        whole = torch.zeros(len(ranks()) * 6, dtype=torch.int16) if dist.get_rank() == root else None
        dist.gather_single(input_of(dist.get_rank(), torch.int16, (2, 3)), whole, root)
        if dist.get_rank() == root:
            same(whole, torch.cat(inputs_of(torch.int16, (2, 3))).flatten())


def all_to_all():
    rank = dist.get_rank()
    wholes = [input_of(sender, torch.float32, (len(ranks()), 5)) for sender in ranks()]
    outputs = [torch.zeros(5) for _ in ranks()]
    dist.all_to_all(outputs, list(wholes[rank]))
    for sender, got in enumerate(outputs):
        same(got, wholes[sender][rank])
    # Of another shape, to others and to oneself.
    dist.all_to_all(outputs, [part.reshape(5, 1) for part in wholes[rank]])
    same(outputs[rank], wholes[rank][rank])
    even = torch.zeros(len(ranks()), 5)
    dist.all_to_all_single(even, wholes[rank])
    same(even, torch.stack([whole[rank] for whole in wholes]))
    # Rank r sends r + s rows to rank s.
    given = torch.cat([torch.full((rank + to, 2), 10.0 * rank + to) for to in ranks()])
    uneven = torch.zeros(sum(rank + sender for sender in ranks()), 2)
    dist.all_to_all_single(uneven, given, [rank + sender for sender in ranks()], [rank + to for to in ranks()])
    same(uneven, torch.cat([torch.full((rank + sender, 2), 10.0 * sender + rank) for sender in ranks()]))


def messages():
    rank, size = dist.get_rank(), len(ranks())
    following, before = (rank + 1) % size, (rank - 1) % size
    sends = [dist.isend(torch.full((4,), 10.0 * rank + tag), following, tag=tag) for tag in range(3)]
    for tag in (2, 0, 1):
        got = torch.zeros(4)
        assert dist.recv(got, before, tag=tag) == before
        same(got, torch.full((4,), 10.0 * before + tag))
    for send in sends:
        send.wait()
    columns = torch.zeros(5, 2)
    receive = dist.irecv(columns[:, 1], before)
    dist.send(torch.arange(5.0), following)
    receive.wait()
    same(columns[:, 1].contiguous(), torch.arange(5.0))
    got = torch.zeros(4)
    work = [dist.P2POp(dist.isend, torch.ones(4), following), dist.P2POp(dist.irecv, got, before)]
    for one in dist.batch_isend_irecv(work):
        one.wait()
    same(got, torch.ones(4))


def coalesced():
    mine = [torch.ones(5), torch.full((6,), 2.0)]
    dist.all_reduce_coalesced(mine)
    same(mine[0], torch.full((5,), 1.0 * len(ranks())))
    same(mine[1], torch.full((6,), 2.0 * len(ranks())))


def objects():
    rank = dist.get_rank()
    everybody = [None for _ in ranks()]
    dist.all_gather_object(everybody, {"rank": rank, "text": "x" * rank})
    assert everybody == [{"rank": other, "text": "x" * other} for other in ranks()], everybody
    told = ["from", 2] if rank == 2 else [None, None]
    dist.broadcast_object_list(told, 2)
    assert told == ["from", 2], told
    gathered = [None for _ in ranks()] if rank == 1 else None
    dist.gather_object((rank,), gathered, 1)
    assert rank != 1 or gathered == [(other,) for other in ranks()], gathered
    got = [None]
    dist.scatter_object_list(got, [f"for {other}" for other in ranks()] if rank == 0 else [None for _ in ranks()])
    assert got == [f"for {rank}"], got


def without_autograd():
    """What requires a gradient is exchanged as its values: nothing that comes out hangs in a graph. (From 2.0 on PyTorch
    itself hangs what comes of any backend in one, unless it is told not to.)"""
    with contextlib.nullcontext() if torch.__version__.startswith("1.") else torch.no_grad():
        exchange_parameters()


def exchange_parameters():
    rank = dist.get_rank()
    parameter = torch.nn.Parameter(torch.full((len(ranks()), 3), float(rank)))
    loss = parameter.sum(1) * 2

    def got(tensor, values):
        assert tensor.grad_fn is None and not tensor.requires_grad, tensor
        same(tensor, values)

    everybody = torch.arange(float(len(ranks()))).view(-1, 1).expand(-1, 3).contiguous()
    rows = list(torch.zeros(len(ranks()), 3))  # views that autograd would not have changed
    dist.all_gather(rows, loss[0] + parameter[0])
    got(torch.stack(rows), everybody * 7)
    whole = torch.zeros(len(ranks()) * 3)
    dist.all_gather_into_tensor(whole, parameter[0])
    got(whole, everybody.flatten())
    gathered = list(torch.zeros(len(ranks()), 3)) if rank == 1 else None
    dist.gather(parameter[0], gathered, 1)
    if rank == 1:
        got(torch.stack(gathered), everybody)
    mine = torch.zeros(3)
    dist.scatter(mine, list(parameter) if rank == 1 else None, 1)
    got(mine, torch.ones(3))
    leaf = torch.nn.Parameter(torch.zeros(3))
    dist.scatter(leaf, [torch.full((3,), 5.0) for _ in ranks()] if rank == 1 else None, 1)
    got(leaf.detach(), torch.full((3,), 5.0))
    exchanged = torch.zeros(len(ranks()), 3)
    dist.all_to_all_single(exchanged, parameter)
    got(exchanged, everybody)
    dist.broadcast(leaf, 1)
    dist.all_reduce(leaf)
    got(leaf.detach(), torch.full((3,), 5.0 * len(ranks())))
    mine = torch.zeros(3)
    dist.reduce_scatter_tensor(mine, parameter.flatten())
    got(mine, torch.full((3,), float(sum(ranks()))))


def inference():
    """In inference_mode(), whose tensors another thread's copies cannot write to as they are."""
    rank, size = dist.get_rank(), len(ranks())
    with torch.inference_mode():
        columns = torch.full((5, 3), float(rank)).t()
        dist.all_reduce(columns)
        same(columns.contiguous(), torch.full((3, 5), float(sum(ranks()))))
        lists = [torch.zeros(2, 3).t() for _ in ranks()]
        dist.all_gather(lists, torch.full((3, 2), float(rank)))
        for other, got in enumerate(lists):
            same(got.contiguous(), torch.full((3, 2), float(other)))
        whole = torch.zeros(2 * size)
        dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
        mine = torch.zeros(2)
        dist.reduce_scatter(mine, list(whole.view(size, 2)))
        same(mine, torch.full((2,), float(rank * size)))
        dist.reduce_scatter_tensor(mine, whole)
        same(mine, torch.full((2,), float(rank * size)))
        dist.broadcast(columns, 1)
        exchanged = torch.zeros(size, 2).t()[:1].t()
        dist.all_to_all_single(exchanged, torch.full((size, 1), float(rank)))
        same(exchanged.contiguous().view(-1), torch.arange(float(size)))
    # Outside of it PyTorch allows nobody to write to them, but what is exchanged is values.
    dist.all_gather(lists, torch.full((3, 2), float(rank)))
    with torch.no_grad(), torch.autocast("cpu"):
        dist.all_reduce(columns)


def in_place():
    """What is given may lie where something is got."""
    rank, size = dist.get_rank(), len(ranks())
    expected_rows = torch.arange(float(size)).view(-1, 1).expand(-1, 3) * 10 + rank

    def given():
        return (10.0 * rank + torch.arange(float(size))).view(-1, 1).expand(-1, 3).contiguous()

    whole = given()
    dist.all_to_all_single(whole, whole)
    same(whole, expected_rows)
    with gradcube.torch.shared_memory():
        whole = given()
    rows = list(whole)
    dist.all_to_all(rows[::-1], rows)
    same(whole.flip(0), expected_rows)
    for root in ranks():
        whole = torch.arange(float(size)).view(-1, 1).repeat(1, 3) + root
        mine = whole[(root + 1) % size] if rank == root else torch.zeros(3)
        dist.scatter(mine, list(whole) if rank == root else None, root)
        same(mine, torch.full((3,), float(rank + root)))
        whole = torch.full((size, 3), float(rank))
        dist.gather(whole[rank], list(whole) if rank == root else None, root)
        if rank == root:
            same(whole, torch.arange(float(size)).view(-1, 1).repeat(1, 3))


def barriers():
    dist.barrier()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=60), wait_all_ranks=True)
    works = [dist.barrier(async_op=True) for _ in range(3)]
    for work in works:
        work.wait()


def all_calls():
    for call in (
        all_reduce, combinations, premultiplied, shapes, asynchronous, broadcast, reduce, all_gather, reduce_scatter, gather_and_scatter,
        all_to_all, messages, coalesced, objects, without_autograd, inference, in_place, barriers,
    ):  # fmt: skip
        try:
            call()
        except Exception as error:
            raise AssertionError(f"{call.__name__}: {error}") from error
