"""The model that tests of HubOptimizer train, its batches and its loss: the same of a seed on each trainer."""

import threading

import torch

DRAWING = threading.Lock()  # PyTorch's generator is of all threads


class Model(torch.nn.Module):
    """With a scalar, a parameter in two places, one that no loss has, one in another layout, and one that stays."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.first = torch.nn.Linear(20, 30)
        self.second = torch.nn.Linear(30, 30)
        self.third = torch.nn.Linear(30, 30)
        self.third.weight = self.second.weight
        self.scale = torch.nn.Parameter(torch.tensor(1.5))
        self.unused = torch.nn.Parameter(torch.ones(3))
        self.turned = torch.nn.Parameter(torch.randn(30, 7).t() / 20)
        self.frozen = torch.nn.Parameter(torch.rand(7, 2), requires_grad=False)
        self.to(dtype)

    def forward(self, data):
        hidden = self.third(torch.tanh(self.second(torch.tanh(self.first(data)))))
        return hidden @ self.turned.t() @ self.frozen * self.scale


def model_of(seed, dtype=torch.float32):
    with DRAWING:
        torch.manual_seed(seed)
        return Model(dtype)


def batch_of(rank, number, dtype=torch.float32):
    return torch.randn(8, 20, generator=torch.Generator().manual_seed(100 * rank + number)).to(dtype)


def loss_of(model, batch):
    return model(batch).float().pow(2).mean()


def values_of(model):
    return {name: one.detach().clone() for name, one in model.named_parameters()}
