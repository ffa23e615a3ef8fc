"""Trainers and daemons that die in the midst of it, and trainers that leave in an orderly way."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import gradcube
import numpy

from fabrics import GRID, LAST, MIDDLE, PATIENCE, RADIX, SERVERS, faults, only_on, rounds, some
from harness import Clockwork, Cluster, TestCase, alive, all_of, job, main, wait_until

BIG = 1_500_000  # float32 elements: at SLOW, an all-reduce of them takes half a second
SLOW = ["--rate", "100mbit"]
ENDS = """
import sys, threading, time
import gradcube

session = gradcube.Session(sys.argv[1], "ends")
session.send_async(b"left behind", 1)
never = session.recv_async(bytearray(9), 1, tag=2)
waits = threading.Event()
threading.Thread(target=lambda: [waits.set(), never.wait()], daemon=True).start()
waits.wait()
threading.Thread(target=lambda: [time.sleep(0.3), session.send_async(b"by a thread", 1, tag=3)]).start()
"""
ENDS_IN_A_FORK = f"""
import multiprocessing, sys
child = multiprocessing.get_context("fork").Process(target=exec, args=({ENDS!r}, {{}}))
child.start()
child.join()
sys.exit(child.exitcode)
"""
one_daemon = only_on("embedded", why="this is about the one daemon that has all sessions")


def where_it_is_shared(array):
    """The descriptor of the session's memory that this lies in, and where there."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            place, _, offset, _, inode, *_ = line.split()
            begin, end = (int(one, 16) for one in place.split("-"))
            if begin <= array.ctypes.data < end:
                break
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the folder itself
            if os.stat(f"/proc/self/fd/{name}").st_ino == int(inode):
                return f"/proc/self/fd/{name}", int(offset, 16) + array.ctypes.data - begin
    raise AssertionError("no descriptor has it")


@contextlib.contextmanager
def endless_trainer(socket, job_name, count, *options):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "endless_trainer.py")
    process = subprocess.Popen(
        [sys.executable, program, socket, job_name, str(count), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        if process.stdout.readline() != "joined\n":
            raise AssertionError("the trainer did not join")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def reduce_until_failure(session, count):
    """All-reduces until that fails: the failure."""
    gradients = session.alloc(count)
    gradients.fill(1)
    while True:
        try:
            session.allreduce(gradients, op="max", timeout=PATIENCE)
        except gradcube.Error as failure:
            return failure


def failures_when(do, works):
    """The results of all works, during which do() is done."""
    *results, done = all_of(lambda task: task(), [*works, do])
    if done is not None:
        raise done
    return results


def in_mid_collective(cluster, name):
    """Whether all of the job's trainers wait for a collective."""
    found = cluster.job(name)
    running = found is not None and found["state"] == "running"
    return running and all(trainer["submitted"] > trainer["completed"] for trainer in found["trainers"])


class DeathOfATrainer(TestCase):
    def check_death(self, cluster, count, wait, algorithm=None):
        """SIGKILL for the trainer at the last server, after wait(): the others are told who it was."""

        def strike():
            wait()
            victim.kill()

        last = cluster.sockets()[-1]
        asked = [] if algorithm is None else ["--algorithm", algorithm]
        members = job(cluster, "mortal", range(SERVERS - 1), algorithm=algorithm)
        with members as sessions, endless_trainer(last, "mortal", count, *asked) as victim:
            works = [lambda s=session: reduce_until_failure(s, count) for session in sessions]
            for failure in failures_when(strike, works):
                self.assert_fails(gradcube.PeerError, failure, "mortal", LAST, f"pid {victim.pid}", "died")
            left = lambda: len(cluster.job("mortal")["trainers"])
            wait_until(lambda: left() == SERVERS - 1, "status to know who is left")
            # Whoever starts another collective in it is told the same.
            again = all_of(lambda session: session.barrier(timeout=PATIENCE), sessions)
            for failure in again:
                self.assert_fails(gradcube.PeerError, failure, LAST)

    def test_behind_a_child_that_lives_on(self):
        with Cluster("--topology", "star:2") as cluster:
            last = cluster.sockets()[1]
            with job(cluster, "mortal", range(1)) as sessions:
                with endless_trainer(last, "mortal", 1000, "--with-child") as victim:

                    def strike():
                        wait_until(lambda: cluster.status()["counters"]["collectives"] > 0, "the first collective")
                        victim.kill()

                    (failure,) = failures_when(strike, [lambda: reduce_until_failure(sessions[0], 1000)])
                    self.assert_fails(gradcube.PeerError, failure, "[1]", f"pid {victim.pid}", "died")

    def test_the_end_of_a_forked_child_is_not_the_trainers(self):
        with Cluster("--topology", "star:2") as cluster, job(cluster, "parent", range(2)) as sessions:
            child = os.fork()
            if child == 0:
                for session in sessions:
                    session.close()
                os._exit(0)
            os.waitpid(child, 0)
            results = all_of(lambda session: session.barrier(timeout=PATIENCE), sessions)
            self.assertEqual(results, [None, None])

    def check_nothing_remains(self, cluster):
        wait_until(lambda: cluster.job("mortal") is None, "the job to be forgotten")
        wait_until(
            lambda: cluster.status()["memory"]["trainer_bytes"] == 0, "the trainers' memory to be freed"
        )
        self.assert_works(cluster, "mortal")

    def test_amid_short_all_reduces_by_recursive_doubling(self):
        with Cluster("--topology", GRID, *faults("--loss", "0.01")) as cluster:
            done = lambda: cluster.status()["counters"]["collectives"]
            self.check_death(
                cluster, 250, lambda: wait_until(lambda: done() > 50 * SERVERS, "some to be done"), "recursive_doubling"
            )
            self.check_nothing_remains(cluster)
            wait_until(lambda: cluster.status()["memory"]["packets_reserved_bytes"] == 0, "all packets to be back")

    def test_in_mid_collective(self):
        with Cluster("--topology", GRID, *SLOW) as cluster:
            with Clockwork(cluster) as other:
                self.check_death(
                    cluster, BIG, lambda: wait_until(lambda: in_mid_collective(cluster, "mortal"), "all to be in one")
                )
            self.assert_undisturbed(other)
            self.check_nothing_remains(cluster)

    def test_between_small_collectives(self):
        with Cluster("--topology", GRID) as cluster:
            for after in some((0, 0.05, 0.1)):
                self.check_death(cluster, 10, lambda: time.sleep(after))
                self.check_nothing_remains(cluster)

    def test_its_own_memory_is_freed_while_the_others_still_hold_theirs(self):
        with Cluster("--topology", GRID) as cluster:
            with job(cluster, "heirs", range(SERVERS - 1)) as sessions:
                with endless_trainer(cluster.sockets()[-1], "heirs", BIG):
                    wait_until(
                        lambda: cluster.status()["memory"]["trainer_bytes"] >= 4 * BIG, "its memory to count"
                    )
                wait_until(lambda: cluster.status()["memory"]["trainer_bytes"] < 4 * BIG, "it to be freed")
                self.assertEqual(len(cluster.job("heirs")["trainers"]), len(sessions))

    def test_the_name_can_be_used_again_while_the_survivors_have_not_left(self):
        with Cluster("--topology", GRID) as cluster:
            with job(cluster, "again", range(SERVERS - 1)):
                with endless_trainer(cluster.sockets()[-1], "again", 10):
                    pass
                wait_until(lambda: cluster.job("again")["state"] == "aborted", "the job to be aborted")
                self.assert_works(cluster, "again")

    def test_before_the_job_was_complete(self):
        with Cluster("--topology", GRID) as cluster:
            with job(cluster, "early", [0]) as (session,):
                request = session.allreduce_async(numpy.ones(10, "float32"))
                with endless_trainer(cluster.sockets()[RADIX], "early", 10):
                    pass
                (failure,) = all_of(lambda request: request.wait(PATIENCE), [request])
                self.assert_fails(gradcube.PeerError, failure, "[1,0]", "died")
            self.assert_works(cluster, "early")


@one_daemon
class DeathOfTheDaemon(TestCase):
    def check_ended(self, cluster, how, *words):
        with job(cluster, "orphans") as sessions:

            def strike():
                wait_until(lambda: in_mid_collective(cluster, "orphans"), "all to be in one")
                how()

            works = [lambda s=session: reduce_until_failure(s, BIG) for session in sessions]
            for failure in failures_when(strike, works):
                self.assert_fails(gradcube.NoDaemonError, failure, *words)
            for failure in all_of(lambda session: session.barrier(timeout=PATIENCE), sessions):
                self.assert_fails(gradcube.NoDaemonError, failure, *words)

    def test_killed_in_mid_collective(self):
        with Cluster("--topology", GRID, *SLOW) as cluster:
            pid = cluster.pid()
            self.check_ended(cluster, lambda: os.kill(pid, signal.SIGKILL), "went away", "gradcube up")
            cluster.up()
            self.assert_works(cluster)

    def test_down_in_mid_collective(self):
        with Cluster("--topology", GRID, *SLOW) as cluster:
            self.check_ended(cluster, lambda: cluster.tool("down"), "shutting down")
            cluster.up()
            self.assert_works(cluster)

    def test_down_with_packets_under_way_ends_without_a_crash(self):
        with Cluster("--topology", "star:9", "--delay", "300ms", up=False) as cluster:
            cluster.environment["MALLOC_PERTURB_"] = "85"  # freed memory does not look alive
            cluster.up()
            perf = cluster.start_tool("perf", "allreduce", "--sizes", "40M")
            wait_until(lambda: cluster.status()["counters"]["segments_sent"] > 100, "perf to begin")
            self.assertEqual(cluster.tool("down").returncode, 0)
            perf.communicate(timeout=PATIENCE)
            self.assertRegex(cluster.log(), r"info down\s*$")

    def test_sigterm_is_an_orderly_end(self):
        with Cluster("--topology", GRID, *SLOW) as cluster:
            pid = cluster.pid()
            self.check_ended(cluster, lambda: os.kill(pid, signal.SIGTERM), "shutting down")
            wait_until(lambda: not alive(pid), "the daemon to end")
            self.assertEqual([name for name in cluster.files() if name.endswith(".sock")], [])

    def test_perf_says_so(self):
        with Cluster("--topology", GRID, *SLOW) as cluster:
            perf = cluster.start_tool("perf", "allreduce", "--sizes", "12.5M", "--iterations", "100", "--json")
            wait_until(lambda: cluster.status()["counters"]["segments_sent"] > 0, "perf to begin")
            cluster.kill()
            output, errors = perf.communicate(timeout=PATIENCE)
            self.assertEqual((perf.returncode, output), (1, ""))
            self.assertIn("gradcube up", errors)


class Leaving(TestCase):
    def test_who_leaves_after_the_last_collective_does_not_break_the_others(self):
        with Cluster("--topology", GRID) as cluster:
            sockets = cluster.sockets()

            def short_life(arguments):
                name, socket = arguments
                array = numpy.ones(33, "float32")
                with gradcube.Session(socket, name) as session:
                    session.allreduce(array, timeout=PATIENCE)
                return float(array.min()) if array.min() == array.max() else array

            for life in range(rounds(60, 8, deep=200)):
                results = all_of(short_life, [(f"brief-{life % 2}", socket) for socket in sockets])
                self.assertEqual(results, [SERVERS] * SERVERS, f"job {life}")
            wait_until(lambda: cluster.status()["jobs"] == [], "all jobs to be forgotten")

    def test_under_heavy_loss(self):
        flags = faults("--loss", "0.25", "--duplicate", "0.05", "--reorder", "0.05", "--seed", str(self.seed))
        with Cluster("--topology", GRID, *flags) as cluster:
            for life in range(rounds(4, 2, deep=10)):
                with job(cluster, f"lossy-{life}") as sessions:

                    def work(session):
                        array = numpy.ones(1000, "float32")
                        session.allreduce(array, timeout=PATIENCE)
                        session.close()
                        return float(array.sum())

                    self.assertEqual(all_of(work, sessions), [1000 * SERVERS] * SERVERS, f"job {life}")

    def test_who_leaves_too_early_is_named(self):
        with Cluster("--topology", GRID) as cluster, job(cluster, "deserted") as sessions:
            self.assertEqual(all_of(lambda session: session.barrier(timeout=PATIENCE), sessions), [None] * SERVERS)
            sessions[MIDDLE].close()
            others = sessions[:MIDDLE] + sessions[MIDDLE + 1 :]
            for failure in all_of(lambda session: session.barrier(timeout=PATIENCE), others):
                self.assert_fails(gradcube.PeerError, failure, "deserted", "[1,1]", "left")

    def test_who_leaves_ends_nothing_that_does_not_need_it(self):
        with Cluster("--topology", GRID) as cluster, job(cluster, "pipeline") as sessions:
            leaver, others = sessions[MIDDLE], sessions[:MIDDLE] + sessions[MIDDLE + 1 :]
            arrays = [numpy.ones(33, "float32") for _ in sessions]
            leaver.allreduce_async(arrays[MIDDLE])
            leaver.send_async(b"left behind", 0, tag=1)
            waiting = others[1].recv_async(bytearray(9), MIDDLE, tag=2)
            leaver.close()
            rank = f"rank {MIDDLE} exchanges no more messages"
            with self.assertRaisesRegex(gradcube.PeerError, rank + r".*pipeline.*\[1,1\].* left"):
                waiting.wait(timeout=PATIENCE)
            with self.assertRaisesRegex(gradcube.PeerError, rank):
                others[1].send(b"x", MIDDLE, timeout=PATIENCE)
            # It is known to have left by now. What it had part in works all the same.
            self.assertEqual(sessions[0].recv_bytes(99, MIDDLE, tag=1, timeout=PATIENCE), b"left behind")
            done = all_of(lambda session: session.allreduce(arrays[session.rank], timeout=PATIENCE), others)
            self.assertEqual([done, float(arrays[0][32])], [[None] * len(others), SERVERS])
            for _ in range(2):
                (failure,) = all_of(lambda session: session.barrier(timeout=PATIENCE), others[:1])
                self.assert_fails(gradcube.PeerError, failure, "collective", f"needs rank {MIDDLE}", "[1,1]", "left")
                echo = others[-1].recv_async(bytearray(5), 0)
                sessions[0].send(b"still", others[-1].rank, timeout=PATIENCE)
                echo.wait(timeout=PATIENCE)

    def test_a_process_leaves_as_it_ends_though_a_thread_of_its_own_waits(self):
        with Cluster("--topology", "star:2") as cluster:
            sockets = cluster.sockets()
            for ends in ENDS, ENDS_IN_A_FORK:
                waiting = subprocess.Popen([sys.executable, "-c", ends, sockets[0]], stderr=subprocess.PIPE, text=True)
                with waiting, gradcube.Session(sockets[1], "ends") as session:
                    self.assertEqual(waiting.communicate(timeout=PATIENCE), (None, ""))
                    self.assertEqual(waiting.returncode, 0)
                    self.assertEqual(session.recv_bytes(99, 0, timeout=PATIENCE), b"left behind")
                    self.assertEqual(session.recv_bytes(99, 0, tag=3, timeout=PATIENCE), b"by a thread")
                    with self.assertRaisesRegex(gradcube.PeerError, "left"):
                        session.barrier(timeout=PATIENCE)

    def test_what_who_leaves_had_submitted_is_what_others_get_whatever_it_writes_then(self):
        with Cluster("--topology", GRID) as cluster, job(cluster, "scribbler") as sessions:
            leaver, others = sessions[MIDDLE], sessions[:MIDDLE] + sessions[MIDDLE + 1 :]
            given = leaver.alloc(100_000)
            given.fill(1)
            parcel = leaver.alloc(100_000)
            parcel.fill(7)
            leaver.allreduce_async(given)
            leaver.send_async(parcel, 0)
            leaver.close()
            for array in (given, parcel):
                array.fill(1000)
            arrays = [numpy.ones(len(given), "float32") for _ in others]
            tasks = list(zip(others, arrays))
            all_of(lambda task: task[0].allreduce(task[1], timeout=PATIENCE), tasks)
            received = numpy.zeros_like(parcel)
            sessions[0].recv(received, MIDDLE, timeout=PATIENCE)
            self.assertEqual([float(array.min()) for array in arrays], [SERVERS] * len(others))
            self.assertEqual([float(array.max()) for array in arrays], [SERVERS] * len(others))
            self.assertEqual((received.min(), received.max()), (7, 7))
            self.assertEqual((given.min(), given.max(), parcel.min()), (1000, 1000, 1000), "its own")

    def test_what_who_aborts_writes_then_is_its_own_at_once(self):
        with Cluster("--topology", "star:2") as cluster, job(cluster, "aborter") as sessions:
            given = sessions[0].alloc(100_000)
            given.fill(1)
            shared = where_it_is_shared(given)
            sessions[0].allreduce_async(given)
            sessions[0].abort()
            given.fill(1000)
            with open(shared[0], "rb") as memory:
                memory.seek(shared[1])
                others_see = numpy.frombuffer(memory.read(given.nbytes), "float32")
            self.assertEqual((others_see.min(), others_see.max()), (1, 1))
            self.assertEqual((given.min(), given.max()), (1000, 1000))

    def test_a_perf_that_is_interrupted_leaves_a_working_cluster(self):
        with Cluster("--topology", GRID) as cluster:
            many = ("perf", "allreduce", "--sizes", "1M", "--iterations", "1000000")
            perf = cluster.start_tool(*many, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
            wait_until(lambda: cluster.status()["jobs"], "perf to begin")
            perf.send_signal(signal.SIGHUP)
            cluster.tool("perf", "allreduce", "--sizes", "4", "--iterations", "10")
            self.assertIsNone(perf.poll(), "it was not to heed a hangup, as under nohup")
            perf.send_signal(signal.SIGINT)
            try:
                perf.communicate(timeout=PATIENCE)
            finally:
                perf.kill()
                perf.communicate()
            self.assertEqual(perf.returncode, -signal.SIGINT)
            wait_until(lambda: cluster.status()["jobs"] == [], "its job to be forgotten")
            self.assert_works(cluster)


if __name__ == "__main__":
    main()
