"""HubOptimizer where trainers leave or abort, or something is late: what the others learn, and how it goes on."""

import pathlib
import tempfile
from unittest import mock

import gradcube
import torch
from gradcube._hub_optimizer import HubOptimizer

from fabrics import PATIENCE as LATE
from harness import all_of, job, main, wait_until
from hub_model import batch_of, loss_of, model_of, values_of
from hub_trainers import HubTrainers


def optimizer_of(session):
    """Of two parameters, of which the backward pass reaches one: step() pushes the other."""
    first, second = (torch.nn.Parameter(torch.ones(1000)) for _ in range(2))
    return HubOptimizer([first, second], session=session, timeout=LATE), first


class Failures(HubTrainers):
    def test_a_trainer_that_leaves_ends_the_step_of_all_others_with_its_name(self):
        def train(session):
            optimizer, reached = optimizer_of(session)
            if session.rank == 3:
                session.close()
                return None
            reached.sum().backward()
            optimizer.step()

        with job(self.cluster, "deserted") as sessions:
            for failure in all_of(train, sessions)[:3]:
                self.assert_fails(gradcube.PeerError, failure, "deserted", "[1,1]")

    def test_an_optimizer_whose_pushes_were_aborted_can_be_freed(self):
        def train(session):
            optimizer, reached = optimizer_of(session)
            reached.sum().backward()
            if session.rank != 3:
                return optimizer.step()
            session.abort()
            with self.assertRaises(gradcube.AbortedError):
                optimizer.free(LATE)
            with self.assertRaisesRegex(gradcube.InvalidError, "freed"):
                optimizer.free(LATE)

        with job(self.cluster, "aborted") as sessions:
            self.assertIsNone(all_of(train, sessions)[3])

    def test_a_push_that_was_interrupted_ends_the_optimizer_and_its_memory_is_left_alone(self):
        def train(session):
            optimizer, reached = optimizer_of(session)
            if session.rank != 3:
                reached.sum().backward()
                return optimizer.step()  # which has the last one's gradients, or fails, as it leaves
            push = optimizer.hub.push_async

            def interrupted(*arguments):
                push(*arguments)
                raise KeyboardInterrupt

            with mock.patch.object(optimizer.hub, "push_async", interrupted):
                self.assertRaises(KeyboardInterrupt, reached.sum().backward)
            for again in (reached.sum().backward, optimizer.step, optimizer.step, optimizer.free):
                with self.assertRaisesRegex(gradcube.InvalidError, "pushed already|was interrupted"):
                    again()
            session.close()

        with job(self.cluster, "interrupted") as sessions:
            self.assertIsNone(all_of(train, sessions)[3])

    def test_a_free_that_is_refused_leaves_the_hub_and_the_job(self):
        def train(session):
            optimizer, reached = optimizer_of(session)
            shown = optimizer.hub.weights("0000")
            with self.assertRaisesRegex(gradcube.InvalidError, "delete"):
                optimizer.free(LATE)
            del shown
            reached.sum().backward()
            optimizer.step()
            optimizer.free(LATE)

        with job(self.cluster, "unfreed") as sessions:
            self.assertEqual(all_of(train, sessions), [None] * 4)

    def test_a_step_whose_job_is_aborted_while_it_copies_weights_fails_and_they_stay(self):
        is_over = lambda: self.cluster.job("over")["state"] == "aborted"

        class Aborted(dict):
            """Of the weights: when the first are to be copied, the job is aborted."""

            def __getitem__(self, name):
                weights = super().__getitem__(name)
                before = weights.clone()
                self.session.abort()
                wait_until(is_over, "the job to end")
                assert weights.any() and weights.equal(before), "they are gone"
                return weights

        def train(session):
            optimizer, reached = optimizer_of(session)
            reached.sum().backward()
            if session.rank != 3:
                return optimizer.step()
            optimizer._weights = Aborted(optimizer._weights)
            optimizer._weights.session = session
            with self.assertRaises(gradcube.AbortedError):
                optimizer.step()

        with job(self.cluster, "over") as sessions:
            self.assertIsNone(all_of(train, sessions)[3])

    def test_a_checkpoint_whose_end_is_late_is_waited_for_again_and_no_step_is_taken_twice(self):
        path = self.path_of_checkpoints()

        def is_late_once(hub):
            end = hub.end_checkpoint

            def late(timeout=None):
                hub.end_checkpoint = end
                raise gradcube.TimeoutError("the disk is slow")

            hub.end_checkpoint = late

        def train(session):
            model = model_of(session.rank)
            optimizer = HubOptimizer(
                model.named_parameters(), "adam", session=session, timeout=LATE, checkpoint=path, checkpoint_every=1
            )
            for number in range(2):
                loss_of(model, batch_of(session.rank, number)).backward()
                if number == 0:
                    optimizer.step()
            is_late_once(optimizer.hub)
            self.assertRaises(gradcube.TimeoutError, optimizer.step)
            taken = values_of(model)
            optimizer.step()
            self.assertEqual(optimizer.steps, 2)
            for name, values in values_of(model).items():
                self.assertTrue(torch.equal(taken[name], values), name)
            is_late_once(optimizer.hub)
            self.assertRaises(gradcube.TimeoutError, optimizer.free, LATE)
            optimizer.free(LATE)

        self.train_all(train)
        self.assertEqual(self.steps_at(path), {"2"})

    def test_a_checkpoint_that_could_not_begin_is_made_after_the_next_step(self):
        path = self.path_of_checkpoints()

        def train(session):
            model = model_of(session.rank)
            optimizer = HubOptimizer(
                model.named_parameters(), "adam", session=session, timeout=LATE, checkpoint=path, checkpoint_every=2
            )
            for number in range(3):
                loss_of(model, batch_of(session.rank, number)).backward()
                if number == 1:
                    late = gradcube.TimeoutError("the disk is slow")
                    with mock.patch.object(optimizer._checkpoints, "end", side_effect=late):
                        self.assertRaises(gradcube.TimeoutError, optimizer.step)
                else:
                    optimizer.step()
            optimizer.free(LATE)

        self.train_all(train)
        self.assertEqual(self.steps_at(path), {"3"})

    def test_an_iteration_without_gradients_after_a_checkpoint_that_could_not_begin_is_one(self):
        path = self.path_of_checkpoints()

        def train(session):
            model = model_of(session.rank)
            optimizer = HubOptimizer(
                model.named_parameters(), "adam", session=session, timeout=LATE, checkpoint=path, checkpoint_every=2
            )
            for number in range(4):
                optimizer.zero_grad()
                if session.rank != 0 or number != 2:
                    loss_of(model, batch_of(session.rank, number)).backward()
                if number == 1:
                    late = gradcube.TimeoutError("the disk is slow")
                    with mock.patch.object(optimizer._checkpoints, "end", side_effect=late):
                        self.assertRaises(gradcube.TimeoutError, optimizer.step)
                else:
                    optimizer.step()
            optimizer.free(LATE)
            return optimizer.steps

        with job(self.cluster, "late") as sessions:
            self.assertEqual(all_of(train, sessions), [4] * 4)

    def steps_at(self, path):
        return {file.name.split(".")[2] for file in path.parent.iterdir()}

    def path_of_checkpoints(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name) / "model.hub"

    def train_all(self, train):
        with job(self.cluster, "late") as sessions:
            self.assertEqual(all_of(train, sessions), [None] * 4)


if __name__ == "__main__":
    main()
