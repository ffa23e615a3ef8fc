"""Tensors over the memory of arrays."""

import ctypes

import torch


def tensor_over(array, parameter):
    """Keeps the array's memory alive."""
    return torch.frombuffer(array, dtype=parameter.dtype).view(parameter.shape)


def tensor_at(array, parameter):
    """Over an array that cannot be written to, of which PyTorch has no notion. Does not keep its memory alive."""
    memory = (ctypes.c_uint8 * array.nbytes).from_address(array.ctypes.data)
    return torch.frombuffer(memory, dtype=parameter.dtype).view(parameter.shape)
