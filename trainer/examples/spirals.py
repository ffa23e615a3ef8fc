#!/usr/bin/env python3
"""One rank of a data-parallel training that needs NumPy alone: which of three spiral arms does a point lie on?

Every rank starts with the same weights, draws points of its own, and averages its gradients with those of the others
by one all-reduce per step. The gradients lie in memory that the daemon shares, so nothing is copied on the way. Start
one rank per server: gradcube run -- python3 spirals.py
"""

import argparse
import hashlib
import statistics
import sys
import time

import gradcube
import numpy

ARMS = 3
WIDTHS = [2, 64, 64, ARMS]
MOMENTUM = 0.9
WAIT_SECONDS = 60


def draw_points(count, random):
    """Points in the plane, and the arm on which each lies."""
    arms = random.integers(ARMS, size=count)
    along = random.uniform(0.1, 1, size=count)
    angles = 2 * numpy.pi * (arms / ARMS + along) + random.normal(scale=0.15, size=count)
    return (along * [numpy.cos(angles), numpy.sin(angles)]).T.astype("float32"), arms


def views_of(buffer):
    """For each layer its weights and its biases, as views of one buffer."""
    layers, start = [], 0
    for rows, columns in zip(WIDTHS, WIDTHS[1:]):
        end = start + rows * columns
        layers.append((buffer[start:end].reshape(rows, columns), buffer[end : end + columns]))
        start = end + columns
    return layers


def forward(layers, points):
    """What every layer gets, and the logits."""
    inputs = [points]
    for weights, biases in layers[:-1]:
        inputs.append(numpy.tanh(inputs[-1] @ weights + biases))
    weights, biases = layers[-1]
    return inputs, inputs[-1] @ weights + biases


def backward(layers, gradients, points, arms):
    """Fills `gradients`; returns the mean loss."""
    inputs, logits = forward(layers, points)
    exponentials = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    each = numpy.arange(len(arms))
    loss = -numpy.log(probabilities[each, arms] + 1e-12).mean()
    probabilities[each, arms] -= 1
    upper = probabilities / len(arms)
    for layer in reversed(range(len(layers))):
        weights, biases = gradients[layer]
        weights[:] = inputs[layer].T @ upper
        biases[:] = upper.sum(axis=0)
        if layer > 0:
            upper = (upper @ layers[layer][0].T) * (1 - inputs[layer] ** 2)
    return float(loss)


def train(session, arguments):
    """Returns the weights, and of each step its seconds."""
    count = sum((rows + 1) * columns for rows, columns in zip(WIDTHS, WIDTHS[1:]))
    weights = numpy.zeros(count, "float32")
    same_everywhere = numpy.random.default_rng(arguments.seed)
    for layer, _ in views_of(weights):
        layer[:] = same_everywhere.normal(scale=len(layer) ** -0.5, size=layer.shape)
    gradients = session.alloc(count, "float32")
    velocity = numpy.zeros_like(weights)
    own = numpy.random.default_rng([arguments.seed, session.rank])
    session.barrier(timeout=WAIT_SECONDS)  # so that the first step's time is not that of the slowest start

    losses, seconds = [], []
    for step in range(1, arguments.steps + 1):
        begin = time.perf_counter()
        losses.append(backward(views_of(weights), views_of(gradients), *draw_points(arguments.batch, own)))
        session.allreduce(gradients, op="average", timeout=WAIT_SECONDS)
        velocity *= MOMENTUM
        velocity += gradients
        weights -= arguments.lr * velocity
        seconds.append(time.perf_counter() - begin)
        if session.rank == 0 and step % max(1, arguments.steps // 10) == 0:
            print(f"step {step}/{arguments.steps}  loss {statistics.mean(losses[-20:]):.4f}", flush=True)
    return weights, seconds


def report(session, weights, seconds, arguments):
    """Rank 0 prints what came out. True on every rank if all have the same weights."""
    digests = numpy.zeros((session.size, 32), "uint8")
    digests[session.rank] = numpy.frombuffer(hashlib.sha256(weights.tobytes()).digest(), "uint8")
    session.allgather(digests, timeout=WAIT_SECONDS)
    versions = len({digest.tobytes() for digest in digests})
    if session.rank == 0:
        points, arms = draw_points(3000, numpy.random.default_rng([arguments.seed, 1 << 20]))
        accuracy = (forward(views_of(weights), points)[1].argmax(axis=1) == arms).mean()
        print(f"test accuracy: {accuracy:.1%} of points that no rank has seen")
        print(f"seconds per step: {statistics.median(seconds):.4f} (median)")
        if versions == 1:
            print(f"weights: bit-identical on all {session.size} ranks (sha256 {digests[0].tobytes().hex()})")
        else:
            print(f"weights: NOT identical: {versions} versions on {session.size} ranks")
    return versions == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=400, help="default: 400")
    parser.add_argument("--batch", type=int, default=32, help="points per rank and step (default: 32)")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate (default: 0.1)")
    parser.add_argument("--seed", type=int, default=1, help="of weights and points (default: 1)")
    arguments = parser.parse_args()
    for name in ("steps", "batch"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} {getattr(arguments, name)}: at least 1 is accepted")
    try:
        with gradcube.Session(job="spirals") as session:
            return 0 if report(session, *train(session, arguments), arguments) else 1
    except gradcube.Error as error:
        print(f"spirals: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
