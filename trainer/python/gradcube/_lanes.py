"""All-reduces on the lanes of a process group: those of a higher lane are served first."""

import torch.distributed as dist

from ._torch_groups import ours


class Lanes:
    """``count``: 1 for a group of another backend, and for one of gradcube that was made without Options(lanes)."""

    def __init__(self, group):
        self._group = group
        self._backend = ours(group)
        self.count = 1 if self._backend is None else self._backend.lanes

    def all_reduce(self, tensor, share):
        """Begins a sum, on the lane that has this share of them, of 0 to 1. Returns the work."""
        if self.count == 1:
            return dist.all_reduce(tensor, group=self._group, async_op=True)
        return self._backend.all_reduce_on(tensor, min(int(share * self.count), self.count - 1))
