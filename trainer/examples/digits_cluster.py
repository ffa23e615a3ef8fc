#!/usr/bin/env python3
"""Trains digits.py on every server of a running cluster, and checks what came out.

Starts one trainer per server-*.sock of the run directory, shows rank 0's progress, and at the end compares
the SHA-256 of all trainers' weights. Exit code 0: identical everywhere and accurate enough; 1: not, or a trainer
failed; 2: bad arguments, or no cluster.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
GRACE_SECONDS = 3  # for the other trainers to learn of a failure by themselves and say so


def default_run_directory():
    if os.environ.get("GRADCUBE_RUN"):
        return os.environ["GRADCUBE_RUN"]
    if os.environ.get("XDG_RUNTIME_DIR"):
        return os.path.join(os.environ["XDG_RUNTIME_DIR"], "gradcube")
    return f"/tmp/gradcube-{os.geteuid()}"


class Trainer:
    """A digits.py process at one server. Its output goes to files, so that no pipe can fill up."""

    def __init__(self, socket, scratch, arguments):
        self.server = socket.name.removeprefix("server-").removesuffix(".sock")
        self.result_path = scratch / f"{self.server}.json"
        self.output_path = scratch / f"{self.server}.out"
        self.error_path = scratch / f"{self.server}.err"
        command = [sys.executable, str(HERE / "digits.py"), "--socket", str(socket)]
        command += ["--output", str(self.result_path)] + arguments
        with open(self.output_path, "wb") as output, open(self.error_path, "wb") as errors:
            # Its own process group: Ctrl-C reaches this program alone, which then ends the trainers.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
            )

    def failed(self):
        return self.process.poll() not in (None, 0)

    def result(self):
        return json.loads(self.result_path.read_text())


@contextlib.contextmanager
def trainers_at(sockets, scratch, arguments):
    trainers = []
    try:
        for socket in sockets:
            trainers.append(Trainer(socket, scratch, arguments))
        yield trainers
    finally:
        for trainer in trainers:
            if trainer.process.poll() is None:
                trainer.process.terminate()
        for trainer in trainers:
            try:
                trainer.process.wait(timeout=GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                trainer.process.kill()
                trainer.process.wait()


def watch(trainers, every_seconds=0.5):
    """Shows progress until all have ended; returns the first trainer that failed, or None.

    Every trainer reports the same steps; the first one's are shown, one line every so often.
    """
    shown = ""
    while True:
        running = [trainer for trainer in trainers if trainer.process.poll() is None]
        failed = [trainer for trainer in trainers if trainer.failed()]
        lines = [line for line in trainers[0].output_path.read_text().splitlines() if line.startswith("step")]
        if lines and lines[-1] != shown:
            shown = lines[-1]
            print(shown, flush=True)
        if failed:
            return failed[0]
        if not running:
            return None
        time.sleep(every_seconds)


def explain(failed, trainers):
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline and any(t.process.poll() is None for t in trainers):
        time.sleep(0.05)
    for trainer in [failed] + [t for t in trainers if t is not failed and t.failed()]:
        error = trainer.error_path.read_text().strip() or "(it said nothing)"
        code = trainer.process.returncode
        ended = f"was ended by signal {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        print(f"digits_cluster: the trainer at server {trainer.server} {ended}: {error}", file=sys.stderr)


def draw(path, results):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    steps = range(1, len(results[0]["steps"]) + 1)
    losses = [statistics.mean(r["steps"][i - 1]["loss"] for r in results) for i in steps]
    seconds, communication = (
        [statistics.median(r["steps"][i - 1][key] * 1e3 for r in results) for i in steps]
        for key in ("seconds", "communication_seconds")
    )
    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(8, 6), layout="constrained")
    upper.plot(steps, losses, color="tab:blue")
    upper.set(ylabel="training loss", title=f"LeNet-5 on handwritten digits, {len(results)} trainers")
    lower.plot(steps, seconds, color="tab:gray", label="whole step")
    lower.plot(steps, communication, color="tab:orange", label="communication")
    lower.set(xlabel="step", ylabel="milliseconds", ylim=(0, None))
    lower.legend()
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def summarize(results, require_accuracy):
    """Prints what came out; true when it is right."""
    seconds = [step["seconds"] for result in results for step in result["steps"]]
    communication = [step["communication_seconds"] for result in results for step in result["steps"]]
    accuracy = next(result["accuracy"] for result in results if "accuracy" in result)
    digests = {result["sha256"] for result in results}
    print(f"test accuracy: {accuracy:.1%} of the images held out")
    print(f"seconds per step: {statistics.median(seconds):.4f} (median)")
    print(f"share of communication: {sum(communication) / sum(seconds):.0%}")
    if len(digests) == 1:
        print(f"weights: bit-identical on all {len(results)} trainers (sha256 {digests.pop()})")
    else:
        print(f"weights: NOT identical: {len(digests)} versions on {len(results)} trainers")
        for result in sorted(results, key=lambda result: result["rank"]):
            print(f"  rank {result['rank']}: {result['sha256']}")
        return False
    if accuracy < require_accuracy:
        print(f"accuracy is below the {require_accuracy:.1%} required")
        return False
    return True


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="Other options are passed on to digits.py."
    )
    parser.add_argument("--run-dir", default=default_run_directory(), help="the cluster's run directory")
    parser.add_argument("--require-accuracy", type=float, default=0.9, help="default: 0.9")
    parser.add_argument("--picture", metavar="FILE.png", help="draw loss and step time")
    return parser.parse_known_args()


def end_on_signal(number, _):
    raise SystemExit(128 + number)


def main():
    arguments, passed_on = parse_arguments()
    signal.signal(signal.SIGTERM, end_on_signal)
    sockets = sorted(pathlib.Path(arguments.run_dir).glob("server-*.sock"))
    if not sockets:
        print(
            f"digits_cluster: there is no server-*.sock in {arguments.run_dir}: start a cluster with `gradcube up`",
            file=sys.stderr,
        )
        return 2
    print(f"training on {len(sockets)} servers in {arguments.run_dir}", flush=True)
    with tempfile.TemporaryDirectory(prefix="gradcube-digits-") as scratch:
        with trainers_at(sockets, pathlib.Path(scratch), passed_on) as trainers:
            failed = watch(trainers)
            if failed is not None:
                explain(failed, trainers)
                return 1
            results = [trainer.result() for trainer in trainers]
    right = summarize(results, arguments.require_accuracy)
    if arguments.picture:
        draw(arguments.picture, results)
        print(f"picture: {arguments.picture}")
    return 0 if right else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ndigits_cluster: interrupted; all trainers are ended", file=sys.stderr)
        sys.exit(130)
