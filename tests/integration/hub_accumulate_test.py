"""Trainers accumulate gradients in their job's hub, have the norm of all of them, and apply them by a scale."""

import contextlib
import math
import os
import re
import tempfile

import gradcube
import numpy

from fabrics import SERVERS
from harness import job, main
from hub_keys import LATE, RATE, HubTestCase, as_floats, first_weights, gradients_of

PASSES = 2
SCALE = 0.5  # exact in every type
AGGREGATOR = SERVERS - 1


class Accumulation(HubTestCase):
    def accumulate(self, hub, rank, number):
        gradients = gradients_of(rank, number)
        for request in [hub.accumulate_async(name, gradients[name]) for name in hub.names]:
            request.wait(LATE)

    def apply(self, hub, **arguments):
        found = first_weights()
        requests = [hub.apply_async(name, weights=found[name], **arguments) for name in hub.names]
        for request in requests:
            request.wait(LATE)
        return found

    def step(self, session, **options):
        hub = self.hub_of(session, "sgd", accumulate=True, **options)
        for number in range(PASSES):
            self.accumulate(hub, session.rank, number)
        norm = hub.norm()
        found = self.apply(hub, scale=SCALE, rate=RATE)
        hub.free(LATE)
        return found, norm

    def sums(self, size):
        gradients = [gradients_of(rank, number) for rank in range(size) for number in range(PASSES)]
        means = {}
        for name in gradients[0]:
            means[name] = sum(as_floats(name, one[name]).astype("float64") for one in gradients) / size
        return means

    def assert_stepped(self, results, size):
        sums = self.sums(size)
        norm = math.sqrt(sum((one**2).sum() for one in sums.values()))
        self.assert_same([found for found, _ in results])
        self.assertEqual({its for _, its in results}, {results[0][1]}, "the same bits")
        self.assertLess(abs(results[0][1] / norm - 1), 1e-6)
        for name, array in results[0][0].items():
            close = {"half": 2e-3, "brain": 1.6e-2}.get(name, 1e-5)
            expected = as_floats(name, first_weights()[name]) - RATE * SCALE * sums[name]
            numpy.testing.assert_allclose(as_floats(name, array), expected, close, close, err_msg=name)

    def test_a_step_is_taken_with_all_that_was_accumulated_times_the_scale(self):
        for algorithm in ("bml", "ps", "hips:ring"):
            with self.subTest(algorithm=algorithm), job(self.cluster, "step", algorithm=algorithm) as sessions:
                self.assert_stepped(self.results(self.step, sessions), SERVERS)

    def test_several_trainers_of_a_server_have_the_same_norm(self):
        with contextlib.ExitStack() as stack:
            sessions = [
                stack.enter_context(gradcube.Session(socket, "several", trainers_per_server=2, local=local))
                for socket in self.cluster.sockets()
                for local in range(2)
            ]
            self.assert_stepped(self.results(self.step, sessions), 2 * SERVERS)

    def test_an_aggregator_without_trainers_does_the_same(self):
        members = list(range(AGGREGATOR))
        with job(self.cluster, "aggregated", members, members=members) as sessions:
            results = self.results(lambda session: self.step(session, aggregator=AGGREGATOR), sessions)
            self.assert_stepped(results, AGGREGATOR)

    def test_a_plain_push_leaves_what_is_accumulated_and_its_norm(self):
        def step(session):
            hub = self.hub_of(session, "sgd", accumulate=True)
            self.accumulate(hub, session.rank, 0)
            norm, gradients, found = hub.norm(), gradients_of(session.rank, 1), first_weights()
            for name in sorted(hub.names):
                hub.push(name, gradients[name], RATE * SCALE, LATE)
            self.assertEqual(hub.norm(), norm)
            for name in sorted(hub.names):
                hub.apply(name, SCALE, RATE, found[name], LATE)
            hub.free(LATE)
            return found

        with job(self.cluster, "plain") as sessions:
            results = self.results(step, sessions)
        self.assert_same(results)
        for name, one in self.sums(SERVERS).items():
            expected = as_floats(name, first_weights()[name]) - RATE * SCALE * one
            close = {"half": 2e-3, "brain": 3.2e-2}.get(name, 1e-5)
            numpy.testing.assert_allclose(as_floats(name, results[0][name]), expected, close, close, err_msg=name)

    def test_gradients_that_are_no_numbers_are_told_and_can_be_dropped(self):
        def drop(session):
            hub = self.hub_of(session, "momentum", accumulate=True)
            wrong = {name: array.copy() for name, array in gradients_of(session.rank, 0).items()}
            wrong["short"][3] = numpy.nan if session.rank == 1 else 0
            for name in sorted(hub.names):
                hub.accumulate(name, wrong[name], LATE)
            norm = hub.norm()
            found = self.apply(hub, scale=0)
            hub.free(LATE)
            return norm, found

        with job(self.cluster, "dropped") as sessions:
            for norm, found in self.results(drop, sessions):
                self.assertTrue(math.isnan(norm))
                for name, array in first_weights().items():
                    numpy.testing.assert_array_equal(found[name], array)

    def test_what_cannot_be_is_refused_and_the_hub_goes_on(self):
        def try_all(session):
            hub = self.hub_of(session, accumulate=True)
            with self.assertRaisesRegex(gradcube.InvalidError, "'brain'.*accumulated nothing"):
                hub.norm()
            with self.assertRaisesRegex(gradcube.InvalidError, "'short'.*accumulated nothing"):
                hub.apply("short")
            for scale in (-1, math.inf, math.nan, "much", 1e39, 1e-60):
                with self.assertRaisesRegex(gradcube.InvalidError, f"scale.*{re.escape(str(scale))}"):
                    hub.apply("short", scale)
            with self.assertRaisesRegex(gradcube.InvalidError, "no key"):
                hub.apply("none")
            self.accumulate(hub, session.rank, 0)
            with tempfile.TemporaryDirectory() as folder:
                with self.assertRaisesRegex(gradcube.InvalidError, "accumulated gradients, which no checkpoint has"):
                    hub.checkpoint(os.path.join(folder, "none"), 1, LATE)
            hub.set_weights(first_weights(), LATE)
            with self.assertRaisesRegex(gradcube.InvalidError, "accumulated nothing"):
                hub.norm()
            hub.free(LATE)
            plain = self.hub_of(session)
            accumulate = lambda: plain.accumulate("short", gradients_of(0, 0)["short"])
            for call in (accumulate, lambda: plain.apply("short"), plain.norm):
                with self.assertRaisesRegex(gradcube.InvalidError, "does not accumulate"):
                    call()
            plain.free(LATE)

        with job(self.cluster, "refused") as sessions:
            self.results(try_all, sessions)

    def test_trainers_that_apply_other_scales_end_the_job_by_the_key_s_name(self):
        def differ(session):
            hub = self.hub_of(session, accumulate=True)
            self.accumulate(hub, session.rank, 0)
            with self.assertRaisesRegex(gradcube.Error, '"odd"'):
                hub.apply("odd", 0.5 if session.rank == 0 else 0.25, timeout=LATE)
            with self.assertRaises(gradcube.Error):
                hub.norm()

        with job(self.cluster, "scales") as sessions:
            self.results(differ, sessions)


if __name__ == "__main__":
    main()
