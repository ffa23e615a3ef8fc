"""How ranks find their servers: ranks of several hosts, as threads, over a store that they share."""

import concurrent.futures
import json
import pathlib
import tempfile
import threading
import time
import unittest
from unittest import mock

from gradcube import _launchers, _rendezvous

SERVERS = {f"{host}{server}": number for number, (host, server) in enumerate((h, s) for h in "abc" for s in range(4))}


class Store:
    def __init__(self, patience=30):
        self.values, self.changed, self.patience = {}, threading.Condition(), patience

    def add(self, key, amount):
        with self.changed:
            self.values[key] = str(int(self.values.get(key, 0)) + amount).encode()
            return int(self.values[key])

    def set(self, key, value):
        with self.changed:
            self.values[key] = value if isinstance(value, bytes) else value.encode()
            self.changed.notify_all()

    def compare_set(self, key, expected, value):
        with self.changed:
            if self.values.get(key, b"").decode() == expected:
                self.values[key] = value.encode()  # wakes nobody: so does a TCPStore
            return self.values[key]

    def get(self, key):
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.values, self.patience):
                raise RuntimeError(f"no {key} in time")
            return self.values[key]


class Killed(BaseException):
    """Ends a rank's process."""


class StoreOfARankThatIsKilled(Store):
    """Before it sets this key."""

    def __init__(self, key):
        super().__init__()
        self.key, self.is_dead = key, False

    def set(self, key, value):
        if key == self.key or self.is_dead and threading.current_thread() is self.dead:
            self.key, self.dead, self.is_dead = None, threading.current_thread(), True
            raise Killed
        super().set(key, value)


def server_of(path):
    if path not in SERVERS:
        raise _rendezvous._NoServer(f"no server at '{path}'")
    return SERVERS[path], len(SERVERS)


def joined(hosts, chosen={}, servers=4, wishes={}, store=None, late=(), absent=(), open_group=lambda **place: place):
    """Where the ranks join, by rank; or what they raise. `hosts`: a letter for each rank; one in capitals has none.
    `late`: ranks that come when the others wait for something."""
    store = store or Store()
    local = threading.local()

    def join(rank):
        if rank in absent:
            return None
        if rank in late:
            time.sleep(0.2)
        local.host = hosts[rank]

        def check():
            if rank in wishes:
                raise RuntimeError(wishes[rank])

        begin = lambda: _rendezvous.join(store, rank, len(hosts), "g", check, open_group, held=chosen.get(rank))
        try:
            return begin()
        except Killed:
            store.is_dead = False
            return begin()
        except RuntimeError as error:
            return str(error)

    def sockets():
        return [] if local.host.isupper() else [f"{local.host}{server}" for server in range(servers)]

    with (
        mock.patch.object(_rendezvous, "_place", lambda: local.host),
        mock.patch.object(_rendezvous, "_sockets", sockets),
        mock.patch.object(_rendezvous, "_server_and_cluster", server_of),
        mock.patch.dict("os.environ"),
        concurrent.futures.ThreadPoolExecutor(len(hosts)) as pool,
    ):
        _rendezvous.os.environ.pop("GRADCUBE_SOCKET", None)
        return list(pool.map(join, range(len(hosts))))


class Places(unittest.TestCase):
    def paths(self, *arguments, **options):
        results = joined(*arguments, **options)
        self.assertEqual({result["job"] for result in results}, {results[0]["job"]})
        return " ".join(result["socket"] for result in results)

    def test_ranks_of_a_host_share_its_servers_in_their_order(self):
        self.assertEqual(self.paths("aaaa"), "a0 a1 a2 a3")
        self.assertEqual(self.paths("aa"), "a0 a1")
        self.assertEqual(self.paths("a" * 8), "a0 a0 a1 a1 a2 a2 a3 a3")
        self.assertEqual(self.paths("a" * 6), "a0 a0 a1 a1 a2 a2")

    def test_several_hosts_have_as_many_on_each_server(self):
        self.assertEqual(self.paths("aabb"), "a0 a1 b0 b1")
        self.assertEqual(self.paths("abab"), "a0 b0 a1 b1")
        self.assertEqual(self.paths("aaaabb", servers=2), "a0 a0 a1 a1 b0 b0")
        self.assertEqual(self.paths("aabb", servers=1), "a0 a0 b0 b0")

    def test_who_has_chosen_keeps_its_server(self):
        self.assertEqual(self.paths("aaa", {1: "c2"}), "a0 c2 a1")
        self.assertEqual(self.paths("AA", {0: "b1", 1: "b0"}), "b1 b0")

    def test_what_is_not_found_rank_0_says_for_all(self):
        results = joined("aBB")
        self.assertEqual(results[0], "not all ranks can join: ranks 1, 2: no server at ''")
        for rank in (1, 2):
            self.assertIn("rank 0 says", results[rank])

    def test_numbers_that_do_not_fit_are_told(self):
        results = joined("aaab", servers=2)
        self.assertIn("with 2 servers: 3, ranks on a host with 2 servers: 1", results[0])
        self.assertIn("two servers or more", joined("aaa", servers=1)[0])

    def test_other_failures_all_are_told(self):
        for result in joined("aaa", wishes={1: "a bad wish", 2: "a bad wish"}):
            self.assertEqual(result, "not all ranks can join: ranks 1, 2: a bad wish")


class OneStore(unittest.TestCase):
    """Which has what earlier attempts have left there."""

    def assert_together(self, results, job_before=None):
        jobs = {result["job"] if isinstance(result, dict) else result for result in results}
        self.assertEqual(len(jobs), 1, results)
        self.assertNotIn(job_before, jobs)
        return jobs.pop()

    def test_a_second_group_of_the_name_is_a_job_of_its_own_whoever_comes_first(self):
        store, job = Store(), None
        for late in (), (0,), (1, 2), (1,), (0, 2):
            job = self.assert_together(joined("aaa", store=store, late=late), job)

    def test_what_failed_before_is_told_no_more(self):
        store = Store()
        for late in (0,), (1, 2):
            for failed in joined("aaa", store=store, wishes={1: "a bad wish"}):
                self.assertEqual(failed, "not all ranks can join: rank 1: a bad wish")
            self.assert_together(joined("aaa", store=store, late=late))

        def refused(**place):
            raise RuntimeError("no such algorithm")

        for failed in joined("aaa", store=store, open_group=refused):
            self.assertIn("no such algorithm", failed)
        self.assert_together(joined("aaa", store=store, late=(0,)))

    def test_a_rank_that_has_missed_an_attempt_is_in_the_next_one(self):
        for absent in (0, 1, 2):
            for late in (), (0,), (1, 2):
                store = Store(patience=0.5)
                results = joined("aaa", store=store, absent=(absent,))
                store.patience = 30
                self.assertIs(results.pop(absent), None)
                for result in results:
                    self.assertIn("in time", result)
                self.assert_together(joined("aaa", store=store, late=late))

    def test_a_rank_0_that_is_killed_while_others_wait_for_it_joins_them_when_it_comes_again(self):
        for answer in "place", "server", "joined":
            self.assert_together(joined("aaa", store=StoreOfARankThatIsKilled(f"gradcube/1/{answer}")))

    def test_a_rank_that_is_killed_as_it_tells_joins_the_others_when_it_comes_again(self):
        for answer in "place", "server", "joined":
            self.assert_together(joined("aaa", store=StoreOfARankThatIsKilled(f"gradcube/1/{answer}/1")))

    def test_a_group_of_another_size_is_no_trouble(self):
        store = Store()
        self.assert_together(joined("aaaa", store=store))
        self.assert_together(joined("aa", store=store, late=(0,)))
        self.assert_together(joined("aaaa", store=store, late=(0,)))


class Launchers(unittest.TestCase):
    MPIRUN = {
        "OMPI_COMM_WORLD_RANK": "4",
        "OMPI_COMM_WORLD_SIZE": "6",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "3",
    }
    SRUN = {
        "SLURM_PROCID": "4",
        "SLURM_STEP_NUM_TASKS": "6",
        "SLURM_LOCALID": "1",
        "SLURM_STEP_TASKS_PER_NODE": "3(x2)",
    }
    PLACE = {"RANK": 4, "WORLD_SIZE": 6, "LOCAL_RANK": 1, "LOCAL_WORLD_SIZE": 3}

    def test_say_where_a_process_is(self):
        torchrun = {name: str(number) for name, number in self.PLACE.items()}
        for environment in torchrun, self.MPIRUN, self.SRUN:
            self.assertEqual(_launchers.launched(environment), self.PLACE)
        batch_script = {"SLURM_PROCID": "0", "SLURM_NTASKS": "6", "SLURM_LOCALID": "0"}
        for environment in {}, {"RANK": "4"}, batch_script:
            self.assertEqual(_launchers.launched(environment), {})

    def named(self, environment, hosts=None):
        with tempfile.TemporaryDirectory() as directory:
            if hosts is not None:
                text = hosts if hosts == "damaged" else json.dumps({"settings": {"hosts": hosts}})
                (pathlib.Path(directory) / "hosts.json").write_text(text)
            _launchers.name_as_torchrun_does(directory, environment)
        return environment

    def test_are_named_as_torchrun_names_them(self):
        named = self.named(dict(self.SRUN), "198.18.0.1:5000,198.18.1.1 198.18.0.2")
        self.assertEqual({name: int(named[name]) for name in self.PLACE}, self.PLACE)
        self.assertEqual((named["MASTER_ADDR"], named["MASTER_PORT"]), ("198.18.0.1", "29500"))
        self.assertEqual(self.named(dict(self.MPIRUN), "[fd00::1]:5000 fd00::2")["MASTER_ADDR"], "fd00::1")
        self.assertEqual(self.named(dict(self.MPIRUN), "fd00::1 fd00::2")["MASTER_ADDR"], "fd00::1")
        for hosts in None, "damaged":
            self.assertNotIn("MASTER_ADDR", self.named(dict(self.MPIRUN), hosts))
        one_host = dict(self.MPIRUN, OMPI_COMM_WORLD_LOCAL_SIZE="6")
        self.assertEqual(self.named(one_host)["MASTER_ADDR"], "127.0.0.1")
        chosen = dict(self.MPIRUN, MASTER_ADDR="198.18.0.9", MASTER_PORT="1")
        self.assertEqual(self.named(chosen)["MASTER_ADDR"], "198.18.0.9")

    def test_that_are_torchrun_or_none_are_left_alone(self):
        for environment in {}, {"RANK": "0", **self.MPIRUN}:
            self.assertEqual(self.named(dict(environment)), environment)

    def test_share_out_the_servers_of_a_host(self):
        def place(environment, sockets):
            with mock.patch.dict("os.environ", environment, clear=True):
                with mock.patch.object(_rendezvous, "_sockets", lambda: sockets):
                    with mock.patch.object(_rendezvous, "Session", lambda *where, **options: (where, options)):
                        return _rendezvous.launched_session()

        self.assertEqual(place(self.MPIRUN, ["s"]), (("s", "default"), {"trainers_per_server": 3, "local": 1}))
        self.assertEqual(place(self.MPIRUN, ["a", "b", "c"]), (("b", "default"), {"trainers_per_server": 1, "local": 0}))
        by_run = {**self.SRUN, "GRADCUBE_SOCKET": "t", "TORCHELASTIC_RUN_ID": "run-7"}
        self.assertEqual(place(by_run, ["a", "b"]), (("t", "run-7"), {"trainers_per_server": 3, "local": 1}))
        for environment, sockets in ({}, ["s"]), (self.MPIRUN, []), (self.MPIRUN, ["a", "b"]):
            self.assertEqual(place(environment, sockets), ((), {"job": "default"}))


if __name__ == "__main__":
    unittest.main()
