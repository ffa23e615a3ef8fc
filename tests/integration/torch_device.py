"""What a rank of torch_device_test.py runs: `torch_device.py DEVICE SCENARIO...`, one after the other.

The device is "late" (torch_late_device.py), or one that PyTorch has itself, such as "cuda". What tensors on it get is
compared with what tensors of the CPU get by the same group.
"""

import datetime
import sys

import gradcube.torch
import torch
import torch.distributed as dist
from gradcube import _torch_pinning
from gradcube.torch import MergedGradientState
from torch import nn

import torch_on_device as chosen
from merging_hook import ENDLESS, ddp_of
from torch_device_faults import faults  # noqa: F401
from torch_inputs import ADDED, COPIED, SMALL, ranks, same
from torch_missed import refusal
from torch_on_device import both, busy, here, mine, there, zeros
from torch_scenarios import PATIENCE, model_of, say, works

LARGE = 2_500_001  # elements of float32: three parts


def all_reduces():
    for dtype in [*ADDED, *SMALL, torch.bool, torch.complex64]:
        for op in ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR"):
            try:
                both(lambda one, op=op: dist.all_reduce(one, getattr(dist.ReduceOp, op)), mine(dtype))
            except (RuntimeError, ValueError) as error:  # PyTorch's own for some
                assert "support" in str(error), error
    both(dist.all_reduce, mine(shape=(LARGE,)))
    both(lambda one: dist.all_reduce(one.t()[3:900]), mine(shape=(1500, 1300)))  # four parts of what is not dense
    both(dist.all_reduce, torch.zeros(0))
    both(dist.all_reduce, torch.tensor(float(dist.get_rank())))
    both(lambda *some: dist.all_reduce_coalesced(list(some)), mine(), mine(shape=(LARGE,)))


def rooted():
    for root in (0, len(ranks()) - 1):
        is_root = dist.get_rank() == root
        for dtype in COPIED:
            both(lambda one: dist.broadcast(one, root), mine(dtype))
        both(lambda one: dist.broadcast(one, root), mine(shape=(LARGE,)))
        both(lambda one: dist.broadcast(one.t(), root), mine(shape=(30, 40)))
        for shape in ((1009,), (LARGE,)):
            both(lambda one: dist.reduce(one, root), mine(shape=shape), written=None if is_root else (0, 0))

        def gather(one, *outputs):
            dist.gather(one, list(outputs) if is_root else None, root)

        def scatter(output, *inputs):
            dist.scatter(output, list(inputs) if is_root else None, root)

        both(gather, mine(torch.int16, (6,)), *zeros(len(ranks()), (6,), torch.int16))
        both(scatter, torch.zeros(6), *(mine(shape=(6,), salt=rank) for rank in ranks()))


def gathered_and_scattered():
    size = len(ranks())
    for dtype in COPIED:
        both(lambda one, *outputs: dist.all_gather(list(outputs), one), mine(dtype), *zeros(size, (1009,), dtype))
    both(lambda one, *outputs: dist.all_gather(list(outputs), one.t()), mine(shape=(5, 3)), *zeros(size, (3, 5)))
    both(lambda one, whole: dist.all_gather_into_tensor(whole, one), mine(), torch.zeros(1009 * size))
    both(lambda one, whole: dist.all_gather_into_tensor(whole, one), mine(shape=(LARGE,)), torch.zeros(LARGE * size))
    for op in ("SUM", "AVG", "MAX", "PRODUCT"):
        kind = getattr(dist.ReduceOp, op)
        both(lambda one, *inputs: dist.reduce_scatter(one, list(inputs), kind), torch.zeros(13), *mine(shape=(size, 13)))
        both(lambda one, whole: dist.reduce_scatter_tensor(one, whole, kind), torch.zeros(13), mine(shape=(size * 13,)))
    both(lambda one, whole: dist.reduce_scatter_tensor(one, whole), torch.zeros(LARGE), mine(shape=(size * LARGE,)))


def exchanged():
    rank, size = dist.get_rank(), len(ranks())
    both(lambda *some: dist.all_to_all(list(some[:size]), list(some[size:])), *zeros(size, (5,)), *mine(shape=(size, 5)))
    both(lambda one, whole: dist.all_to_all_single(one, whole), torch.zeros(size, 5), mine(shape=(size, 5)))
    both(lambda whole: dist.all_to_all_single(whole, whole), mine(shape=(size, 5)))

    def ring(given, got):
        sending = dist.isend(given, (rank + 1) % size)
        dist.recv(got, (rank - 1) % size)
        sending.wait()

    both(ring, mine(), torch.zeros(1009))
    both(ring, mine(shape=(LARGE,)), torch.zeros(LARGE))
    both(lambda given, got: ring(given.t(), got.t()), mine(shape=(7, 5)), torch.zeros(7, 5))
    dist.barrier()


def collectives():
    for scenario in (all_reduces, rooted, gathered_and_scattered, exchanged):
        try:
            scenario()
        except Exception as error:
            raise AssertionError(f"{scenario.__name__}: {type(error).__name__}: {error}") from error


def streams():
    """The host goes on while the device has yet to give, and to take, its tensors; the caller's stream has the order."""
    size = len(ranks())
    for shape in ((1009,), (LARGE,)):
        given, other = there(torch.zeros(shape)), there(torch.zeros(shape))
        gathered = [there(torch.zeros(shape)) for _ in ranks()]
        with busy(other), busy(given):
            works_of = [dist.all_reduce(given, async_op=True), dist.all_gather(gathered, other, async_op=True)]
            small = torch.ones(3)
            behind = dist.all_reduce(small, async_op=True)  # of the CPU: keeps its place
            assert not any(one.is_completed() for one in (*works_of, behind))
        for work in works_of:
            work.wait()
        behind.wait()
        assert float(small[0]) == size
        given.add_(1)
        same(here(given), torch.full(shape, size + 1.0))
        for one in gathered:
            same(here(one), torch.ones(shape))
    if chosen.late is not None:
        after_the_copies_back()


def after_the_copies_back():
    """wait() does not make the host wait for the copy back, but what the caller's stream is told next."""
    size, late = len(ranks()), chosen.late
    for wait in (
        lambda work: work.wait(),
        lambda work: work.get_future().wait(),
        lambda work: work.get_future().then(lambda done: late.add_later(done.value()[0], 0) or done.value()).wait(),
    ):
        given = there(torch.ones(1009))
        late.hold_arrivals()
        try:
            wait(dist.all_reduce(given, async_op=True))
            late.add_later(given, 1)
        finally:
            late.release_arrivals()
        same(here(given), torch.full((1009,), size + 1.0))


def failures():
    """They are told by the Work and by its future; the group goes on, and tensors of several devices are refused."""
    rank, size = dist.get_rank(), len(ranks())
    refusal(lambda: dist.all_reduce(there(torch.ones(5 + (rank == 1)))), "5", "6")
    works()
    one = there(torch.ones(10))
    dist.all_reduce(one)
    assert float(here(one)[0]) == size
    backend = gradcube.torch.ours(None)
    expected = "expected one device for all"
    refusal(lambda: backend.allgather([zeros(size, (10,))], [one]), "tensors on", expected)
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if rank != size - 1:
        refusal(lambda: dist.all_reduce(one, group=group), "the timeout has passed")
    dist.barrier()
    works()


def staging():
    """All bytes of tensors on a device are staged, each once, in memory that the device was told of."""
    group = dist.new_group()
    one = there(torch.ones(LARGE))
    dist.all_reduce(one, group=group)
    dist.all_reduce(one[:10], group=group)
    usage = gradcube.torch.statistics(group)["all_reduce"]
    assert usage["bytes"] == usage["staged_bytes"] == 4 * (LARGE + 10) and usage["requests"] == 4, usage
    pinned = sum(_torch_pinning.pinned.values())
    assert pinned >= 4 * LARGE, _torch_pinning.pinned
    for _ in range(20):
        dist.all_reduce(one, group=group)
    # What is used again is that of the call before the last one, whose copies may still go on.
    assert sum(_torch_pinning.pinned.values()) <= pinned + 2 * (12 << 20), _torch_pinning.pinned
    dist.destroy_process_group(group)


def train(device, **options):
    model = nn.parallel.DistributedDataParallel(model_of().to(device), **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(100 + dist.get_rank())
    for _ in range(5):
        optimizer.zero_grad()
        inputs = torch.randn(16, 64, generator=generator)
        targets = torch.randint(0, 10, (16,), generator=generator)
        nn.functional.cross_entropy(model(inputs.to(device)), targets.to(device)).backward()
        optimizer.step()
    return torch.cat([one.detach().cpu().flatten() for one in model.parameters()])


def training():
    """DistributedDataParallel on the device: the same weights on all ranks, and those of the CPU, or nearly."""
    for options in ({}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.1}):
        weights = train(chosen.DEVICE, **options)
        others = zeros(len(ranks()), weights.shape)
        dist.all_gather(others, weights)
        for other in others:
            same(other, weights)
        assert torch.allclose(weights, train("cpu", **options), rtol=1e-3, atol=1e-4)


def merged_hook():
    """DDP's gradients are averages, of one bucket or of several in a message, also where the copies back are late."""
    size, late = len(ranks()), chosen.late
    for widths in ((700, 1), (700, 300, 1)):
        layers = [nn.Linear(*shape, bias=False) for shape in zip(widths, widths[1:])]
        state = MergedGradientState("synceasgd", ENDLESS)
        model = ddp_of(nn.Sequential(*layers).to(chosen.DEVICE), state)
        for step in range(4):
            is_held = late is not None and step == 3  # from then on there is one message: none waits behind another
            model.zero_grad()
            loss = model(there(torch.full((1, 700), float(dist.get_rank() + step)))).sum()
            if is_held:
                late.hold_arrivals()
            try:
                loss.backward()
            finally:
                if is_held:
                    late.release_arrivals()
            mean = (size - 1) / 2 + step  # of what the ranks gave
            weights = [here(layer.weight.detach()) for layer in layers]
            expected = torch.ones(700) if len(layers) == 1 else weights[0].sum(1)
            assert torch.allclose(here(layers[-1].weight.grad)[0], expected * mean, atol=1e-4), (widths, step)
            if len(layers) == 2:
                assert torch.allclose(here(layers[0].weight.grad)[:, 0], weights[1][0] * mean, atol=1e-4), step
        assert state.messages == [list(range(len(layers)))], state.messages
    loss = model(there(torch.ones(1, 700))).sum()
    wrong = there(torch.ones(5))
    refusal(loss.backward if dist.get_rank() != 2 else lambda: dist.all_reduce(wrong), "5")
    works()


def main():
    torch.set_num_threads(1)
    dist.init_process_group(chosen.choose(sys.argv[1]), timeout=PATIENCE)
    for scenario in sys.argv[2:]:
        globals()[scenario]()
        say(done=scenario)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
