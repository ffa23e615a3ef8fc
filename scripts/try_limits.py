#!/usr/bin/env python3
"""Tries what `gradcube doctor`, `gradcube up` and a job's trainers do where a host limits or lacks something.

    scripts/try_limits.py            tries all, and compares with the table in docs/operations.md
    scripts/try_limits.py --write    writes that table anew
    scripts/try_limits.py 'ulimit'   tries those whose names have these words

Under each limit no process may end by a signal, a refusal must say why in one sentence, doctor must say what up and
trainers do, with the same words where they are refused, and a daemon that has come up must answer `status` afterwards.
What this process may not set is left out with a word.
$BUILD names the build directory; build-test, else build.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/operations.md"
BEGIN, END = "<!-- made by scripts/try_limits.py --write -->\n", "<!-- end -->\n"
LONGEST = 120  # seconds, of one command
TOPOLOGY = ["--topology", "star:2"]
NOBODY = 65534
KIB = 1 << 10
CGROUPS = pathlib.Path("/sys/fs/cgroup")


class Unavailable(Exception):
    """This process may not set the limit."""


@dataclasses.dataclass
class Place:
    """Where commands run under a limit."""

    before: list = dataclasses.field(default_factory=list)  # words in front of a command
    prepare: object = None  # in the process that becomes the command
    run_directory: bytes = b"run"
    environment: dict = dataclasses.field(default_factory=dict)
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


def heap(text):
    return lambda: Place(environment={b"GRADCUBE_HEAP": os.fsencode(text)})


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
    doctor: str = "OK"  # or its verdict, and the check that has it


HEAP = "invalid heap size"
ODD_HEAPS = ("lots", "0", "-1", "2000Gi")
MAPS = "raise the daemon's limit of memory (ulimit -v), or set GRADCUBE_HEAP to less"
LIMITS = [
    Limit("`ulimit -c 0`", soft_and_hard(resource.RLIMIT_CORE, 0)),
    Limit("`ulimit -f 0`", soft_and_hard(resource.RLIMIT_FSIZE, 0), "File too large", doctor="FAIL daemon"),
    Limit(
        "`ulimit -f 1000`",
        soft_and_hard(resource.RLIMIT_FSIZE, 1000 * KIB),
        job="raise the daemon's limit of file sizes (ulimit -f), or set GRADCUBE_HEAP to less",
        doctor="FAIL trainers",
    ),
    Limit(
        "`ulimit -f 4194304` (4 GiB)",
        soft_and_hard(resource.RLIMIT_FSIZE, 4194304 * KIB),
        job="raise the daemon's limit of file sizes (ulimit -f), or set GRADCUBE_HEAP to less",
        doctor="FAIL trainers",
    ),
    Limit("`ulimit -l 0`", soft_and_hard(resource.RLIMIT_MEMLOCK, 0)),
    Limit("`ulimit -n 20`", soft_and_hard(resource.RLIMIT_NOFILE, 20), "raise `ulimit -n`", doctor="FAIL open files"),
    Limit(
        "`ulimit -n 100`",
        soft_and_hard(resource.RLIMIT_NOFILE, 100),
        "with a trainer on each of its 2 servers it needs 138",
        doctor="FAIL open files",
    ),
    Limit("`ulimit -n 138`", soft_and_hard(resource.RLIMIT_NOFILE, 138)),
    Limit("`ulimit -n 256`", soft_and_hard(resource.RLIMIT_NOFILE, 256)),
    Limit("`ulimit -s 256`", soft_and_hard(resource.RLIMIT_STACK, 256 * KIB)),
    Limit("`ulimit -t 60`", soft_and_hard(resource.RLIMIT_CPU, 60), doctor="WARN CPU time"),
    Limit(
        "`ulimit -u 1` (not as root)",
        processes(1),
        "cannot start a process: Resource temporarily unavailable",
        doctor="FAIL daemon",
    ),
    Limit(
        "`ulimit -u 4` (not as root)",
        processes(4),
        "raise what this user or container may have of processes (ulimit -u, pids.max)",
        doctor="FAIL daemon",
    ),
    Limit(
        "`ulimit -v 150000`",
        soft_and_hard(resource.RLIMIT_AS, 150000 * KIB),
        "raise the limit of this process (ulimit -v, the container's memory)",
        doctor="FAIL daemon",
    ),
    Limit("`ulimit -v 400000`", soft_and_hard(resource.RLIMIT_AS, 400000 * KIB), job=MAPS, doctor="FAIL trainers"),
    Limit("`ulimit -v 20000000`", soft_and_hard(resource.RLIMIT_AS, 20000000 * KIB), job=MAPS, doctor="FAIL trainers"),
    Limit("control group: 100 MB", cgroup("memory", "memory.limit_in_bytes", "memory.max", 100_000_000)),
    Limit("control group: 8 tasks", cgroup("pids", "pids.max", "pids.max", 8)),
    Limit("`/sys` empty", empty("/sys"), "mount -t sysfs sysfs /sys", doctor="FAIL cores"),
    Limit("`/sys` read-only", read_only("/sys")),
    Limit("`/proc` empty", empty("/proc"), "mount /proc", doctor="FAIL daemon"),
    Limit("`/proc` read-only", read_only("/proc")),
    Limit("`/tmp` read-only", read_only("/tmp")),
    Limit("`/dev/shm` read-only", read_only("/dev/shm")),
    Limit("the run directory read-only", read_only("$HOLDER"), "Read-only file system", doctor="FAIL run directory"),
    Limit(
        "a run directory that is not UTF-8",
        lambda: Place(run_directory=b"r\xfcn"),
        "has a path that is not UTF-8",
        doctor="FAIL run directory",
    ),
    *(Limit(f"`GRADCUBE_HEAP={text}`", heap(text), job=HEAP, doctor="FAIL trainers") for text in ODD_HEAPS),
]


def build():
    return next(ROOT / name for name in (os.environ.get("BUILD"), "build-test", "build") if name and (ROOT / name).is_dir())


def tool():
    return str(build() / "cli/gradcube")


class Trial:
    """A limit, and a run directory of its own."""

    def __init__(self, limit, holder):
        self.limit = limit
        self.place = limit.set_up()
        self.problems = []
        os.chmod(holder, 0o777)
        self.environment = {**os.environb, **self.place.environment, b"HOLDER": os.fsencode(holder)}
        self.environment[b"GRADCUBE_RUN"] = os.path.join(os.fsencode(holder), self.place.run_directory)

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

    def expect(self, expected, *arguments):
        """Whether the command works."""
        done = self.run(*arguments)
        said = done.stderr.strip()
        if done.returncode == 0 and expected != "works":
            self.problems.append(f"{arguments[0]} works: expected that it says {expected!r}")
        elif done.returncode != 0 and (expected == "works" or expected not in said or " signal " in said):
            self.problems.append(f"{arguments[0]}: exit {done.returncode}, expected {expected!r}: {said}")
        return done.returncode == 0

    def go(self):
        doctor = self.run("doctor", "--json", *TOPOLOGY)
        checks = []
        with contextlib.suppress(ValueError):
            checks = json.loads(doctor.stdout)["checks"]
        if not checks:
            self.problems.append(f"doctor: exit {doctor.returncode}: {doctor.stderr.strip()}")
        verdict, _, name = self.limit.doctor.partition(" ")
        said = next((one["verdict"] for one in checks if one["name"] == name), None)
        if name and said != verdict:
            self.problems.append(f"doctor says {said} of {name}: expected {verdict}")
        failed = [f"{one['finding']} {one['remedy']}" for one in checks if one["verdict"] == "FAIL"]
        refusal = self.limit.job if self.limit.up == "works" else self.limit.up
        if refusal != "works" and not any(refusal in one for one in failed):
            self.problems.append(f"doctor does not say {refusal!r}: {failed}")
        up = self.expect(self.limit.up, "up", *TOPOLOGY)
        if up:
            self.expect(self.limit.job, "perf", "allreduce", "--sizes", "64K", "--iterations", "1", "--check")
            if self.run("status", limited=False).returncode != 0:
                self.problems.append("the daemon answers no more")
        if (refusal == "works") != (doctor.returncode == 0):
            self.problems.append(f"expected {refusal!r}, and doctor says the contrary")
        self.run("down", limited=False)


def table():
    row = lambda *cells: "| " + " | ".join(cells) + " |\n"
    quoted = lambda said: said if said == "works" else f"refused: {said}"
    lines = [row("where", "`gradcube doctor`", "`gradcube up`", "a job's trainers"), "|---|---|---|---|\n"]
    for limit in LIMITS:
        job = quoted(limit.job) if limit.up == "works" else "-"
        lines.append(row(limit.name, limit.doctor, quoted(limit.up), job))
    return "".join(lines)


def tried(limit):
    """The problems."""
    holder = tempfile.mkdtemp(prefix="gradcube-limits-", dir="/var/tmp")
    trial = None
    try:
        trial = Trial(limit, holder)
        trial.go()
        return trial.problems
    except subprocess.TimeoutExpired as error:
        return [str(error)]
    finally:
        if trial is not None and trial.place.leave is not None:
            trial.place.leave()
        shutil.rmtree(os.fsencode(holder), ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of those to be tried")
    parser.add_argument("--write", action="store_true", help="write the table in docs/operations.md")
    options = parser.parse_args()
    before, _, rest = PAGE.read_text().partition(BEGIN)
    written, _, after = rest.partition(END)
    if options.write:
        PAGE.write_text(before + BEGIN + table() + END + after)
        return 0
    failed = written != table()
    if failed:
        print(f"{PAGE.name} has another table: {sys.argv[0]} --write")
    for limit in LIMITS:
        if not all(word in limit.name for word in options.words):
            continue
        try:
            problems = tried(limit)
        except Unavailable as error:
            print(f"left out   {limit.name}: {error}")
            continue
        print(f"{'FAILED' if problems else 'as written'} {limit.name}", *problems, sep="\n    ")
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
