"""Checks that includes point one way: a folder's files include its own files and those of folders below it.

Prints each include that does not, and each folder with sources that the table does not name; exits with 1 if
there is one. The table is that of docs/architecture.md: for each folder, the folders that it may
include (with all that they may include). Tests may include everything.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".h", ".hpp", ".cc", ".c")

BELOW = {
    "aggregation": [],
    "protocol": ["protocol/kernels"],
    "protocol/kernels": [],
    "bcube_forwarding": [],
    "control/base": [],
    "control/model": ["control/base"],
    "control/plan/base": ["bcube_forwarding", "control/base"],
    "control/plan/algorithms": ["control/plan/base"],
    "control/plan": ["control/plan/algorithms"],
    "control/checkpoint": ["aggregation", "control/base"],
    "control/hub": ["control/checkpoint", "control/plan"],
    "control/jobs": ["bcube_forwarding", "control/base", "protocol", "trainer"],
    "control/jobs/hub": ["control/jobs"],
    "control/jobs/machines": ["control/jobs"],
    "control/settings": ["control/plan"],
    "control/status": ["control/settings"],
    "trainer/include/gradcube": [],
    "trainer": [],
    "trainer/src/base": ["aggregation", "control/base", "trainer", "trainer/include/gradcube"],
    "trainer/src/connection": ["trainer/src/base"],
    "trainer/src/session": ["trainer/src/connection"],
    "trainer/src/hub": ["control/checkpoint", "trainer/src/session"],
    "trainer/src": ["trainer/src/hub"],
    "trainer/torch": ["trainer/include/gradcube"],
    "trainer/examples": ["trainer/include/gradcube"],
    "dataplane/host": ["control/settings", "protocol"],
    "dataplane/fabric": ["dataplane/host"],
    "dataplane/fabric/emulated": ["dataplane/fabric"],
    "dataplane/fabric/kernel": ["dataplane/fabric"],
    "dataplane/fabric/nic": ["dataplane/fabric"],
    "dataplane/fabric/udp": ["dataplane/fabric"],
    "dataplane/fabric/memif": ["dataplane/fabric/emulated", "dataplane/fabric/nic"],
    "dataplane/links": ["bcube_forwarding", "dataplane/fabric"],
    "dataplane/hub": ["aggregation", "control/hub", "trainer"],
    "dataplane/engine/memory": ["dataplane/host", "trainer"],
    "dataplane/engine/flows": ["bcube_forwarding", "control/plan", "dataplane/links", "protocol"],
    "dataplane/engine/hub": ["dataplane/engine/flows", "dataplane/engine/memory", "dataplane/hub"],
    "dataplane/engine/session": ["dataplane/engine/hub", "trainer/include/gradcube"],
    "dataplane/engine/messages": ["dataplane/engine/session"],
    "dataplane/engine": ["dataplane/engine/messages"],
    "dataplane/sockets": ["control/settings"],
    "dataplane/bed": ["control/status", "dataplane/sockets"],
    "dataplane/daemon/trainers": ["control/jobs", "dataplane/engine", "dataplane/sockets"],
    "dataplane/daemon/engines": ["dataplane/daemon/trainers"],
    "dataplane/daemon/hub": ["control/jobs/hub", "dataplane/daemon/engines"],
    "dataplane/daemon/messages": ["dataplane/daemon/engines", "dataplane/fabric/emulated"],
    "dataplane/daemon/node": [
        "control/jobs/machines",
        "control/status",
        "dataplane/daemon/hub",
        "dataplane/daemon/messages",
    ],
    "dataplane/daemon": [
        "dataplane/bed",
        "dataplane/daemon/node",
        "dataplane/fabric/kernel",
        "dataplane/fabric/memif",
        "dataplane/fabric/udp",
    ],
    "dataplane/daemon/process": ["dataplane/daemon"],
    "cli/text": ["control/hub", "trainer"],
    "cli/cluster": ["cli/text", "control/model", "control/settings", "trainer/include/gradcube"],
    "cli/status": ["cli/cluster"],
    "cli/setup": ["cli/launch", "protocol"],
    "cli/up": ["cli/checks", "cli/setup", "cli/status"],
    "cli/launch": ["cli/cluster"],
    "cli/measure": ["aggregation", "cli/cluster"],
    "cli/checks": ["cli/launch", "cli/measure"],
    "cli/plan": ["cli/measure"],
    "cli/perf": ["cli/measure", "cli/status"],
    "cli/model": ["cli/checks"],
    "cli": ["cli/checks", "cli/launch", "cli/model", "cli/perf", "cli/plan", "cli/status", "cli/up"],
}


def visible(folder):
    seen = {folder}
    for below in BELOW[folder]:
        seen |= visible(below)
    return seen


def sources_of(folder):
    return sorted(path for path in (ROOT / folder).iterdir() if path.suffix in SOURCES)


def unknown_folders():
    """Folders with sources that the table does not name, beside tests/ and what a build or git has made."""
    for top in sorted(ROOT.iterdir()):
        if not top.is_dir() or re.match(r"\.|build|tests$|out$", top.name):
            continue
        for path in sorted([top, *top.rglob("*/")]):
            folder = path.relative_to(ROOT).as_posix()
            if path.is_dir() and folder not in BELOW and sources_of(folder):
                yield folder


def wrong_includes(folder):
    """(file, line number, included folder) of each include that the table does not allow."""
    allowed = visible(folder)
    for source in sources_of(folder):
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            match = re.match(r'#include "(.+)/[^/]+"', line)
            if match is None:
                continue
            included = match.group(1)
            included = "trainer/include/gradcube" if included == "gradcube" else included
            if included not in allowed:
                yield source.relative_to(ROOT), number, included


def main():
    wrong = 0
    for folder in unknown_folders():
        print(f"{folder}: scripts/check_includes.py does not say what this folder may include")
        wrong += 1
    for folder in BELOW:
        for source, number, included in wrong_includes(folder):
            print(f"{source}:{number}: {folder} must not include {included}")
            wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
