"""A server without trainers aggregates a job's hub, also without waiting for the slowest, and the trainers keep
checkpoints of what it has. When it dies, they are told its name, and another job goes on."""

import contextlib
import functools
import os
import signal
import threading

import gradcube
import numpy

from fabrics import PATIENCE, RADIX, SERVERS, needs_daemons, needs_faults, some
from harness import Cluster, TestCase, all_of, job, main, wait_until
from hub_checkpoints import ROUNDS, SAVED, CheckpointTestCase
from hub_keys import LATE, RATE, HubTestCase, as_floats, first_weights, gradients_of

MEMBERS = list(range(SERVERS - 1))
AGGREGATOR = SERVERS - 1
LAST = f"[{RADIX - 1},{RADIX - 1}]"  # its address


class Rounds(HubTestCase):
    def hub_of(self, session, optimizer="sgd", **options):
        return super().hub_of(session, optimizer, **{"aggregator": AGGREGATOR, **options})

    def test_trainers_have_the_weights_of_an_oracle(self):
        for optimizer in ("momentum:momentum=0.9", "adam"):
            with self.subTest(optimizer=optimizer), self.members("oracle") as sessions:
                found = self.results(lambda session: self.train(session, optimizer), sessions)
            self.assert_same(found)
            self.assert_as_oracle(found[0], optimizer, len(MEMBERS))

    def test_one_hub_follows_another_and_any_server_can_aggregate(self):
        others = list(range(1, SERVERS))
        with job(self.cluster, "others", others, members=others) as sessions:

            def train_twice(session):
                for _ in range(2):
                    hub = self.hub_of(session, aggregator=0)
                    gradients = gradients_of(session.rank, 0)
                    for request in [hub.push_async(name, gradients[name], RATE) for name in hub.names]:
                        request.wait(LATE)
                    found = {name: hub.weights(name).copy() for name in hub.names}
                    hub.free(LATE)
                return found

            self.assert_same(self.results(train_twice, sessions))

    @needs_faults
    def test_weights_have_the_same_bits_when_frames_are_lost(self):
        results = []
        for loss in ("0", "0.02"):
            self.assertEqual(self.cluster.tool("impair", "--loss", loss).returncode, 0)
            self.addCleanup(self.cluster.tool, "impair", "--loss", "0")
            with self.members("faults") as sessions:
                results += self.results(lambda session: self.train(session, "momentum:momentum=0.9"), sessions)
        self.assert_same(results)

    def test_status_shows_the_hub_at_the_server_that_aggregates_it(self):
        with self.members("shown") as sessions:
            hubs = self.results(self.hub_of, sessions)
            status = self.cluster.status()
            (shown,) = status["hubs"]
            self.assertEqual((shown["job"], shown["state"], shown["why"]), ("shown", "running", ""))
            self.assertEqual(shown["address"], status["servers"][AGGREGATOR]["address"])
            self.assertEqual(shown["members"], [status["servers"][server]["address"] for server in MEMBERS])
            self.assertEqual(shown["keys"], len(hubs[0].names))
            users = {user["uid"]: user["bytes"] for user in status["memory"]["users"]}
            self.assertGreater(shown["memory_bytes"], shown["weights_bytes"])
            self.assertGreaterEqual(users[os.getuid()], shown["memory_bytes"])
            text = self.cluster.tool("status").stdout
            self.assertRegex(text, r"hubs that are aggregated for jobs of other servers\n.*\nshown +\d+ +\[")
            self.results(lambda hub: hub.free(LATE), hubs)
        wait_until(lambda: self.cluster.status()["hubs"] == [], "the hub to be freed")

    def test_an_aggregator_that_there_cannot_be_is_refused_on_all(self):
        for aggregator, words in ((SERVERS, "there is no server"), (0, "has trainers of the job")):
            with self.subTest(aggregator=aggregator), self.members("refused") as sessions:
                failures = all_of(lambda session: self.hub_of(session, aggregator=aggregator), sessions)
                for failure in failures:
                    self.assertIsInstance(failure, gradcube.InvalidError)
                    self.assertIn(words, str(failure))

    def members(self, name):
        return job(self.cluster, name, MEMBERS, members=MEMBERS)


class Checkpoints(CheckpointTestCase):
    def test_a_job_goes_on_from_the_one_file_that_rank_0_writes(self):
        for optimizer in some(["adam", "momentum:momentum=0.9"], 1):
            with self.subTest(optimizer=optimizer):
                options = {"optimizer": optimizer, "aggregator": AGGREGATOR}
                whole = self.run_job("whole", self.nowhere, MEMBERS, **options)
                self.assert_same(self.run_job("first", self.own, MEMBERS, rounds=SAVED, save=True, **options))
                files = [str(file.relative_to(self.folder)) for file in self.folder.rglob("model.hub.*")]
                self.assertEqual(files, [f"0/model.hub.{SAVED}.1-of-1"])
                self.assert_same(whole + self.run_job("second", self.own, MEMBERS, **options))
                (self.folder / files[0]).unlink()

    def test_training_goes_on_after_a_checkpoint_as_if_there_had_been_none(self):
        whole = self.run_job("whole", self.nowhere, MEMBERS, aggregator=AGGREGATOR)

        def train(session):
            hub, found = self.go_on(session, self.shared, rounds=SAVED, aggregator=AGGREGATOR)
            hub.begin_checkpoint(self.shared(session), SAVED)
            for name, array in found.items():
                numpy.testing.assert_array_equal(hub.weights(name), array, name)
            for number in range(SAVED, ROUNDS):
                gradients = gradients_of(session.rank, number)
                for name in sorted(hub.names):
                    hub.push_pull(name, gradients[name], found[name], RATE, LATE)
            hub.end_checkpoint(LATE)
            hub.free(LATE)
            return found

        with job(self.cluster, "parts", MEMBERS, members=MEMBERS) as sessions:
            self.assert_same(whole + self.results(train, sessions))
        second = self.run_job("second", self.shared, MEMBERS, aggregator=AGGREGATOR)
        self.assert_same(whole + second)

    def test_jobs_with_and_without_an_aggregator_go_on_from_each_others_files(self):
        whole = self.run_job("whole", self.nowhere, MEMBERS, aggregator=AGGREGATOR)
        for first, second in ((AGGREGATOR, None), (None, AGGREGATOR)):
            with self.subTest(first=first):
                self.run_job("first", self.shared, MEMBERS, aggregator=first, rounds=SAVED, save=True)
                self.assert_same(whole + self.run_job("second", self.shared, MEMBERS, aggregator=second))
                for file in self.folder.iterdir():
                    file.unlink()

    def test_several_aggregators_give_the_weights_of_one_and_have_one_file(self):
        members = MEMBERS[:-1]
        both = [AGGREGATOR, AGGREGATOR - 1]
        whole = self.run_job("whole", self.nowhere, members, aggregator=AGGREGATOR)
        self.run_job("first", self.shared, members, aggregator=both, rounds=SAVED, save=True)
        for aggregator in (AGGREGATOR, both):
            with self.subTest(aggregator=aggregator):
                self.assert_same(whole + self.run_job("second", self.shared, members, aggregator=aggregator))
        self.assertEqual([file.name for file in self.folder.iterdir()], [f"model.hub.{SAVED}.1-of-1"])

    def test_a_hub_that_was_saved_in_part_shows_nothing_else_for_its_weights(self):
        def save(session):
            hub = self.hub_of(session, "adam", aggregator=AGGREGATOR, timeout=5)  # also of what is not to come
            if session.rank != 0:
                with self.assertRaises(gradcube.TimeoutError):
                    hub.begin_checkpoint(self.shared(session), 1)
                pull = functools.partial(hub.pull, "short", numpy.zeros(10, "float32"))
                for refused in (pull, lambda: hub.begin_checkpoint(self.shared(session), 1)):
                    with self.assertRaisesRegex(gradcube.InvalidError, "as a whole"):
                        refused()
            with self.assertRaises(gradcube.Error):
                hub.free(0.1)

        with job(self.cluster, "torn", MEMBERS, members=MEMBERS) as sessions:
            self.results(save, sessions)

    def test_a_hub_can_be_freed_when_a_trainer_goes_while_it_is_saved(self):
        def save(session):
            hub = self.hub_of(session, "adam", aggregator=AGGREGATOR)
            if session.rank == 0:
                return session.abort()
            with self.assertRaises(gradcube.PeerError):
                hub.begin_checkpoint(self.shared(session), 1)
            with self.assertRaises(gradcube.PeerError):  # and not AgainError: it is freed
                hub.free(LATE)

        with job(self.cluster, "deserted", MEMBERS, members=MEMBERS) as sessions:
            self.results(save, sessions)

    def test_models_that_are_saved_in_several_parts_go_on_too(self):
        elements = 3 << 20  # the aggregator's state of one key alone is 24 MiB
        members = MEMBERS[:2]

        def train(session, steps, save):
            gradients = {name: numpy.ones(elements, "float32") for name in "abc"}
            weights = {name: numpy.full(elements, value, "float32") for value, name in enumerate("abc")}
            options = {"aggregator": AGGREGATOR, "restore": self.shared(session), "timeout": LATE}
            hub = gradcube.Hub(session, weights, "adam", **options)
            for _ in range(hub.step or 0, steps):
                for request in [hub.push_async(name, gradients[name], RATE) for name in hub.names]:
                    request.wait(LATE)
            if save:
                hub.checkpoint(self.shared(session), steps, LATE)
            found = {name: hub.weights(name).copy() for name in hub.names}
            hub.free(LATE)
            return found

        found = []
        for steps, save in ((2, True), (3, False)):
            with job(self.cluster, "large", members, members=members) as sessions:
                found = self.results(lambda session: train(session, steps, save), sessions)
        self.assert_same(found)
        # With gradients of 1 each step of Adam is about the learning rate.
        for value, name in enumerate("abc"):
            numpy.testing.assert_allclose(found[0][name], value - 3 * RATE, 0, 1e-5)

    def test_of_a_server_with_several_trainers_the_first_ones_count(self):
        def run(name, path, **options):
            with contextlib.ExitStack() as stack:
                sessions = [
                    stack.enter_context(
                        gradcube.Session(socket, name, trainers_per_server=2, local=local, members=MEMBERS)
                    )
                    for socket in self.cluster.sockets()[:AGGREGATOR]
                    for local in range(2)
                ]
                return self.results(
                    lambda session: self.train(session, path, aggregator=AGGREGATOR, **options), sessions
                )

        whole = run("whole", self.nowhere)
        run("first", self.own, rounds=SAVED, save=True)
        self.assert_same(whole + run("second", self.own))


class Asynchronous(CheckpointTestCase):
    STALENESS = 2

    def hub_of(self, session, optimizer="sgd", **options):
        return super().hub_of(session, optimizer, **{"aggregator": AGGREGATOR, "staleness": self.STALENESS, **options})

    def push(self, session, hub, number):
        gradients = gradients_of(session.rank, number)
        return [hub.push_async(name, gradients[name], RATE) for name in self.order(session, number)]

    def push_all(self, session, hub, rounds):
        for number in rounds:
            for request in self.push(session, hub, number):
                request.wait(LATE)

    def after_steps_of_all(self, rounds):
        """Of sgd, whose steps add up in any order."""
        weights = first_weights()
        return {
            name: as_floats(name, array) - RATE * sum(
                as_floats(name, gradients_of(rank, number)[name]) for number in range(rounds) for rank in MEMBERS
            )
            for name, array in weights.items()
        }

    def assert_has_steps_of_all(self, results, rounds):
        self.assert_same(results)
        expected = self.after_steps_of_all(rounds)
        for name, array in results[0].items():
            close = {"half": 2e-2, "brain": 0.2}.get(name, 1e-4)
            numpy.testing.assert_allclose(as_floats(name, array), expected[name], close, close, err_msg=name)

    def save_and_show(self, session, hub):
        """The weights that all trainers have after a checkpoint."""
        hub.checkpoint(self.shared(session), ROUNDS, LATE)
        return {name: hub.weights(name).copy() for name in hub.names}

    def test_a_trainer_is_ahead_of_the_slowest_one_by_no_more_than_the_staleness(self):
        slow = MEMBERS[1]
        ahead = threading.Barrier(len(MEMBERS))

        def train(session):
            hub = self.hub_of(session)
            if session.rank == slow:
                ahead.wait(LATE)
                self.push_all(session, hub, range(ROUNDS))
            else:
                self.push_all(session, hub, range(self.STALENESS + 1))
                too_far = self.push(session, hub, self.STALENESS + 1)
                with self.assertRaises(gradcube.TimeoutError):
                    too_far[0].wait(0.3)
                ahead.wait(LATE)
                for request in too_far:
                    request.wait(LATE)
                self.push_all(session, hub, range(self.STALENESS + 2, ROUNDS))
            found = self.save_and_show(session, hub)
            hub.free(LATE)
            return found

        with job(self.cluster, "slow", MEMBERS, members=MEMBERS) as sessions:
            self.assert_has_steps_of_all(self.results(train, sessions), ROUNDS)

    def test_a_job_goes_on_from_its_checkpoint(self):
        def train(session, last):
            hub = self.hub_of(session, restore=self.shared(session))
            self.push_all(session, hub, range(hub.step or 0, last))
            hub.checkpoint(self.shared(session), last, LATE)
            found = {name: hub.weights(name).copy() for name in hub.names}
            hub.free(LATE)
            return found

        for last in (SAVED, ROUNDS):
            with job(self.cluster, f"until-{last}", MEMBERS, members=MEMBERS) as sessions:
                self.assert_has_steps_of_all(self.results(lambda session: train(session, last), sessions), last)

    @needs_faults
    def test_each_gradient_is_stepped_with_once_when_frames_are_lost(self):
        self.assertEqual(self.cluster.tool("impair", "--loss", "0.02").returncode, 0)
        self.addCleanup(self.cluster.tool, "impair", "--loss", "0")

        def train(session):
            hub = self.hub_of(session)
            self.push_all(session, hub, range(ROUNDS))
            found = self.save_and_show(session, hub)
            hub.free(LATE)
            return found

        with job(self.cluster, "faults", MEMBERS, members=MEMBERS) as sessions:
            self.assert_has_steps_of_all(self.results(train, sessions), ROUNDS)

    def test_trainers_of_another_staleness_are_told_so(self):
        with job(self.cluster, "mismatch", MEMBERS, members=MEMBERS) as sessions:
            failures = all_of(
                lambda session: self.hub_of(session, staleness=1 if session.rank == 0 else None), sessions
            )
        for failure in failures:
            self.assert_fails(gradcube.MismatchError, failure, "staleness")

    def test_rates_that_are_no_floats_are_refused_and_the_hub_goes_on(self):
        def push(session):
            hub = self.hub_of(session)
            with self.assertRaisesRegex(gradcube.InvalidError, "learning rate"):
                hub.push("short", gradients_of(0, 0)["short"], 1e39)
            hub.free(LATE)

        with job(self.cluster, "rates", MEMBERS, members=MEMBERS) as sessions:
            self.results(push, sessions)


@needs_daemons
class ResumedJob(CheckpointTestCase):
    def test_goes_on_from_its_checkpoint_without_the_aggregator_that_was_killed(self):
        whole = self.run_job("whole", self.nowhere, MEMBERS, aggregator=AGGREGATOR)
        daemon = self.cluster.status()["servers"][AGGREGATOR]["pid"]
        saved = threading.Barrier(len(MEMBERS) + 1)

        def train(session):
            hub, found = self.go_on(session, self.shared, rounds=SAVED, aggregator=AGGREGATOR)
            hub.checkpoint(self.shared(session), SAVED, LATE)
            saved.wait(LATE)
            gradients = gradients_of(session.rank, SAVED)
            while True:
                hub.push_pull("long", gradients["long"], found["long"], RATE, PATIENCE)

        def kill():
            saved.wait(LATE)
            os.kill(daemon, signal.SIGKILL)

        with job(self.cluster, "killed", MEMBERS, members=MEMBERS) as sessions:
            tasks = [lambda session=session: train(session) for session in sessions]
            *failures, _ = all_of(lambda task: task(), [*tasks, kill])
        for failure in failures:
            self.assert_fails(gradcube.PeerError, failure, f"the daemon on server {LAST}")
        self.assert_same(whole + self.run_job("again", self.shared, MEMBERS))


@needs_daemons
class Deaths(TestCase):
    def test_of_the_aggregator_is_told_to_all_trainers(self):
        with Cluster("--topology", f"star:{SERVERS}") as cluster:
            daemon = cluster.status()["servers"][AGGREGATOR]["pid"]
            with job(cluster, "orphans", MEMBERS, members=MEMBERS) as sessions:
                hubs = all_of(lambda session: self.hub_of(session), sessions)
                os.kill(daemon, signal.SIGKILL)
                for failure in all_of(self.push, hubs):
                    self.assert_fails(gradcube.PeerError, failure, f"server [{AGGREGATOR}]")

    def hub_of(self, session):
        return gradcube.Hub(session, {"key": numpy.zeros(1000, "float32")}, aggregator=AGGREGATOR, timeout=LATE)

    def push(self, hub):
        while True:
            hub.push("key", numpy.ones(1000, "float32"), timeout=PATIENCE)


if __name__ == "__main__":
    main()
