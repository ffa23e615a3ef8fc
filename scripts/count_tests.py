"""Counts what a `meson test` run passed and failed: prints "PASSED FAILED".

A GoogleTest program counts with each of its tests, any other program as one. A program that ends
badly without saying which test failed (a crash, a timeout) counts as one failure.
"""

import json
import re
import sys

GOOD = {"OK", "EXPECTEDFAIL"}
NEUTRAL = {"SKIP"}


def count(record):
    """The (passed, failed) of one line of testlog.json."""
    output = record.get("stdout", "")
    is_googletest = "[==========]" in output
    passed = len(re.findall(r"^\[       OK \] ", output, re.MULTILINE))
    match = re.search(r"^\[  FAILED  \] (\d+) tests?, listed below", output, re.MULTILINE)
    failed = int(match.group(1)) if match else 0
    if record["result"] in NEUTRAL:
        return passed, failed
    if record["result"] in GOOD:
        return (passed, failed) if is_googletest else (1, 0)
    return passed, max(failed, 1)


def main():
    passed = failed = 0
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            good, bad = count(json.loads(line))
            passed += good
            failed += bad
    print(passed, failed)


if __name__ == "__main__":
    main()
