"""An iteration of training whose layers' gradients travel while the backward pass goes on (MG-WFBP, sections II and
III), and how long it takes if some layers share a message.

The backward pass goes from the last layer to the first. A layer's gradients are ready when its part of the pass ends
(mu_b, Eq. 6). A message has the gradients of adjacent layers. It leaves when the first of them, which comes last in the
pass, is ready and the message before has been all-reduced (Eq. 7, 15 and 20); an all-reduce of M bytes takes T_ar(M) =
a + bM (Eq. 9). The iteration ends with its last message (Eq. 8 and 21).

Units: seconds and bytes. Layers count from 0 here, from the first to the last; the paper's l is one more. Which layers
share a message is for the library to say, as it does for trainers: messages_of().
"""

import dataclasses
import typing

from .._merging import Layer, merge_layers
from .mgwfbp import AllReduceCost


@dataclasses.dataclass
class Iteration:
    cost: AllReduceCost  # a and b
    layers: list  # of Layer; one at least
    forward_seconds: float = 0.0  # t_f

    def ready_seconds(self):
        """When each layer's gradients are ready (mu_b)."""
        ready, now = [], self.forward_seconds
        for layer in reversed(self.layers):
            now += layer.backward_seconds
            ready.append(now)
        return ready[::-1]

    def bytes_of(self, message):
        return sum(layer.bytes for layer in self.layers[message.first : message.last + 1])

    def times(self, messages):
        """Of each message. They have each layer once and are in the order of sending, the last layer first."""
        ready = self.ready_seconds()
        times, before = [], 0.0
        for message in messages:
            begin = max(before, ready[message.first])
            before = begin + self.cost.seconds(self.bytes_of(message))
            times.append(MessageTimes(ready[message.first], begin, before))
        return times

    def seconds(self, messages):
        """t_iter (Eq. 8): the end of the last message."""
        return self.times(messages)[-1].end

    def computing_seconds(self):
        """t_f + t_b: what the iteration takes on one server, without messages."""
        return self.ready_seconds()[0]


class Message(typing.NamedTuple):
    """The gradients of layers first..last."""

    first: int
    last: int


class MessageTimes(typing.NamedTuple):
    """When its gradients are ready, and when its all-reduce begins and ends, from the begin of the iteration on."""

    ready: float
    begin: float
    end: float


def messages_of(policy, iteration):
    """By a policy of trainers (gradcube.merge_layers), in the order of sending. The forward pass is before the backward pass of the last layer:
    to the library, which knows of none, it is a part of that."""
    *others, last = iteration.layers
    first_ready = Layer(last.bytes, iteration.forward_seconds + last.backward_seconds)
    merged = merge_layers([*others, first_ready], iteration.cost.a, iteration.cost.b, policy)
    return [Message(layers[0], layers[-1]) for layers in merged]
