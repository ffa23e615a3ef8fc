"""`gradcube up --launcher srun` in Slurm's batch jobs, and trainers that srun starts, with what docs/hosts.md says.

Three nodes, each a network namespace with a slurmd. Needs root, iproute2, slurm-wlm and munge; run with
GRADCUBE_TEST_DEEP=1 alone.
"""

import contextlib
import os
import re
import sys

from fabrics import TOOL, skip_without_namespaces
from harness import TestCase, main, wait_until
from slurm import Slurm, skip_without_slurm

COUNT = 3
RANK = "import gradcube; session = gradcube.Session(); print('rank', session.rank, 'of', session.size)"


def lines_of_batch_script():
    """Those of docs/hosts.md."""
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/hosts.md")
    with open(page) as file:
        lines = re.search(r"In a batch script of Slurm:\n\n((?:    .*\n)+)", file.read()).group(1)
    return re.sub(r"^ +", "", lines, flags=re.MULTILINE)


def last_line_of_batch_script():
    return lines_of_batch_script().splitlines()[-1]


def batch_script():
    """That script up to its trainers, with the path of the tool that is tested, and a folder of each node."""
    begin = lines_of_batch_script().split("gradcube run")[0]
    return re.sub(r"^gradcube ", f"{TOOL} ", begin.replace("/tmp/", "/run/"), flags=re.MULTILINE)


class BySrun(TestCase):
    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.slurm = stack.enter_context(Slurm(COUNT))

    def ended(self, job, output):
        """What the job has written, when it has ended and left nothing."""
        wait_until(lambda: not self.slurm.lives(job), f"the end of job {job}")
        wait_until(lambda: self.processes() == [], "all that the job has started to be ended")
        for name in self.slurm.hosts.names:
            left = self.slurm.enter(name, "find", "/run", "-name", "hosts.json", capture_output=True, text=True).stdout
            self.assertEqual(left, "", name)
        return output.read_text()

    def processes(self):
        hosts = self.slurm.hosts
        return hosts.processes("gradcubed\x00") + hosts.processes("at-host") + hosts.running("sleep", "1000")

    def test_a_batch_job_has_a_cluster_of_its_nodes(self):
        text = self.ended(*self.slurm.submit(
            f"set -e\n{batch_script()}"
            f"{TOOL} status\n{TOOL} check\n"
            f"{TOOL} perf allreduce --sizes 4,100K --iterations 2 --check\n"
            f"{TOOL} run -- sh -c 'echo rank $RANK on $SLURMD_NODENAME'\n"
            f"{TOOL} run -- sh -c 'exit $RANK' || echo exit code $?\n"
            f"{TOOL} down\n{last_line_of_batch_script()}\n"
            'srun --ntasks-per-node=1 test ! -e "$GRADCUBE_RUN"\necho well\n'
        ))
        self.assertIn("star:3 on 3 hosts, by srun", text)
        self.assertIn("all 3 links of star:3 are as configured", text)
        self.assertIn("every element of every trainer has the bits of the plan's order of addition", text)
        for rank in range(COUNT):
            self.assertIn(f"[{rank}] rank {rank} on node{rank + 1}\n", text)
        self.assertRegex(text, "exit code [12]\n")
        self.assertTrue(text.endswith("the cluster on 3 hosts is down\nwell\n"), text)
        self.assertLessEqual(text.count("OMP_NUM_THREADS is not set"), 2)  # once for each run

    def test_srun_starts_trainers_by_itself_or_by_run(self):
        text = self.ended(*self.slurm.submit(
            f"set -e\n{batch_script()}"
            f'srun --ntasks-per-node=1 --distribution=block {sys.executable} -c "{RANK}"\n'
            "export GRADCUBE_THIS_HOST=1\n"
            "master=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)\n"
            f"srun --ntasks-per-node=1 {TOOL} run --master $master --port 29500 -- sh -c 'echo run $RANK of $WORLD_SIZE'\n"
            "echo well\n"
        ))
        for rank in range(COUNT):
            self.assertIn(f"rank {rank} of {COUNT}\n", text)
            self.assertIn(f"[{rank}] run {rank} of {COUNT}\n", text)
        self.assertTrue(text.endswith("well\n"), text)  # without `down`, too, nothing is left

    def test_a_job_that_is_cancelled_or_killed_leaves_nothing(self):
        for signal in (), ("--signal=KILL",):
            for command in f"{TOOL} run -- sleep 1000", "sleep 1000":
                with self.subTest(signal=signal, command=command):
                    job, output = self.slurm.submit(f"{batch_script()}exec {command}\n")
                    wait_until(lambda: self.slurm.hosts.running("sleep", "1000") or not self.slurm.lives(job), "the job")
                    self.assertEqual(len(self.slurm.hosts.processes("gradcubed\x00")), COUNT, output.read_text())
                    self.slurm.ask("scancel", *signal, job)
                    self.ended(job, output)


if __name__ == "__main__":
    if os.environ.get("GRADCUBE_TEST_DEEP") != "1":
        print("skipped: this runs with --deep", file=sys.stderr)
        sys.exit(77)
    skip_without_namespaces()
    skip_without_slurm()
    main()
