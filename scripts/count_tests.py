"""Counts what a `meson test` run passed and failed: prints "PASSED FAILED SKIPPED", then what
failed, a line each: "simulation: Simulation.EndsInTime", "integration_run: TIMEOUT".

A GoogleTest program counts with each of its tests, any other program as one. A program that ends
badly without saying which test failed (a crash, a timeout) counts as one failure.
"""

import json
import re
import sys

GOOD = {"OK", "EXPECTEDFAIL"}
NEUTRAL = {"SKIP"}


def failures(record):
    """What failed in one line of testlog.json, a text for each."""
    name = record["name"].split(" / ")[-1]
    output = record.get("stdout", "")
    listed = re.search(r"^\[  FAILED  \] \d+ tests?, listed below", output, re.MULTILINE)
    tests = []
    if listed:
        tests = re.findall(r"^\[  FAILED  \] ([^ \n]+)", output[listed.end() :], re.MULTILINE)
    if not tests and record["result"] not in GOOD | NEUTRAL:
        tests = [record["result"]]
    if "[==========]" in output and not re.search(r"^\[       OK \] |^\[  (FAILED |SKIPPED) \] ", output, re.MULTILINE):
        tests = tests or ["ran no test"]
    return [f"{name}: {test}" for test in tests]


def passes(record):
    """How many tests passed in one line of testlog.json."""
    output = record.get("stdout", "")
    if "[==========]" in output:
        return len(re.findall(r"^\[       OK \] ", output, re.MULTILINE))
    return 1 if record["result"] in GOOD else 0


def main():
    passed = skipped = 0
    failed = []
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            record = json.loads(line)
            passed += passes(record)
            failed += failures(record)
            skipped += record["result"] in NEUTRAL
    print(passed, len(failed), skipped)
    for failure in failed:
        print(failure)


if __name__ == "__main__":
    main()
