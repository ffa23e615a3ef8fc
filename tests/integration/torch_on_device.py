"""The device whose tensors the scenarios of torch_device.py exchange, and how these are told from the CPU's."""

import contextlib
import os

import torch
import torch.distributed as dist
from torch_inputs import input_of, same

import torch_late_device

DEVICE = None  # the torch.device
late = None  # the extension of the device "late"; None: another device


def choose(name):
    """Takes the device "late", or one of PyTorch's own. The backend for it."""
    global DEVICE, late
    backend = "gradcube"
    if name == "late":
        late = torch_late_device.load()
        name = torch_late_device.name()
        if not torch.__version__.startswith("1."):  # PyTorch knows no backend for it
            backend = f"cpu:gradcube,{name}:gradcube"
    elif os.environ.get("GRADCUBE_TEST_BACKEND"):
        backend = os.environ["GRADCUBE_TEST_BACKEND"]
    DEVICE = torch.device(name, 0)
    return backend


def there(tensor):
    return tensor.to(DEVICE)


def here(tensor):
    return tensor.cpu()


def both(call, *tensors, written=None):
    """Does it with tensors of the CPU and of the device, and compares all of them, or those `written`."""
    cpu = [one.clone() for one in tensors]
    device = [there(one) for one in tensors]
    call(*cpu)
    call(*device)
    for one, other in list(zip(cpu, device))[slice(*(written or (None,)))]:
        assert other.device.type == DEVICE.type
        same(here(other), one)


def mine(dtype=torch.float32, shape=(1009,), salt=0):
    return input_of(dist.get_rank(), dtype, shape, salt)


def zeros(count, shape, dtype=torch.float32):
    return [torch.zeros(shape, dtype=dtype) for _ in range(count)]


@contextlib.contextmanager
def busy(tensor):
    """The caller's stream has something to do, as long as the scope lasts; then it adds 1 to the tensor."""
    if late is None:
        torch.cuda._sleep(1_000_000_000)  # half a second
        tensor.add_(1)
        yield
        return
    latch = late.hold(tensor)
    late.add_later(tensor, 1)
    try:
        yield
    finally:
        latch.open()
