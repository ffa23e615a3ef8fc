"""Where the backend of Gradcube is in a process group of torch.distributed, in each of its versions."""

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
