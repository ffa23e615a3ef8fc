"""A trainer that saves its hub after each step, for ever: arguments: socket, job, path.

Goes on from the newest checkpoint, or begins anew. Says on standard output "restored STEP", and "saved STEP" when a
checkpoint is acknowledged. Weights are a function of the step, so that it finds what is not of the step that it says:
then its exit code is 3. A job that ends ends it, with code 1.
"""

import sys

import gradcube
import numpy

ELEMENTS = 5000
LATE = 60


def say(*words):
    print(*words, flush=True)


def main(socket, name, path):
    first = {"even": numpy.arange(ELEMENTS, dtype="float32"), "odd": numpy.ones(ELEMENTS, "float32")}
    with gradcube.Session(socket, name) as session:
        hub = gradcube.Hub(session, first, "momentum:lr=1,momentum=0.5", restore=path, timeout=LATE)
        step = hub.step or 0
        found = {name: numpy.empty(ELEMENTS, "float32") for name in first}
        say("restored", step)
        while True:
            # A gradient of 1 in the first step and of 0.5 in all others makes each step one of 1.
            for name, weights in found.items():
                hub.pull(name, weights)
                if not numpy.array_equal(weights, first[name] - step):
                    say("wrong weights of", name, "at step", step)
                    return 3
            gradients = {name: numpy.full(ELEMENTS, 1 if step == 0 else 0.5, "float32") for name in found}
            for request in [hub.push_async(name, array) for name, array in gradients.items()]:
                request.wait(LATE)
            step += 1
            hub.checkpoint(path, step, LATE)
            say("saved", step)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except gradcube.Error as failure:
        say("failed:", failure)
        sys.exit(1)
