"""What is left of a hub when it ends before its trainers: their weights, and its memory."""

import concurrent.futures
import contextlib
import gc
import os
import socket
import tempfile
import threading

import gradcube
import numpy

from fabrics import SERVERS, only_on
from harness import Cluster, TestCase, all_of, job, main, wait_until
from hub_keys import LATE, RATE, SHAPES, HubTestCase, Oracle, first_weights, gradients_of


def say(path, words):
    """On this process's connection to the daemon's socket at this path, as if its library said so."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the folder itself; a socket without a peer
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as connection:
                    if str(path) in str(connection.getpeername()):
                        return connection.send(words)
    raise AssertionError(f"nothing is connected to {path}")


class Ends(HubTestCase):
    def after_one_step(self, name):
        oracle = Oracle(SERVERS)
        oracle.sgd(name, 0, RATE)
        return oracle.weights[name]

    def test_a_hub_whose_weights_are_shown_is_not_freed(self):
        with job(self.cluster, "shown") as sessions:
            hubs = self.results(self.hub_of, sessions)
            shown = [hub.weights("odd") for hub in hubs]
            for array in shown:
                numpy.testing.assert_array_equal(array, first_weights()["odd"])
            for failure in all_of(lambda hub: hub.free(LATE), hubs):
                self.assert_fails(gradcube.InvalidError, failure, "copy what is needed")
            del shown, array
            self.assertEqual(all_of(lambda hub: hub.free(LATE), hubs), [None] * SERVERS)
            self.assert_same(self.results(lambda session: self.train(session, "sgd", 1), sessions))

    def test_weights_of_a_step_that_has_ended_are_there_though_a_trainer_has_gone(self):
        hub_rounds = lambda: self.cluster.status()["counters"]["hub_rounds"]
        with job(self.cluster, "bereft") as sessions, tempfile.TemporaryDirectory() as folder:
            hubs = self.results(self.hub_of, sessions)
            before = hub_rounds()
            found = [numpy.zeros_like(first_weights()["odd"]) for _ in hubs]
            requests = [
                hub.push_pull_async("odd", gradients_of(rank, 0)["odd"], found[rank], RATE)
                for rank, hub in enumerate(hubs)
            ]
            wait_until(lambda: hub_rounds() == before + SERVERS, "all to have the step")
            sessions[-1].abort()
            wait_until(lambda: self.cluster.job("bereft")["state"] == "aborted", "the job to end")
            for rank, hub in enumerate(hubs[:-1]):
                requests[rank].wait(LATE)
                numpy.testing.assert_allclose(found[rank], self.after_one_step("odd"), rtol=1e-5, atol=1e-5)
                pulled = numpy.zeros_like(found[rank])
                hub.pull("odd", pulled)
                numpy.testing.assert_array_equal(pulled, found[rank])
                hub.pull("long", numpy.zeros(SHAPES["long"], "float32"))
                came = r'bereft.*; its hub had ended step 1 of some keys on this server, and step 0 of "'
                with self.assertRaisesRegex(gradcube.PeerError, came):
                    hub.begin_checkpoint(f"{folder}/model.hub", 1)
                with self.assertRaises(gradcube.PeerError):
                    hub.push("long", gradients_of(rank, 0)["long"], RATE, LATE)
                hub.pull("long", numpy.zeros(SHAPES["long"], "float32"))  # what was refused has changed nothing
            self.assertEqual(os.listdir(folder), [])

    def test_weights_that_were_shown_stay_when_their_trainer_aborts(self):
        with job(self.cluster, "shown") as sessions:
            hubs = self.results(self.hub_of, sessions)
            shown = hubs[-1].weights("odd")
            sessions[-1].abort()
            with self.assertRaises(gradcube.AbortedError):
                hubs[-1].weights("odd")
            for session in sessions[:-1]:
                session.close()
            gone = lambda: all(one["name"] != "shown" for one in self.cluster.status()["jobs"])
            wait_until(gone, "the daemon to take the hub's memory back")
            numpy.testing.assert_array_equal(shown, first_weights()["odd"])
            sessions[-1].close()
            numpy.testing.assert_array_equal(shown, first_weights()["odd"])

    def test_weights_that_were_shown_stay_when_their_trainer_is_evicted_before_and_after_it_learns_so(self):
        memory = lambda: sum(user["bytes"] for user in self.cluster.status()["memory"]["users"])
        with job(self.cluster, "evicted") as sessions:
            hubs = self.results(self.hub_of, sessions)
            shown = hubs[-1].weights("odd")
            say(self.cluster.sockets()[-1], b"what no library says")
            wait_until(lambda: self.cluster.job("evicted")["state"] == "aborted", "the trainer to be evicted")
            for session in sessions[:-1]:
                session.close()
            wait_until(lambda: self.cluster.job("evicted") is None, "its job to be over")
            numpy.testing.assert_array_equal(shown, first_weights()["odd"])
            self.assertGreater(memory(), 0)
            with self.assertRaises(gradcube.ProtocolError):
                sessions[-1].barrier(LATE)
            wait_until(lambda: memory() == 0, "the daemon to take the hub's memory back")
            numpy.testing.assert_array_equal(shown, first_weights()["odd"])

    def test_a_hub_is_freed_by_one_thread_and_by_none_while_another_pulls(self):
        with job(self.cluster, "threads") as sessions:
            hubs = self.results(self.hub_of, sessions)
            is_over = threading.Event()

            def pull_on(hub):
                pulled = numpy.zeros_like(first_weights()["long"])
                while not is_over.is_set():
                    try:
                        hub.pull("long", pulled)
                        numpy.testing.assert_array_equal(pulled, first_weights()["long"])
                        hub.weights("odd")
                    except gradcube.InvalidError:  # it is being freed, or was
                        is_over.wait(0.001)

            def free(hub):
                while True:
                    try:
                        return hub.free(LATE)
                    except gradcube.AgainError:  # the other thread is in a call
                        is_over.wait(0.0001)
                    except gradcube.InvalidError as error:  # it looks at weights
                        if "freed" in str(error):
                            return None

            with concurrent.futures.ThreadPoolExecutor(2 * len(hubs) + 2) as pool:
                pulling = [pool.submit(pull_on, hub) for hub in hubs]
                for done in [pool.submit(free, hub) for hub in [*hubs, hubs[0]]]:
                    done.result(LATE)
                is_over.set()
                for done in pulling:
                    done.result(LATE)

    def test_no_weights_are_set_where_one_array_does_not_fit(self):
        def set_weights(hub):
            wrong = {"long": numpy.full(SHAPES["long"], 9, "float32"), "odd": numpy.zeros(3, "float32")}
            self.assertRaises(gradcube.InvalidError, hub.set_weights, wrong, LATE)
            pulled = numpy.zeros(SHAPES["long"], "float32")
            hub.pull("long", pulled)
            numpy.testing.assert_array_equal(pulled, first_weights()["long"])

        with job(self.cluster, "misfits") as sessions:
            self.results(set_weights, self.results(self.hub_of, sessions))

    def test_a_pull_is_of_one_step_whatever_another_thread_pushes_meanwhile(self):
        steps, elements = 10, 8_000_000

        def push_on(session):
            first = numpy.zeros(elements, "float32")
            hub = gradcube.Hub(session, {"long": first}, "sgd:lr=1", timeout=LATE)
            is_over = threading.Event()
            pulled = numpy.empty(elements, "float32")

            def pull_on():
                pulls = 0
                while not is_over.is_set():
                    try:
                        hub.pull("long", pulled)
                    except gradcube.AgainError:  # it is being pushed
                        is_over.wait(0.001)  # a loop would take the daemons' cores
                        continue
                    self.assertEqual(pulled.min(), pulled.max())
                    pulls += 1
                return pulls

            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pulling = pool.submit(pull_on)
                try:
                    for _ in range(steps):
                        hub.push("long", numpy.ones(elements, "float32"), timeout=LATE)
                finally:
                    is_over.set()
                self.assertGreater(pulling.result(LATE), 0)
            hub.pull("long", pulled)
            self.assertEqual((pulled.min(), pulled.max()), (-steps, -steps))
            hub.free(LATE)

        with Cluster("--topology", "star:2") as cluster, job(cluster, "readers") as sessions:
            self.results(push_on, sessions)

    def test_who_leaves_before_the_hub_is_freed_ends_the_job_which_says_why(self):
        with job(self.cluster, "early") as sessions:
            hub = self.results(self.hub_of, sessions)[0]
            sessions[-1].close()
            with self.assertRaisesRegex(gradcube.PeerError, "left while the job had a hub, whose rounds need all"):
                hub.push("long", gradients_of(0, 0)["long"], RATE, LATE)

    def test_weights_are_there_after_a_disagreement_and_no_checkpoint_of_them_is_made(self):
        def disagree(session):
            with self.assertRaises(gradcube.MismatchError):
                session.allreduce(session.alloc(10 + session.rank % 2), timeout=LATE)

        with job(self.cluster, "divided") as sessions, tempfile.TemporaryDirectory() as folder:
            hubs = self.results(self.hub_of, sessions)
            step = lambda hub, rank: hub.push("odd", gradients_of(rank, 0)["odd"], RATE, LATE)
            self.results(lambda session: step(hubs[session.rank], session.rank), sessions)
            self.results(disagree, sessions)
            for hub in hubs:
                pulled = numpy.zeros_like(first_weights()["odd"])
                hub.pull("odd", pulled)
                numpy.testing.assert_allclose(pulled, self.after_one_step("odd"), rtol=1e-5, atol=1e-5)
                with self.assertRaises(gradcube.MismatchError):
                    hub.begin_checkpoint(f"{folder}/model.hub", 1)
            self.assertEqual(os.listdir(folder), [])
            self.assertEqual(all_of(lambda hub: hub.free(LATE), hubs), [None] * SERVERS)
            self.assert_same(self.results(lambda session: self.train(session, "sgd", 1), sessions))

    @only_on("embedded", "memif", why="daemons of veths take as long to start, and end as those of memif do")
    def test_weights_are_there_when_the_daemons_have_gone(self):
        cluster = Cluster("--topology", "star:2")
        self.addCleanup(cluster.end)
        with job(cluster, "orphaned") as sessions:
            hubs = self.results(self.hub_of, sessions)
            shown = [hub.weights("odd") for hub in hubs]
            cluster.tool("down")
            for hub, array in zip(hubs, shown):
                numpy.testing.assert_array_equal(array, first_weights()["odd"])
                pulled = numpy.zeros_like(first_weights()["odd"])
                hub.pull("odd", pulled)
                numpy.testing.assert_array_equal(pulled, first_weights()["odd"])
                with self.assertRaises(gradcube.NoDaemonError):
                    hub.begin_checkpoint("/nowhere/model.hub", 1)

    def mappings(self):
        with open("/proc/self/maps", encoding="ascii") as maps:
            return sum("memfd:gradcube-hub" in line for line in maps)

    def test_of_a_hub_that_nobody_has_any_more_nothing_is_left_when_its_session_is_closed(self):
        with job(self.cluster, "dropped") as sessions:
            hubs = self.results(self.hub_of, sessions)
            requests = [hub.push_async("odd", gradients_of(0, 0)["odd"], RATE) for hub in hubs[:2]]
            shown = hubs[1].weights("short")
            self.assertGreaterEqual(self.mappings(), SERVERS)
            del hubs
        for request in requests:
            with self.assertRaisesRegex(gradcube.InvalidError, "closed"):
                request.wait(LATE)
        del request, requests
        shown.copy()  # keeps its mapping, where the daemon has given the pages back
        del shown
        gc.collect()
        self.assertEqual(self.mappings(), 0)


@only_on("embedded", why="daemons of one server each divide the quota")
class Memory(TestCase):
    def make(self, session, elements):
        return gradcube.Hub(session, {"large": numpy.zeros(elements, "float32")}, "adam", timeout=LATE)

    def test_a_hub_larger_than_the_quota_is_refused_at_all_trainers_and_a_smaller_one_works(self):
        with Cluster("--topology", "star:3", "--trainer-memory", "200Mi") as cluster:
            with job(cluster, "large") as sessions:
                results = all_of(lambda session: self.make(session, 50 << 20), sessions)
                for result in results:
                    self.assert_fails(gradcube.MemoryFullError, result, "large", "hub")
                self.assertTrue(any("--trainer-memory" in str(result) for result in results), results)
                hubs = all_of(lambda session: self.make(session, 1 << 20), sessions)
                self.assertEqual(all_of(lambda hub: hub.free(LATE), hubs), [None] * 3)
            wait_until(lambda: cluster.status()["memory"]["users"] == [], "the memory to be given back")
            self.assert_works(cluster)

    def test_a_hub_s_memory_is_its_user_s_until_it_is_freed(self):
        with Cluster("--topology", "star:2") as cluster, job(cluster, "charged") as sessions:
            used = lambda: sum(user["bytes"] for user in cluster.status()["memory"]["users"])
            elements = 1 << 20
            before = used()
            hubs = all_of(lambda session: self.make(session, elements), sessions)
            self.assertGreaterEqual(used() - before, 2 * 4 * elements)
            self.assertEqual(all_of(lambda hub: hub.free(LATE), hubs), [None, None])
            heaps = lambda: sum(trainer["heap_bytes"] for trainer in cluster.job("charged")["trainers"])
            wait_until(lambda: used() == heaps(), "the hub's memory to be given back")


if __name__ == "__main__":
    main()
