"""Measures when each layer's gradients are ready in a backward pass, on this host's CPU.

    /usr/bin/python3 scripts/measure_backward.py

writes layers and times into the files of trainer/python/gradcube/model/networks/, of which `gradcube model training`
scales the times to a GPU. `--layers` prints each layer's name and number of parameters instead, and measures nothing; a
test compares them with the files. It needs Debian's python3-torch.

A layer's time is from the moment at which the layer after it had its gradients to the moment at which it
has its own: what lies between them without parameters, such as activations and pooling, counts to it. Each
time is the median over the iterations. The layers must be ready in the order of the table, from its end, in
every iteration.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import time

import torch
from torch import nn

NETWORK_FILES = pathlib.Path(__file__).resolve().parents[1] / "trainer" / "python" / "gradcube" / "model" / "networks"
# Name: the samples of a batch, and the iterations, of which one more is made first. The batches are those of the
# papers: MG-WFBP's for GoogleNet and ResNet-50, and BML's smallest for the others.
NETWORKS = {"resnet50": (32, 4), "googlenet": (64, 4), "vgg19": (16, 3), "lenet5": (128, 30)}


class Layers:
    """Makes layers with parameters, in the order of the table, and knows their names."""

    def __init__(self, device="cpu"):
        self.device = device
        self.named = []

    def add(self, name, module):
        self.named.append((name, module))
        return module

    def conv(self, name, inputs, outputs, kernel, stride=1, bias=True):
        return self.add(name, nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=bias, device=self.device))

    def normed(self, name, inputs, outputs, kernel, stride=1):
        """A convolution and its batch normalization, as in ResNet."""
        conv = self.conv(name, inputs, outputs, kernel, stride, bias=False)
        return nn.Sequential(conv, self.add(name + "_bn", nn.BatchNorm2d(outputs, device=self.device)))

    def linear(self, name, inputs, outputs):
        return self.add(name, nn.Linear(inputs, outputs, device=self.device))


class Bottleneck(nn.Module):
    def __init__(self, layers, name, inputs, width, stride, projects):
        super().__init__()
        self.shortcut = layers.normed(name + "_branch1", inputs, 4 * width, 1, stride) if projects else nn.Identity()
        self.a = layers.normed(name + "_branch2a", inputs, width, 1, stride)
        self.b = layers.normed(name + "_branch2b", width, width, 3)
        self.c = layers.normed(name + "_branch2c", width, 4 * width, 1)

    def forward(self, x):
        shortcut = self.shortcut(x)
        y = torch.relu(self.b(torch.relu(self.a(x))))
        return torch.relu(self.c(y) + shortcut)


def resnet50(layers):
    parts = [layers.normed("conv1", 3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], start=2):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 2 else 1
            parts.append(Bottleneck(layers, f"res{stage}{'abcdef'[block]}", inputs, width, stride, block == 0))
            inputs = 4 * width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), layers.linear("fc1000", inputs, 1000))


class Inception(nn.Module):
    def __init__(self, layers, name, inputs, sizes):
        super().__init__()
        one, reduce3, three, reduce5, five, pool = sizes
        name = f"inception_{name}/"
        self.one = layers.conv(name + "1x1", inputs, one, 1)
        self.reduce3 = layers.conv(name + "3x3_reduce", inputs, reduce3, 1)
        self.three = layers.conv(name + "3x3", reduce3, three, 3)
        self.reduce5 = layers.conv(name + "5x5_reduce", inputs, reduce5, 1)
        self.five = layers.conv(name + "5x5", reduce5, five, 5)
        self.pool = layers.conv(name + "pool_proj", inputs, pool, 1)

    def forward(self, x):
        one = torch.relu(self.one(x))
        three = torch.relu(self.three(torch.relu(self.reduce3(x))))
        five = torch.relu(self.five(torch.relu(self.reduce5(x))))
        pool = torch.relu(self.pool(nn.functional.max_pool2d(x, 3, 1, 1)))
        return torch.cat([one, three, five, pool], 1)


class AuxiliaryHead(nn.Module):
    """Passes its input on, and keeps the logits that it makes of it."""

    def __init__(self, layers, name, inputs):
        super().__init__()
        self.logits = None
        self.conv = layers.conv(name + "/conv", inputs, 128, 1)
        self.fc = layers.linear(name + "/fc", 128 * 4 * 4, 1024)
        self.classifier = layers.linear(name + "/classifier", 1024, 1000)

    def forward(self, x):
        y = torch.relu(self.conv(nn.functional.avg_pool2d(x, 5, 3)))
        y = torch.relu(self.fc(torch.flatten(y, 1)))
        self.logits = self.classifier(nn.functional.dropout(y, 0.7))
        return x


INCEPTIONS = {
    "3a": (192, (64, 96, 128, 16, 32, 32)),
    "3b": (256, (128, 128, 192, 32, 96, 64)),
    "4a": (480, (192, 96, 208, 16, 48, 64)),
    "4b": (512, (160, 112, 224, 24, 64, 64)),
    "4c": (512, (128, 128, 256, 24, 64, 64)),
    "4d": (512, (112, 144, 288, 32, 64, 64)),
    "4e": (528, (256, 160, 320, 32, 128, 128)),
    "5a": (832, (256, 160, 320, 32, 128, 128)),
    "5b": (832, (384, 192, 384, 48, 128, 128)),
}


def googlenet(layers):
    def pool():
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    norm = nn.LocalResponseNorm(5)
    parts = [layers.conv("conv1", 3, 64, 7, 2), nn.ReLU(), pool(), norm]
    parts += [layers.conv("conv2/3x3_reduce", 64, 64, 1), nn.ReLU()]
    parts += [layers.conv("conv2/3x3", 64, 192, 3), nn.ReLU(), norm, pool()]
    for name, (inputs, sizes) in INCEPTIONS.items():
        parts.append(Inception(layers, name, inputs, sizes))
        if name in ("3b", "4e"):
            parts.append(pool())
        if name in ("4a", "4d"):
            head = "loss1" if name == "4a" else "loss2"
            parts.append(AuxiliaryHead(layers, head, 512 if name == "4a" else 528))
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.4)]
    return nn.Sequential(*parts, layers.linear("loss3/classifier", 1024, 1000))


def vgg19(layers):
    parts, inputs = [], 3
    for stage, (convs, width) in enumerate([(2, 64), (2, 128), (4, 256), (4, 512), (4, 512)], start=1):
        for number in range(1, convs + 1):
            parts += [layers.conv(f"conv{stage}_{number}", inputs, width, 3), nn.ReLU()]
            inputs = width
        parts.append(nn.MaxPool2d(2, 2))
    parts += [nn.Flatten(), layers.linear("fc6", 512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(0.5)]
    parts += [layers.linear("fc7", 4096, 4096), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*parts, layers.linear("fc8", 4096, 1000))


def lenet5(layers):
    parts = [layers.conv("conv1", 1, 32, 5), nn.ReLU(), nn.MaxPool2d(2, 2)]
    parts += [layers.conv("conv2", 32, 64, 5), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()]
    parts += [layers.linear("fc1", 7 * 7 * 64, 1024), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*parts, layers.linear("fc2", 1024, 10))


MAKERS = {"resnet50": resnet50, "googlenet": googlenet, "vgg19": vgg19, "lenet5": lenet5}


def layer_table():
    table = {}
    for network, make in MAKERS.items():
        layers = Layers(device="meta")  # shapes without numbers
        make(layers)
        table[network] = [
            {"name": name, "parameters": sum(each.numel() for each in module.parameters())}
            for name, module in layers.named
        ]
    return table


def measure(network):
    """The seconds of the forward pass, and of each layer in the backward pass, by name."""
    batch, iterations = NETWORKS[network]
    torch.manual_seed(1)
    layers = Layers()
    model = MAKERS[network](layers)
    ready = []
    for name, module in layers.named:
        module.weight.register_hook(lambda _, name=name: ready.append((name, time.perf_counter())))
    inputs = torch.randn(batch, 1, 28, 28) if network == "lenet5" else torch.randn(batch, 3, 224, 224)
    heads = [module for module in model.modules() if isinstance(module, AuxiliaryHead)]
    forward, backward = [], {name: [] for name, _ in layers.named}
    for iteration in range(iterations + 1):
        ready.clear()
        model.zero_grad(set_to_none=True)
        begin = time.perf_counter()
        logits = model(inputs)
        targets = torch.arange(batch) % logits.shape[1]
        loss = nn.functional.cross_entropy(logits, targets)
        loss = loss + sum(0.3 * nn.functional.cross_entropy(head.logits, targets) for head in heads)
        before = time.perf_counter()
        forward.append(before - begin)
        loss.backward()
        order = [name for name, _ in ready]
        if order != [name for name, _ in reversed(layers.named)]:
            sys.exit(f"{network}: the layers were ready in another order: {' '.join(order)}")
        for name, now in ready:
            backward[name].append(now - before)
            before = now
        print(f"{network}: iteration {iteration} of {iterations}", file=sys.stderr)
    # The first iteration makes buffers, and does not count.
    return statistics.median(forward[1:]), {n: statistics.median(t[1:]) for n, t in backward.items()}


def cpu_name():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def write_network(network, forward, backward):
    """Keeps what the file says of the network's paper."""
    path = NETWORK_FILES / f"{network}.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    keys = [
        {
            "name": layer["name"],
            "elements": layer["parameters"],
            "dtype": "float32",
            "backward_microseconds": round(backward[layer["name"]] * 1e6, 1),
        }
        for layer in layer_table()[network]
    ]
    facts = {
        "title": known["title"],
        "paper": known["paper"],
        "measured": f"PyTorch {torch.__version__} on {torch.get_num_threads()} of {os.cpu_count()} cores, {cpu_name()}",
        "batch": NETWORKS[network][0],
        "forward_microseconds": round(forward * 1e6, 1),
    }
    lines = [f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in facts.items()]
    rows = ",\n".join(f"    {json.dumps(key)}" for key in keys)
    path.write_text("{\n" + "".join(lines) + f'  "keys": [\n{rows}\n  ]\n}}\n', encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", action="store_true", help="print layers and their parameters as JSON")
    if parser.parse_args().layers:
        print(json.dumps(layer_table()))
    else:
        for network in NETWORKS:
            write_network(network, *measure(network))


main()
