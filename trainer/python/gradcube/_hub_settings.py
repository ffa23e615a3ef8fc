"""What HubOptimizer is given: groups of parameters with names, and the settings of its optimizers."""

import numpy
import torch

from ._errors import InvalidError

_STEPS = {"lr": 0.01, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "weight_decay": 0.0, "clip": None}
_MOMENTS = {"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "clip": None}
# Of PyTorch's optimizers, and more than how they compute: a group that has one may not be for a hub.
_OTHERS = ("maximize", "amsgrad", "differentiable", "decoupled_weight_decay")
_DEFAULTS = {
    "sgd": _STEPS,
    "momentum": {**_STEPS, "momentum": 0.9},
    "nesterov": {**_STEPS, "momentum": 0.9, "nesterov": True},
    "adam": _MOMENTS,
    "adamw": {**_MOMENTS, "weight_decay": 0.01},
}


def with_names(params):
    """Groups of parameters, and the parameters' names by their ids: of one that is twice in a group the first."""
    groups = [dict(group) if isinstance(group, dict) else group for group in params]
    if not groups or not isinstance(groups[0], dict):
        groups = [{"params": groups}]
    named, unnamed = {}, 0
    for group in groups:
        ones = [group["params"]] if isinstance(group["params"], torch.Tensor) else list(group["params"])
        group["params"], earlier = [], set(named)
        for one in ones:
            name, parameter = one if isinstance(one, tuple) else (None, one)
            if id(parameter) in earlier:
                raise InvalidError(f"parameter {named[id(parameter)]!r:.64} is in two groups: expected it in one")
            if id(parameter) in named:
                continue
            if name is None:
                name, unnamed = f"{unnamed:04}", unnamed + 1
            named[id(parameter)] = name
            group["params"].append(parameter)
    return groups, named


def settings_of(optimizer, given):
    """Of a group, with the defaults."""
    if not isinstance(optimizer, str) or optimizer not in _DEFAULTS:
        raise InvalidError(f"unknown optimizer {optimizer!r:.64}: expected one of {', '.join(_DEFAULTS)}")
    settings = dict(_DEFAULTS[optimizer])
    for name, value in given.items():
        if name not in settings:
            raise InvalidError(f"{optimizer} has no setting {name!r:.64}: expected one of {', '.join(settings)}")
        settings[name] = value
    return settings


def period_of(checkpoint, every):
    if every is None:
        return None
    if checkpoint is None:
        raise InvalidError("checkpoint_every without a path: give one as `checkpoint`")
    if not isinstance(every, int) or every < 1:
        raise InvalidError(f"invalid checkpoint_every {every!r:.64}: expected a number of steps, 1 or more")
    return every


def number_of(name, value):
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # the last of PyTorch
        raise InvalidError(f"invalid {name} {value!r:.64}: expected a number") from None


def _is_set(value):
    try:
        return bool(value)
    except (RuntimeError, ValueError):  # of PyTorch's and NumPy's vectors
        return True


def without_rate(optimizer, group):
    """A group's settings for the hub. Other names are the program's own, but for those of settings that a hub lacks."""
    known = _DEFAULTS[optimizer]
    for name in (*_STEPS, *_MOMENTS, *_OTHERS):
        is_meant = name == "decoupled_weight_decay" and optimizer == "adamw"
        if name not in known and not is_meant and _is_set(group.get(name)):
            raise InvalidError(f"a parameter group has {name} {group[name]!r:.64}, and {optimizer} of a hub has none")
    return {name: _unchanging(name, group[name]) for name in known if name in group and name != "lr"}


def optimizer_words(optimizer, settings):
    """The kind of optimizer as a hub has it, and its settings as it writes them: "momentum", {"lr": "0.1", ...}."""
    settings = dict(settings)
    kind = optimizer
    if "betas" in settings:
        settings["beta1"], settings["beta2"] = settings.pop("betas")
    elif settings.pop("nesterov"):
        kind = "nesterov"
        if not settings["momentum"] or settings.pop("dampening"):
            raise InvalidError("nesterov takes a momentum and no dampening")
    elif settings["momentum"]:
        kind = "momentum"
    else:
        kind = "sgd"
        del settings["momentum"], settings["dampening"]
    if settings["clip"] is None:
        settings["clip"] = float("inf")
    return kind, {name.replace("_", "-"): repr(number_of(name, value)) for name, value in settings.items()}


def optimizer_text(optimizer, groups, names):
    """Of a hub whose keys have the settings of their groups: "sgd:lr=0.1,weight-decay=0.1;fc.bias:weight-decay=0.0".

    ``names``: of each group's keys. The first group's settings are those of the hub.
    """
    kind, words = optimizer_words(optimizer, groups[0])
    parts = [f"{kind}:{','.join('='.join(word) for word in words.items())}"]
    for group, its_names in zip(groups[1:], names[1:]):
        own_kind, own = optimizer_words(optimizer, group)
        if own_kind != kind:
            raise InvalidError(f"a parameter group is for {own_kind} where the first is for {kind}: expected one for all")
        differing = ",".join(f"{name}={value}" for name, value in own.items() if value != words[name])
        for name in its_names if differing else ():
            if ";" in name or "*" in name:
                raise InvalidError(f"parameter {name!r:.64} has settings of its own: its name may have no ; and no *")
            parts.append(f"{name}:{differing}")
    return ";".join(parts)


def _unchanging(name, value):
    """Also where the program changes a tensor, or a list, in place."""
    if isinstance(value, (list, tuple)):
        return tuple(_unchanging(name, one) for one in value)
    return number_of(name, value) if isinstance(value, (torch.Tensor, numpy.ndarray)) else value
