"""Jobs that come and go without pause: the end of one trainer must not touch another one that joins."""

import os
import subprocess

from fabrics import PATIENCE, rounds
from harness import Cluster, TestCase, main, wait_until

CHURN = os.environ["GRADCUBE_CHURN"]
SECONDS = rounds(6, 6, deep=60)
JOBS = 6


class Churn(TestCase):
    def test_no_trainer_sees_the_end_of_another(self):
        with Cluster("--topology", "star:3") as cluster:
            pid = cluster.pid()
            done = subprocess.run(
                [CHURN, str(SECONDS), str(JOBS), str(self.seed), *cluster.sockets()],
                env=dict(os.environ, GRADCUBE_HEAP="1M"),
                stdout=subprocess.PIPE,
                text=True,
                timeout=SECONDS + 2 * PATIENCE,
            )
            lines = done.stdout.splitlines()
            self.assertEqual([line for line in lines if not line.startswith("rounds ")], [])
            rounds = [int(line.split()[1]) for line in lines]
            self.assertEqual(len(rounds), JOBS, "not all jobs came to an end")
            print(f"{3 * sum(rounds)} trainers joined and ended")
            self.assertGreater(min(rounds), 0)
            self.assertEqual(cluster.pid(), pid, "the daemon did not live")
            wait_until(lambda: cluster.status()["jobs"] == [], "all jobs to be forgotten")
            self.assert_works(cluster)


if __name__ == "__main__":
    main()
