"""How ranks find their servers: ranks of several hosts, as threads, over a store that they share."""

import concurrent.futures
import threading
import unittest
from unittest import mock

from gradcube import _rendezvous

SERVERS = {f"{host}{server}": number for number, (host, server) in enumerate((h, s) for h in "abc" for s in range(4))}


class Store:
    def __init__(self):
        self.values, self.changed = {}, threading.Condition()

    def set(self, key, value):
        with self.changed:
            self.values[key] = value.encode()
            self.changed.notify_all()

    def get(self, key):
        with self.changed:
            assert self.changed.wait_for(lambda: key in self.values, 30), key
            return self.values[key]


def server_of(path):
    if path not in SERVERS:
        raise _rendezvous._NoServer(f"no server at '{path}'")
    return SERVERS[path], len(SERVERS)


def joined(hosts, chosen={}, servers=4, wishes={}):
    """Where the ranks join, by rank; or what they raise. `hosts`: a letter for each rank; one in capitals has none."""
    store = Store()
    local = threading.local()

    def join(rank):
        local.host = hosts[rank]

        def check():
            if rank in wishes:
                raise RuntimeError(wishes[rank])

        try:
            return _rendezvous.join(store, rank, len(hosts), "g", check, lambda **place: place, held=chosen.get(rank))
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


if __name__ == "__main__":
    unittest.main()
