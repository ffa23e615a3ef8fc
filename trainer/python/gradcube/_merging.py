"""Which layers' gradients share an all-reduce (MG-WFBP): gradcube_merge_layers() of gradcube.h."""

import ctypes
import typing

from . import _library
from ._errors import error_of

POLICIES = ("wfbp", "synceasgd", "mgwfbp", "optimal")  # by their numbers in gradcube.h


class Layer(typing.NamedTuple):
    """Of a network: the bytes of its gradients, and the seconds of its part of the backward pass."""

    bytes: int
    backward_seconds: float


def number_of(policy):
    """Raises ValueError for a policy that there is not."""
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}: expected one of {', '.join(POLICIES)}")
    return POLICIES.index(policy)


def merge_layers(layers, alpha, beta, policy="optimal"):
    """The all-reduces of an iteration, in the order of sending: of each the layers, from the first one on.

    ``layers`` are (bytes, backward_seconds), from the network's first layer to its last. An all-reduce of M bytes
    takes ``alpha + beta * M`` seconds. Policies are wfbp (each layer alone), synceasgd (all in one), mgwfbp (MG-WFBP's
    Algorithm 1) and optimal. Equal arguments give equal messages on all trainers.

    >>> gradcube.merge_layers([(1000000, 0.002), (1000000, 0.001), (1000000, 0.001)], 0.002, 1e-9)
    [[2], [0, 1]]
    """
    library = _library.library()
    given = (_library.Layer * len(layers))(*((int(layer[0]), float(layer[1])) for layer in layers))
    numbers = (ctypes.c_size_t * len(layers))()
    code = library.gradcube_merge_layers(number_of(policy), alpha, beta, given, len(layers), numbers)
    if code != 0:
        raise error_of(code, library.gradcube_last_error(None).decode())
    messages = [[] for _ in range(max(numbers) + 1)]
    for layer, number in enumerate(numbers):
        messages[number].append(layer)
    return messages
