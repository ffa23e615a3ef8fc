"""Checks that includes point one way: a folder's files include its own files and those of folders below it.

Prints each include that does not, and exits with 1 if there is one. The table is the order of docs/design.md,
section 2: for each folder, the folders that it may include (with all that they may include).
"""

import pathlib
import re
import sys

BELOW = {
    "aggregation": [],
    "protocol": [],
    "bcube_forwarding": [],
    "control/base": [],
    "control/plan": ["bcube_forwarding", "control/base"],
    "control/jobs": ["bcube_forwarding", "protocol"],
    "control/settings": ["control/plan"],
    "trainer/include/gradcube": [],
    "trainer": [],
    "trainer/src": ["trainer", "trainer/include/gradcube"],
    "dataplane/host": ["control/settings", "protocol"],
    "dataplane/fabric": ["dataplane/host"],
    "dataplane/fabric/emulated": ["dataplane/fabric"],
    "dataplane/engine": [
        "aggregation",
        "control/plan",
        "dataplane/fabric",
        "protocol",
        "trainer",
        "trainer/include/gradcube",
    ],
    "dataplane/daemon": ["control/jobs", "dataplane/engine", "dataplane/fabric/emulated"],
    "cli": ["aggregation", "control/settings", "trainer/src"],
}


def visible(folder):
    seen = {folder}
    for below in BELOW[folder]:
        seen |= visible(below)
    return seen


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    wrong = 0
    for folder in BELOW:
        allowed = visible(folder)
        for source in sorted((root / folder).glob("*.*")):
            if source.suffix not in (".h", ".hpp", ".cc", ".c"):
                continue
            for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
                match = re.match(r'#include "(.+)/[^/]+"', line)
                if match is None:
                    continue
                included = match.group(1)
                included = "trainer/include/gradcube" if included == "gradcube" else included
                if included not in allowed:
                    print(f"{source.relative_to(root)}:{number}: {folder} must not include {included}")
                    wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
