"""merged_gradient_hook: DistributedDataParallel's buckets, merged as MG-WFBP has it.

DistributedDataParallel calls its hook for each bucket, always in the order of the buckets, when the bucket and those
before it are ready, and waits for all of them at the end of the backward pass. So a bucket may wait for the next ones
without blocking anything: its future ends with the all-reduce that it shares with them.

Over "gradcube" the buckets lie side by side in shared memory (torch.py), each at a multiple of 64 bytes, and a message
is a piece of it: nothing is copied. Elsewhere, and where this memory was full, they are copied together and back, laid
out in the same way, so that ranks need not agree on which of them copies.
"""

import functools
import time

import torch
import torch.distributed as dist

from ._gradient_layers import padded, shared_zeros
from ._merge_planner import MergePlanner
from ._progress import Observer, Reported
from ._torch_groups import ours

_LONGEST = 4 << 20  # bytes of the all-reduces that costs are measured with


class MergedGradientState(Reported):
    """For DistributedDataParallel.register_comm_hook(), with merged_gradient_hook().

        model = DistributedDataParallel(model, bucket_cap_mb=0.1, gradient_as_bucket_view=True)
        model.register_comm_hook(MergedGradientState("optimal"), merged_gradient_hook)

    A state is for one model. All ranks construct it alike. Policies and ``costs`` are those of MergedGradientOptimizer,
    with buckets in the place of layers; ``group`` is the model's process group; None: the default one.
    """

    def __init__(self, policy="optimal", costs=None, group=None):
        self._planner = MergePlanner(policy, group)
        self._observer = Observer(group)
        self._group = group
        self._size = dist.get_world_size(group)
        self._is_due = False  # messages are to be planned before the next iteration
        self._is_broken = False  # a bucket was taken, and that has not come to its end
        self._planner.find_costs(costs, functools.partial(shared_zeros, group=group), _LONGEST)
        self._begin()

    @property
    def messages(self):
        """The buckets of each all-reduce, in the order of sending."""
        return [list(range(first, last + 1)) for first, last in self._planner.messages]

    def _begin(self):
        if self._is_due:
            self._planner.plan()
        self._is_due = False
        self._held = []  # of the next message: its buckets' numbers, buffers and futures
        self._sent = []  # messages
        self._sizes = []  # of the buckets so far, in bytes
        self._are_known = True  # they are those of the last iteration
        self._ends = {last for _, last in self._planner.messages}
        self._planner.times.begin()
        self._latest = time.perf_counter()  # when a bucket was ready

    def take(self, bucket):
        """The future of a bucket that is ready."""
        index, buffer = bucket.index(), bucket.buffer()
        if buffer.layout != torch.strided:
            raise RuntimeError("gradients are not merged where some are sparse: expected dense ones")
        if self._is_broken:
            raise RuntimeError("a bucket could not be sent, so the order of messages is lost: make another state")
        self._is_broken = True
        if index == 0:
            self._begin()
        self._observe(index, padded(buffer.numel(), buffer.element_size()) * buffer.element_size())
        if self._held and self._held[0][1].dtype != buffer.dtype:
            self._send()
        buffer.div_(self._size)
        # On a device, of which its events tell who takes the value: what is copied back comes before that.
        promise = torch.futures.Future(devices=[] if buffer.device.type == "cpu" else [buffer.device])
        self._held.append((index, buffer, promise))
        if bucket.is_last() or index in self._ends:
            self._send()
        if bucket.is_last():
            self._finish()
        self._is_broken = False
        return promise.then(_result)

    def _observe(self, index, size):
        now = time.perf_counter()
        if index > 0:  # when the first bucket was begun, nobody tells
            self._observer.computed(f"bucket {index}", self._latest, now)
        self._latest = now
        self._sizes.append(size)
        expected = self._planner.sizes
        self._are_known = self._are_known and index < len(expected) and expected[index] == size
        if self._are_known:
            self._planner.times.ready(index)
        else:  # alone: with static_graph each bucket of the first pass has the number 0, and none is the last
            self._ends.add(index)

    def _finish(self):
        if self._sizes == self._planner.sizes:
            self._is_due = self._planner.finish_iteration()
        else:  # the first iteration, and the one after it, when there are other buckets
            self._planner.finish_iteration(counts=False)
            self._planner.begin(self._sizes)
        sent, self._sent = self._sent, []
        if self._observer.finish_iteration(waits=True):
            for message in sent:
                message.wait()
            self._observer.write_timeline()

    def _send(self):
        held, self._held = self._held, []
        memory, copies = self._memory_of([buffer for _, buffer, _ in held])

        def ended(future):
            result = None
            try:
                future.value()
                for buffer, place in copies:
                    buffer.copy_(place)
            except Exception as error:
                result = error
            for _, buffer, promise in held:
                promise.set_result(buffer if result is None else result)

        first, last = held[0][0], held[-1][0]
        begin = time.perf_counter()
        work = dist.all_reduce(memory, group=self._group, async_op=True)
        name = f"bucket {first}" if first == last else f"buckets {first}-{last}"
        self._sent.append(self._observer.sent(name, begin, work))
        work.get_future().add_done_callback(ended)

    def _memory_of(self, buffers):
        """The memory to be combined, and where buffers are copied to, if they are."""
        if len(buffers) == 1:
            return buffers[0], []
        whole = None
        if ours(self._group) is not None:
            from . import torch as backend  # which imports this file

            whole = backend.joined(buffers, self._group)
        if whole is not None:
            return whole, []
        places, end = [], 0
        for buffer in buffers:
            places.append(slice(end, end + buffer.numel()))
            end += padded(buffer.numel(), buffer.element_size())
        whole = torch.zeros(places[-1].stop, dtype=buffers[0].dtype, device=buffers[0].device)
        copies = [(buffer, whole[place]) for buffer, place in zip(buffers, places)]
        for buffer, place in copies:
            place.copy_(buffer)
        return whole, copies


def _result(promise):
    result = promise.value()
    if isinstance(result, Exception):
        raise result
    return result


def merged_gradient_hook(
    state: MergedGradientState, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket, in one all-reduce with those that the state's policy has it share one with."""
    return state.take(bucket)
