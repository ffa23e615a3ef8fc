"""HubOptimizer: an optimizer of PyTorch whose steps the servers take. Needs no torch.distributed."""

import contextlib
import functools
import weakref

import torch

from ._errors import InvalidError
from ._hub import Hub
from ._hub_checkpoints import HubCheckpoints
from ._hub_rounds import INTERRUPTED, Clipping, Rounds, watched
from ._hub_settings import optimizer_text, settings_of, with_names, without_rate
from ._rendezvous import launched_session
from ._tensor_views import tensor_at, tensor_over

_DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class HubOptimizer(torch.optim.Optimizer):
    """An optimizer whose state and steps are the servers': a parameter hub in the place of a local optimizer.

        optimizer = HubOptimizer(model.parameters(), "sgd", lr=0.05, momentum=0.9)
        for images, labels in loader:
            optimizer.zero_grad()
            loss(model(images), labels).backward()
            optimizer.step()
        optimizer.free()

    All trainers of the job construct it alike. Their parameters begin as those of rank 0. In the backward pass each
    gradient is pushed the moment it is there; the servers take the step with the mean of all trainers' gradients, and
    step() waits for the new weights and puts them into the parameters. All trainers then have the same bits. The
    optimizer's state exists once in the job, on the servers (docs/hub.md).

    ``params``: parameters, pairs (name, parameter) as of model.named_parameters(), or groups of one of both. Parameters
    without names are called "0000", "0001" and so on, in their order. They are on the CPU, and of float32, float16 or
    bfloat16. Those that need no gradient only begin as those of rank 0; model buffers are left as they are.
    ``optimizer`` and its settings, with PyTorch's names and defaults: "sgd" (lr 0.01, momentum, dampening, nesterov,
    weight_decay), "adam" and "adamw" (lr, betas, eps, weight_decay). "momentum" and "nesterov" are "sgd" with momentum
    0.9. ``clip`` limits the magnitude of each element of the mean.
    ``max_norm``: what torch.nn.utils.clip_grad_norm_() does with it before step(): the mean gradients of all parameters
    are scaled so that their norm is at most so long. ``norm`` has what it was. Servers keep the gradients until step(),
    in one more float32 array. Where the norm is no finite number step() raises InvalidError on all trainers, and has
    dropped the gradients and left weights and state as they were.
    ``session``: None: one of a job of this run of `gradcube run`, at the place that it has given this process; free()
    closes it. ``lane``, ``chunk_bytes``, ``aggregator``, ``staleness``: as for Hub. ``timeout``: the most seconds to
    wait at a time; None: no limit.
    ``checkpoint``: the path of checkpoints, on each server's own disk or in a folder that all see. If there is one
    already, parameters and state are those of the newest that all servers have. Every ``checkpoint_every`` steps a new
    one is written while the training goes on; it counts when the next one begins, or after free() or save().

    Groups have settings of their own, such as no weight decay on norms and biases, but all a momentum or none. A
    group's ``lr`` is that of the moment of the push, or with ``max_norm`` of step(), so PyTorch's schedulers work; it
    is the same on all trainers. Other settings stay as they are.

    A push uses its gradient up: from then on it is None, and so there is nothing to clip or to log between backward()
    and step() (see ``max_norm``), and after step() all are None. A parameter without a gradient at step() is pushed
    with zeros: it counts in the mean, and momentum and weight decay act on the parameter, also where no trainer has a
    gradient. Each backward pass but the last before step() belongs into no_sync(). step() is called as often by all
    trainers. Where it has taken the step, but failed to make a checkpoint, it tries that again if it is called before
    the next zero_grad() or gradient.

    Who changes parameters by another way than step(), as model.load_state_dict() does, calls restart() then. Errors are
    gradcube.Error's. After one of a push, free() this and make another one, in another session where a trainer is gone.
    """

    def __init__(
        self,
        params,
        optimizer="sgd",
        *,
        session=None,
        lane=0,
        chunk_bytes=0,
        aggregator=None,
        staleness=None,
        max_norm=None,
        checkpoint=None,
        checkpoint_every=None,
        timeout=None,
        **settings,
    ):
        self._timeout = timeout
        self._hub = self._norm = None
        self._synchronizes = True
        self._checkpoints = HubCheckpoints(checkpoint, checkpoint_every)
        self._is_restarting = False
        self._is_zeroed = False  # since the last step was taken
        self._clipping = Clipping.of(max_norm)
        groups, names = with_names(params)
        super().__init__(groups, settings_of(optimizer, settings))
        self._optimizer = optimizer
        self._settings = [without_rate(optimizer, group) for group in self.param_groups]
        self._group_of = {}  # its number, by a parameter's id
        self._parameters = {}  # by name
        self._frozen = []
        self._take_all(names)
        text = self._text(names)
        self._own_session = launched_session() if session is None else None
        session = self._session = self._own_session if session is None else session
        # What is pushed: arrays in memory that is shared with the daemon, and tensors over them.
        self._arrays = {
            name: session.alloc(tuple(one.shape), _DTYPES[one.dtype]) for name, one in self._parameters.items()
        }
        self._tensors = {name: tensor_over(self._arrays[name], one) for name, one in self._parameters.items()}
        self._pushed = set()  # names
        self._rounds = Rounds()
        self._begin_alike()
        self._hub = Hub(
            session,
            self._arrays,
            text,
            chunk_bytes=chunk_bytes,
            lane=lane,
            aggregator=aggregator,
            staleness=staleness,
            accumulate=max_norm is not None,
            bfloat16=[name for name, one in self._parameters.items() if one.dtype == torch.bfloat16],
            restore=self._checkpoints.path,
            timeout=timeout,
        )
        self._steps = self._hub.step or 0
        self._weights = {name: tensor_at(self._hub.weights(name), one) for name, one in self._parameters.items()}
        if self._hub.step is not None:
            self._take_weights()
        self._watch()

    # What a user may ask.

    @property
    def hub(self):
        """The gradcube.Hub: its keys have the parameters' names."""
        return self._open_hub()

    @property
    def rank(self):
        """This trainer's, from 0 on."""
        return self._session.rank

    @property
    def size(self):
        """How many trainers the job has."""
        return self._session.size

    @property
    def steps(self):
        """How many steps were taken, with those before the checkpoint that this has gone on from."""
        return self._steps

    @property
    def norm(self):
        """With max_norm: of the mean gradients of the last step(), before they were clipped."""
        return self._norm

    def save(self, timeout=None):
        """Makes a checkpoint of now, between step() and the next backward pass. All trainers call it."""
        if self._checkpoints.path is None:
            raise InvalidError("the optimizer has no path for checkpoints: give it one as `checkpoint`")
        self._begin_saving()
        self._checkpoints.end(self._hub, self._steps, timeout)

    @contextlib.contextmanager
    def no_sync(self):
        """Backward passes in this scope add to the gradients, and push nothing."""
        before, self._synchronizes = self._synchronizes, False
        try:
            yield
        finally:
            self._synchronizes = before

    def restart(self):
        """Takes the parameters of rank 0 as they are now, on all trainers, and begins with a state of zero.

        All trainers call it, between step() and the next backward pass.
        """
        hub = self._open_hub()
        if self._pushed:
            raise InvalidError("gradients have been pushed: call restart() after step()")
        self._require_whole()
        self._is_restarting = True
        self._begin_alike()
        hub.set_weights(self._arrays, self._timeout)
        self._is_restarting = False

    def free(self, timeout=None):
        """Waits until all trainers of the job have called it, and frees the hub. Parameters stay as they are.

        Before a trainer leaves, so that it does not keep others from their last weights.
        """
        hub = self._open_hub()
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if not self._rounds.give_up(timeout):  # of an iteration without step()
            self._close()
            raise InvalidError(INTERRUPTED + "the hub stays in its session, which can be closed alone")
        self._checkpoints.end(hub, self._steps, timeout)
        try:
            hub.free(timeout)
        finally:
            if hub.is_freed:
                self._close()

    # What an optimizer has.

    @torch.no_grad()
    def step(self, closure=None):
        """Waits until the servers have taken the step, and puts the new weights into the parameters."""
        self._open_hub()
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        if any(one.grad is not None for one in self._frozen):
            raise InvalidError(
                "a parameter has a gradient that needed none when the optimizer was made: make another one"
            )
        is_new = self._pushed or self._is_zeroed or any(one.grad is not None for one in self._parameters.values())
        if is_new or not self._checkpoints.is_due:  # else the step was taken, and its checkpoint is tried again
            for name, parameter in self._parameters.items():
                if name not in self._pushed:
                    self._push(name, parameter)
            self._rounds.end(self._timeout)
            clipping = self._clipping
            is_taken = clipping is None or self._apply(clipping)
            self._take_weights()
            steps, fresh = self._steps + is_taken, (set(), clipping and clipping.following())
            if is_taken:
                self._checkpoints.count(steps)
            # Ctrl-C does not come in the midst of it.
            (self._pushed, self._clipping), self._steps, self._is_zeroed = fresh, steps, False
            if not is_taken:
                raise InvalidError(clipping.why_dropped())
        if self._checkpoints.is_due:
            self._begin_saving()
        return result

    def zero_grad(self, *arguments, **options):
        super().zero_grad(*arguments, **options)
        self._is_zeroed = True

    def load_state_dict(self, state_dict):
        """Of state_dict(), which has the groups' settings: learning rates. Others have to be those of the hub."""
        if state_dict.get("state"):
            raise InvalidError("this state is a local optimizer's: a hub begins with a state of zero")
        for number, group in enumerate(state_dict["param_groups"][: len(self._settings)]):
            self._check_settings(number, group)
        super().load_state_dict(state_dict)

    def __reduce__(self):
        """A copy would have no hub, and push into nothing."""
        raise TypeError("a HubOptimizer cannot be copied or sent to another process: make one there")

    def add_param_group(self, param_group):
        if self._hub is not None:
            raise InvalidError("the hub's keys are fixed: give the optimizer all parameters when it is made")
        super().add_param_group(param_group)

    # Set-up.

    def _take_all(self, names):
        for number, group in enumerate(self.param_groups):
            for parameter in group["params"]:
                self._take(parameter, names[id(parameter)], number)
        if not self._parameters:
            raise InvalidError("the optimizer has no parameter with a gradient")

    def _take(self, parameter, name, group):
        is_possible = parameter.dtype in _DTYPES or not parameter.requires_grad
        if parameter.device.type != "cpu" or not is_possible:
            what = f"parameter {name!r:.64} is of {parameter.dtype} on {parameter.device}"
            raise InvalidError(f"{what}: expected float32, float16 or bfloat16 on the CPU")
        if not parameter.requires_grad:
            self._frozen.append(parameter)
        elif parameter.numel() != 0:
            if name in self._parameters:
                raise InvalidError(f"two parameters have the name {name!r:.64}")
            self._parameters[name] = parameter
            self._group_of[id(parameter)] = group

    def _check_settings(self, number, group):
        """That they are those that the hub has."""
        its = without_rate(self._optimizer, {**self._settings[number], **group})
        for name, value in self._settings[number].items():
            if its[name] != value:
                raise InvalidError(
                    f"parameter group {number} has {name} {its[name]!r:.64} where the hub has {value!r}: of a hub's "
                    "settings only lr may change"
                )

    def _text(self, names):
        """The optimizer as a hub has it."""
        groups = [{"lr": group["lr"], **its} for group, its in zip(self.param_groups, self._settings)]
        # The rate comes with each push.
        for group in groups[1:]:
            group["lr"] = groups[0]["lr"]
        keys = [[names[id(one)] for one in group["params"] if names[id(one)] in self._parameters]
                for group in self.param_groups]
        return optimizer_text(self._optimizer, groups, keys)

    @torch.no_grad()
    def _begin_alike(self):
        """All parameters are those of rank 0, and are in the arrays."""
        for name, parameter in sorted(self._parameters.items()):
            self._tensors[name].copy_(parameter)
            dtype = "bfloat16" if parameter.dtype == torch.bfloat16 else None
            self._session.broadcast(self._arrays[name], dtype=dtype, timeout=self._timeout)
            parameter.copy_(self._tensors[name])
        for parameter in self._frozen:
            kept = parameter.detach().clone(memory_format=torch.contiguous_format)
            if kept.numel() != 0:
                bits = kept.view(torch.uint8) if kept.dim() else kept.view(1).view(torch.uint8)
                self._session.broadcast(bits.numpy(), dtype="bytes", timeout=self._timeout)
                parameter.copy_(kept)

    def _watch(self):
        this = weakref.ref(self)

        def ready(name, *_):
            if this() is not None:
                this()._ready(name)

        self._handles, self._accumulators = watched(self._parameters, ready)

    # An iteration.

    def _begin_saving(self):
        self._checkpoints.begin(self._open_hub(), self._steps, self._timeout)
        # Trainers of an asynchronous hub had each their own before it.
        self._take_weights()

    @torch.no_grad()
    def _take_weights(self):
        for name, parameter in self._parameters.items():
            parameter.copy_(self._weights[name])
        self._hub.weights(name)  # raises where the daemon has taken back meanwhile what was copied

    @torch.no_grad()
    def _ready(self, name):
        if not self._synchronizes:
            return
        if name in self._pushed:
            self._parameters[name].grad = None
            raise InvalidError(
                f"a second gradient of parameter {name!r:.64} before step(): the first was pushed already. Every "
                "backward pass but the last belongs into no_sync(); where a pass has failed, go on with step()"
            )
        self._push(name, self._parameters[name])

    def _require_whole(self):
        if self._is_restarting:  # the parameters of rank 0 may be on their way from the gradients' memory
            raise InvalidError("restart() has failed: free this optimizer, and make another one")

    def _push(self, name, parameter):
        hub = self._open_hub()
        self._require_whole()
        number = self._group_of[id(parameter)]
        group = self.param_groups[number]
        self._check_settings(number, group)
        tensor = self._tensors[name]
        if parameter.grad is None:
            tensor.zero_()
        elif parameter.grad.layout != torch.strided:
            raise InvalidError(f"the gradient of parameter {name!r:.64} is sparse: expected a dense one")
        else:
            tensor.copy_(parameter.grad)
        array = self._arrays[name]
        if self._clipping is None:
            start = functools.partial(hub.push_async, name, array, group["lr"])
        else:
            start = functools.partial(hub.accumulate_async, name, array)
        self._rounds.begin(name, start, self._pushed, self._timeout)
        parameter.grad = None

    def _apply(self, clipping):
        """A step with what was accumulated, or what an earlier call has left of it. False: it was dropped."""
        hub = self._open_hub()
        if clipping.norm is None:
            for number, group in enumerate(self.param_groups):  # while no step was taken with any
                self._check_settings(number, group)
            self._norm = clipping.norm = hub.norm()
        for name, parameter in self._parameters.items():
            if name not in clipping.applied:
                group = self.param_groups[self._group_of[id(parameter)]]
                start = functools.partial(hub.apply_async, name, clipping.scale, group["lr"])
                self._rounds.begin(name, start, clipping.applied, self._timeout)
        self._rounds.end(self._timeout)
        return clipping.is_finite

    def _close(self):
        self._hub = None
        self._weights = {}
        if self._own_session is not None:
            self._own_session.close()

    def _open_hub(self):
        if self._hub is None:
            raise InvalidError("this optimizer's hub was freed: make another one")
        return self._hub
