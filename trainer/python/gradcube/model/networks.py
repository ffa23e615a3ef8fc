"""The networks whose training MG-WFBP and BML measured, layer by layer: the files in networks/, in which `gradcube perf
hub --network` reads the keys, too.

    googlenet  Szegedy et al. 2015, Table 1, with both auxiliary heads, which train along
    resnet50   He et al. 2016, Table 1
    vgg19      Simonyan and Zisserman 2015, Table 1, column E
    lenet5     what BML calls LeNet-5: 3.27 million parameters, 12.5 MB

A file is a hub's keys as `--keys` takes them, one for each layer with parameters, and beside them the paper and what
was measured on a CPU. Layers are in the order of the forward pass, and where branches lie beside each other, in the
order in which the network's first implementations list them. The backward pass has their gradients ready in the
opposite order. Activations, pooling and what else has no parameters sends nothing, so it is no layer here (MG-WFBP's
"learnable layers"). A convolution has a bias for each output unless it is normalized; the batch normalization behind
it, with a factor and an offset for each output, is a layer of its own: NAME_bn.

scripts/measure_backward.py makes the networks with PyTorch, and has written their keys and times. The times of a GPU
are others. What is taken from here is how the backward pass is divided among the layers, and how long the forward pass
is beside it (training).
"""

import functools
import json
import pathlib
import typing

NAMES = ("googlenet", "resnet50", "vgg19", "lenet5")
_FOLDER = pathlib.Path(__file__).parent / "networks"


class NetworkLayer(typing.NamedTuple):
    name: str
    parameters: int
    microseconds: float  # of its part of the backward pass, t_b^(l)

    @property
    def bytes(self):
        """The gradients are 32-bit floats (MG-WFBP, section V)."""
        return 4 * self.parameters


class Network(typing.NamedTuple):
    name: str  # "resnet50"
    title: str  # "ResNet-50"
    batch: int  # samples
    forward_microseconds: float  # t_f
    layers: tuple

    @property
    def parameters(self):
        return sum(layer.parameters for layer in self.layers)

    @property
    def cpu_seconds(self):
        """t_f + t_b"""
        total = self.forward_microseconds
        for layer in self.layers:
            total += layer.microseconds
        return total * 1e-6


@functools.lru_cache(maxsize=None)
def network(name):
    """Raises ValueError for a name that is none of NAMES."""
    if name not in NAMES:
        raise ValueError(f"there is no network {name}")
    content = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    layers = (NetworkLayer(key["name"], key["elements"], key["backward_microseconds"]) for key in content["keys"])
    return Network(name, content["title"], content["batch"], content["forward_microseconds"], tuple(layers))
