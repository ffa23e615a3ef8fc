"""HubOptimizer: trainers whose steps the servers take come to what an optimizer of PyTorch does, to the same bits."""

import contextlib
import copy
import gc
import pathlib
import pickle
import sys
import tempfile
import weakref

import gradcube
import torch
from gradcube._hub_optimizer import HubOptimizer

from fabrics import PATIENCE
from harness import Cluster, TestCase, all_of, job, main
from hub_model import batch_of, loss_of, model_of, values_of
from hub_trainers import HubTrainers
from torch_launch import LONG

LATE = PATIENCE
STEPS = 5


class HubOptimizers(HubTrainers):
    def train(self, session, optimizer, dtype=torch.float32, **settings):
        model = model_of(session.rank, dtype)
        parameters = model.named_parameters() if optimizer != "adam" else model.parameters()
        optimizer = HubOptimizer(parameters, optimizer, session=session, timeout=LATE, **settings)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for number in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, batch_of(session.rank, number, dtype)).backward()
            optimizer.step()
            schedule.step()
        optimizer.free(LATE)
        return values_of(model)

    def train_alone(self, make):
        """The same with an optimizer of PyTorch and the mean of all trainers' gradients."""
        model = model_of(0)
        optimizer = make(model.parameters())
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for number in range(STEPS):
            optimizer.zero_grad()
            for rank in range(4):
                (loss_of(model, batch_of(rank, number)) / 4).backward()
            model.unused.grad = torch.zeros(3)
            optimizer.step()
            schedule.step()
        return values_of(model)

    def assert_same(self, results):
        for result in results[1:]:
            for name, values in results[0].items():
                self.assertTrue(torch.equal(values, result[name]), name)

    def assert_close(self, values, others):
        for name in values:
            torch.testing.assert_close(values[name], others[name], rtol=1e-4, atol=1e-6)

    def test_trainers_end_with_the_same_bits_close_to_those_of_an_optimizer_of_pytorch(self):
        cases = [
            ("sgd", {"lr": 0.1}, torch.optim.SGD),
            ("sgd", {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}, torch.optim.SGD),
            ("sgd", {"lr": 0.05, "momentum": 0.8, "nesterov": True}, torch.optim.SGD),
            ("adam", {"lr": 0.003, "betas": (0.8, 0.99), "eps": 1e-6}, torch.optim.Adam),
            ("adamw", {"lr": 0.003}, torch.optim.AdamW),
        ]
        for optimizer, settings, kind in cases:
            with self.subTest(optimizer=optimizer, settings=settings):
                results = self.together(lambda session: self.train(session, optimizer, **settings))
                self.assert_same(results)
                self.assert_close(results[0], self.train_alone(lambda one: kind(one, **settings)))

    def test_the_names_of_the_hub_s_own_optimizers_are_those_of_sgd_with_momentum(self):
        settings = {"lr": 0.05, "momentum": 0.9, "nesterov": True}
        results = self.together(lambda session: self.train(session, "nesterov", lr=0.05))
        self.assert_close(results[0], self.train_alone(lambda one: torch.optim.SGD(one, **settings)))

    def test_parameters_of_16_bits_are_trained(self):
        results = self.together(lambda session: self.train(session, "momentum", torch.bfloat16, lr=0.05))
        self.assert_same(results)
        settings = {"lr": 0.05, "momentum": 0.9}
        for name, values in self.train_alone(lambda one: torch.optim.SGD(one, **settings)).items():
            torch.testing.assert_close(results[0][name].float(), values, rtol=0.1, atol=0.05)

        def halves(session):  # PyTorch has no layers of float16 on the CPU
            parameter = torch.nn.Parameter(torch.ones(5, dtype=torch.float16))
            optimizer = HubOptimizer([parameter], lr=0.5, session=session, timeout=LATE)
            parameter.grad = torch.full((5,), float(session.rank), dtype=torch.float16)
            optimizer.step()
            optimizer.free(LATE)
            return parameter.tolist()

        self.assertEqual(self.together(halves), [[1 - 0.5 * 1.5] * 5] * 4)

    def test_groups_have_settings_of_their_own(self):
        def groups(model, **other):  # of pairs with names, which PyTorch 1.13 does not take
            named = list(model.named_parameters())
            weights, biases = ([one for one in named if ("bias" in one[0]) == is_bias] for is_bias in (False, True))
            return [{"params": weights, **other}, {"params": biases, "weight_decay": 0.0}]

        # In longer steps of AdamW the order of the sums alone would change the fourth digit.
        cases = [
            ("sgd", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.5}, {"lr": 0.2, "momentum": 0.5}, torch.optim.SGD),
            ("adamw", {"lr": 0.003, "weight_decay": 0.5}, {"lr": 0.01, "betas": (0.8, 0.9)}, torch.optim.AdamW),
        ]
        for optimizer, settings, other, kind in cases:

            def train(session):
                model = model_of(session.rank)
                trained = HubOptimizer(groups(model, **other), optimizer, session=session, timeout=LATE, **settings)
                for step in range(3):
                    loss_of(model, batch_of(session.rank, step)).backward()
                    trained.step()
                trained.free(LATE)
                return values_of(model)

            with self.subTest(optimizer=optimizer):
                model = model_of(0)
                unnamed = [{**one, "params": [of for _, of in one["params"]]} for one in groups(model, **other)]
                local = kind(unnamed, **settings)
                for step in range(3):
                    local.zero_grad()
                    for rank in range(4):
                        (loss_of(model, batch_of(rank, step)) / 4).backward()
                    model.unused.grad = torch.zeros(3)
                    local.step()
                results = self.together(train)
                self.assert_same(results)
                self.assert_close(results[0], values_of(model))

    def test_gradients_are_pushed_in_the_backward_pass_and_used_up(self):
        def train(session):
            model = model_of(session.rank)
            optimizer = HubOptimizer(model.named_parameters(), session=session, lr=0.1, timeout=LATE)
            loss_of(model, batch_of(session.rank, 0)).backward()
            self.assertTrue(all(one.grad is None for one in model.parameters()))
            with self.assertRaisesRegex(gradcube.AgainError, "pushes to the hub are in flight"):
                optimizer.hub.free(LATE)
            with self.assertRaisesRegex(gradcube.InvalidError, "a second gradient of parameter .*no_sync"):
                loss_of(model, batch_of(session.rank, 1)).backward()
            with self.assertRaisesRegex(gradcube.InvalidError, "call restart.. after step"):
                optimizer.restart()
            optimizer.step()
            once = values_of(model)
            loss_of(model, batch_of(session.rank, 1)).backward()
            optimizer.step()
            optimizer.free(LATE)
            with self.assertRaisesRegex(gradcube.InvalidError, "freed"):
                optimizer.step()
            loss_of(model, batch_of(session.rank, 1)).backward()  # pushes nothing any more
            return once

        self.assert_same(self.together(train))

    def test_a_clip_limits_each_element_of_the_mean(self):
        def train(session):
            parameter = torch.nn.Parameter(torch.zeros(2))
            optimizer = HubOptimizer([parameter], session=session, lr=1.0, clip=2.0, timeout=LATE)
            parameter.grad = torch.tensor([20.0, 1.0])
            optimizer.step()
            optimizer.free(LATE)
            return parameter.tolist()

        self.assertEqual(self.together(train), [[-2.0, -1.0]] * 4)

    def test_passes_in_no_sync_add_up(self):
        def train(session):
            model = model_of(session.rank)
            optimizer = HubOptimizer(model.parameters(), session=session, lr=0.1, timeout=LATE)
            with optimizer.no_sync():
                loss_of(model, batch_of(session.rank, 0)).backward()
                model.unused.sum().backward()  # has a gradient in this pass alone
            loss_of(model, batch_of(session.rank, 1)).backward()
            optimizer.step()
            optimizer.free(LATE)
            return values_of(model)

        model = model_of(0)
        for rank in range(4):
            for number in range(2):
                (loss_of(model, batch_of(rank, number)) / 4).backward()
        model.unused.sum().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        results = self.together(train)
        self.assert_same(results)
        self.assert_close(results[0], values_of(model))

    def test_a_gradient_that_some_trainers_have_not_counts_as_zero(self):
        def train(session):
            parameter = torch.nn.Parameter(torch.ones(3))
            optimizer = HubOptimizer([parameter], session=session, lr=1.0, timeout=LATE)
            closure = lambda: (parameter * 4).sum().backward() if session.rank == 2 else None
            optimizer.step(closure)
            optimizer.free(LATE)
            return parameter.tolist()

        self.assertEqual(self.together(train), [[0.0] * 3] * 4)

    def test_a_training_goes_on_from_its_checkpoint_with_the_same_bits(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)

        def train(session, steps, **settings):
            model = model_of(session.rank)
            optimizer = HubOptimizer(
                model.named_parameters(), "adamw", session=session, lr=0.1, timeout=LATE, **settings
            )
            taken = optimizer.steps
            for number in range(taken, steps):
                optimizer.zero_grad()
                loss_of(model, batch_of(session.rank, number)).backward()
                optimizer.step()
            optimizer.free(LATE)
            return taken, values_of(model)

        where = {"checkpoint": folder.name + "/model.hub", "checkpoint_every": 2}
        whole = self.together(lambda session: train(session, STEPS))
        first = self.together(lambda session: train(session, STEPS - 1, **where))
        second = self.together(lambda session: train(session, STEPS, **where))
        self.assertEqual([taken for taken, _ in first + second], [0] * 4 + [STEPS - 1] * 4)
        self.assert_same([values for _, values in whole + second])
        last = self.together(lambda session: train(session, STEPS, checkpoint=where["checkpoint"]))
        self.assertEqual([taken for taken, _ in last], [STEPS - 1] * 4, "an odd number of steps makes none")
        for settings in ({"checkpoint_every": 2}, {"checkpoint": "x", "checkpoint_every": 0}):
            for result in self.failures(lambda session: train(session, 1, **settings)):
                self.assert_fails(gradcube.InvalidError, result, "checkpoint")

    def failures(self, work):
        with job(self.cluster, "refused") as sessions:
            return all_of(work, sessions)

    def test_weights_that_were_loaded_are_trained_after_a_restart(self):
        def train(session):
            model = model_of(session.rank)
            optimizer = HubOptimizer(model.named_parameters(), "momentum", session=session, lr=0.1, timeout=LATE)
            loss_of(model, batch_of(session.rank, 0)).backward()
            optimizer.step()
            model.load_state_dict(model_of(7 + session.rank).state_dict())  # that of rank 0 counts
            optimizer.restart()
            loss_of(model, batch_of(session.rank, 0)).backward()
            optimizer.step()
            optimizer.free(LATE)
            return values_of(model)

        model = model_of(7)
        for rank in range(4):
            (loss_of(model, batch_of(rank, 0)) / 4).backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        results = self.together(train)
        self.assert_same(results)
        self.assert_close(results[0], values_of(model))

    def test_a_state_dict_has_the_groups_alone(self):
        def train(session):
            model = model_of(session.rank)
            optimizer = HubOptimizer(model.parameters(), "adamw", session=session, lr=0.1, timeout=LATE)
            state = optimizer.state_dict()
            self.assertEqual(state["state"], {})
            self.assertEqual(state["param_groups"][0]["lr"], 0.1)
            state["param_groups"][0]["lr"] = 0.25
            optimizer.load_state_dict(state)
            self.assertEqual(optimizer.param_groups[0]["lr"], 0.25)
            state["param_groups"][0]["eps"] = 1.0
            with self.assertRaisesRegex(gradcube.InvalidError, "eps"):
                optimizer.load_state_dict(state)
            with self.assertRaisesRegex(gradcube.InvalidError, "a local optimizer's"):
                optimizer.load_state_dict({"state": {0: {"step": 1}}, "param_groups": []})
            with self.assertRaisesRegex(gradcube.InvalidError, "keys are fixed"):
                optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
            optimizer.free(LATE)

        self.together(train)

    def test_what_a_hub_cannot_do_is_refused(self):
        parameter = torch.nn.Parameter(torch.ones(3))

        def two_groups(name="b", **settings):
            own = torch.nn.Parameter(torch.ones(1))
            return [{"params": [("a", parameter)]}, {"params": [(name, own)], **settings}]

        cases = [
            ("unknown optimizer 'lion'", [parameter], "lion", {}),
            ("sgd has no setting 'betas'", [parameter], "sgd", {"betas": (0, 0)}),
            ("invalid weight_decay 'much'", [parameter], "sgd", {"weight_decay": "much"}),
            ("nesterov takes a momentum", [parameter], "sgd", {"nesterov": True}),
            ("float64", [torch.nn.Parameter(torch.ones(3, dtype=torch.float64))], "sgd", {}),
            ("no parameter with a gradient", [torch.ones(3)], "sgd", {}),
            ("the name 'a'", [("a", parameter), ("a", torch.nn.Parameter(torch.ones(1)))], "adam", {}),
            ("a parameter group is for momentum where the first is for sgd", two_groups(momentum=0.9), "sgd", {}),
            ("its name may have no ;", two_groups("a;b", weight_decay=1), "sgd", {}),
            ("invalid clip 'some'", two_groups(clip="some"), "sgd", {}),
            ("maximize True, and sgd of a hub has none", two_groups(maximize=True), "sgd", {}),
            ("amsgrad True", [{"params": [parameter], "amsgrad": True}], "adam", {}),
            ("betas .*, and sgd of a hub has none", two_groups(betas=(0.5, 0.9)), "sgd", {}),
            ("momentum 0.5, and adam of a hub has none", two_groups(momentum=0.5), "adam", {}),
            ("'a' is in two groups", two_groups() + [{"params": [parameter], "lr": 1.0}], "sgd", {}),
            ("invalid weight_decay tensor", two_groups(weight_decay=torch.ones(2)), "sgd", {}),
        ]

        def refuse(session):
            if session.rank == 0:
                for words, parameters, optimizer, settings in cases:
                    with self.assertRaisesRegex(gradcube.InvalidError, words):
                        HubOptimizer(parameters, optimizer, session=session, timeout=LATE, **settings)
            session.barrier(timeout=LATE)
            own = torch.nn.Parameter(torch.ones(3))
            decay = torch.tensor(0.5)
            # What another optimizer has, and is not set, does not matter; nor does a parameter twice in one group.
            group = {"params": [own, own], "maximize": False, "betas": None, "foreach": True, "name": "own"}
            optimizer = HubOptimizer([group], "momentum", weight_decay=decay, session=session, timeout=LATE)
            optimizer.step()
            for name, words in (("momentum", "momentum 0.5 where the hub has 0.9"), ("maximize", "hub has none")):
                before, optimizer.param_groups[0][name] = optimizer.param_groups[0][name], 0.5
                with self.assertRaisesRegex(gradcube.InvalidError, words):
                    optimizer.step()
                with self.assertRaisesRegex(gradcube.InvalidError, words):
                    optimizer.load_state_dict(optimizer.state_dict())
                optimizer.param_groups[0][name] = before
            decay.mul_(0)
            with self.assertRaisesRegex(gradcube.InvalidError, "weight_decay 0.0 where the hub has 0.5"):
                optimizer.step()
            optimizer.free(LATE)

        self.together(refuse)

    def test_an_optimizer_is_not_copied_as_a_copy_would_push_into_nothing(self):
        def refuse(session):
            optimizer = HubOptimizer(model_of(session.rank).parameters(), session=session, timeout=LATE)
            for call in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "make one there"):
                    call(optimizer)
            optimizer.free(LATE)

        self.together(refuse)

    def test_an_optimizer_that_nobody_has_any_more_pushes_nothing(self):
        def train(session):
            model = model_of(session.rank)
            optimizer = HubOptimizer(model.parameters(), session=session, timeout=LATE)
            hub, gone = optimizer.hub, weakref.ref(optimizer)
            del optimizer
            gc.collect()
            self.assertIsNone(gone())
            loss_of(model, batch_of(session.rank, 0)).backward()
            self.assertIsNotNone(model.first.weight.grad)
            hub.free(LATE)

        self.together(train)

    def test_the_backend_s_module_has_it_too(self):
        with contextlib.suppress(ImportError):
            import gradcube.torch

            self.assertIs(gradcube.torch.HubOptimizer, HubOptimizer)


class Launched(TestCase):
    def test_optimizers_without_sessions_join_where_they_were_started_and_by_the_run_that_started_them(self):
        script = pathlib.Path(__file__).resolve().parent / "hub_launched.py"
        with Cluster("--topology", "star:2") as cluster:

            def run(seed):
                command = ["run", "--no-prefix", "--trainers", "2", "--", sys.executable, str(script), seed]
                return cluster.tool(*command, timeout=LONG)

            weights = set()
            for done in all_of(run, ["1", "2"], LONG):
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = done.stdout.splitlines()
                self.assertEqual(len(lines), 4, done.stdout)
                self.assertEqual(len(set(lines)), 1, done.stdout)
                self.assertTrue(lines[0].startswith("of 4: "), done.stdout)
                weights.add(lines[0])
            self.assertEqual(len(weights), 2)
            self.assert_works(cluster)


if __name__ == "__main__":
    main()
