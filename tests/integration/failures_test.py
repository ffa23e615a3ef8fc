"""Links, switches and daemons that fail while collectives are under way."""

import concurrent.futures
import contextlib
import os
import signal
import subprocess

import gradcube
import numpy

from fabrics import FABRIC, GRID, MIDDLE, PATIENCE, SERVERS, TOOL, needs_cuts, needs_daemons
from harness import Cluster, TestCase, all_of, arguments_of, job, main, wait_until

# At this rate so many elements take half a second: a cut finds some of them under way.
SLOW = ("--rate", "20mbit")
MANY = 300_000


def collectives(cluster):
    return cluster.status()["counters"]["collectives"]


def segments_sent(cluster):
    return cluster.status()["counters"]["segments_sent"]


@needs_cuts
class Cuts(TestCase):
    """Of what other ways lead around."""

    def test_of_a_link_and_of_a_switch_in_mid_collective_leave_its_bits_as_they_were(self):
        generator = numpy.random.default_rng(self.seed)
        with Cluster("--topology", GRID, *SLOW) as cluster, job(cluster, "cut") as sessions:
            inputs = [generator.standard_normal(MANY, dtype="float32") for _ in sessions]
            arrays = [session.alloc(MANY) for session in sessions]
            undisturbed = self.reduce(cluster, sessions, arrays, inputs, lambda: None)
            for cut, mend in self.cuts(cluster):
                with self.subTest(cut=cut):
                    relayed = cluster.status()["counters"]["relayed"]
                    bits = self.reduce(cluster, sessions, arrays, inputs, lambda: self.run_command(cluster, cut))
                    self.assertEqual(bits, undisturbed)
                    self.assertGreater(cluster.status()["counters"]["relayed"], relayed)
                    self.run_command(cluster, mend)
                    wait_until(lambda: not cluster.links_down(), "the links to be seen again")

    def cuts(self, cluster):
        """Commands that cut something, and that mend it."""
        up = [TOOL, "impair", "--up"]
        yield [TOOL, "impair", "--server", "1,1", "--port", "0", "--down"], up
        yield [TOOL, "impair", "--switch", "1/[*,1]", "--down"], up
        if FABRIC == "veth":
            daemon = cluster.status()["servers"][MIDDLE]["pid"]
            set_link = ["nsenter", "-t", str(daemon), "-n", "ip", "link", "set", "dev", "level0"]
            yield [*set_link, "down"], [*set_link, "up"]

    def run_command(self, cluster, command):
        subprocess.run(command, env=cluster.environment, capture_output=True, check=True, timeout=PATIENCE)

    def reduce(self, cluster, sessions, arrays, inputs, strike):
        """The bytes of the sums, the same on all; strike() meets the collective while it is under way."""
        for array, values in zip(arrays, inputs):
            array[:] = values
        *pairs, last = zip(sessions, arrays)
        sent = segments_sent(cluster)
        requests = [session.allreduce_async(array) for session, array in pairs]
        wait_until(lambda: segments_sent(cluster) > sent, "segments to be under way")
        strike()
        requests.append(last[0].allreduce_async(last[1]))  # none can have ended before
        self.assertEqual(all_of(lambda request: request.wait(PATIENCE), requests), [None] * len(requests))
        (bits,) = {array.tobytes() for array in arrays}
        return bits


@needs_daemons
class SilentDaemon(TestCase):
    """The daemon on [1,1] fails. All trainers of its job are told so, and another job goes on."""

    def test_that_is_stopped_is_named_to_all_trainers_and_goes_on_in_the_next_job(self):
        with Cluster("--topology", GRID) as cluster:
            daemon = cluster.status()["servers"][MIDDLE]["pid"]
            stop = lambda: os.kill(daemon, signal.SIGSTOP)
            go_on = lambda: os.kill(daemon, signal.SIGCONT)
            self.check(cluster, stop, go_on, gradcube.PeerError)
            self.check_next_job(cluster)

    def test_that_is_killed_is_named_to_all_trainers_and_another_takes_its_place(self):
        with Cluster("--topology", GRID) as cluster, contextlib.ExitStack() as stack:
            daemon = cluster.status()["servers"][MIDDLE]["pid"]
            arguments = arguments_of(daemon)
            kill = lambda: os.kill(daemon, signal.SIGKILL)
            self.check(cluster, kill, lambda: None, gradcube.NoDaemonError)
            if FABRIC == "veth":  # the namespace of the daemon went with it
                return
            stack.enter_context(cluster.daemon(arguments))
            wait_until(lambda: "ports" in cluster.status()["servers"][MIDDLE], "the new daemon to be ready")
            self.check_next_job(cluster)

    def check(self, cluster, strike, mend, own_error):
        with contextlib.ExitStack() as stack:
            sessions = stack.enter_context(job(cluster, "struck"))
            others = stack.enter_context(job(cluster, "beside", [0, 1], members=[0, 1]))
            self.barrier(others)
            before = collectives(cluster)
            pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(SERVERS))
            stack.callback(mend)  # before the pool waits for its threads
            works = [pool.submit(self.reduce_until_failure, session) for session in sessions]
            wait_until(lambda: collectives(cluster) > before, "the first collectives")
            strike()
            survivors = [work for rank, work in enumerate(works) if rank != MIDDLE]
            while not all(work.done() for work in survivors):
                self.barrier(others)
            for work in survivors:
                self.assert_fails(gradcube.PeerError, work.result(), "nothing is heard of the daemon on server [1,1]")
            self.barrier(others)
            mend()
            self.assert_fails(own_error, works[MIDDLE].result(PATIENCE))

    def reduce_until_failure(self, session):
        """All-reduces until that fails: the failure."""
        array = session.alloc(1000)
        array.fill(1)
        while True:
            try:
                session.allreduce(array, op="max", timeout=PATIENCE)
            except gradcube.Error as failure:
                return failure

    def barrier(self, sessions):
        results = all_of(lambda session: session.barrier(timeout=PATIENCE), sessions)
        self.assertEqual(results, [None] * len(sessions))

    def check_next_job(self, cluster):
        wait_until(lambda: not cluster.links_down(), "all links to be seen")
        self.assert_works(cluster)


if __name__ == "__main__":
    main()
