"""The fabric that a test runs on, and what differs from one to the other.

A test has one body and runs on the fabric that $GRADCUBE_TEST_FABRIC names; meson.build lists what runs on which.
"embedded" is one daemon with all servers; on "memif" and "udp" (as an ordinary user) and "veth" (as root) each server
has a daemon of its own. Those share the machine's cores and are slow. So GRID is smaller there, and some() takes a few of
many cases. Nothing asserts how long anything takes: a wait ends with its event, and fails after PATIENCE. A test that
only some fabrics can run says so and why: only_on().
"""

import os
import random
import shutil
import subprocess
import sys
import unittest

TOOL = os.environ["GRADCUBE_TOOL"]
PATIENCE = 60  # seconds for everything that must end by itself
FABRIC = os.environ.get("GRADCUBE_TEST_FABRIC", "embedded")
RADIX = 3 if FABRIC == "embedded" else 2
GRID = f"bcube:{RADIX},2"
SERVERS = RADIX**2
MIDDLE = RADIX + 1  # the rank of server [1,1]
# Flags of `up` where each server has a daemon: so no link seems to be down, and no daemon dead, that waits for a core.
CALM = ("--greeting", "500ms")
LAST = f"[{RADIX - 1},{RADIX - 1}]"


def seed():
    return int(os.environ.get("GRADCUBE_TEST_SEED", "20240607"))


def only_on(*fabrics, why):
    """Decorates a test or a class of tests that has no meaning on other fabrics."""
    return unittest.skipUnless(FABRIC in fabrics, f"{why}, and this is {FABRIC}")


needs_many_servers = only_on("embedded", why="this takes more servers than two cores can run a daemon for each")
needs_faults = only_on("embedded", "memif", why="this takes links that lose frames")
needs_cuts = only_on("embedded", "memif", "veth", why="this takes links that can be cut")
needs_daemons = only_on("memif", "udp", "veth", why="this takes a daemon for each server")


def some(cases, count=2):
    """All cases on the embedded fabric; elsewhere so many of them, drawn by seed()."""
    cases = list(cases)
    return cases if FABRIC == "embedded" else drawn(cases, count)


def few(cases, count=2):
    """As some(), but on the embedded fabric a quarter without ./scripts/test.sh --deep: where unit tests have all."""
    cases = list(cases)
    return drawn(cases, rounds(max(4, len(cases) // 4), count, len(cases)))


def drawn(cases, count):
    """So many of the cases, others on each fabric, by seed()."""
    if len(cases) <= count:
        return cases
    chosen = random.Random(f"{seed()} {FABRIC}").sample(range(len(cases)), count)
    return [cases[place] for place in sorted(chosen)]


def rounds(embedded, elsewhere, deep):
    """How often a test repeats what it does; `deep` on the embedded fabric with ./scripts/test.sh --deep."""
    if FABRIC != "embedded":
        return elsewhere
    return deep if is_deep() else embedded


def is_deep():
    return os.environ.get("GRADCUBE_TEST_DEEP") == "1"


def faults(*flags):
    """These flags of `up`, where the fabric's links can lose frames; none elsewhere."""
    return list(flags) if FABRIC in ("embedded", "memif") else []


def new_key(directory):
    """Makes a key in the directory. The section of a cluster file that names it."""
    path = f"{directory}/cube.key"
    subprocess.run([TOOL, "keygen", path], check=True, capture_output=True, timeout=PATIENCE)
    return f'[security]\nkey-file = "{path}"\n'


def become_ordinary_user():
    """If root runs the test, it begins again as nobody, or goes on as root and says why.

    $GRADCUBE_TEST_AS_ROOT=1: it goes on as root. What it runs and reads must be readable by all.
    """
    if os.geteuid() != 0 or os.environ.get("GRADCUBE_TEST_AS_ROOT") == "1":
        return
    lower = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    works = [TOOL, "plan", "--topology", "star:2"]
    tries = ([*lower, *works], [*lower, sys.executable, "-c", f"import gradcube; open({__file__!r})"])
    try:
        for command in tries:
            subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"running as root, because another user cannot: {error}", file=sys.stderr)
        return
    print("running as user 65534", file=sys.stderr)
    os.execvp(lower[0], [*lower, sys.executable, *sys.argv])


def skip_without_namespaces():
    """Ends the test as skipped where it may not make network namespaces, or has no programs for it."""
    for program in ("ip", "tc", "nsenter", "unshare"):
        if shutil.which(program) is None:
            print(f"skipped: the program {program} is not installed", file=sys.stderr)
            sys.exit(77)
    links = "ip link add name left type veth peer name right && ip link add name sw type bridge"
    made = subprocess.run(
        ["unshare", "--net", "sh", "-c", links],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if made.returncode != 0:
        print(f"skipped: this process may not make links in namespaces: {made.stderr.strip()}", file=sys.stderr)
        sys.exit(77)


def prepare():
    """For main(): takes the rights that the fabric needs and no others, or ends the test as skipped."""
    if FABRIC in ("memif", "udp"):
        become_ordinary_user()
    if FABRIC == "veth":
        skip_without_namespaces()
