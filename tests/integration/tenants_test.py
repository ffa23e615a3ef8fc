"""Several users share a daemon: whom it serves, what each may have, see and do, and what is kept from them.

Root runs it: the daemon and each of its users is a user of its own, by number. Nobody of these has to exist.
"""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from fabrics import PATIENCE, TOOL
from harness import alive, main, wait_until

OWNER, ALICE, BOB, STRANGER = range(64101, 64105)
GROUP = 64200
TENANT = pathlib.Path(__file__).with_name("tenant.py")
SECRET = "a secret that nobody can guess"


def becoming(user, groups=()):
    listed = [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    return ["setpriv", f"--reuid={user}", f"--regid={user}", *listed, "--no-new-privs", "--bounding-set=-all"]


def why_not():
    """Why these tests cannot run here; empty if they can."""
    if os.geteuid() != 0:
        return "becomes other users, which takes root"
    if shutil.which("setpriv") is None:
        return "the program setpriv is not installed"
    tries = ([TOOL, "--version"], [sys.executable, "-c", f"import gradcube, numpy; open({str(TENANT)!r})"])
    for command in tries:
        done = subprocess.run([*becoming(ALICE), *command], capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            return f"another user cannot run what is tested: {done.stderr.strip()[-200:]}"
    return ""


class Daemon:
    """That of OWNER, on two servers. with Daemon("--allow-users", "...") as daemon: ..."""

    def __init__(self, *flags):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="gradcube-test-"))
        os.chmod(self.home, 0o755)
        self.directory = self.home / "run"
        self.directory.mkdir(mode=0o700)
        os.chown(self.directory, OWNER, OWNER)
        self.children = []
        self.flags = ["--topology", "star:2", *flags]
        self.pid = None

    def __enter__(self):
        done = self.tool(OWNER, "up", *self.flags)
        if done.returncode != 0:
            self.__exit__()
            raise AssertionError(done.stderr)
        self.pid = self.status(OWNER)["pid"]
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.communicate()
        self.tool(OWNER, "down")
        if self.pid is not None and alive(self.pid):
            os.kill(self.pid, signal.SIGKILL)
        shutil.rmtree(self.home, ignore_errors=True)

    def environment(self, **more):
        own = {"GRADCUBE_RUN": str(self.directory), "GRADCUBE_DAEMON_UID": str(OWNER), "GRADCUBE_HEAP": "64Mi"}
        return os.environ | own | more

    def tool(self, user, *arguments):
        return subprocess.run(
            [*becoming(user), TOOL, *arguments],
            env=self.environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
        )

    def status(self, user):
        done = self.tool(user, "status", "--json")
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def socket(self, server):
        return str(self.directory / f"server-{server}.sock")

    def start(self, user, *arguments, groups=(), **environment):
        child = subprocess.Popen(
            [*becoming(user, groups), sys.executable, str(TENANT), *map(str, arguments)],
            env=self.environment(**environment),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.children.append(child)
        return child

    def both(self, job, users, hold="", **environment):
        """A trainer of each user, one on each server."""
        return [
            self.start(user, "reduce", self.socket(rank), job, rank, *([hold] if hold else []), **environment)
            for rank, user in enumerate(users)
        ]


def said(child):
    line = child.stdout.readline()
    if not line:
        raise AssertionError(f"it said nothing: {child.communicate()[1]}")
    return json.loads(line)


def job_names(status):
    return [job["name"] for job in status["jobs"]]


@unittest.skipIf(why_not(), why_not())
class Tenants(unittest.TestCase):
    longMessage = True

    def assert_adds(self, children):
        self.assertEqual([said(child) for child in children], [{"sum": 3.0}] * len(children))

    def test_users_and_members_of_groups_are_served_and_a_stranger_is_told_so(self):
        with Daemon("--allow-users", str(ALICE), "--allow-groups", str(GROUP)) as daemon:
            self.assert_adds(daemon.both("mine", [ALICE, ALICE]))
            bobs = [daemon.start(BOB, "reduce", daemon.socket(rank), "his", rank, groups=[GROUP]) for rank in (0, 1)]
            self.assert_adds(bobs)
            told = said(daemon.start(STRANGER, "reduce", daemon.socket(0), "theirs", 0))
            self.assertIn(f"user {STRANGER} is none of those whom it serves", told["error"])
            done = daemon.tool(STRANGER, "status")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"user {STRANGER} is none of those whom it serves", done.stderr)
            self.assertEqual(job_names(daemon.status(OWNER)), [])

    def test_without_the_settings_nobody_else_gets_to_the_sockets(self):
        with Daemon() as daemon:
            self.assertEqual(daemon.directory.stat().st_mode & 0o777, 0o700)
            for command in (["status"], ["perf", "allreduce"], ["down"], ["up"], ["plan", "--why", "1K"]):
                done = daemon.tool(ALICE, *command)
                self.assertEqual(done.returncode, 1, command)
                closed = f"is closed to user {ALICE}: {daemon.directory} belongs to user {OWNER}, who lets nobody else in"
                self.assertIn(closed, done.stderr, command)
            os.chmod(daemon.directory, 0o755)
            for path in daemon.directory.glob("*.sock"):
                self.assertEqual(path.stat().st_mode & 0o777, 0o600, path)
            self.assertIn("error", said(daemon.start(ALICE, "reduce", daemon.socket(0), "mine", 0)))
            for command in (["status"], ["perf", "allreduce"], ["plan", "--why", "1K"]):
                done = daemon.tool(ALICE, *command)
                self.assertEqual(done.returncode, 1, command)
                self.assertIn(f"serves its own user, {OWNER}, alone, and not user {ALICE}", done.stderr, command)

    def test_the_tool_measures_there_with_a_capability_that_its_file_has(self):
        """As `setcap cap_net_raw+ep` gives it, for the ports of cables."""
        with Daemon("--allow-users", str(ALICE)) as daemon:
            tool = shutil.copy(TOOL, daemon.home)
            os.chmod(tool, 0o755)
            version_2_effective, net_raw = 0x0200_0001, 1 << 13
            os.setxattr(tool, "security.capability", struct.pack("<5I", version_2_effective, net_raw, 0, 0, 0))
            user = ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups"]
            command = [*user, tool, "perf", "allreduce", "--sizes", "4K", "--iterations", "2", "--check"]
            done = subprocess.run(
                command, env=daemon.environment(), cwd="/", capture_output=True, text=True, timeout=2 * PATIENCE
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_lies_in_the_run_directory_beside_the_sockets_is_its_owners(self):
        with Daemon("--allow-users", str(ALICE)) as daemon:
            self.assertEqual(daemon.directory.stat().st_mode & 0o777, 0o755)
            modes = {path.name: path.stat().st_mode & 0o777 for path in daemon.directory.iterdir()}
            for name, mode in modes.items():
                tenants_may = name == "control.sock" or name.startswith("server-")
                self.assertEqual(mode, 0o666 if tenants_may else 0o600, name)

    def test_a_name_that_nobody_has_is_refused_at_the_start(self):
        for setting, what in (("--allow-users", "user"), ("--allow-groups", "group")):
            with self.assertRaisesRegex(AssertionError, f'this host has no {what} "no-such-name"'):
                with Daemon(setting, "no-such-name"):
                    pass

    def test_each_sees_its_own_jobs_and_may_not_end_the_daemon(self):
        with Daemon("--allow-users", f"{ALICE},{BOB}") as daemon:
            for user, name in ((ALICE, "hers"), (BOB, "his")):
                self.assert_adds(daemon.both(name, [user, user], hold="hold"))
            self.assertEqual(job_names(daemon.status(ALICE)), ["hers"])
            self.assertEqual(job_names(daemon.status(BOB)), ["his"])
            self.assertEqual(sorted(job_names(daemon.status(OWNER))), ["hers", "his"])
            self.assertEqual([user["uid"] for user in daemon.status(ALICE)["memory"]["users"]], [ALICE])
            for command in (["down"], ["impair", "--loss", "0.5"], ["status", "--all"]):
                done = daemon.tool(ALICE, *command)
                self.assertNotEqual(done.returncode, 0, command)
            done = daemon.tool(ALICE, "perf", "allreduce", "--sizes", "1K", "--iterations", "1", "--algorithm", "auto")
            self.assertEqual((done.returncode, done.stderr), (0, ""), "nothing is kept, which is no news")
            self.assertIn("on star:2, the running cluster", daemon.tool(ALICE, "plan").stdout)
            self.assertIn("is for the daemon's own user", daemon.tool(ALICE, "impair", "--loss", "0.5").stderr)
            self.assertEqual(daemon.status(OWNER)["pid"], daemon.pid)
            self.assertEqual(daemon.status(OWNER)["impairments"]["loss"], 0)

    def test_jobs_of_one_name_do_not_meet_unless_they_know_a_secret(self):
        with Daemon("--allow-users", f"{ALICE},{BOB}") as daemon:
            self.assert_adds(daemon.both("train", [ALICE, ALICE], hold="hold"))
            self.assert_adds(daemon.both("train", [BOB, BOB], hold="hold"))
            self.assertEqual(job_names(daemon.status(OWNER)), ["train", "train"])
            self.assert_adds(daemon.both("together", [ALICE, BOB], GRADCUBE_JOB_SECRET=SECRET))
            apart = daemon.both("apart", [ALICE, BOB], hold="hold")
            apart += [
                daemon.start(ALICE, "reduce", daemon.socket(0), "wrong", 0, "hold", GRADCUBE_JOB_SECRET=SECRET),
                daemon.start(BOB, "reduce", daemon.socket(1), "wrong", 1, "hold", GRADCUBE_JOB_SECRET=SECRET + "!"),
            ]
            for child in apart:
                self.assertIn("has not joined", said(child)["error"])
            short = said(daemon.start(ALICE, "reduce", daemon.socket(0), "short", 0, GRADCUBE_JOB_SECRET="1234"))
            self.assertIn("GRADCUBE_JOB_SECRET has 4 bytes: expected 16 to 255", short["error"])

    def test_root_ends_the_daemon_of_another_user_and_is_told_so(self):
        with Daemon("--allow-users", str(ALICE)) as daemon:
            done = subprocess.run(
                [TOOL, "down"], env=daemon.environment(), capture_output=True, text=True, timeout=PATIENCE
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("is down", done.stdout)
            wait_until(lambda: not alive(daemon.pid), "the daemon to be gone")

    def test_daemons_of_several_servers_keep_jobs_of_one_name_apart_and_know_the_secret(self):
        with Daemon("--fabric", "memif", "--allow-users", f"{ALICE},{BOB}") as daemon:
            self.assert_adds(daemon.both("train", [ALICE, ALICE], hold="hold"))
            self.assert_adds(daemon.both("train", [BOB, BOB], hold="hold"))
            self.assert_adds(daemon.both("together", [ALICE, BOB], GRADCUBE_JOB_SECRET=SECRET))
            apart = [
                daemon.start(ALICE, "reduce", daemon.socket(0), "wrong", 0, "hold", GRADCUBE_JOB_SECRET=SECRET),
                daemon.start(BOB, "reduce", daemon.socket(1), "wrong", 1, "hold", GRADCUBE_JOB_SECRET=SECRET + "!"),
            ]
            for child in apart:
                self.assertIn("has not joined", said(child)["error"])
            self.assertEqual(job_names(daemon.status(ALICE)), ["train"])
            self.assertEqual(daemon.tool(BOB, "down").returncode, 1)
            told = said(daemon.start(STRANGER, "reduce", daemon.socket(0), "theirs", 0))
            self.assertIn("is none of those whom it serves", told["error"])

    def test_a_user_has_no_more_jobs_and_sessions_than_it_may(self):
        limits = ["--user-jobs", "2", "--user-sessions", "5"]
        with Daemon("--allow-users", f"{ALICE},{BOB}", *limits) as daemon:
            many = daemon.start(ALICE, "sessions", daemon.socket(0), 3)
            told = [said(many) for _ in range(3)]
            self.assertEqual(told[:2], [{"opened": 1}, {"opened": 2}])
            words = f"user {ALICE} has 2 jobs on server [0] and may have 2: end some, or start the cluster with a larger --user-jobs"
            self.assertIn(words, told[2]["error"])
            more = daemon.start(ALICE, "sessions", daemon.socket(1), 3)
            self.assertEqual([said(more) for _ in range(2)], [{"opened": 1}, {"opened": 2}])
            self.assertIn("--user-jobs", said(more)["error"])
            self.assertRegex(daemon.tool(ALICE, "status").stdout, r"jobs 2 of 2, trainers 4 of 5\n")
            self.assertIn(f"user {ALICE} has", daemon.tool(OWNER, "status").stdout)
            self.assertIn(f"\nallowed       users {ALICE}, {BOB}\n", daemon.tool(OWNER, "status").stdout)
            for nothing in f"user {ALICE} has", "\nallowed":
                self.assertNotIn(nothing, daemon.tool(BOB, "status").stdout)
            fifth = daemon.start(ALICE, "reduce", daemon.socket(0), "many0", 0, "hold")
            self.assertIn("already has a trainer", said(fifth)["error"])  # which let go of its session
            self.assert_adds(daemon.both("his", [BOB, BOB]))

    def test_the_sessions_of_a_user_are_counted_over_all_servers(self):
        with Daemon("--allow-users", f"{ALICE},{BOB}", "--user-sessions", "3") as daemon:
            for server, count in ((0, 2), (1, 1)):
                child = daemon.start(ALICE, "sessions", daemon.socket(server), count)
                self.assertEqual([said(child) for _ in range(count)][-1], {"opened": count})
            told = said(daemon.start(ALICE, "reduce", daemon.socket(1), "more", 1))
            words = f"user {ALICE} has 3 trainers at this daemon and may have 3: end some, or start the cluster with a larger --user-sessions"
            self.assertEqual(told["error"].count(words), 1, told)
            self.assert_adds(daemon.both("his", [BOB, BOB]))
            self.children_end(daemon)
            self.assert_adds(daemon.both("hers", [ALICE, ALICE]))

    def test_the_heaps_of_a_user_do_not_take_all_addresses_that_the_daemon_has(self):
        with Daemon("--allow-users", f"{ALICE},{BOB}") as daemon:
            greedy = daemon.start(BOB, "heaps", daemon.socket(0), 8)
            told = [said(greedy) for _ in range(8)]
            self.assertEqual(told[:7], [{"offered": number} for number in range(7)])
            self.assertIn(f"the heaps of user {BOB}'s trainers take 7168 GiB", told[7]["error"])
            self.assertIn("set GRADCUBE_HEAP to less", told[7]["error"])
            self.assert_adds(daemon.both("hers", [ALICE, ALICE]))

    def test_the_heap_of_a_trainer_that_left_counts_until_its_job_ends(self):
        with Daemon("--allow-users", f"{ALICE},{BOB}") as daemon:
            job = daemon.start(BOB, "leave", daemon.socket(0), daemon.socket(1), GRADCUBE_HEAP="1024Gi")
            self.assertEqual(said(job), {"left": 1})
            greedy = daemon.start(BOB, "heaps", daemon.socket(0), 4)
            told = [said(greedy) for _ in range(4)]
            self.assertEqual(told[:3], [{"offered": number} for number in range(3)])
            self.assertIn("trainers take 7168 GiB", told[3]["error"])

    def children_end(self, daemon):
        for child in daemon.children:
            child.kill()
            child.communicate()
        wait_until(lambda: not job_names(daemon.status(OWNER)), "the jobs to be gone")

    def test_nobody_reads_the_memory_of_the_daemon_or_of_another_users_trainer(self):
        with Daemon("--allow-users", f"{ALICE},{BOB}") as daemon:
            alices = daemon.both("hers", [ALICE, ALICE], hold="hold")
            self.assert_adds(alices)
            for pid in (daemon.pid, alices[0].pid):
                self.assertEqual(said(daemon.start(BOB, "spy", pid)), {"got": []})
            self.assertNotEqual(said(daemon.start(ALICE, "spy", alices[0].pid)), {"got": []}, "a spy sees what there is")

    def test_one_that_floods_the_sockets_keeps_nobody_from_them_and_does_not_end_the_daemon(self):
        with Daemon("--allow-users", f"{ALICE},{BOB}") as daemon:
            for server in (0, 1):
                flood = daemon.start(BOB, "flood", daemon.directory / "control.sock", daemon.socket(server))
                self.assertEqual(said(flood), {"begun": True})
            for number in range(3):
                self.assert_adds(daemon.both(f"beside{number}", [ALICE, ALICE]))
                self.assertEqual(daemon.status(OWNER)["pid"], daemon.pid)
                self.assertNotIn("flood0", job_names(daemon.status(ALICE)))
            self.assertIsNone(flood.poll())


if __name__ == "__main__":
    main()
