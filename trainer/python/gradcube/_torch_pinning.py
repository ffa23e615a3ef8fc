"""Pins memory that a device copies to and from, by what PyTorch gives of the device's runtime.

Only of pinned memory can a device copy while the host goes on. What PyTorch pins itself is memory of its own allocator's.
What trainers share with their daemon is registered with the runtime instead: PyTorch gives CUDA's call for that, and by
the same name ROCm's. With other devices copies work as well, but the host may wait for them.
"""

import contextlib
import sys

import torch

pinned = {}  # what is: the bytes by the address
_refusing = set()  # devices


def pin(device, address, size):
    """Whether it is pinned now. `device`: such as "cuda:0"."""
    runtime = _runtime(device)
    if runtime is None or device in _refusing:
        return False
    error = int(runtime.cudaHostRegister(address, size, 0))
    if error != 0:
        _refusing.add(device)
        print(
            f"gradcube: memory for copies of {device} cannot be pinned (error {error} of its runtime), so the host waits "
            "for them",
            file=sys.stderr,
            flush=True,
        )
        # PyTorch would take the error for that of the next kernel: it is raised, and over, with one that nobody needs.
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device=device)
        return False
    pinned[address] = size
    return True


def unpin(device, address):
    if pinned.pop(address, None) is not None:
        _runtime(device).cudaHostUnregister(address)


def _runtime(device):
    give = getattr(getattr(torch, device.partition(":")[0], None), "cudart", None)
    return give and give()
