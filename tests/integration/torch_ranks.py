"""What a rank of the tests of gradcube.torch runs: `torch_ranks.py SCENARIO...`, one after the other.

Exit code 0: all was as it should be. Each rank says what it has done, and some facts, in lines of JSON on stdout.
"""

import datetime
import hashlib
import inspect
import os
import signal
import sys
import time
from unittest import mock

import gradcube.torch
import torch
import torch.distributed as dist
from torch import nn

import torch_collectives
from torch_any_source import any_source  # noqa: F401
from torch_busy import impatient, many_messages, orphaned, silent, withdrawals  # noqa: F401
from torch_callbacks import callbacks  # noqa: F401
from torch_children import workers  # noqa: F401
from torch_comparisons import comparisons  # noqa: F401
from torch_leaving import ending_callbacks, listening, parting, short_of_memory, stopped_store, undestroyed  # noqa: F401
from torch_sparse import sparse_sums  # noqa: F401
from torch_late import interrupted_memory, late_memory, told_messages  # noqa: F401
from torch_scenarios import PATIENCE, model_of, say, works
from torch_sizes import sizes  # noqa: F401
from torch_submissions import interrupted_submissions  # noqa: F401
from torch_missed import (  # noqa: F401
    SOON, abandoned_barriers, interrupted_barriers, miss, missed_barriers, nested_barriers, refusal,
    sequence_numbers, shared_outputs, types, wrong_lists,
)  # fmt: skip


def train(model, steps, after_first=None):
    """The SHA-256 of the weights after some steps on numbers that are this rank's own."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(100 + dist.get_rank())
    for step in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(
            model(torch.randn(16, 64, generator=generator)), torch.randint(0, 10, (16,), generator=generator)
        )
        loss.backward()
        optimizer.step()
        if step == 0 and after_first is not None:
            after_first()
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def collectives():
    torch_collectives.all_calls()


PARTS = [(0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (0, 1, 2), (2,), (0, 1, 2, 3)]


def groups():
    """On bcube:2,2: rows, columns, no grid, one rank, all, beside each other and beside the default group."""
    rank = dist.get_rank()
    made = {ranks: dist.new_group(list(ranks)) for ranks in PARTS}
    for ranks, group in made.items():
        if rank not in ranks:
            continue
        assert dist.get_rank(group) == ranks.index(rank) and dist.get_world_size(group) == len(ranks)
        mine = torch.full((100,), float(rank))
        dist.all_reduce(mine, group=group)
        assert float(mine[99]) == sum(ranks), (ranks, mine[99])
        dist.broadcast(mine, ranks[-1], group=group)
        gathered = [torch.zeros(1) for _ in ranks]
        dist.all_gather(gathered, torch.tensor([float(rank)]), group=group)
        assert [int(one) for one in gathered] == list(ranks)
        if len(ranks) == 2:
            other = ranks[1 - ranks.index(rank)]
            got = torch.zeros(1)
            receive = dist.irecv(got, other, group=group)
            dist.send(torch.tensor([float(rank)]), other, group=group)
            receive.wait()
            assert int(got) == other
    works()
    column = made[(0, 2) if rank in (0, 2) else (1, 3)]
    digest = train(nn.parallel.DistributedDataParallel(model_of(), process_group=column), 5)
    digests = [None] * 4
    dist.all_gather_object(digests, digest)
    assert digests[0] == digests[2] != digests[1] == digests[3], digests
    dist.destroy_process_group(column)
    works()


def splits():
    """By PyTorch's split_group(), where backends can split: the part has the options of the whole."""
    rank, whole = dist.get_rank(), dist.new_group(pg_options=gradcube.torch.Options(reproducible=True))
    if not hasattr(dist, "split_group"):
        return
    if "parent_pg.bound_device_id" not in inspect.getsource(dist.split_group):  # a split of groups on CUDA alone
        return refusal(lambda: dist.split_group(whole, [[0, 1]]), "split")
    # In some versions a part has the name of a former one of the same ranks.
    named_alike = mock.patch.object(dist.distributed_c10d, "_process_group_name", lambda ranks, **_: f"part {ranks}")
    with named_alike:
        part = dist.split_group(whole, [[0, 1], [2, 3]])
    other = dist.split_group(whole, [[1, 2]])  # which ranks 0 and 3 are no part of
    works(part)
    if rank in (1, 2):
        works(other)
    mine = torch.full((3,), float(rank))
    dist.all_reduce(mine, group=part)
    assert float(mine[0]) == (1 if rank < 2 else 5), mine
    model = nn.parallel.DistributedDataParallel(model_of(), process_group=part)
    train(model, 2)
    dist.destroy_process_group(part)
    with named_alike:
        part = dist.split_group(whole, [[0, 1], [2, 3]])  # another one, though the model has the first
    works(part)
    del model
    for group in (part, other, whole):
        dist.destroy_process_group(group)
    works()


def places():
    """Says where the ranks are, after all have exchanged something."""
    torch_collectives.all_reduce()
    torch_collectives.all_gather()
    torch_collectives.messages()
    say(rank=dist.get_rank(), size=dist.get_world_size())


def alone():
    """A group of one rank exchanges nothing, but all its calls work."""
    torch_collectives.all_reduce()
    torch_collectives.broadcast()
    torch_collectives.all_gather()
    torch_collectives.reduce_scatter()
    torch_collectives.gather_and_scatter()
    torch_collectives.all_to_all()
    torch_collectives.barriers()
    gradcube.torch.compare([torch.ones(3)])
    train(nn.parallel.DistributedDataParallel(model_of(), gradient_as_bucket_view=True), 3)
    refusal(lambda: gradcube.torch.ours(None).send([torch.ones(1)], 0, 0), "nobody")


def training():
    """Zero copies: what is staged does not grow in a step, and of the all-reduces nothing is."""
    model = nn.parallel.DistributedDataParallel(model_of(seed=dist.get_rank()), gradient_as_bucket_view=True)
    staged = []
    digest = train(model, 100, lambda: staged.append(gradcube.torch.statistics()))
    usage = gradcube.torch.statistics()
    assert usage["all_reduce"]["requests"] >= 100 and usage["all_reduce"]["staged_bytes"] == 0, usage
    for kind, row in usage.items():
        assert row["staged_bytes"] == staged[0][kind]["staged_bytes"], (kind, usage, staged)
    say(rank=dist.get_rank(), digest=digest)


def kinds_of_models():
    """DDP's other ways end with the same bits where sums do not depend on their place in a bucket."""
    group = dist.new_group(pg_options=gradcube.torch.Options(algorithm="ring", reproducible=True, weight=2))

    def digest_of(hook=None, **options):
        model = nn.parallel.DistributedDataParallel(model_of(), process_group=group, **options)
        if hook is not None:
            model.register_comm_hook(None, hook)
        return train(model, 5)

    def hook(state, bucket):
        buffer = bucket.buffer().div_(dist.get_world_size())
        work = dist.all_reduce(buffer, group=group, async_op=True)
        return work.get_future().then(lambda ended: ended.value()[0])

    digests = {
        digest_of(),
        digest_of(find_unused_parameters=True, bucket_cap_mb=0.1),
        digest_of(static_graph=True, gradient_as_bucket_view=True),
        digest_of(hook),
    }
    assert len(digests) == 1, digests
    normalised = nn.Sequential(nn.Linear(64, 20), nn.BatchNorm1d(20), nn.Linear(20, 10))  # has buffers of two types
    train(nn.parallel.DistributedDataParallel(normalised), 5)
    uneven = nn.parallel.DistributedDataParallel(nn.Linear(3, 3))
    with uneven.join():
        for _ in range(dist.get_rank() + 1):
            uneven(torch.ones(2, 3)).sum().backward()
    works()


def refusals():
    ops = dist.ReduceOp
    number = torch.ones(4)
    refusal(lambda: dist.reduce_scatter(number, [number] * 4, ops.BAND), "ReduceOp.BAND", "Float", "expected")
    refusal(lambda: dist.all_reduce(number, ops.BXOR), "ReduceOp.BXOR", "Float")
    refusal(lambda: dist.all_reduce(torch.ones(4, dtype=torch.int16), ops.AVG), "Short", "expected")
    refusal(lambda: dist.all_reduce(torch.ones(4, dtype=torch.int8), ops.AVG), "ReduceOp.AVG", "Char")
    # Asked of the backend itself: later versions of PyTorch refuse most of these before it hears of them, and no
    # version has a device for tests like CUDA's.
    backend, elsewhere, expected = gradcube.torch.ours(None), number.to("meta"), "expected one on the CPU"
    sparse = torch.eye(4).to_sparse()
    refusal(lambda: backend.broadcast([sparse], dist.BroadcastOptions()), "sparse tensors but for all_reduce", "dense")
    refusal(lambda: backend.allreduce(torch.eye(4).to_sparse_csr()), "COO layout", "to_dense()")
    quantized = torch.quantize_per_tensor(number, 1.0, 0, torch.qint8)
    refusal(lambda: backend.send([quantized], 1 - dist.get_rank() % 2, 0), "tensors of QInt8", "view(torch.uint8)")
    refusal(lambda: backend.alltoall_base(elsewhere, number, [], []), "tensors on the device meta", expected)
    refusal(lambda: backend._allgather_base(torch.ones(16), elsewhere), "tensors on the device meta", expected)
    refusal(lambda: backend.all_reduce_on(elsewhere, 0), "tensors on the device meta", expected)
    refusal(lambda: backend.recv_anysource([elsewhere], 0), "tensors on the device meta", expected)
    refusal(lambda: dist.send(number, -1), "invalid rank -1", "0 to 3")
    refusal(lambda: dist.recv(number, 4), "invalid rank 4", "0 to 3")
    refusal(lambda: dist.all_gather([number.clone()], number), "one for each of the group's 4 ranks")
    refusal(lambda: dist.all_gather([torch.ones(3) for _ in range(4)], number), "3 elements", "expected 4")
    refusal(lambda: dist.all_to_all_single(torch.ones(6), torch.ones(6)), "6 rows", "evenly")
    # Refused before they reach PyTorch, whose own refusal would be this rank's breakdown, and end the group.
    wrapping = [2**62] * 3 + [2**62 + 4]  # as int64 they add up to 4
    refusal(lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), wrapping), "4 rows in all")
    factor = torch.ones(4)
    several = dist._make_nccl_premul_sum(factor if torch.__version__[0] != "1" else [factor])
    refusal(lambda: dist.all_reduce(torch.ones(6), several), "factor of 4 elements", "one number")
    refusal(lambda: dist.init_process_group("gradcube"), "twice")
    refusal(lambda: dist.new_group(pg_options={}), "gradcube.torch.Options")
    works()


def disagreements():
    """What the ranks do differently fails on all, with what each did; the group goes on."""
    rank = dist.get_rank()
    refusal(lambda: dist.all_reduce(torch.ones(5 + (rank == 2))), "5", "6")
    works()
    if rank == 0:
        dist.send(torch.ones(3), 1)
    elif rank == 1:
        refusal(lambda: dist.recv(torch.ones(4), 0), "12 bytes", "16")
    if rank == 3:
        refusal(lambda: dist.send(torch.ones(4), 2), "longer")
    elif rank == 2:
        refusal(lambda: dist.recv(torch.ones(3), 3), "16 bytes")
    works()


def lateness():
    """Rank 3 does not come: the others learn it, and the monitored barrier leaves the group as it was."""
    rank = dist.get_rank()
    dist.all_reduce(torch.ones(4), async_op=True).wait(datetime.timedelta(days=200000))  # more than a clock counts
    miss(3)
    works()
    if rank == 0:
        refusal(lambda: dist.monitored_barrier(timeout=SOON), "Rank 1 failed to pass monitoredBarrier in 500 ms")
    elif rank == 2:
        refusal(lambda: dist.monitored_barrier(timeout=SOON), "rank 0")
    works()
    short = datetime.timedelta(seconds=1)
    group = dist.new_group(timeout=short)
    if rank != 3:
        late = refusal(lambda: works(group), "[1,1]")
        assert "after 0 ms" not in late, late
        work = dist.all_reduce(torch.ones(4), group=group, async_op=True)
        refusal(lambda: work.wait(datetime.timedelta(milliseconds=300)), "[1,1]")


def forks():
    """A forked child is refused with a sentence; its parent goes on."""
    begun = dist.all_reduce(torch.ones(3), async_op=True)
    child = os.fork()
    if child == 0:
        try:
            refusal(begun.wait, f"belongs to process {os.getppid()}")
            refusal(lambda: dist.all_reduce(torch.ones(3)), f"belongs to process {os.getppid()}")
            if dist.get_rank() == 0:  # PyTorch's store would wait for a thread that the child does not have
                gradcube.torch.ours(None).close()
            else:
                dist.destroy_process_group()
        except BaseException as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    works()
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=2, num_workers=1)
    assert float(sum(batch.sum() for batch in loader)) == 28
    works()


def again():
    """A group after the group, in the same processes."""
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.barrier()
    store = dist.distributed_c10d._get_default_store()  # PyTorch takes it for one group, hence the prefixes
    for attempt in range(2):
        dist.destroy_process_group()
        prefixed = dist.PrefixStore(str(attempt), store)
        dist.init_process_group("gradcube", store=prefixed, rank=rank, world_size=size, timeout=PATIENCE)
        works()
    model = nn.parallel.DistributedDataParallel(nn.Linear(3, 3))
    dist.destroy_process_group()
    refusal(lambda: model(torch.ones(1, 3)).sum().backward(), "destroyed")


def shared_by_carriers():
    """A reproducible group copies what it adds as floats, and nothing else."""
    group, rank = dist.new_group(pg_options=gradcube.torch.Options(reproducible=True)), dist.get_rank()
    with gradcube.torch.shared_memory(group):
        floats, numbers = torch.ones(1000), torch.ones(1000, dtype=torch.int64)
    dist.broadcast(floats, 0, group=group)
    dist.all_gather(list(floats.view(4, 250)), floats.view(4, 250)[rank], group=group)
    dist.all_reduce(numbers, group=group)
    if rank < 2:
        (dist.send if rank == 0 else dist.recv)(floats, 1 - rank, group=group)
    usage = gradcube.torch.statistics(group)
    assert all(kind["staged_bytes"] == 0 for kind in usage.values()), usage
    dist.all_reduce(floats, group=group)
    dist.all_reduce(floats.view(250, 4).t(), group=group)  # a copy of the group's own, and one of the library's
    assert gradcube.torch.statistics(group)["all_reduce"]["staged_bytes"] == 8000
    assert torch.equal(gradcube.torch.joined([floats], group), floats), "it lies there all the same"
    assert float(floats[0]) == 16 and int(numbers[0]) == 4, (floats, numbers)
    dist.destroy_process_group(group)


def shared():
    """Tensors of shared_memory() are not copied, outlive their group, and come from it in that scope alone."""
    group = dist.new_group()
    with gradcube.torch.shared_memory(group):
        mine = torch.full((1000,), 2.0)
        part = mine[16:500]
    dist.all_reduce(mine, group=group)
    dist.all_reduce(part, group=group)
    usage = gradcube.torch.statistics(group)["all_reduce"]
    assert usage == {"requests": 2, "bytes": 4000 + 4 * 484, "staged_bytes": 0}, usage
    dist.all_reduce(torch.ones(1000), group=group)
    dist.all_reduce(mine[1:17], group=group)  # not at a multiple of 64 bytes
    usage = gradcube.torch.statistics(group)["all_reduce"]
    assert usage["staged_bytes"] == 4064, usage
    scope = gradcube.torch.shared_memory(group)
    with scope:
        refusal(scope.__enter__, "was entered")
    dist.all_reduce(torch.ones(1000), group=group)
    assert gradcube.torch.statistics(group)["all_reduce"]["staged_bytes"] == 8064, "the scope has not ended"
    dist.destroy_process_group(group)
    shared_by_carriers()
    mine += 1
    assert float(mine[999]) == 9, mine[999]


def endless():
    """Trains until something ends it; says that it has begun."""
    model = nn.parallel.DistributedDataParallel(model_of())
    train(model, 3)
    say(rank=dist.get_rank())
    train(model, 1 << 30)


def waiting():
    """Rank 0 waits in a collective for the others, which sleep."""
    works()
    say(rank=dist.get_rank())
    if dist.get_rank() != 0:
        time.sleep(600)
    works()


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    torch.set_num_threads(1)
    dist.init_process_group("gradcube", timeout=PATIENCE)
    for scenario in sys.argv[1:]:
        globals()[scenario]()
        say(done=scenario)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
