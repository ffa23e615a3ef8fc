"""Plants the bugs of tests/planted_bugs.toml, one at a time, in a copy of the sources: a test must notice each.

    usage: scripts/plant_bugs.py [WORD...]      only bugs whose description has one of these words

The copy and its build lie in build-planted/, and ccache has what ./scripts/test.sh has built. The tests must pass
before the first bug is planted; of a bug the first program that fails is enough. Exits with 1 if a bug was not noticed.
"""

import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
TREE = SOURCE / "build-planted"
BUILD = TREE / "build"
ENVIRONMENT = {
    **os.environ,
    "CXX": "ccache g++",
    "CC": "ccache gcc",
    "PATH": "/usr/bin:" + os.environ["PATH"],
    "CCACHE_BASEDIR": str(TREE),
    "CCACHE_NOHASHDIR": "1",
}


def run(*command):
    return subprocess.run(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def copy_sources():
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(SOURCE, TREE, symlinks=True, ignore=shutil.ignore_patterns("build*", ".git", "__pycache__"))
    paths = f"['-ffile-prefix-map={TREE}/=']"
    options = ["-Dtests=enabled", "-Dtorch=disabled", "-Dwerror=true", "-Db_ndebug=false"]
    configured = run("meson", "setup", BUILD, TREE, *options, f"-Dcpp_args={paths}", f"-Dc_args={paths}")
    if configured.returncode != 0:
        sys.exit(configured.stdout)


def failed_tests(tests, *options):
    """Which of these tests fail, built anew; None if they cannot be built."""
    log = BUILD / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    tested = run("meson", "test", "-C", BUILD, *options, *tests)
    if not log.exists():
        print(f"{tested.stdout}\nno test ran: it does not compile")
        return None
    counted = run("/usr/bin/python3", SOURCE / "scripts" / "count_tests.py", log)
    counts, *failures = counted.stdout.splitlines()
    if not tested.returncode and int(counts.split()[0]) == 0:
        sys.exit(f"{' '.join(tests)}: nothing ran")
    return failures


def plant(bug):
    """Into the copy. Returns the file, and how it was."""
    path = TREE / bug["file"]
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(bug["from"], bug["to"]), encoding="utf-8")
    return path, sound


def main():
    if any(word.startswith("-") for word in sys.argv[1:]):
        sys.exit(__doc__)
    bugs = tomllib.loads((SOURCE / "tests" / "planted_bugs.toml").read_text(encoding="utf-8"))["bug"]
    words = sys.argv[1:]
    bugs = [bug for bug in bugs if not words or any(word in bug["says"] for word in words)]
    if not bugs:
        sys.exit(f"no bug's description has one of: {' '.join(words)}")
    for bug in bugs:
        times = (SOURCE / bug["file"]).read_text(encoding="utf-8").count(bug["from"])
        if times != 1:
            sys.exit(f"{bug['file']} has {times} times, not once: {bug['from']}")
    copy_sources()
    print("without a bug: building and testing", flush=True)
    failures = failed_tests(sorted({test for bug in bugs for test in bug["tests"]}))
    if failures is None or failures:
        sys.exit("the tests fail without a bug:\n" + "\n".join(failures or []))
    missed = 0
    for place, bug in enumerate(bugs, 1):
        begun = time.monotonic()
        path, sound = plant(bug)
        failures = failed_tests(bug["tests"], "--maxfail=1")
        path.write_text(sound, encoding="utf-8")
        missed += not failures
        seen = f"{len(failures)} failed, first {failures[0]}" if failures else "NOT NOTICED"
        print(f"{place}/{len(bugs)} {bug['says']}\n    {seen} ({time.monotonic() - begun:.0f} s)", flush=True)
    print(f"{len(bugs) - missed} noticed, {missed} not noticed")
    return missed != 0


if __name__ == "__main__":
    sys.exit(main())
