"""Jobs end, and others go on from the checkpoints of their hubs, with the same bits as if nothing had been."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import gradcube

from death_test import failures_when
from fabrics import MIDDLE, PATIENCE, SERVERS, only_on, rounds, some
from harness import Cluster, TestCase, all_of, arguments_of, job, main, wait_until
from hub_checkpoints import SAVED, CheckpointTestCase
from hub_keys import LATE, RATE, gradients_of

HERE = pathlib.Path(__file__).parent


class Checkpoints(CheckpointTestCase):
    def test_a_job_goes_on_with_the_same_bits_where_each_server_has_its_own_disk(self):
        for optimizer in some(["adam", "momentum:momentum=0.9", "sgd"], 1):
            with self.subTest(optimizer=optimizer):
                whole = self.run_job("whole", self.nowhere, optimizer=optimizer)
                saved = self.run_job("first", self.own, optimizer=optimizer, rounds=SAVED, save=True)
                self.assert_same(saved)
                again = self.run_job("second", self.own, optimizer=optimizer)
                self.assert_same(whole + again)
                for file in self.folder.rglob("model.hub.*"):
                    file.unlink()

    def test_a_job_with_another_algorithm_goes_on_from_the_files_of_all(self):
        whole = self.run_job("whole", self.nowhere)
        self.run_job("first", self.shared, algorithm="bml", rounds=SAVED, save=True)
        self.assertEqual(len(list(self.folder.iterdir())), SERVERS)
        again = self.run_job("second", self.shared, algorithm="ps")
        self.assert_same(whole + again)

    def test_a_job_of_fewer_servers_has_the_weights_of_the_files_of_all(self):
        saved = self.run_job("first", self.shared, rounds=SAVED, save=True)
        members = [0, 1]
        with job(self.cluster, "second", members, members=members) as sessions:
            found = self.results(
                lambda session: self.train(session, self.shared, rounds=SAVED, save=True), sessions
            )
        self.assert_same(saved + found)
        names = sorted(file.name for file in self.folder.iterdir())
        self.assertEqual(names, [f"model.hub.{SAVED}.g1.{part}-of-2" for part in (1, 2)], "it has replaced them")

    def test_several_trainers_of_a_server_go_on(self):
        def run(name, path, **options):
            with contextlib.ExitStack() as stack:
                sessions = [
                    stack.enter_context(gradcube.Session(socket, name, trainers_per_server=2, local=local))
                    for socket in self.cluster.sockets()
                    for local in range(2)
                ]
                return self.results(lambda session: self.train(session, path, **options), sessions)

        whole = run("whole", self.nowhere)
        run("first", self.own, rounds=SAVED, save=True)
        self.assert_same(whole + run("second", self.own))

    def test_a_checkpoint_that_a_trainer_does_not_end_leaves_the_one_before(self):
        with job(self.cluster, "first") as sessions:

            def train(session):
                hub, _ = self.go_on(session, self.own, rounds=SAVED)
                hub.checkpoint(self.own(session), SAVED, LATE)
                hub.begin_checkpoint(self.own(session), SAVED + 1)
                if session.rank == SERVERS - 1:
                    session.abort()
                    return None
                hub.end_checkpoint(LATE)

            results = all_of(train, sessions)
        for rank, result in enumerate(results):
            if rank != SERVERS - 1:
                self.assert_fails(gradcube.PeerError, result)
        with job(self.cluster, "second") as sessions:
            steps = self.results(lambda session: self.go_on(session, self.own, rounds=0)[0].step, sessions)
        self.assertEqual(steps, [SAVED] * SERVERS)

    def test_a_checkpoint_of_parts_after_different_pushes_is_not_made(self):
        """Each trainer chooses itself when to begin it, as one that goes by the clock does."""
        with job(self.cluster, "first") as sessions:

            def train(session):
                hub, found = self.go_on(session, self.shared, rounds=SAVED)
                hub.checkpoint(self.shared(session), SAVED, LATE)
                late = session.rank == SERVERS - 1
                if not late:
                    hub.begin_checkpoint(self.shared(session), SAVED + 1)
                gradients = gradients_of(session.rank, SAVED)
                for request in [hub.push_pull_async(name, gradients[name], found[name], RATE) for name in found]:
                    request.wait(LATE)
                if late:
                    hub.begin_checkpoint(self.shared(session), SAVED + 1)
                hub.end_checkpoint(LATE)

            for failure in all_of(train, sessions):
                self.assert_fails(gradcube.MismatchError, failure, "ranks 0 and", "after different pushes")
        whole = self.run_job("whole", self.nowhere)
        self.assert_same(whole + self.run_job("second", self.shared))

    def test_a_checkpoint_of_parts_before_and_after_new_weights_is_not_made(self):
        """The optimizer has taken no step, neither before nor after them."""
        with job(self.cluster, "first") as sessions:

            def train(session):
                hub, found = self.go_on(session, self.shared, rounds=0)
                late = session.rank == SERVERS - 1
                if not late:
                    hub.begin_checkpoint(self.shared(session), SAVED)
                for array in found.values():
                    array += 1
                hub.set_weights(found, LATE)
                if late:
                    hub.begin_checkpoint(self.shared(session), SAVED)
                hub.end_checkpoint(LATE)

            for failure in all_of(train, sessions):
                self.assert_fails(gradcube.MismatchError, failure, "ranks 0 and", "after different pushes")

    def test_a_first_checkpoint_that_is_not_ended_is_none(self):
        def begin(session):
            hub, _ = self.go_on(session, self.own, rounds=SAVED)
            hub.begin_checkpoint(self.own(session), SAVED)
            if session.rank == SERVERS - 1:
                return session.abort()
            hub.end_checkpoint(LATE)

        with job(self.cluster, "first") as sessions:
            for rank, result in enumerate(all_of(begin, sessions)):
                if rank != SERVERS - 1:
                    self.assert_fails(gradcube.PeerError, result)
        whole = self.run_job("whole", self.nowhere)
        saved = self.run_job("second", self.own, rounds=SAVED, save=True)
        self.assert_same(saved)
        self.assert_same(whole + self.run_job("third", self.own))

    def test_a_file_that_is_damaged_or_missing_is_told_to_all_with_the_rank(self):
        self.run_job("first", self.own, rounds=SAVED, save=True)
        (path,) = (self.folder / str(MIDDLE)).iterdir()
        damaged = bytearray(path.read_bytes())
        damaged[-20] ^= 1
        path.write_bytes(damaged)
        with job(self.cluster, "damaged") as sessions:
            for rank, result in enumerate(all_of(lambda session: self.train(session, self.own), sessions)):
                self.assert_fails(gradcube.InvalidError, result, "checksum" if rank == MIDDLE else f"rank {MIDDLE}")
        path.unlink()
        with job(self.cluster, "missing") as sessions:
            for result in all_of(lambda session: self.train(session, self.own), sessions):
                self.assert_fails(gradcube.SystemRefusedError, result, f"rank {MIDDLE} has none")


@only_on("embedded", why="what is written does not depend on the fabric")
class KilledTrainer(TestCase):
    """At any moment of a checkpoint, right before it counts and right after that, too."""

    TRAINERS = 3

    def train_until_one_is_killed(self, paths):
        """What each trainer has said, when all have ended."""
        victim = self.random.randrange(self.TRAINERS)
        saves, pause = self.random.randrange(3), self.random.uniform(0, 0.02)
        said = [[] for _ in paths]
        struck = threading.Event()

        def listen(rank):
            for line in trainers[rank].stdout:
                said[rank].append(line.split())
                if rank == victim and not struck.is_set() and len(said[rank]) > saves:
                    struck.set()
                    time.sleep(pause)
                    trainers[rank].kill()

        command = [sys.executable, str(HERE / "saving_trainer.py")]
        with contextlib.ExitStack() as stack:
            trainers = [
                stack.enter_context(
                    subprocess.Popen([*command, socket, "killed", str(path)], stdout=subprocess.PIPE, text=True)
                )
                for socket, path in zip(self.cluster.sockets(), paths)
            ]
            for trainer in trainers:
                stack.callback(trainer.kill)
            all_of(listen, range(self.TRAINERS))
            codes = [trainer.wait() for trainer in trainers]
        self.assertEqual(codes.pop(victim), -signal.SIGKILL, said)
        self.assertEqual(codes, [1] * (self.TRAINERS - 1), said)
        return said

    def test_loses_no_checkpoint_that_was_acknowledged_and_leaves_none_that_is_not_whole(self):
        self.random = random.Random(self.seed)
        self.cluster = Cluster("--topology", f"star:{self.TRAINERS}")
        self.addCleanup(self.cluster.end)
        total = 0
        with tempfile.TemporaryDirectory() as folder:
            for number in range(rounds(6, elsewhere=0, deep=150)):
                if number % 3 == 0:  # a model of which there is no checkpoint
                    paths = [f"{folder}/{number}-{rank}.hub" for rank in range(self.TRAINERS)]  # each on its own disk
                    acknowledged = 0
                with self.subTest(seed=self.seed, number=number):
                    said = self.train_until_one_is_killed(paths)
                    restored = {words[1] for lines in said for words in lines if words[0] == "restored"}
                    self.assertEqual(len(restored), 1, said)
                    self.assertGreaterEqual(int(restored.pop()), acknowledged, said)
                    saved = [int(words[1]) for lines in said for words in lines if words[0] == "saved"]
                    acknowledged = max(saved, default=acknowledged)
                    total += len(saved)
                wait_until(lambda: self.cluster.status()["jobs"] == [], "the job to be forgotten")
        self.assertGreater(total, 0)


@only_on("memif", why="there another daemon can take the place of a server's")
class KilledRoot(CheckpointTestCase):
    """The daemon with all weights of a parameter server."""

    def train_until_failure(self, session, ready):
        hub, found = self.go_on(session, self.shared, rounds=SAVED)
        hub.checkpoint(self.shared(session), SAVED, LATE)
        ready.wait(LATE)
        gradients = gradients_of(session.rank, SAVED)
        while True:
            try:
                hub.push_pull("long", gradients["long"], found["long"], RATE, PATIENCE)
            except gradcube.Error as failure:
                return failure

    def test_is_named_to_all_and_the_next_job_goes_on_from_its_checkpoint(self):
        whole = self.run_job("whole", self.nowhere, algorithm="ps")
        daemon = self.cluster.status()["servers"][0]["pid"]
        arguments = arguments_of(daemon)
        ready = threading.Barrier(SERVERS + 1)
        rounds = lambda: self.cluster.status()["counters"]["hub_rounds"]

        def kill():
            ready.wait(LATE)
            before = rounds()
            wait_until(lambda: rounds() > before, "pushes to be under way")
            os.kill(daemon, signal.SIGKILL)

        with job(self.cluster, "killed", algorithm="ps") as sessions:
            tasks = [lambda session=session: self.train_until_failure(session, ready) for session in sessions]
            root, *others = failures_when(kill, tasks)
        self.assert_fails(gradcube.NoDaemonError, root)
        for failure in others:
            self.assert_fails(gradcube.PeerError, failure, "the daemon on server [0,0]")
        with self.cluster.daemon(arguments):
            wait_until(lambda: "ports" in self.cluster.status()["servers"][0], "the new daemon to be ready")
            wait_until(lambda: not self.cluster.links_down(), "all links to be seen")
            again = self.run_job("again", self.shared, algorithm="ps")
        self.assert_same(whole + again)


if __name__ == "__main__":
    main()
