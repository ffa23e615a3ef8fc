"""Where the backend of Gradcube is in a process group of torch.distributed, in each of its versions; and its lanes."""

import torch.distributed as dist
from torch.distributed import distributed_c10d

from . import _torch_extension


def ours(group):
    """The group's backend of Gradcube; None: it has none. `group`: None: the default one.

    In PyTorch 1 it is the group itself; later a group has one for each type of device.
    """
    if _torch_extension.extension is None:
        return None
    kind = _torch_extension.extension.ProcessGroupGradcube
    group = distributed_c10d._get_default_group() if group is None else group
    if isinstance(group, kind):
        return group
    if not isinstance(group, distributed_c10d.ProcessGroup):
        return None
    for device in getattr(group, "_device_types", ()):
        backend = group._get_backend(device)
        backend = getattr(backend, "wrapped_pg", backend)  # with TORCH_DISTRIBUTED_DEBUG=DETAIL
        if isinstance(backend, kind):
            return backend
    return None


class Lanes:
    """All-reduces on the lanes of a process group: those of a higher lane are served first.

    ``count``: 1 for a group of another backend, and for one of gradcube that was made without Options(lanes).
    """

    def __init__(self, group):
        self._group = group
        self._backend = ours(group)
        self.count = 1 if self._backend is None else self._backend.lanes

    def all_reduce(self, tensor, share):
        """Begins a sum, on the lane that has this share of them, of 0 to 1. Returns the work."""
        if self.count == 1:
            return dist.all_reduce(tensor, group=self._group, async_op=True)
        return self._backend.all_reduce_on(tensor, min(int(share * self.count), self.count - 1))
