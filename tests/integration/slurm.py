"""A Slurm of this machine's own on namespaces.Hosts: its daemons, its key and its files live as long as the block.

Root runs all. Each host has a /run of its own, as hosts have. Needs slurm-wlm and munge.
"""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from fabrics import PATIENCE
from harness import wait_until
from namespaces import Hosts

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={machine}({controller})
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={directory}/munge.socket
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
KillWait=5
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES MaxTime=10
"""


def skip_without_slurm():
    where = os.environ["PATH"] + ":/usr/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=where) is None]
    if missing:
        print(f"skipped: {', '.join(missing)}: slurm-wlm and munge are not installed", file=sys.stderr)
        sys.exit(77)


class Slurm:
    """with Slurm(3) as slurm: ... ; slurm.hosts are its nodes."""

    def __init__(self, count):
        self.hosts = Hosts(count, sshd=False)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gradcube-test-"))
            stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
            stack.enter_context(self.hosts)
            self.directory.chmod(0o755)
            (self.directory / "state").mkdir()
            key = self.directory / "key"
            key.write_bytes(os.urandom(128))
            key.chmod(0o400)
            self.write_configuration()
            own = self.directory / "munge"
            names = {"socket": "socket", "key-file": key, "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
            flags = [f"--{flag}={name if name == key else f'{own}.{name}'}" for flag, name in names.items()]
            self.daemon(stack, None, "munged", "--foreground", "--force", *flags)
            wait_until(lambda: (self.directory / "munge.socket").exists(), "munged")
            self.daemon(stack, self.hosts.names[0], "slurmctld", "-D")
            for name in self.hosts.names:
                self.enter(name, "mount", "-t", "tmpfs", "none", "/run", check=True)
                self.daemon(stack, name, "slurmd", "-D", "-N", name)
            idle = ("sinfo", "--noheader", "--states=idle", "--format=%D")
            wait_until(lambda: self.ask(*idle).strip() == str(len(self.hosts.names)), "all nodes to be idle")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def write_configuration(self):
        machine = socket.gethostname().split(".")[0]
        places = {"machine": machine, "controller": self.hosts.address(self.hosts.names[0]), "directory": self.directory}
        nodes = "".join(
            f"NodeName={name} NodeAddr={self.hosts.address(name)} NodeHostname={machine} CPUs=4\n"
            for name in self.hosts.names
        )
        (self.directory / "slurm.conf").write_text(nodes + CONFIGURATION.format(**places))

    def environment(self):
        kept = {key: value for key, value in os.environ.items() if key not in ("GRADCUBE_RUN", "XDG_RUNTIME_DIR")}
        return {**kept, "PATH": kept["PATH"] + ":/usr/sbin", "SLURM_CONF": str(self.directory / "slurm.conf")}

    def daemon(self, stack, name, *command):
        reach = [] if name is None else self.reach(name)
        log = stack.enter_context(open(self.directory / f"{command[0]}-{name}.out", "w"))
        process = subprocess.Popen([*reach, *command], env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def end():
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE / 6)
            process.kill()
            process.wait(PATIENCE)

        stack.callback(end)

    def reach(self, name):
        return ["nsenter", "-t", str(self.hosts.namespaces[name]), "-n", "-m"]

    def enter(self, name, *command, **options):
        options = {"env": self.environment(), "stdin": subprocess.DEVNULL, "timeout": 2 * PATIENCE, **options}
        return subprocess.run([*self.reach(name), *command], **options)

    def ask(self, *command):
        return self.enter(self.hosts.names[0], *command, capture_output=True, text=True).stdout

    def submit(self, script):
        """A batch job on all nodes: its number, and the file that it writes to."""
        number = len(list(self.directory.glob("job-*.sh")))
        path = self.directory / f"job-{number}.sh"
        path.write_text("#!/bin/bash\nexec 2>&1\n" + script)
        output = path.with_suffix(".out")
        nodes = f"--nodes={len(self.hosts.names)}"
        said = self.ask("sbatch", "--parsable", nodes, f"--chdir={self.directory}", f"--output={output}", str(path))
        return said.strip(), output

    def lives(self, job):
        return self.ask("squeue", "--noheader", f"--jobs={job}").strip() != ""
