"""What the launcher of a process says of the process's place: `gradcube run`, torchrun, mpirun of Open MPI, srun."""

import json
import os
import re

# How torchrun calls them, and the others' names in the same order. srun's are those of a step, which a batch script
# itself has not.
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_OTHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)


def launched(environment=os.environ):
    """Of these names the numbers that the launcher says; empty where none says all."""
    for names in (NAMES, *_OTHERS):
        # "2(x3)": two on each of three hosts
        numbers = [re.match(r"\d+", environment.get(name, "")) for name in names]
        if all(numbers):
            return dict(zip(NAMES, (int(number[0]) for number in numbers)))
    return {}


def first_address(run_directory):
    """Of the first server's host, where `gradcube up --hosts` has noted it; else None."""
    try:
        with open(os.path.join(run_directory, "hosts.json"), encoding="utf-8") as file:
            row = json.load(file)["settings"]["hosts"].split()[0].split(",")[0]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return re.sub(r"^\[(.*)\].*|^([^:]*):\d+$", lambda found: found[1] or found[2], row)


def name_as_torchrun_does(run_directory, environment=os.environ):
    """Adds the variables that init_process_group() reads, where another launcher has said as much by its own."""
    if "RANK" in environment:
        return
    place = launched(environment)
    if not place:
        return
    environment.update({name: str(number) for name, number in place.items()})
    alone = place["LOCAL_WORLD_SIZE"] == place["WORLD_SIZE"]
    address = first_address(run_directory) or ("127.0.0.1" if alone else None)
    if address is not None:
        environment.setdefault("MASTER_ADDR", address)
    environment.setdefault("MASTER_PORT", "29500")
