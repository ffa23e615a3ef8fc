"""Trainers of a job push to its hub, and have the weights of an oracle; what goes wrong is told, by name."""

import contextlib
import os
import subprocess
import tempfile
import threading

import gradcube
import numpy

from death_test import endless_trainer, failures_when
from fabrics import LAST, MIDDLE, PATIENCE, SERVERS, needs_faults, some
from harness import all_of, job, main, wait_until
from hub_keys import LATE, RATE, SHAPES, HubTestCase, first_weights, gradients_of

PUSHER = os.environ["GRADCUBE_HUB_PUSHER"]
FAULTS = ["--loss", "0.02", "--duplicate", "0.02", "--reorder", "0.05", "--corrupt", "0.01"]
NO_FAULTS = [word for flag in FAULTS[::2] for word in (flag, "0")]


class Rounds(HubTestCase):
    def test_trainers_that_push_in_different_orders_have_the_weights_of_an_oracle(self):
        momentum = "momentum:momentum=0.9"
        for optimizer, algorithm in some([(momentum, "bml"), ("adam", "ps"), (momentum, "hips:ring"), ("sgd", None)]):
            with self.subTest(optimizer=optimizer, algorithm=algorithm):
                with job(self.cluster, "oracle", algorithm=algorithm) as sessions:
                    found = self.results(lambda session: self.train(session, optimizer), sessions)
                self.assert_same(found)
                self.assert_as_oracle(found[0], optimizer, SERVERS)

    def test_several_trainers_of_a_server_have_them_too(self):
        with contextlib.ExitStack() as stack:
            sessions = [
                stack.enter_context(gradcube.Session(socket, "several", trainers_per_server=2, local=local))
                for socket in self.cluster.sockets()
                for local in range(2)
            ]
            found = self.results(lambda session: self.train(session, "momentum:momentum=0.9"), sessions)
        self.assert_same(found)
        self.assert_as_oracle(found[0], "momentum", 2 * SERVERS)

    def test_trainers_of_some_servers_have_them_too(self):
        members = [0, 1]
        with job(self.cluster, "row", members, members=members) as sessions:
            found = self.results(lambda session: self.train(session, "sgd"), sessions)
        self.assert_same(found)
        self.assert_as_oracle(found[0], "sgd", len(members))

    @needs_faults
    def test_weights_have_the_same_bits_under_loss_duplication_reordering_and_corruption(self):
        results = []
        for flags in (NO_FAULTS, FAULTS):
            self.assertEqual(self.cluster.tool("impair", *flags).returncode, 0)
            self.addCleanup(self.cluster.tool, "impair", *NO_FAULTS)
            before = self.cluster.status()["counters"]["resent"]
            with job(self.cluster, "faults") as sessions:
                results += self.results(lambda session: self.train(session, "momentum", rounds=8), sessions)
        self.assertGreater(self.cluster.status()["counters"]["resent"], before)
        self.assert_same(results)

    def test_a_key_does_not_wait_for_another(self):
        with job(self.cluster, "keys") as sessions:
            hubs = self.results(self.hub_of, sessions)
            pairs = list(zip(sessions, hubs))

            def push(pair, names):
                gradients = gradients_of(pair[0].rank, 0)
                return [pair[1].push_async(name, gradients[name], RATE) for name in names]

            slow = [push(pair, ["long"]) for pair in pairs[1:]]  # rank 0 has not its gradients yet
            for _ in range(3):
                for result in all_of(lambda pair: [one.wait(LATE) for one in push(pair, ["odd", "short"])], pairs):
                    self.assertEqual(result, [None, None])
            self.assertFalse(any(request.test() for requests in slow for request in requests))
            slow.append(push(pairs[0], ["long"]))
            for requests in slow:
                requests[0].wait(LATE)

    def test_another_hub_is_made_when_one_was_freed_and_weights_are_set_anew(self):
        with job(self.cluster, "again") as sessions:
            first = self.results(lambda session: self.train(session, "momentum:momentum=0.9"), sessions)
            again = self.results(lambda session: self.train(session, "momentum:momentum=0.9"), sessions)
            self.assert_same(first + again)

            def set_anew(session):
                hub = self.hub_of(session, "momentum:momentum=0.9")
                found = first_weights()
                for _ in range(2):
                    hub.set_weights({name: first_weights()[name] for name in hub.names}, LATE)
                    for number in range(4):
                        gradients = gradients_of(session.rank, number)
                        for name in SHAPES:
                            hub.push_pull(name, gradients[name], found[name], RATE, LATE)
                hub.free(LATE)
                return found

            self.assert_same(first + self.results(set_anew, sessions))

    def test_the_binding_of_cpp_pushes_and_pulls(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        processes = [
            subprocess.Popen(
                [PUSHER, socket, "binding", "2", folder.name + "/model.hub"], stdout=subprocess.PIPE, text=True
            )
            for socket in self.cluster.sockets()
        ]
        with contextlib.ExitStack() as stack:
            for process in processes:
                stack.enter_context(process)
                stack.callback(process.kill)
            outputs = [process.communicate(timeout=PATIENCE)[0].splitlines() for process in processes]
        mean = (SERVERS + 1) / 2  # of the first round; the second is 1 more
        weight = 1 - 0.25 * mean - 0.25 * (0.5 * mean + mean + 1)
        for lines in outputs:
            self.assertEqual(len(lines), 10, lines)
            self.assertIn("-9: key 'bits' of the hub is being pushed", lines[0])
            self.assertIn("-9: 2 pushes to the hub are in flight", lines[1])
            self.assertEqual(lines[2], '-1: key "bits" of the hub has another type')
            self.assertEqual(lines[3], '-1: key "vector" of the hub has 1000 elements, and 999 were given')
            self.assertEqual(lines[4], "-1: the hub has no key 2: expected 0 to 1")
            *vectors, bits = lines[5].split()
            self.assertEqual([float(one) for one in vectors], [weight] * 4)
            self.assertEqual(bits, outputs[0][5].split()[-1])
            self.assertEqual(lines[6], "-1: this hub was freed: make another one")
            once, twice = 1 - 0.125 * mean, 1 - 0.25 * mean
            accumulated = f"{4 * mean:g} {once:g} {once:g} {twice:g}"
            self.assertEqual(lines[7:], [f"0 2 {vectors[0]}", accumulated, "done"])


class Refusals(HubTestCase):
    """What trainers do wrong."""

    def test_keys_that_differ_are_told_to_all_with_the_rank(self):
        with job(self.cluster, "keys") as sessions:

            def make(session):
                elements = 11 if session.rank == MIDDLE else 10
                return gradcube.Hub(session, {"a": numpy.zeros(elements, "float32")}, timeout=LATE)

            for result in all_of(make, sessions):
                self.assert_fails(gradcube.MismatchError, result, "keys", f"rank {MIDDLE}")
            self.assert_same(self.results(lambda session: self.train(session, "sgd", 1), sessions))

    def test_optimizers_that_are_none_are_refused(self):
        cases = [("magic", "magic"), ("sgd:momentum=0.9", "momentum"), ("adam:beta1=2", "beta1"), ("sgd:lr=x", "lr")]
        with job(self.cluster, "optimizers") as sessions:
            for optimizer, word in cases:
                for result in all_of(lambda session, its=optimizer: self.hub_of(session, its), sessions):
                    self.assert_fails(gradcube.InvalidError, result, word)
            self.assert_same(self.results(lambda session: self.train(session, "sgd", 1), sessions))

    def test_rates_that_differ_end_the_job_with_the_name_of_the_key(self):
        with job(self.cluster, "rates") as sessions:
            hubs = self.results(self.hub_of, sessions)

            def push(pair):
                rate = 0.5 if pair[0].rank == MIDDLE else RATE
                pair[1].push("odd", gradients_of(pair[0].rank, 0)["odd"], rate, LATE)

            for result in all_of(push, zip(sessions, hubs)):
                self.assert_fails(gradcube.PeerError, result, '"odd"', "rates", "learning rates differ")
            for read in (lambda hub: hub.pull("odd", first_weights()["odd"]), lambda hub: hub.weights("odd")):
                for result in all_of(read, hubs):
                    self.assert_fails(gradcube.PeerError, result, "'odd'", "no weights", "learning rates differ")
        with job(self.cluster, "rates-again") as sessions:
            self.assert_same(self.results(lambda session: self.train(session, "sgd", 1), sessions))

    def test_first_weights_that_differ_end_the_job_with_the_name_of_the_key(self):
        with job(self.cluster, "weights") as sessions:

            def make(session):
                weights = first_weights()
                if session.rank == MIDDLE:
                    weights["odd"][-1] += 1
                return gradcube.Hub(session, weights, bfloat16=["brain"], timeout=LATE)

            for result in all_of(make, sessions):
                self.assert_fails(gradcube.PeerError, result, '"odd"', "first weights differ")
        with job(self.cluster, "weights-again") as sessions:
            self.assert_same(self.results(lambda session: self.train(session, "sgd", 1), sessions))

    def test_a_hub_goes_when_trainers_disagree_on_a_collective_and_another_one_works(self):
        with job(self.cluster, "reset") as sessions:
            pushed = threading.Barrier(len(sessions))

            def disagree(session):
                hub = self.hub_of(session)
                gradients = gradients_of(session.rank, 0)["odd"]
                request = hub.push_async("odd", gradients, RATE) if session.rank != 0 else None  # it is in flight
                pushed.wait(LATE)
                failures = []
                for wait in (
                    lambda: session.allreduce(numpy.ones(9 + (session.rank == MIDDLE), "float32"), timeout=LATE),
                    lambda: request.wait(LATE) if request else hub.push("odd", gradients, RATE, LATE),
                ):
                    try:
                        wait()
                    except gradcube.Error as failure:
                        failures.append(failure)
                hub.free(LATE)
                return failures

            for result in all_of(disagree, sessions):
                self.assertIsInstance(result, list, result)
                self.assertEqual(len(result), 2, result)
                self.assert_fails(gradcube.MismatchError, result[0], "reset")
            self.assert_same(self.results(lambda session: self.train(session, "sgd", 1), sessions))

    def test_what_is_pushed_wrongly_is_refused_and_the_hub_goes_on(self):
        with job(self.cluster, "wrong") as sessions:
            hubs = self.results(self.hub_of, sessions)
            gradients = [gradients_of(session.rank, 0) for session in sessions]
            hub, own = hubs[0], gradients[0]
            for rate in (float("nan"), float("inf"), -1, "fast"):
                with self.assertRaisesRegex(gradcube.InvalidError, "rate"):
                    hub.push("odd", own["odd"], rate)
            with self.assertRaisesRegex(gradcube.InvalidError, "no key 'even'"):
                hub.push("even", own["odd"])
            with self.assertRaisesRegex(gradcube.InvalidError, "33333 elements"):
                hub.push("long", own["odd"])
            with self.assertRaisesRegex(gradcube.InvalidError, "free it first"):
                self.hub_of(sessions[0])
            request = hub.push_async("odd", own["odd"], RATE)
            for again in (lambda: hub.pull("odd", own["odd"]), lambda: hub.push("odd", own["odd"].copy())):
                with self.assertRaisesRegex(gradcube.AgainError, "'odd' of the hub is being pushed"):
                    again()
            with self.assertRaisesRegex(gradcube.AgainError, "1 pushes to the hub are in flight"):
                hub.free(LATE)
            with self.assertRaisesRegex(gradcube.TimeoutError, "the push of key 'odd' of the hub is not done"):
                request.wait(0.2)
            others = zip(hubs[1:], gradients[1:])
            self.assertEqual(
                all_of(lambda one: one[0].push("odd", one[1]["odd"], RATE, LATE), others), [None] * (SERVERS - 1)
            )
            request.wait(LATE)
            self.assertEqual(all_of(lambda one: one.free(LATE), hubs), [None] * SERVERS)
            with self.assertRaisesRegex(gradcube.InvalidError, "freed"):
                hub.push("odd", own["odd"])

    def test_a_trainer_that_frees_late_is_waited_for(self):
        with job(self.cluster, "late") as sessions:
            hubs = self.results(self.hub_of, sessions)
            submitted = lambda: [trainer["submitted"] for trainer in self.cluster.job("late")["trainers"]]
            before = submitted()
            freed = []

            def others_wait():
                return all(now > then for now, then in zip(submitted()[1:], before[1:]))

            def free(hub):
                if hub is hubs[0]:
                    wait_until(others_wait, "the others to free theirs")
                    self.assertEqual(freed, [])
                hub.free(LATE)
                freed.append(hub)

            self.assertEqual(all_of(free, hubs), [None] * SERVERS)

    def test_a_free_that_others_do_not_come_to_ends_in_time_and_the_session_can_be_used(self):
        with job(self.cluster, "alone", [0, 1], members=[0, 1]) as sessions:
            hubs = self.results(self.hub_of, sessions)
            with self.assertRaises(gradcube.TimeoutError):
                hubs[0].free(0.2)
            hubs[1].free(LATE)  # the other has been there
            for results in (all_of(lambda session: session.barrier(timeout=LATE), sessions) for _ in range(3)):
                self.assertEqual(results, [None, None])


class Death(HubTestCase):
    def test_a_trainer_that_is_killed_in_the_midst_of_pushes_ends_those_of_all_others_with_its_name(self):
        count = 500_000
        last = self.cluster.sockets()[-1]

        def push_until_failure(session):
            hub = gradcube.Hub(session, {"endless": numpy.zeros(count, "float32")}, timeout=LATE)
            gradients = session.alloc(count)
            while True:
                try:
                    hub.push("endless", gradients, timeout=PATIENCE)
                except gradcube.Error as failure:
                    return failure

        hub_rounds = lambda: self.cluster.status()["counters"]["hub_rounds"]
        before = hub_rounds()

        def strike():
            wait_until(lambda: hub_rounds() > before, "the hub to be made, and pushes to it")
            victim.kill()

        with job(self.cluster, "mortal", range(SERVERS - 1)) as sessions:
            with endless_trainer(last, "mortal", count, "--hub") as victim:
                tasks = [lambda session=session: push_until_failure(session) for session in sessions]
                for failure in failures_when(strike, tasks):
                    self.assert_fails(gradcube.PeerError, failure, "mortal", LAST, f"pid {victim.pid}", "died")
        self.assert_works(self.cluster)


if __name__ == "__main__":
    main()
