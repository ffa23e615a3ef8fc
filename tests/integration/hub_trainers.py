"""Four trainers of PyTorch, one on each server of a cluster, for tests of HubOptimizer."""

import torch

from harness import Cluster, TestCase, all_of, job, wait_until


class HubTrainers(TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)

    def tearDown(self):
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten")

    def together(self, work, name="torch"):
        """work(session) of all trainers, by rank."""
        with job(self.cluster, name) as sessions:
            results = all_of(work, sessions)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results
