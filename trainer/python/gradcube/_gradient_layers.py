"""The gradients of a model's layers, side by side in one buffer: adjacent layers are one piece of memory.

A layer is a module with parameters of its own. Each layer begins at a multiple of 64 bytes, so that every message is
combined where it lies; what is between them is zero.
"""

import contextlib

import torch

from ._torch_groups import ours

_ALIGNMENT = 64  # bytes


def padded(elements, element_size):
    """The elements from the first of a piece to the first of the next one."""
    step = max(1, _ALIGNMENT // element_size)
    return -(-elements // step) * step


def shared_zeros(elements, dtype, group):
    """In memory that is shared with the daemon, if the group's backend is gradcube."""
    scope = contextlib.nullcontext()
    if ours(group) is not None:
        from . import torch as backend  # which imports this file

        scope = backend.shared_memory(group)
    with scope:
        return torch.zeros(elements, dtype=dtype)


class Layer:
    """``parameters``: with gradients, each in one layer of the model only."""

    def __init__(self, name, parameters):
        self.name = name
        self.parameters = parameters
        self.elements = sum(parameter.numel() for parameter in parameters)
        self.first = 0  # in the buffer, in elements
        self.end = 0  # the next layer's first


def layers_of(model, parameters):
    """In the order of model.named_modules(): the parameters of the model that are among the given ones.

    A parameter that several modules share belongs to the first of them, which the backward pass comes to last.
    Raises ValueError if one of the given ones is not the model's.
    """
    wanted = {id(parameter) for parameter in parameters}
    layers = []
    for name, module in model.named_modules():
        own = [parameter for parameter in module.parameters(recurse=False) if id(parameter) in wanted]
        own = list({id(parameter): parameter for parameter in own}.values())
        wanted -= {id(parameter) for parameter in own}
        if own:
            layers.append(Layer(name or type(module).__name__, own))
    if wanted:
        raise ValueError(f"{len(wanted)} of the optimizer's parameters are not the model's")
    return layers


class Gradients:
    """The buffer. The gradients of all parameters are views of it."""

    def __init__(self, layers, allocate):
        """``layers`` in their order in memory; ``allocate(elements, dtype)`` gives a tensor of zeros."""
        first = layers[0].parameters[0]
        for layer in layers:
            for parameter in layer.parameters:
                if parameter.dtype != first.dtype or parameter.device.type != "cpu":
                    raise ValueError(
                        f"parameters must be on the CPU and of one type, and {layer.name} has one of "
                        f"{parameter.dtype} on {parameter.device} where the first is {first.dtype}"
                    )
        elements = 0
        for layer in layers:
            layer.first = elements
            elements += padded(layer.elements, first.element_size())
            layer.end = elements
        self.layers = layers
        self.memory = allocate(elements, first.dtype)
        self._views = {}
        for layer in layers:
            place = layer.first
            for parameter in layer.parameters:
                view = self.memory[place : place + parameter.numel()].view_as(parameter)
                place += parameter.numel()
                self._views[id(parameter)] = view
                self.adopt(parameter)

    def adopt(self, parameter):
        """The parameter's gradient lies in the buffer, also if somebody has put another one in its place."""
        view = self._views[id(parameter)]
        if parameter.grad is view:
            return
        if parameter.grad is None:
            view.zero_()
        elif parameter.grad.data_ptr() != view.data_ptr():
            view.copy_(parameter.grad)
        parameter.grad = view

    def zero(self, but=()):
        """``but``: the ids of parameters whose gradients stay as they are."""
        for parameter in self.parameters(0, len(self.layers) - 1):
            if id(parameter) not in but:
                parameter.grad = self._views[id(parameter)]
                parameter.grad.zero_()

    def place_of(self, parameter):
        """The part of the buffer that is its gradient's."""
        return self._views[id(parameter)]

    def message(self, first, last):
        """The memory of the layers from one to another, by their places in memory, with all of their gradients."""
        for parameter in self.parameters(first, last):
            self.adopt(parameter)
        return self.memory_of(first, last)

    def hide(self, first, last):
        """Of these layers parameters have no gradient that could be read or written."""
        for parameter in self.parameters(first, last):
            parameter.grad = None

    def show(self, first, last):
        for parameter in self.parameters(first, last):
            parameter.grad = self._views[id(parameter)]

    def memory_of(self, first, last):
        return self.memory[self.layers[first].first : self.layers[last].end]

    def parameters(self, first, last):
        return [parameter for layer in self.layers[first : last + 1] for parameter in layer.parameters]

    def bytes_of(self, layer):
        return (layer.end - layer.first) * self.memory.element_size()
