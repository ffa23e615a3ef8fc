"""Trains a small network with a framework of PyPI's: `torch_frameworks.py FRAMEWORK BACKEND`, which torchrun starts.

All is as the framework's own documentation has it; the backend's name is all that names Gradcube. Rank 0 says, in a line
of JSON, the loss over all images in the end and the median time of a step.
"""

import json
import os
import statistics
import sys
import time

import sklearn.datasets
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

BATCH, EPOCHS = 32, 4
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def digits():
    data = sklearn.datasets.load_digits()
    return torch.tensor(data.data, dtype=torch.float32) / 16, torch.tensor(data.target)


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def own_loader():
    data = TensorDataset(*digits())
    return DataLoader(data, BATCH, sampler=DistributedSampler(data, SIZE, RANK, shuffle=False), drop_last=True)


def loss_of(model):
    images, labels = digits()
    with torch.no_grad():
        return float(cross_entropy(model(images), labels))


def train(model, optimizer, loader, backward=torch.Tensor.backward):
    for _ in range(EPOCHS):
        for images, labels in loader:
            optimizer.zero_grad()
            backward(cross_entropy(model(images), labels))
            optimizer.step()
    return loss_of(model)


def ddp(backend):
    dist.init_process_group(backend)
    model = nn.parallel.DistributedDataParallel(network())
    return train(model, sgd(model), own_loader())


def fsdp2(backend):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group(backend)
    mesh, model = init_device_mesh("cpu", (SIZE,)), network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return train(model, sgd(model), own_loader())


def lightning(backend):
    import lightning
    from lightning.pytorch.strategies import DDPStrategy

    class Digits(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()

        def training_step(self, batch, _):
            return cross_entropy(self.network(batch[0]), batch[1])

        def configure_optimizers(self):
            return sgd(self)

    model = Digits()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=SIZE,
        strategy=DDPStrategy(process_group_backend=backend),
        max_epochs=EPOCHS,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, DataLoader(TensorDataset(*digits()), BATCH, drop_last=True))
    return loss_of(model.network)


def accelerate(backend):
    from accelerate import Accelerator

    dist.init_process_group(backend)  # on the CPU it would make a group of gloo's, and refuses all other names
    accelerator = Accelerator(cpu=True)
    model = network()
    loader = DataLoader(TensorDataset(*digits()), BATCH, drop_last=True)
    return train(*accelerator.prepare(model, sgd(model), loader), accelerator.backward)


def main():
    framework, backend = sys.argv[1:]
    if not hasattr(dist.Backend, "GRADCUBE"):  # it is not installed by pip, and lies in $PYTHONPATH
        import gradcube.torch  # noqa: F401
    torch.set_num_threads(1)
    steps = []
    register_optimizer_step_post_hook(lambda *_: steps.append(time.perf_counter()))
    loss = globals()[framework](backend)
    used = dist.get_backend()
    assert used.split(":")[-1] == backend, used
    if RANK == 0:
        times = [after - before for before, after in zip(steps, steps[1:])]
        print(json.dumps({"loss": loss, "step": statistics.median(times), "steps": len(steps)}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
