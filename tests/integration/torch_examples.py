"""What a rank of torch_examples_test.py runs: `torch_examples.py PORT...`.

All scripts of trainer/examples/distributed, first with gloo, then with gradcube, each with a port of its own for its
store: the first with $MASTER_PORT. Says in lines of JSON what each has printed.
"""

import contextlib
import io
import json
import os
import pathlib
import runpy
import sys

from torch_forks import wait_for_store

SCRIPTS = sorted((pathlib.Path(__file__).resolve().parents[2] / "trainer" / "examples" / "distributed").glob("*.py"))
BACKENDS = ("gloo", "gradcube")


def keep_groups(dist):
    """Of gloo: the process ends if a group's last reference is that of a hook's callback, on the group's own thread."""
    kept, destroy = [], dist.destroy_process_group

    def destroy_process_group():
        kept.extend(dist.distributed_c10d._pg_map)
        destroy()

    dist.destroy_process_group = destroy_process_group


def main(ports):
    import torch  # here, because the test needs the lists above alone

    torch.set_num_threads(1)
    keep_groups(torch.distributed)
    for backend in BACKENDS:
        for script in SCRIPTS:
            os.environ["MASTER_PORT"] = next(ports)
            wait_for_store()
            sys.argv = [str(script), "--backend", backend]
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                runpy.run_path(str(script), run_name="__main__")
            print(json.dumps({"done": [backend, script.stem, printed.getvalue()]}), flush=True)
    os._exit(0)  # gloo's destructor of PyTorch 1.13 hangs now and then


if __name__ == "__main__":
    main(iter([os.environ["MASTER_PORT"], *sys.argv[1:]]))
