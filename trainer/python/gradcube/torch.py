"""Gradcube for PyTorch: the backend "gradcube" of torch.distributed.

    import gradcube.torch
    import torch.distributed as dist

    dist.init_process_group("gradcube")      # rank and size as `gradcube run`, torchrun, mpirun or srun says
    model = torch.nn.parallel.DistributedDataParallel(model)

Where the package was installed by pip, PyTorch from 2.5 on finds the backend without the first line. For a PyTorch that
it has not seen yet the backend is built first, once (`python3 -m gradcube torch build` does so ahead).

Each rank joins at a server of the running cluster: the one that $GRADCUBE_SOCKET names, else one of the run directory.
The ranks that see the same run directory, those of a host, tell each other by the group's store, and share its servers
out in the order of their ranks, whatever started them. Several ranks may share a server, if all servers have as many.

What DistributedDataParallel exchanges lies in memory that the trainer shares with its daemon, so nothing is copied.
statistics() counts what has to be. For other tensors of the CPU there is the scope shared_memory(). Tensors on a device,
such as a GPU, are copied to that memory and back, while the host goes on.

Errors are RuntimeErrors with Gradcube's message: who is missing, who has died.

HubOptimizer is an optimizer whose steps the servers take. It needs a gradcube.Session and no process group; where the
backend cannot be built, `from gradcube._hub_optimizer import HubOptimizer`. Its errors are gradcube.Error's.

Importing this module gives what mpirun and srun say of a process's place the names that torchrun's variables have, and
that init_process_group() reads, unless RANK is set. It changes torch.distributed in these places, for groups of this backend alone:
destroy_process_group() leaves the job, also if a model still refers to the group, as the end of the process does;
monitored_barrier() is allowed, as are sequence numbers; and the buckets of DistributedDataParallel are allocated in shared memory.
"""

import atexit
import collections.abc
import contextlib
import dataclasses
import functools
import os
import threading
import types
import typing
import weakref

import torch  # before the extension, which needs its libraries
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.distributed.constants import default_pg_timeout

import _gradcube_for_torch

from . import _torch_extension
from ._arrays import whole_number
from ._gradient_layers import padded
from ._hub_optimizer import HubOptimizer
from ._merged_gradients import MergedGradientOptimizer
from ._merged_hook import MergedGradientState, merged_gradient_hook
from ._launchers import name_as_torchrun_does
from ._leaving import leave_with
from ._rendezvous import join, run_directory
from ._torch_groups import ours

__all__ = [
    "HubOptimizer",
    "MergedGradientOptimizer",
    "MergedGradientState",
    "Options",
    "compare",
    "merged_gradient_hook",
    "shared_memory",
    "statistics",
]

name_as_torchrun_does(run_directory())
_extension = _torch_extension.load()
_COMPARED_AT_ONCE = 256 << 20  # bytes: of those on a device there are as many copies
_joined = []  # for each group: the process that made it, the socket at which it has joined, and its Departure


@dataclasses.dataclass(frozen=True)
class Options:
    """For init_process_group() and new_group(), as pg_options; the same on all ranks of the group.

    ``algorithm``: one that `gradcube plan --help` lists; None: the cluster's default.
    ``reproducible``: sums have the same bits whatever the algorithm and the topology; floats that are added are copied.
    ``weight``: the group's share of a link that jobs compete for, 1 to 1000.
    ``lanes``: 1 to 8, each served before the one below it: for MergedGradientOptimizer(priority="need").
    """

    algorithm: typing.Optional[str] = None
    reproducible: bool = False
    weight: int = 1
    lanes: int = 1


def create(backend_options, group_options):
    """What PyTorch calls for a new group."""
    options = Options() if group_options is None else group_options
    rank, size = backend_options.group_rank, backend_options.group_size

    def check():
        if not isinstance(options, Options):
            raise RuntimeError(f"invalid pg_options: expected gradcube.torch.Options, not {type(options).__name__}")
        whole_number(options.lanes, "lanes", 1, 8)

    def open_group(**place):
        group = _extension.ProcessGroupGradcube(
            rank=rank,
            size=size,
            algorithm=options.algorithm or "",
            reproducible=options.reproducible,
            weight=options.weight,
            lanes=options.lanes,
            timeout=backend_options.timeout,
            **place,
        )
        _joined.append((os.getpid(), place["socket"], _extension.Departure(group)))
        return group

    if size == 1:  # it exchanges nothing
        check()
        return open_group(socket="", job="", servers=[], trainers_per_server=1)
    leave_with(os.getpid(), _leave_all)
    _forget_those_that_left()
    held = next((path for process, path, _ in _joined if path and process == os.getpid()), None)
    return join(backend_options.store, rank, size, backend_options.group_id, check, open_group, held)


def split_off(store, rank, size, name, timeout, *options):
    """What PyTorch's split_group() comes to: the group of a part of the ranks, with the options of the whole."""
    place = types.SimpleNamespace(store=store, group_rank=rank, group_size=size, group_id=name, timeout=timeout)
    return create(place, Options(*options))


def _forget_those_that_left():
    """Not those of this process's parents, of which Departure knows nothing here."""
    here = os.getpid()
    _joined[:] = [one for one in _joined if one[0] != here or not one[2].is_over()]


def _backend_of(group):
    backend = ours(group)
    if backend is None:
        raise RuntimeError(f"invalid group: expected one of the backend gradcube, not {group!r:.64}")
    return backend


def statistics(group=None):
    """What this rank has asked of the group (None: the default one): requests, bytes and staged bytes of each kind.

    Staged bytes had to be copied to shared memory or from it. Kinds are all_reduce, reduce_scatter, all_gather,
    broadcast, reduce, barrier, compare, and messages: send, recv, gather, scatter and all_to_all consist of those.
    """
    return _backend_of(group).statistics()


def compare(tensors, group=None):
    """RuntimeError on every rank, with the tensors and ranks that differ, unless all ranks have the same bytes.

    ``tensors``: a module, whose parameters are compared, a mapping from names, or a sequence; on all ranks as many, in
    the same order.

        gradcube.torch.compare(model)    # after optimizer.step(), now and then
    """
    backend = _backend_of(group)
    if isinstance(tensors, torch.nn.Module):
        tensors = dict(tensors.named_parameters())
    named = tensors.items() if isinstance(tensors, collections.abc.Mapping) else enumerate(tensors)
    works, under_way, failures = [], 0, []

    def finish():
        for name, work in works:
            try:
                work.wait()
            except RuntimeError as error:
                failures.append(f"{name}: {error}")
        works.clear()

    for name, tensor in named:
        works.append((name, backend.compare(tensor.detach())))
        under_way += tensor.numel() * tensor.element_size()
        if under_way > _COMPARED_AT_ONCE:
            finish()
            under_way = 0
    finish()
    if failures:
        raise RuntimeError("\n".join(failures))


def shared_memory(group=None):
    """A scope whose CPU tensors lie in the group's shared memory, if this thread allocates them.

        with gradcube.torch.shared_memory():
            buffer = torch.empty(1000000)
        dist.all_reduce(buffer)                # copies nothing

    A forked child has a private copy of such a tensor, as of any other.
    """
    return _extension.SharingScope(_backend_of(group))


def joined(tensors, group=None):
    """One tensor over several that lie side by side in the group's shared memory, as the buckets of
    DistributedDataParallel do, and over the up to 63 bytes between two of them. None if they do not lie so."""
    return _backend_of(group).joined(tensors)


def _bytes_of_buckets(parameters):
    """Enough for any division into buckets, and for the numbers of parameters that a Reducer keeps beside them."""
    here = (one for one in parameters if one.device.type == "cpu")
    gradients = sum(padded(one.numel(), one.element_size()) * one.element_size() for one in here)
    return gradients + 16 * padded(len(parameters) + 2, 4)


def _share_buckets():
    """DistributedDataParallel's Reducer allocates its buckets in its constructor, one after the other, and again once
    it knows their order; what it broadcasts is put together in _broadcast_coalesced()."""
    reducer = dist.Reducer
    construct, rebuild, broadcast = reducer.__init__, reducer._rebuild_buckets, dist._broadcast_coalesced
    scopes = weakref.WeakKeyDictionary()  # of a reducer: its group, and the bytes of its buckets

    @functools.wraps(construct)
    def constructed(self, params, *arguments, **options):
        groups = (one for one in (*arguments, *options.values()) if one is not None)
        group = next(filter(ours, groups), None)
        if group is None:
            return construct(self, params, *arguments, **options)
        size = _bytes_of_buckets(params)
        scopes[self] = (weakref.ref(group), size)
        with _extension.SharingScope(ours(group), side_by_side=size):
            return construct(self, params, *arguments, **options)

    @functools.wraps(rebuild)
    def rebuilt(self):
        group, size = scopes.get(self, (lambda: None, 0))
        backend = None if group() is None else ours(group())
        if backend is None:
            return rebuild(self)
        with _extension.SharingScope(backend, side_by_side=size):
            return rebuild(self)

    @functools.wraps(broadcast)
    def broadcast_coalesced(process_group, *arguments, **options):
        if ours(process_group) is None:
            return broadcast(process_group, *arguments, **options)
        with shared_memory(process_group):
            return broadcast(process_group, *arguments, **options)

    reducer.__init__ = constructed
    reducer._rebuild_buckets = rebuilt
    dist._broadcast_coalesced = broadcast_coalesced


def _replace(name, function):
    """In the modules that give the function to users."""
    setattr(distributed_c10d, name, function)
    setattr(dist, name, function)


def _allow_monitored_barrier():
    other = distributed_c10d.monitored_barrier

    @functools.wraps(other)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        chosen = distributed_c10d._get_default_group() if group is None else group
        if ours(chosen) is None:
            return other(group, timeout, wait_all_ranks)
        limit = default_pg_timeout if timeout is None else timeout
        return chosen.monitored_barrier(limit, wait_all_ranks=wait_all_ranks)

    _replace("monitored_barrier", monitored_barrier)


def _allow_sequence_numbers():
    """Where PyTorch, as 2.11, asks none but its own backends for them."""
    other = dist.ProcessGroup._get_sequence_number_for_group

    @functools.wraps(other)
    def number(self):
        try:
            return other(self)
        except RuntimeError:
            backend = ours(self)
            if backend is None:
                raise
            return backend._get_sequence_number_for_group()

    dist.ProcessGroup._get_sequence_number_for_group = number


def _close_what_is_destroyed():
    other = distributed_c10d.destroy_process_group

    @functools.wraps(other)
    def destroy_process_group(group=None):
        if group is None or group is dist.group.WORLD:  # with it PyTorch destroys all others
            other(group)
            for _, _, departure in _joined:
                departure.leave()
        else:
            backend = ours(group)
            other(group)
            if backend is not None:
                backend.close()
        _forget_those_that_left()

    _replace("destroy_process_group", destroy_process_group)


@atexit.register
def _leave_all():
    """Before the interpreter ends: a group's thread may run callbacks that need it.

    As destroy_process_group(), which not every script calls. But daemon threads that wait for a call are left alone:
    they may not come back to an interpreter that ends.
    """
    with contextlib.ExitStack() as leaving:  # each, whatever fails
        for _, _, departure in _joined:
            leaving.callback(departure.leave_at_exit)
        # One that is just starting has no number yet.
        awaited = [one.native_id for one in threading.enumerate() if not one.daemon and one.native_id is not None]
        _extension.expect_exit(awaited)


_share_buckets()
_allow_monitored_barrier()
_allow_sequence_numbers()
_close_what_is_destroyed()
_gradcube_for_torch.register()
