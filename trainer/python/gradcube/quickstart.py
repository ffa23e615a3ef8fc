"""gradcube quickstart: a cluster on this host, all-reduces of which every element is checked, processes that train one
model together, and nothing left behind. With options of `gradcube up`: --rate 1gbit --loss 0.001

The tool becomes this program, and is found by it in $GRADCUBE_TOOL.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

PACKAGES = pathlib.Path(__file__).resolve().parent.parent
# Installed with the package; in a source tree beside it.
PLACES = [PACKAGES / "gradcube" / "examples", PACKAGES.parent / "examples"]


def step(title, *words):
    print(f"\n{title}\n$ gradcube {' '.join(words)}", flush=True)
    subprocess.run([os.environ["GRADCUBE_TOOL"], *words], check=True)


def run(words, example):
    asked = {word.partition("=")[0] for word in words}
    topology = [] if asked & {"--topology", "--cluster"} else ["--topology", "bcube:3,2"]
    step("A cluster on this host:", "up", *topology, *words)
    sizes = ["--sizes", "12.5M,97M", "--iterations", "5", "--check"]
    step("All-reduces as long as the gradients of LeNet-5 and ResNet-50:", "perf", "allreduce", *sizes)
    python = ["--no-prefix", "--", "/usr/bin/python3", "-u", str(example)]
    step("Training, a process for each server:", "run", *python)


def end(number, _):
    sys.exit(128 + number)


def main():
    signal.signal(signal.SIGTERM, end)
    example = next((place / "spirals.py" for place in PLACES if (place / "spirals.py").exists()), None)
    if example is None:
        print(f"gradcube: there is no spirals.py in {PLACES[0]}", file=sys.stderr)
        return 1
    # Its own, so that no other cluster is disturbed, and beside the one that is set: where a container has a volume
    # for that, it may have no other place. A socket's path holds 107 characters.
    place = pathlib.Path(os.environ.get("GRADCUBE_RUN") or "/tmp/gradcube").absolute().parent
    try:
        directory = tempfile.mkdtemp(prefix="gradcube-quickstart.", dir=place)
    except OSError as error:
        print(f"gradcube: cannot make a run directory in {place}: {error.strerror}: set GRADCUBE_RUN", file=sys.stderr)
        return 1
    path = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.update(GRADCUBE_RUN=directory, PYTHONPATH=path, OMP_NUM_THREADS="1")
    try:
        run(sys.argv[1:], example)
        code = 0
    except subprocess.CalledProcessError as error:
        code = error.returncode
        if code < 0:
            code = 128 - code
            words = f"{error.cmd[1]} was ended by signal {code - 128}, as it is by 9 where memory runs out"
            print(f"gradcube: {words}", file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
    finally:
        subprocess.run([os.environ["GRADCUBE_TOOL"], "down"], capture_output=True)
        shutil.rmtree(directory, ignore_errors=True)
    print("\nIt works. Next: gradcube up, gradcube run -- python3 YOURS.py" if code == 0 else "\nIt did not finish.")
    return code
