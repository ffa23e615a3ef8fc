"""Trains a small network with a framework of PyPI's: `torch_frameworks.py FRAMEWORK BACKEND`, which torchrun starts.

All is as the framework's own documentation has it; the backend's name is all that names Gradcube. Rank 0 says, in a line
of JSON, the loss over all the data in the end and the median time of a step. Ray starts its ranks itself: `ray` is a
program without torchrun.
"""

import json
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time
from datetime import timedelta

import sklearn.datasets
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

BATCH, EPOCHS = 32, 4
RANK, SIZE = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 4))
WORDS, LENGTH = 61, 32  # of a language model's data


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


def sentences(count):
    """Of words that follow each other by a rule, but for some."""
    numbers = torch.Generator().manual_seed(2)
    first = torch.randint(WORDS, (count, 1), generator=numbers)
    noise = torch.rand((count, LENGTH), generator=numbers) < 0.1
    return (first + 7 * torch.arange(LENGTH) + noise) % WORDS


def gpt(backend):
    """FSDP2 as torchtitan and nanoGPT's followers use it: replicas of shards, bfloat16, clipped norms."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    dist.init_process_group(backend)
    torch.manual_seed(1)
    blocks = [nn.TransformerEncoderLayer(64, 4, 256, dropout=0, batch_first=True, norm_first=True) for _ in range(2)]
    model = nn.ModuleList([nn.Embedding(WORDS, 64), *blocks, nn.Linear(64, WORDS)])
    mesh = init_device_mesh("cpu", (2, SIZE // 2), mesh_dim_names=("replicate", "shard"))
    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for part in model:
        fully_shard(part, mesh=mesh, mp_policy=precision)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH - 1, dtype=torch.bfloat16)

    def loss_over(words):
        states = model[0](words[:, :-1])
        for block in model[1:-1]:
            states = block(states, src_mask=mask, is_causal=True)
        return cross_entropy(model[-1](states).float().flatten(0, 1), words[:, 1:].flatten())

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for batch in sentences(256 * 4).split(8 * SIZE):
        loss_over(batch[RANK::SIZE]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        loss = loss_over(sentences(64)[RANK::SIZE])
    dist.all_reduce(loss)
    return float(loss) / SIZE


def transformers(backend):
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    dist.init_process_group(backend)  # as for Accelerate, whose groups its trainer uses
    torch.manual_seed(1)
    plain = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
    config = GPT2Config(vocab_size=WORDS, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, **plain)
    data = [{"input_ids": words, "labels": words} for words in sentences(512)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            use_cpu=True,
            per_device_train_batch_size=8,
            num_train_epochs=EPOCHS,
            learning_rate=3e-3,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=data, eval_dataset=data)
        trainer.train()
        return trainer.evaluate()["eval_loss"]


def deepspeed(backend, stage=1):
    import deepspeed

    deepspeed.init_distributed(dist_backend=backend)
    model = network()
    settings = {
        "train_micro_batch_size_per_gpu": BATCH,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
    for _ in range(EPOCHS):
        for images, labels in own_loader():
            engine.backward(cross_entropy(engine(images), labels))
            engine.step()
    return loss_of(engine)


def deepspeed_2(backend):
    return deepspeed(backend, stage=2)


def ray(backend):
    """The ranks are processes of Ray's, which makes their group before this program says anything in them."""
    import ray
    from ray.train import Checkpoint, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model

    def each():
        torch.set_num_threads(1)
        steps = observed_steps()
        model = prepare_model(network())
        loader = prepare_data_loader(DataLoader(TensorDataset(*digits()), BATCH, drop_last=True))
        result = outcome(train(model, sgd(model), loader), steps, backend)
        with tempfile.TemporaryDirectory() as folder:
            torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
            is_first = ray.train.get_context().get_world_rank() == 0
            ray.train.report(result, checkpoint=Checkpoint.from_directory(folder) if is_first else None)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Ray's daemons end a little later
        ray.init(num_cpus=SIZE, include_dashboard=False, log_to_driver=False, _temp_dir=os.path.join(folder, "ray"))
        scaling, run = ScalingConfig(num_workers=SIZE), RunConfig(storage_path=folder)
        done = TorchTrainer(each, scaling_config=scaling, run_config=run, torch_config=TorchConfig(backend)).fit()
        ray.shutdown()
    return done.metrics


def replica(backend, number, model, optimizer):
    """The manager of a replica of one rank, as it may go and come back. $TORCHFT_LIGHTHOUSE names their lighthouse."""
    from torchft import Manager, ProcessGroupGloo
    from torchft.process_group import ProcessGroupWrapper

    class ProcessGroupGradcube(ProcessGroupWrapper):  # as in docs/pytorch.md
        def _create_pg(self, store, rank, world_size):
            import gradcube.torch

            options = dist.distributed_c10d._DistributedBackendOptions()
            options.store, options.group_rank, options.group_size = store, rank, world_size
            options.group_id, options.timeout = "torchft", self._timeout
            group, kind = dist.ProcessGroup(store, rank, world_size), dist.ProcessGroup.BackendType.CUSTOM
            group._set_default_backend(kind)
            group._register_backend(torch.device("cpu"), kind, gradcube.torch.create(options, None))
            return group

    def load(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    host = "127.0.0.1"
    store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg={"gloo": ProcessGroupGloo, "gradcube": ProcessGroupGradcube}[backend](timedelta(seconds=30)),
        load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict()},
        min_replica_size=2,
        init_sync=False,  # all weights are those of the seed
        rank=0,
        world_size=1,
        store_addr=host,
        store_port=store.port,
        replica_id=f"replica_{number}",
        hostname=host,
    )
    manager.store = store  # which ends with its last reference
    return manager


def torchft(backend):
    from torchft import DistributedDataParallel, Optimizer

    model = network()
    optimizer = sgd(model)
    manager = replica(backend, RANK, model, optimizer)
    loss = train(DistributedDataParallel(manager, model), Optimizer(manager, optimizer), own_loader())
    manager.shutdown()
    return loss


def torchft_death(backend):
    """The fourth replica kills itself, and the fifth, which has waited for that, comes in its place."""
    from torchft import DistributedDataParallel, Optimizer

    killed = pathlib.Path(os.environ["GRADCUBE_RUN"], f"killed-{backend}")
    while RANK == 4 and not killed.exists():
        time.sleep(0.1)
    model = network()
    optimizer = sgd(model)
    manager = replica(backend, min(RANK, 3), model, optimizer)
    net, managed, together = DistributedDataParallel(manager, model), Optimizer(manager, optimizer), []
    images, labels = digits()
    while manager.current_step() < 150:
        if RANK == 3 and manager.current_step() == 30:
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        managed.zero_grad()
        cross_entropy(net(images[RANK::8]), labels[RANK::8]).backward()
        managed.step()
        together.append(manager.num_participants())
        time.sleep(0.05)
    manager.shutdown()
    print(json.dumps({"together": together}), flush=True)
    return float(sum(parameter.double().sum() for parameter in model.parameters()))


def observed_steps():
    """When steps of optimizers end, from now on."""
    steps = []
    register_optimizer_step_post_hook(lambda *_: steps.append(time.perf_counter()))
    return steps


def outcome(loss, steps, backend):
    if dist.is_initialized():
        used = dist.get_backend()
        assert used.split(":")[-1] == backend, used
    times = [after - before for before, after in zip(steps, steps[1:])]
    return {"loss": loss, "step": statistics.median(times), "steps": len(steps)}


def main():
    framework, backend = sys.argv[1:]
    if framework == "ray":
        print(json.dumps(ray(backend)), flush=True)
        return
    if not hasattr(dist.Backend, "GRADCUBE"):  # it is not installed by pip, and lies in $PYTHONPATH
        import gradcube.torch  # noqa: F401
    torch.set_num_threads(1)
    steps = observed_steps()
    result = outcome(globals()[framework](backend), steps, backend)
    if RANK == 0 or framework == "torchft_death":
        print(json.dumps(result), flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
