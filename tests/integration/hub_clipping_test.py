"""HubOptimizer with max_norm does what clip_grad_norm_() and an optimizer of PyTorch do, with the same bits on all."""

import math
import os
import tempfile
from unittest import mock

import gradcube
import torch
from gradcube._hub_optimizer import HubOptimizer

from fabrics import PATIENCE
from harness import all_of, job, main
from hub_model import batch_of, loss_of, model_of, values_of
from hub_trainers import HubTrainers

LATE = PATIENCE
STEPS = 5
SERVERS = 4
PASSES = 2  # of each step
CASES = [
    ("sgd", {"lr": 0.1, "momentum": 0.9}, torch.optim.SGD),
    ("adamw", {"lr": 0.003, "weight_decay": 0.1}, torch.optim.AdamW),
]


class LateOnce:
    """A request: the first wait for it is too short."""

    def __init__(self, request):
        self._request = request
        self._is_late = True

    def wait(self, timeout):
        was_late, self._is_late = self._is_late, False
        if was_late:
            raise gradcube.TimeoutError("others are late")
        self._request.wait(timeout)


class Clipping(HubTrainers):
    def train(self, session, optimizer, max_norm, settings, dtype=torch.float32, step=HubOptimizer.step):
        """The weights, and the norm of each step."""
        model, norms = model_of(session.rank, dtype), []
        optimizer = HubOptimizer(
            model.named_parameters(), optimizer, session=session, timeout=LATE, max_norm=max_norm, **settings
        )
        for number in range(optimizer.steps, STEPS):
            optimizer.zero_grad()
            with optimizer.no_sync():
                loss_of(model, batch_of(session.rank, PASSES * number, dtype)).backward()
            loss_of(model, batch_of(session.rank, PASSES * number + 1, dtype)).backward()
            step(optimizer)
            norms.append(optimizer.norm)
        optimizer.free(LATE)
        return values_of(model), norms

    def train_alone(self, kind, max_norm, settings):
        model, norms = model_of(0), []
        optimizer = kind(model.parameters(), **settings)
        for number in range(STEPS):
            optimizer.zero_grad()
            for rank in range(SERVERS):
                for one in range(PASSES):
                    (loss_of(model, batch_of(rank, PASSES * number + one)) / SERVERS).backward()
            model.unused.grad = torch.zeros(3)
            norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)))
            optimizer.step()
        return values_of(model), norms

    def assert_same(self, results):
        for values, norms in results:
            self.assertEqual(norms, results[0][1])
            for name, one in results[0][0].items():
                self.assertTrue(torch.equal(values[name], one), name)

    def assert_trained(self, results, expected, rtol=1e-4, atol=1e-6):
        self.assert_same(results)
        for name, one in expected[0].items():
            torch.testing.assert_close(results[0][0][name].float(), one, rtol=rtol, atol=atol)
        torch.testing.assert_close(torch.tensor(results[0][1]), torch.tensor(expected[1]), rtol=rtol, atol=0)

    def test_steps_are_those_of_clip_grad_norm_and_an_optimizer_of_pytorch(self):
        for optimizer, settings, kind in CASES:
            for clips, max_norm in ((True, 0.05), (False, 1e3), (False, math.inf)):
                with self.subTest(optimizer=optimizer, max_norm=max_norm):
                    results = self.together(lambda session: self.train(session, optimizer, max_norm, settings))
                    self.assertEqual(all(norm > max_norm for norm in results[0][1]), clips)
                    self.assert_trained(results, self.train_alone(kind, max_norm, settings))

    def test_parameters_of_16_bits_are_clipped(self):
        optimizer, settings, kind = CASES[0]
        results = self.together(lambda session: self.train(session, optimizer, 0.05, settings, torch.bfloat16))
        self.assert_trained(results, self.train_alone(kind, 0.05, settings), 0.1, 0.05)

    def test_a_step_whose_wait_was_too_short_goes_on_where_it_was(self):
        def late(optimizer):
            begun, apply_async = [], optimizer.hub.apply_async

            def begin(*arguments):
                begun.append(apply_async(*arguments))
                return LateOnce(begun[-1]) if len(begun) == 2 else begun[-1]

            with mock.patch.object(optimizer.hub, "apply_async", begin):
                steps = optimizer.steps
                self.assertRaises(gradcube.TimeoutError, optimizer.step)
                self.assertEqual(optimizer.steps, steps)
                optimizer.step()

        def train(session, rank_of_late):
            step = late if session.rank == rank_of_late else HubOptimizer.step
            return self.train(session, "adamw", 0.05, {"lr": 0.003}, step=step)

        results = [self.together(lambda one: train(one, rank)) for rank in (1, None)]
        self.assert_same(results[0] + results[1])

    def test_a_checkpoint_gives_back_a_training_that_clips(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"lr": 0.1, "checkpoint": os.path.join(folder, "model.hub"), "checkpoint_every": STEPS - 1}
            results = [self.together(lambda one: self.train(one, "momentum", 0.05, settings)) for _ in range(2)]
        self.assertEqual([len(norms) for _, norms in results[1]], [1] * SERVERS)
        self.assert_same([(values, norms[-1:]) for one in results for values, norms in one])

    def test_a_scale_that_float32_does_not_have_is_the_least_that_it_has(self):
        def work(session):
            parameter = torch.nn.Parameter(torch.ones(4))
            optimizer = HubOptimizer([parameter], lr=1.0, session=session, timeout=LATE, max_norm=1e-30)
            parameter.grad = torch.full((4,), 1e16)
            optimizer.step()
            self.assertEqual(optimizer.steps, 1)
            optimizer.free(LATE)
            return parameter.tolist()

        self.assertEqual(self.together(work), [[1.0] * 4] * SERVERS)

    def test_settings_that_have_changed_are_refused_before_any_parameter_has_its_step(self):
        def work(session):
            groups = [{"params": [torch.nn.Parameter(torch.ones(3))]} for _ in range(2)]
            optimizer = HubOptimizer(groups, lr=0.5, session=session, timeout=LATE, max_norm=1e9)
            for group in groups:
                group["params"][0].sum().backward()
            optimizer.param_groups[1]["weight_decay"] = 0.1
            self.assertRaisesRegex(gradcube.InvalidError, "group 1 has weight_decay", optimizer.step)
            self.assertAlmostEqual(optimizer.hub.norm(), math.sqrt(6), 5, "of all keys: none was applied")
            optimizer.param_groups[1]["weight_decay"] = 0.0
            optimizer.step()
            optimizer.free(LATE)
            return [group["params"][0].tolist() for group in groups]

        self.assertEqual(self.together(work), [[[0.5] * 3] * 2] * SERVERS)

    def test_a_norm_that_is_no_number_is_an_error_on_all_and_the_training_goes_on(self):
        def work(session):
            parameter = torch.nn.Parameter(torch.ones(1000))
            optimizer = HubOptimizer([parameter], "momentum", lr=0.5, session=session, timeout=LATE, max_norm=1e9)
            parameter.grad = torch.full((1000,), float("inf") if session.rank == 2 else 1.0)
            with self.assertRaisesRegex(gradcube.InvalidError, "norm of the gradients is inf.*no step was taken"):
                optimizer.step()
            self.assertEqual((optimizer.steps, optimizer.norm), (0, float("inf")))
            self.assertTrue(torch.equal(parameter.detach(), torch.ones(1000)))
            parameter.grad = torch.full((1000,), float(session.rank))
            optimizer.step()
            self.assertEqual(optimizer.steps, 1)
            optimizer.free(LATE)
            return parameter.tolist()

        self.assertEqual(self.together(work), [[1 - 0.5 * 1.5] * 1000] * SERVERS)

    def test_what_is_no_norm_is_refused(self):
        for max_norm in (0, -1, float("nan"), "long"):
            with self.assertRaisesRegex(gradcube.InvalidError, "invalid max_norm"):
                HubOptimizer([torch.nn.Parameter(torch.ones(3))], max_norm=max_norm)
        def work(session):
            with self.assertRaisesRegex(gradcube.InvalidError, "asynchronous"):
                parameters = [torch.nn.Parameter(torch.ones(3))]
                HubOptimizer(parameters, session=session, timeout=LATE, max_norm=1.0, aggregator=0, staleness=1)

        members = list(range(1, SERVERS))
        with job(self.cluster, "asynchronous", members, members=members) as sessions:
            self.assertEqual(all_of(work, sessions), [None] * len(members))


if __name__ == "__main__":
    main()
