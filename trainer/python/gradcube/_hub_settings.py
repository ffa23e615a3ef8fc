"""What HubOptimizer is given: groups of parameters with names, and the settings of its optimizers."""

import torch

from ._errors import InvalidError

_STEPS = {"lr": 0.01, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "weight_decay": 0.0, "clip": None}
_MOMENTS = {"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "clip": None}
_DEFAULTS = {
    "sgd": _STEPS,
    "momentum": {**_STEPS, "momentum": 0.9},
    "nesterov": {**_STEPS, "momentum": 0.9, "nesterov": True},
    "adam": _MOMENTS,
    "adamw": {**_MOMENTS, "weight_decay": 0.01},
}


def with_names(params):
    """Groups of parameters, and the parameters' names by their ids: of a parameter that is there twice the first."""
    groups = [dict(group) if isinstance(group, dict) else group for group in params]
    if not groups or not isinstance(groups[0], dict):
        groups = [{"params": groups}]
    named, unnamed = {}, 0
    for group in groups:
        ones = [group["params"]] if isinstance(group["params"], torch.Tensor) else list(group["params"])
        group["params"] = []
        for one in ones:
            name, parameter = one if isinstance(one, tuple) else (None, one)
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
    except (TypeError, ValueError):
        raise InvalidError(f"invalid {name} {value!r:.64}: expected a number") from None


def without_rate(group):
    named = {name: value for name, value in group.items() if name in {**_STEPS, **_MOMENTS} and name != "lr"}
    return {name: unchanging(value) for name, value in named.items()}


def unchanging(value):
    return tuple(value) if isinstance(value, (list, tuple)) else value
