"""A server without trainers aggregates a job's hub; when it dies, trainers are told its name."""

import os
import signal

import gradcube
import numpy

from fabrics import CALM, PATIENCE, SERVERS, needs_faults, only_on
from harness import Cluster, TestCase, all_of, job, main, wait_until
from hub_keys import LATE, RATE, HubTestCase, gradients_of

MEMBERS = list(range(SERVERS - 1))
AGGREGATOR = SERVERS - 1


class Rounds(HubTestCase):
    FLAGS = CALM

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

    def test_checkpoints_are_refused(self):
        with self.members("checkpoint") as sessions:

            def save(session):
                hub = self.hub_of(session)
                with self.assertRaisesRegex(gradcube.InvalidError, "has an aggregator: it has no checkpoints"):
                    hub.checkpoint("model.hub", 1)
                hub.free(LATE)

            self.results(save, sessions)

    def members(self, name):
        return job(self.cluster, name, MEMBERS, members=MEMBERS)


@only_on("memif", "veth", why="a server has no daemon of its own there")
class Deaths(TestCase):
    def test_of_the_aggregator_is_told_to_all_trainers(self):
        with Cluster("--topology", f"star:{SERVERS}", *CALM) as cluster:
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
