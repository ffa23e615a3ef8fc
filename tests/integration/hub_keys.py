"""The keys of hubs in these tests: first weights, a trainer's gradients in each round, and an oracle of what comes of them."""

import functools
import os
import random

import gradcube
import numpy

from fabrics import GRID, PATIENCE
from harness import Cluster, TestCase, all_of, wait_until

SHAPES = {"long": (300, 401), "short": (10,), "scalar": (), "odd": (33333,), "half": (2000,), "brain": (999,)}
LATE = PATIENCE
RATE = 0.125


def first_weights():
    draw = numpy.random.default_rng(1)
    weights = {name: draw.standard_normal(shape).astype("float32") for name, shape in SHAPES.items()}
    weights = {name: numpy.asarray(array, "float32") for name, array in weights.items()}
    weights["half"] = weights["half"].astype("float16")
    weights["brain"] = (weights["brain"].view("uint32") >> 16).astype("uint16")  # bfloat16, cut off
    return weights


def as_floats(name, array):
    if name == "brain":
        return (array.astype("uint32") << 16).view("float32")
    return array.astype("float32")


@functools.lru_cache(128)
def gradients_of(rank, number):
    """Not to be written to. Small multiples of 1/4, whose sums are exact in all three types."""
    draw = numpy.random.default_rng([rank, number])
    gradients = {name: numpy.asarray(draw.integers(-4, 5, shape) / 4, "float32") for name, shape in SHAPES.items()}
    gradients["half"] = gradients["half"].astype("float16")
    gradients["brain"] = (gradients["brain"].view("uint32") >> 16).astype("uint16")
    return gradients


class Oracle:
    """PyTorch's formulas, in float64."""

    def __init__(self, size):
        self.size = size
        self.weights = {name: as_floats(name, array).astype("float64") for name, array in first_weights().items()}
        self.moments = {name: [numpy.zeros_like(array)] * 2 for name, array in self.weights.items()}

    def mean(self, name, number):
        gradients = [as_floats(name, gradients_of(rank, number)[name]) for rank in range(self.size)]
        return sum(one.astype("float64") for one in gradients) / self.size

    def sgd(self, name, number, rate):
        self.weights[name] = self.weights[name] - rate * self.mean(name, number)

    def momentum(self, name, number, rate):
        self.moments[name][0] = 0.9 * self.moments[name][0] + self.mean(name, number)
        self.weights[name] = self.weights[name] - rate * self.moments[name][0]

    def adam(self, name, number, rate):
        first, second = self.moments[name]
        mean = self.mean(name, number)
        first, second = 0.9 * first + 0.1 * mean, 0.999 * second + 0.001 * mean**2
        self.moments[name] = [first, second]
        corrected = numpy.sqrt(second / (1 - 0.999 ** (number + 1))) + 1e-8
        self.weights[name] = self.weights[name] - rate / (1 - 0.9 ** (number + 1)) * first / corrected


class HubTestCase(TestCase):
    """One cluster for all tests of the class."""

    @classmethod
    def setUpClass(cls):
        seed = str(int(os.environ.get("GRADCUBE_TEST_SEED", "1")))
        cls.cluster = Cluster("--topology", GRID, "--seed", seed)
        cls.addClassCleanup(cls.cluster.end)

    def tearDown(self):
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten")

    def order(self, session, number=0):
        """Of the keys: each trainer's and each round's own."""
        names = list(SHAPES)
        random.Random(f"{self.seed} {session.rank} {number}").shuffle(names)
        return names

    def hub_of(self, session, optimizer="sgd", **options):
        weights = first_weights()
        ordered = {name: weights[name] for name in self.order(session)}
        return gradcube.Hub(session, ordered, optimizer, bfloat16=["brain"], **{"timeout": LATE, **options})

    def train(self, session, optimizer, rounds=4, rate=RATE):
        """The weights of each key after some rounds: those of push_pull(), which the hub has, too."""
        hub = self.hub_of(session, optimizer)
        found = first_weights()
        for number in range(rounds):
            gradients = gradients_of(session.rank, number)
            order = self.order(session, number + 1)
            for request in [hub.push_pull_async(name, gradients[name], found[name], rate) for name in order]:
                request.wait(LATE)
        for name, array in found.items():
            numpy.testing.assert_array_equal(hub.weights(name), array)
        hub.free(LATE)
        return found

    def results(self, work, sessions):
        results = all_of(work, sessions)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results

    def assert_same(self, results):
        for result in results[1:]:
            for name, array in results[0].items():
                numpy.testing.assert_array_equal(array, result[name], name)

    def assert_as_oracle(self, weights, optimizer, size, rounds=4):
        oracle = Oracle(size)
        for number in range(rounds):
            for name in SHAPES:
                getattr(oracle, optimizer.partition(":")[0])(name, number, RATE)
        for name, array in weights.items():
            close = {"half": 2e-3, "brain": 1.6e-2}.get(name, 1e-5)
            numpy.testing.assert_allclose(as_floats(name, array), oracle.weights[name], close, close, err_msg=name)
