"""The profile of a network for `gradcube model merge`: what an all-reduce costs, and each layer's gradients and time in
the backward pass."""

from .._merging import Layer
from .iteration import Iteration
from .json_file import JsonFile, items, number_field
from .mgwfbp import AllReduceCost
from .report import json_text

# So that no sum of times is infinite, and the sums of all layers' bytes are exact. The policies compare each layer with
# each.
_MOST_SECONDS = 1e9
_MOST_SECONDS_PER_BYTE = 1.0
_MOST_LAYERS = 10_000
_MOST_LAYER_BYTES = 10**12


def read_merge_profile(path):
    """From a file with

        {"alpha": seconds, "beta": seconds per byte, "forward_seconds": seconds,
         "layers": [{"bytes": 4000, "backward_seconds": 0.001}, ...]}

    alpha and beta are a and b of T(M) = a + bM, as `gradcube model fit` measures them. Times are 0 to 10^9 s, and beta
    is 0 to 1 s per byte. Layers go from the first to the last; there are 1 to 10,000. Each has a byte at least. The
    forward pass takes 0 where it is not given, and other fields are ignored. Raises a UsageError that names the file
    and the field.
    """
    file = JsonFile(
        "--profile",
        path,
        '{"alpha":seconds,"beta":seconds per byte,"forward_seconds":seconds,'
        '"layers":[{"bytes":..,"backward_seconds":..},...]}',
    )

    def seconds_of(content, name, where=""):
        seconds = number_field(content, name)
        if seconds is None or not 0 <= seconds <= _MOST_SECONDS:
            file.refuse(f'{where}"{name}" is no time in seconds, 0 to 10^9')
        return seconds

    def layer_of(content, number):
        where = f"layer {number}: "
        size = number_field(content, "bytes")
        if size is None or not 1 <= size <= _MOST_LAYER_BYTES or size != int(size):
            file.refuse(
                f'{where}"bytes" is no whole number, 1 to 10^12; a layer without gradients sends nothing: add its time '
                "to the layer before it"
            )
        return Layer(int(size), seconds_of(content, "backward_seconds", where))

    profile = file.content()
    if not isinstance(profile, dict):
        file.refuse("it is no profile")
    alpha = seconds_of(profile, "alpha")
    beta = number_field(profile, "beta")
    if beta is None or not 0 <= beta <= _MOST_SECONDS_PER_BYTE:
        file.refuse('"beta" is no time in seconds for a byte, 0 to 1')
    forward = seconds_of(profile, "forward_seconds") if "forward_seconds" in profile else 0.0
    layers = items(profile, "layers")
    if not layers:
        file.refuse('"layers" is no list with a layer')
    if len(layers) > _MOST_LAYERS:
        file.refuse(f'"layers" has {len(layers)} layers, but at most {_MOST_LAYERS} can be merged')
    read = [layer_of(layer, number) for number, layer in enumerate(layers, start=1)]
    return Iteration(AllReduceCost(alpha, beta), read, forward)


def merge_profile_text(iteration, names):
    """What read_merge_profile() reads as this iteration. The layers get the names, of which there are as many."""
    layers = [
        {"name": name, "bytes": layer.bytes, "backward_seconds": layer.backward_seconds}
        for name, layer in zip(names, iteration.layers)
    ]
    content = {"alpha": iteration.cost.a, "beta": iteration.cost.b, "forward_seconds": iteration.forward_seconds}
    return json_text({**content, "layers": layers}) + "\n"
