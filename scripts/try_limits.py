#!/usr/bin/env python3
"""Tries what `gradcube doctor`, `gradcube up` and a job's trainers do where a host limits or lacks something.

    scripts/try_limits.py            tries all, and compares with the table in docs/operations.md
    scripts/try_limits.py --write    writes that table anew
    scripts/try_limits.py 'ulimit'   tries those whose names have these words

Under each limit no process may end by a signal, a refusal must say why in one sentence, doctor must say what up does,
and a daemon that has come up must answer `status` afterwards. What this process may not set is left out with a word.
$BUILD names the build directory; build-test, else build.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/operations.md"
BEGIN, END = "<!-- made by scripts/try_limits.py --write -->\n", "<!-- end -->\n"
LONGEST = 120  # seconds, of one command
NOBODY = 65534
KIB, GIB = 1 << 10, 1 << 30
CGROUPS = pathlib.Path("/sys/fs/cgroup")


class Unavailable(Exception):
    """This process may not set the limit."""


@dataclasses.dataclass
class Place:
    """Where commands run under a limit."""

    before: list = dataclasses.field(default_factory=list)  # words in front of a command
    prepare: object = None  # in the process that becomes the command
    run_directory: bytes = b"run"
    leave: object = None


def soft_and_hard(which, value):
    def limited():
        before = lambda: resource.setrlimit(which, (value, value))
        return Place(prepare=before)

    return limited


def processes(most):
    """The limit counts all of a user's tasks, and does not hold for root."""

    def limited():
        lower = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all"]
        as_nobody = lower if os.geteuid() == 0 else []
        if subprocess.run([*as_nobody, tool(), "plan", "--topology", "star:2"], capture_output=True).returncode != 0:
            raise Unavailable("another user cannot read the build")
        before = lambda: resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        return Place(before=as_nobody, prepare=before)

    return limited


def mounted(*commands):
    def limited():
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            raise Unavailable("no mount namespaces for this user")
        return Place(before=["unshare", "--mount", "sh", "-c", " && ".join([*commands, 'exec "$@"']), "sh"])

    return limited


def empty(folder):
    return mounted(f"mount -t tmpfs none {folder}")


def read_only(folder):
    return mounted(f"mount --bind {folder} {folder}", f"mount -o remount,bind,ro {folder}")


def cgroup(controller, old_name, new_name, value):
    def limited():
        old = CGROUPS / controller
        group = (old if old.is_dir() else CGROUPS) / f"gradcube-limits-{os.getpid()}"
        try:
            if not old.is_dir():
                (CGROUPS / "cgroup.subtree_control").write_text(f"+{controller}")
            group.mkdir()
            (group / (old_name if old.is_dir() else new_name)).write_text(str(value))
        except OSError as error:
            with contextlib.suppress(OSError):
                group.rmdir()
            raise Unavailable(f"no cgroup of one's own: {error.strerror}") from None

        def leave():
            for _ in range(100):
                with contextlib.suppress(OSError):
                    return group.rmdir()
                subprocess.run(["sleep", "0.1"])

        return Place(prepare=lambda: (group / "cgroup.procs").write_text(str(os.getpid())), leave=leave)

    return limited


@dataclasses.dataclass
class Limit:
    name: str
    set_up: object
    up: str = "works"  # or what its refusal says
    job: str = "works"


WORKS = "works"
LIMITS = [
    Limit("`ulimit -c 0`", soft_and_hard(resource.RLIMIT_CORE, 0)),
    Limit("`ulimit -f 0`", soft_and_hard(resource.RLIMIT_FSIZE, 0), up="TODO"),
    Limit("`ulimit -f 4194304`", soft_and_hard(resource.RLIMIT_FSIZE, 4194304 * KIB), job="TODO"),
    Limit("`ulimit -l 0`", soft_and_hard(resource.RLIMIT_MEMLOCK, 0)),
    Limit("`ulimit -n 20`", soft_and_hard(resource.RLIMIT_NOFILE, 20), up="TODO"),
    Limit("`ulimit -n 100`", soft_and_hard(resource.RLIMIT_NOFILE, 100), up="TODO"),
    Limit("`ulimit -n 256`", soft_and_hard(resource.RLIMIT_NOFILE, 256)),
    Limit("`ulimit -s 256`", soft_and_hard(resource.RLIMIT_STACK, 256 * KIB)),
    Limit("`ulimit -u 1`", processes(1), up="TODO"),
    Limit("`ulimit -v 400000`", soft_and_hard(resource.RLIMIT_AS, 400000 * KIB), up="TODO"),
    Limit("`ulimit -v 20000000`", soft_and_hard(resource.RLIMIT_AS, 20000000 * KIB), job="TODO"),
    Limit("control group: 100 MB", cgroup("memory", "memory.limit_in_bytes", "memory.max", 100_000_000), up="TODO"),
    Limit("control group: 8 tasks", cgroup("pids", "pids.max", "pids.max", 8), up="TODO"),
    Limit("`/sys` empty", empty("/sys"), up="TODO"),
    Limit("`/sys` read-only", read_only("/sys")),
    Limit("`/proc` empty", empty("/proc"), up="TODO"),
    Limit("`/proc` read-only", read_only("/proc")),
    Limit("`/tmp` read-only", read_only("/tmp")),
    Limit("`/dev/shm` read-only", read_only("/dev/shm")),
    Limit("the run directory read-only", None, up="TODO"),
    Limit("a run directory that is not UTF-8", lambda: Place(run_directory=b"r\xfcn"), up="TODO"),
]


def build():
    return next(ROOT / name for name in (os.environ.get("BUILD"), "build-test", "build") if name and (ROOT / name).is_dir())


def tool():
    return str(build() / "cli/gradcube")


class Trial:
    """The limit's place, with a run directory."""

    def __init__(self, limit, folder):
        self.place = limit.set_up()
        self.problems = []
        os.chmod(folder, 0o777)
        self.environment = {os.fsencode(key): os.fsencode(value) for key, value in os.environ.items()}
        self.environment[b"GRADCUBE_RUN"] = os.path.join(os.fsencode(folder), self.place.run_directory)

    def run(self, *arguments, limited=True):
        done = subprocess.run(
            [*(self.place.before if limited else []), tool(), *arguments],
            env=self.environment,
            preexec_fn=self.place.prepare if limited else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST,
        )
        done.stdout, done.stderr = (text.decode(errors="backslashreplace") for text in (done.stdout, done.stderr))
        if not 0 <= done.returncode < 128:
            self.problems.append(f"{arguments[0]} ended with {done.returncode}")
        return done

    def outcome(self, *arguments):
        done = self.run(*arguments)
        if done.returncode == 0:
            return WORKS
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        if not lines:
            self.problems.append(f"{arguments[0]} says nothing: exit {done.returncode}")
            return "refused"
        if "signal" in lines[-1] and "by signal" not in arguments:
            self.problems.append(f"{arguments[0]}: {lines[-1]}")
        return lines[-1]

    def tried(self):
        doctor = self.run("doctor", "--json")
        try:
            verdict = json.loads(doctor.stdout)
        except ValueError:
            verdict = {"ok": None, "checks": []}
            self.problems.append(f"doctor: exit {doctor.returncode}: {doctor.stderr.strip()}")
        doubts = [one["name"] for one in verdict["checks"] if one["verdict"] != "OK"]
        self.doctor = ("can run" if verdict["ok"] else "cannot") + "; " + ", ".join(doubts)
        up = self.outcome("up", "--topology", "star:2")
        job = "-"
        if up == WORKS:
            job = self.outcome("perf", "allreduce", "--sizes", "64K", "--iterations", "1", "--check")
            if self.run("status", limited=False).returncode != 0:
                self.problems.append("the daemon is gone")
        self.run("down", limited=False)
        if (up == WORKS) != verdict["ok"]:
            self.problems.append(f"doctor says {verdict['ok']}, up {up}")
        return up, job


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for limit in LIMITS:
        if limit.set_up is None or not all(word in limit.name for word in options.words):
            continue
        folder = tempfile.mkdtemp(prefix="gradcube-limits-", dir="/var/tmp")
        trial = None
        try:
            trial = Trial(limit, folder)
            up, job = trial.tried()
            print(f"{limit.name}\n  doctor: {trial.doctor}\n  up: {up}\n  job: {job}")
            for problem in trial.problems:
                print(f"  PROBLEM {problem}")
        except Unavailable as error:
            print(f"{limit.name}: {error}")
        except subprocess.TimeoutExpired as error:
            print(f"{limit.name}: PROBLEM {error}")
        finally:
            if trial is not None and trial.place.leave is not None:
                trial.place.leave()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
