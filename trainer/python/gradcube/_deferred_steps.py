"""An optimizer's step, taken for each message when its parameters are needed next: priority="need".

Between step() and that moment a message is pending: its all-reduce may be on its way, its parameters are those of the
iteration before, and their gradients are None. A parameter is needed when a module that holds it is called, and when it
is read as a module's attribute or through Module.parameters(), state_dict() and the like. Then the message is waited
for, its parameters are stepped with the options that the optimizer had at step(), and their gradients are zero. All of
it happens on the thread that needs the parameter.
"""

import collections

import torch


class _Pending:
    def __init__(self, gradients, work, first, last):
        self.gradients = gradients
        self.work = work
        self.parameters = gradients.parameters(first, last)
        self.memory = gradients.memory_of(first, last)


class _WatchedParameters(collections.OrderedDict):
    """In the place of Module._parameters: who reads one gets it stepped. Copies and pickles are plain."""

    def watch(self, steps):
        self.__dict__.setdefault("steps", []).append(steps)
        return self

    def _take_all(self):
        for steps in self.__dict__.get("steps", ()):
            if steps.are_pending():
                for parameter in super().values():
                    steps.take(parameter)

    def __getitem__(self, name):
        parameter = super().__getitem__(name)
        for steps in self.__dict__.get("steps", ()):
            steps.take(parameter)
        return parameter

    def get(self, name, default=None):
        return self[name] if name in self else default

    def items(self):
        self._take_all()
        return super().items()

    def values(self):
        self._take_all()
        return super().values()

    def copy(self):
        return collections.OrderedDict(self.items())

    def __reduce__(self):
        return collections.OrderedDict, (list(self.items()),)


def _as_it_is(option):
    """An option of an optimizer that nobody changes: a rate may be a tensor, and momenta a tuple of some."""
    if isinstance(option, torch.Tensor):
        return option.detach().clone()
    return tuple(map(_as_it_is, option)) if type(option) is tuple else option


def check_optimizer(optimizer):
    """It must step each parameter by itself, and keep nothing but state[parameter]."""
    kind = type(optimizer)
    if not kind.step.__module__.startswith("torch.optim."):
        raise ValueError(
            f'priority="need" steps parameters in parts, and {kind.__name__} may keep more than the state of each: '
            "expected an optimizer of torch.optim"
        )


class DeferredSteps:
    """Of one optimizer and its model. It lives as long as the model's modules do."""

    def __init__(self, optimizer, model, parameters):
        check_optimizer(optimizer)
        self._optimizer = optimizer
        self._options = []  # of the groups, at step()
        self._pending = {}  # by the ids of their parameters
        self._is_broken = False  # a step was cut short
        wanted = {id(parameter) for parameter in parameters}
        seen = set()
        for module in model.modules():
            held = {id(one) for one in module.parameters(recurse=False)} & wanted
            if held and not isinstance(module, torch.jit.ScriptModule):
                seen |= held
                self._watch(module)
        # Of scripted modules, whose calls and reads nobody sees.
        self._unseen = [parameter for parameter in parameters if id(parameter) not in seen]

    def begin(self, gradients, messages):
        """Instead of a step. ``messages``: of each its work, and its first and its last layer."""
        self.finish()
        self._is_broken = True  # while some messages are pending and others are not yet
        self._options = [self._without_parameters(group) for group in self._optimizer.param_groups]
        for message in messages:
            pending = _Pending(gradients, *message)
            for parameter in pending.parameters:
                parameter.grad = None
                self._pending[id(parameter)] = pending
        self._is_broken = False
        for parameter in self._unseen:
            self.take(parameter)

    def take(self, parameter):
        """The parameter's step, if it is pending, and those of its message. Raises what the all-reduce failed with."""
        self._require_whole()
        pending = self._pending.get(id(parameter))
        if pending is None:
            return
        pending.work.wait()
        try:
            for one in pending.parameters:
                one.grad = pending.gradients.place_of(one)
                del self._pending[id(one)]
            self._step(pending.parameters)
            pending.memory.zero_()
        except BaseException:
            self._is_broken = True
            raise

    def finish(self):
        """All steps that are pending."""
        self._require_whole()
        while self._pending:
            self.take(next(iter(self._pending.values())).parameters[0])

    def are_pending(self):
        """Or were cut short: whoever takes one then is told so."""
        return self._is_broken or bool(self._pending)

    def parameters(self):
        """The ids of those that are pending."""
        return self._pending.keys()

    def _watch(self, module):
        held = module.__dict__["_parameters"]
        if not isinstance(held, _WatchedParameters):
            held = module.__dict__["_parameters"] = _WatchedParameters(held)
        held.watch(self)

        # Some modules keep their parameters in a list of their own, too, as the recurrent ones do.
        def before_forward(called, _):
            if self.are_pending():
                for parameter in called.parameters(recurse=False):
                    self.take(parameter)

        module.register_forward_pre_hook(before_forward)

    def _require_whole(self):
        if self._is_broken:
            raise RuntimeError(
                "a step was interrupted, so this model's parameters are of no step: make another model, and an optimizer"
            )

    @staticmethod
    def _without_parameters(group):
        return {name: _as_it_is(option) for name, option in group.items() if name != "params"}

    def _step(self, parameters):
        """Of these alone, with the options of then."""
        chosen = {id(parameter) for parameter in parameters}
        groups = self._optimizer.param_groups
        now = [dict(group) for group in groups]
        try:
            for group, options in zip(groups, self._options):
                group.update(options)
                group["params"] = [one for one in group["params"] if id(one) in chosen]
            self._optimizer.step()
        finally:
            for group, kept in zip(groups, now):
                group.update(kept)
