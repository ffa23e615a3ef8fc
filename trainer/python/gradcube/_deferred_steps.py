"""An optimizer's step, taken for each message when the forward pass comes to its layers: priority="need".

Between step() and that moment a message is pending: its all-reduce may be on its way, its parameters are those of the
iteration before, and their gradients are None. The model's hooks ask for what a module needs before its forward();
then the message is waited for, its parameters are stepped with the options that the optimizer had at step(), and their
gradients are zero. All of it happens on the thread that runs the model.

The wrapped optimizer steps each parameter by itself, as all of PyTorch's do but LBFGS, which takes a closure anyway.
"""

import weakref


class _Pending:
    def __init__(self, gradients, work, first, last):
        self.gradients = gradients
        self.work = work
        self.parameters = gradients.parameters(first, last)
        self.memory = gradients.memory_of(first, last)


class DeferredSteps:
    """Of one optimizer and its model."""

    def __init__(self, optimizer, model):
        self._optimizer = optimizer
        self._options = []  # of the groups, at step()
        self._pending = {}  # by the ids of their parameters
        self._called = set()  # modules, by their ids
        self._needed_by = None  # ids of parameters, by the ids of modules
        self._model = weakref.ref(model)
        this = weakref.ref(self)

        def before_forward(module, _):
            if this() is not None:
                this()._before_forward(module)

        for module in model.modules():
            module.register_forward_pre_hook(before_forward)

    def begin(self, gradients, messages):
        """Instead of a step. ``messages``: of each its work, and its first and its last layer."""
        self.finish()
        if self._needed_by is None:
            self._see_who_needs_what()
        self._options = [self._without_parameters(group) for group in self._optimizer.param_groups]
        for message in messages:
            pending = _Pending(gradients, *message)
            for parameter in pending.parameters:
                parameter.grad = None
                self._pending[id(parameter)] = pending
        self._take_for(self._needed_by[None])

    def take(self, parameter):
        """The parameter's step, if it is pending, and those of its message. Raises what the all-reduce failed with."""
        pending = self._pending.get(id(parameter))
        if pending is None:
            return
        pending.work.wait()
        for one in pending.parameters:
            one.grad = pending.gradients.place_of(one)
            del self._pending[id(one)]
        self._step(pending.parameters)
        pending.memory.zero_()

    def finish(self):
        """All steps that are pending."""
        while self._pending:
            self.take(next(iter(self._pending.values())).parameters[0])

    def parameters(self):
        """The ids of those that are pending."""
        return self._pending.keys()

    def _before_forward(self, module):
        self._called.add(id(module))
        if self._pending:
            self._take_for(self._needed_by.get(id(module), ()))

    def _take_for(self, parameters):
        for parameter in parameters:
            if parameter in self._pending:
                self.take(self._pending[parameter].parameters[0])

    def _see_who_needs_what(self):
        """A module needs its own parameters, and those of modules in it that were not called so far.

        Of these it reads the parameters itself, as MultiheadAttention does with those of its projection. What no module
        that was called has in it, is needed by None: at once.
        """
        modules = dict(self._model().named_modules(remove_duplicate=False))
        self._needed_by = {None: []}
        for name, module in modules.items():
            own = [id(parameter) for parameter in module.parameters(recurse=False)]
            while name and id(modules[name]) not in self._called:
                name = name.rpartition(".")[0]
            reader = id(modules[name]) if id(modules[name]) in self._called else None
            for one in {id(module), reader}:
                self._needed_by.setdefault(one, []).extend(own)

    @staticmethod
    def _without_parameters(group):
        return {name: option for name, option in group.items() if name != "params"}

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
