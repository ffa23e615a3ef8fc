"""MergedGradientOptimizer: wait-free backpropagation with merged gradients (MG-WFBP), for any optimizer of PyTorch."""

import contextlib
import functools
import time
import weakref

import torch
import torch.distributed as dist

from ._deferred_steps import DeferredSteps
from ._gradient_layers import Gradients, layers_of, shared_zeros
from ._merge_planner import MergePlanner
from ._progress import Observer, Reported
from ._torch_groups import Lanes


class MergedGradientOptimizer(Reported, torch.optim.Optimizer):
    """An optimizer whose gradients are averaged over the ranks of a process group while the backward pass goes on.

        optimizer = MergedGradientOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
        for images, labels in loader:
            optimizer.zero_grad()
            loss(model(images), labels).backward()
            optimizer.step()

    It takes DistributedDataParallel's place: wrap the optimizer, not the model. The model's parameters and buffers
    begin as those of rank 0. The gradients of adjacent layers share an all-reduce as the policy has it
    (docs/mg-wfbp.md): "optimal", "mgwfbp", "wfbp" (each layer alone) or "synceasgd" (all in one). The first two go by
    the times of layers, which are measured from the second iteration on; until they are known, each layer travels
    alone. They are looked at again every 50 iterations, and if they have drifted by more than a tenth, messages are
    planned anew. ``progress`` tells how it goes.

    ``priority`` "ready": step() waits until all gradients are averages. "need": it returns at once, and the next
    forward pass, or whoever reads a parameter, waits for that parameter's message and takes its step there. A group
    with several lanes (Options) then serves those messages first that the forward pass needs first. step() uses
    gradients up. See docs/mg-wfbp.md for what it asks of a training loop.

    ``costs`` is (alpha, beta): an all-reduce of M bytes takes alpha + beta * M seconds. None: measured now, and again
    every 1000 iterations.
    ``group``: a process group of any backend; None: the default one. Over "gradcube" nothing is copied.

    When backward() returns, gradients are averages, and may be clipped or logged. Where some layer had no part in the
    loss, and by need, they are so after synchronize() only. Those that are on their way are None.

    All ranks construct it alike, and call step() as often. Gradients live in one buffer, so set_to_none of zero_grad()
    is ignored: parameters that had no part in the loss have gradients of zero. Every backward pass but the last before
    step() belongs into no_sync(). Parameters must be on the CPU and of one type.
    """

    def __init__(self, optimizer, model, policy="optimal", costs=None, group=None, priority="ready"):
        if priority not in ("ready", "need"):
            raise ValueError(f"unknown priority {priority!r:.64}: expected ready or need")
        self._planner = MergePlanner(policy, group)
        self._optimizer = optimizer
        self._group = group
        self._allocate = functools.partial(shared_zeros, group=group)
        self._size = dist.get_world_size(group)
        self._lanes = Lanes(group)
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError("LBFGS evaluates the loss in its steps: expected an optimizer that takes no closure")
        given = [one for part in optimizer.param_groups for one in part["params"]]
        parameters = [one for one in given if one.requires_grad]
        self._given = {id(one) for one in given}
        self._frozen = [one for one in given if not one.requires_grad]
        if not parameters:
            raise ValueError("the optimizer has no parameter with a gradient")
        self._deferred = DeferredSteps(optimizer, model, parameters) if priority == "need" else None
        self._synchronizes = True
        self._is_first = True  # of the iterations
        self._is_cut = False  # a step was taken, in part or whole, and the iteration was not brought to its end
        self._observer = Observer(group)
        self._arrange(layers_of(model, parameters)[::-1])
        self._share(model)
        self._planner.find_costs(costs, self._allocate, sum(self._planner.sizes))
        self._watch(model)

    # What a user may ask.

    @property
    def messages(self):
        """The names of the layers of each all-reduce, in the order of sending."""
        names = [layer.name for layer in self._gradients.layers]
        return [names[first : last + 1] for first, last in self._planner.messages]

    @contextlib.contextmanager
    def no_sync(self):
        """Backward passes in this scope add to the gradients, and send nothing."""
        before, self._synchronizes = self._synchronizes, False
        try:
            yield
        finally:
            self._synchronizes = before

    # What an optimizer has.

    def synchronize(self):
        """Waits until all gradients are averages: after the backward pass, before step().

        What has failed raises, and raises again at the next call: there is no step with a part of the averages.
        """
        self._require_whole()
        self._send_rest()
        self._require_all_sent()
        while self._sent:
            message, first, last = self._sent[0]
            message.wait()
            self._gradients.show(first, last)
            self._sent.pop(0)

    def step(self, closure=None):
        """Waits for the averages, and takes a step of the optimizer. By need: the next forward pass does."""
        if closure is not None:
            raise ValueError("step() takes no closure: call backward() before it")
        if any(one.grad is not None for one in self._frozen):
            raise RuntimeError("a parameter has a gradient that had none when the optimizer was made: make another one")
        now = [one for part in self.param_groups for one in part["params"]]
        if any(one.grad is not None and id(one) not in self._given for one in now):
            raise RuntimeError("a parameter was added to the wrapped optimizer, and is averaged by nobody: make another one")
        self._require_whole()
        if self._defers() and self._sent:  # else all are averages already
            self._send_rest()
            self._require_all_sent()
            self._is_cut = True
            self._deferred.begin(self._gradients, self._sent)
            result = None
        else:
            self.synchronize()
            self._is_cut = True
            result = self._optimizer.step()
            if self._deferred is not None:  # as after a step that is deferred
                self._gradients.zero()
        self._finish_iteration()
        self._is_cut = False
        return result

    def finish_step(self):
        """By need: takes all steps that step() has left. For who reads parameters by another way than their modules."""
        if self._deferred is not None:
            self._deferred.finish()

    def zero_grad(self, set_to_none=False):
        """By need, step() has done so.

        Where messages are on their way, as after a backward pass that has failed, their averages are lost: there is no
        step any more. Their memory stays as it is, as other ranks get the sums of it.
        """
        if self._sent:
            self._is_cut = True
            return
        self._gradients.zero(but=() if self._deferred is None else self._deferred.parameters())

    @property
    def param_groups(self):
        return self._optimizer.param_groups

    @property
    def state(self):
        self.finish_step()
        return self._optimizer.state

    @property
    def defaults(self):
        return self._optimizer.defaults

    def state_dict(self):
        self.finish_step()
        return self._optimizer.state_dict()

    def load_state_dict(self, state_dict):
        self.finish_step()
        self._optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group):
        raise ValueError("the parameters are fixed: give the wrapped optimizer all of them beforehand")

    # Set-up.

    def _arrange(self, layers):
        """Layers in the order in which the backward pass has them ready."""
        self._gradients = Gradients(layers, self._allocate)
        self._place_of = {id(one): place for place, layer in enumerate(layers) for one in layer.parameters}
        self._planner.begin(self._gradients.bytes_of(layer) for layer in layers)
        self._begin_iteration()

    def _share(self, model):
        source = 0 if self._group is None else dist.get_global_rank(self._group, 0)
        with torch.no_grad():
            for tensor in [*model.parameters(), *model.buffers()]:
                dist.broadcast(tensor, source, group=self._group)

    def _watch(self, model):
        # A parameter's accumulator, a node of autograd's graph, tells when its gradient is there.
        this = weakref.ref(self)
        self._accumulators = []

        def begins(parameter, _):
            if this() is not None:
                this()._gradient_comes(parameter)

        def ready(parameter, *_):
            if this() is not None:
                this()._ready(parameter)

        for layer in self._gradients.layers:
            for parameter in layer.parameters:
                parameter.register_hook(functools.partial(begins, parameter))
                accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                accumulator.register_hook(functools.partial(ready, parameter))
                self._accumulators.append(accumulator)

        def forward_ended(*_):
            if this() is not None:
                this()._planner.times.begin()

        model.register_forward_hook(forward_ended)

    # An iteration.

    def _begin_iteration(self):
        self._open = [{id(one) for one in layer.parameters} for layer in self._gradients.layers]
        self._order = []  # in which layers were ready
        self._next = 0  # of the messages
        self._sent = []  # messages, None while one is being sent, and of each its first and its last layer

    def _defers(self):
        """Whether step() leaves steps to be taken: after the first iteration, when layers are in their order."""
        return self._deferred is not None and not self._is_first

    def _gradient_comes(self, parameter):
        """Before it is added to what is there, which must not be on its way."""
        self._require_whole()
        if self._deferred is not None:
            self._deferred.take(parameter)
        place = self._place_of[id(parameter)]
        if id(parameter) not in self._open[place]:
            raise RuntimeError(
                f"a second backward pass through {self._gradients.layers[place].name} before step(): its gradients "
                "may be on their way already. Every pass but the last belongs into no_sync(); after one that has failed "
                "call step(), which says why if it cannot take one"
            )

    def _ready(self, parameter):
        self._gradients.adopt(parameter)
        if not self._synchronizes:
            return
        place = self._place_of[id(parameter)]
        self._open[place].discard(id(parameter))
        if self._open[place]:
            return
        begin, now = self._planner.times.ready(place)
        self._order.append(place)
        self._observer.computed(self._gradients.layers[place].name, begin, now)
        messages = self._planner.messages
        while self._next < len(messages) and self._is_ready(*messages[self._next]):
            self._send()
        if self._next == len(messages) and not self._defers():  # so gradients are averages when backward() returns
            torch.autograd.Variable._execution_engine.queue_callback(self.synchronize)

    def _is_ready(self, first, last):
        return not any(self._open[first : last + 1])

    def _send_rest(self):
        """Layers that had no part in the loss; whatever comes from now on comes too late."""
        self.finish_step()
        while self._next < len(self._planner.messages):
            self._send()
        self._open = [set() for _ in self._open]

    def _send(self):
        first, last = self._planner.messages[self._next]
        # The last message is the first to be needed.
        share = 0 if self._deferred is None else self._next / len(self._planner.messages)
        self._next += 1
        sent = [None, first, last]
        self._sent.append(sent)  # also if what follows fails: then there is no step
        memory = self._gradients.message(first, last)
        memory.div_(self._size)
        self._gradients.hide(first, last)  # until they are averages, or used up
        begin = time.perf_counter()
        work = self._lanes.all_reduce(memory, share)
        names = ", ".join(layer.name for layer in self._gradients.layers[first : last + 1])
        sent[0] = self._observer.sent(names, begin, work)

    def _require_whole(self):
        """There is no second step of one iteration, nor a plan that other ranks do not have."""
        if self._is_cut:
            raise RuntimeError(
                "a step was interrupted or has failed, or zero_grad() has come while gradients were on their way: make "
                "another optimizer on all ranks"
            )

    def _require_all_sent(self):
        if any(message is None for message, _, _ in self._sent):
            raise RuntimeError(
                "a message of gradients could not be sent, so there are no averages: make another optimizer on all ranks"
            )

    def _finish_iteration(self):
        order = self._order
        due = self._planner.finish_iteration(counts=not self._is_first)  # the first is slower than those that follow
        self._begin_iteration()
        if self._is_first:
            self._is_first = False
            self._arrange_as_measured(order)
        elif due:
            self.finish_step()  # so that nothing else is on its way
            self._planner.plan()
        if self._observer.finish_iteration():
            self.finish_step()
            self._observer.write_timeline()

    def _arrange_as_measured(self, order):
        """Rank 0 says in which order layers were ready; those that were not come last."""
        order = order + [place for place in range(len(self._gradients.layers)) if place not in set(order)]
        agreed = torch.tensor(order)
        source = 0 if self._group is None else dist.get_global_rank(self._group, 0)
        dist.broadcast(agreed, source, group=self._group)
        if agreed.tolist() != list(range(len(order))):
            self._arrange([self._gradients.layers[place] for place in agreed.tolist()])
