"""The backend of torch.distributed: its calls against references, its groups, its refusals, and where ranks run."""

import os
import pathlib
import signal
import subprocess
import sys

from harness import Cluster, TestCase, main, wait_until
from torch_launch import LONG, PROGRAM, Ranks, reserved_port, run_launcher

SPAWNED = pathlib.Path(__file__).resolve().parent / "torch_spawned.py"
SCENARIOS = [
    "collectives", "shared", "groups", "kinds_of_models", "refusals", "disagreements", "forks", "workers", "lateness",
    "callbacks", "ending_callbacks", "missed_barriers", "interrupted_barriers", "nested_barriers", "abandoned_barriers",
    "wrong_lists", "sequence_numbers", "many_messages", "types", "withdrawals", "late_memory", "told_messages",
    "interrupted_memory", "interrupted_submissions", "sizes", "shared_outputs", "any_source", "sparse_sums", "comparisons",
    "splits", "again",
]  # fmt: skip


class Scenarios(TestCase):
    """The processes start once, because PyTorch takes long to load, and run all scenarios one after the other."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)
        with Ranks(cls.cluster, [PROGRAM, *SCENARIOS]) as ranks:
            cls.codes = ranks.wait()
            cls.done = [ranks.said(rank, "done") for rank in range(4)]
            cls.errors = ranks.everything()

    def assert_done(self, scenario):
        for rank, done in enumerate(self.done):
            self.assertIn(scenario, done, f"rank {rank}\n{self.errors}")

    def test_every_rank_ends_well(self):
        self.assertEqual(self.codes, [0] * 4, self.errors)

    def test_every_call_equals_its_reference(self):
        self.assert_done("collectives")

    def test_tensors_in_shared_memory_are_not_copied(self):
        self.assert_done("shared")

    def test_groups_work_beside_each_other(self):
        self.assert_done("groups")

    def test_models_of_all_kinds_train_and_reproducible_sums_do_not_hang_on_buckets(self):
        self.assert_done("kinds_of_models")

    def test_what_is_not_supported_is_refused_with_a_sentence(self):
        self.assert_done("refusals")

    def test_ranks_that_disagree_learn_it_and_go_on(self):
        self.assert_done("disagreements")

    def test_a_forked_child_is_refused_and_its_parent_goes_on(self):
        self.assert_done("forks")

    def test_children_of_all_kinds_write_to_gradients_of_their_own(self):
        self.assert_done("workers")

    def test_ranks_whose_types_differ_learn_both(self):
        self.assert_done("types")

    def test_messages_that_are_late_give_and_take_nothing(self):
        self.assert_done("withdrawals")

    def test_ranks_that_do_not_come_are_named(self):
        self.assert_done("lateness")

    def test_monitored_barriers_work_after_those_that_some_ranks_missed(self):
        self.assert_done("missed_barriers")

    def test_ctrl_c_on_rank_0_ends_a_monitored_barrier_on_all(self):
        self.assert_done("interrupted_barriers")

    def test_a_monitored_barrier_in_the_midst_of_another_one_is_refused(self):
        self.assert_done("nested_barriers")

    def test_a_monitored_barrier_that_a_rank_left_counts_for_no_later_one(self):
        self.assert_done("abandoned_barriers")

    def test_ranks_whose_lists_were_refused_are_still_in_step(self):
        self.assert_done("wrong_lists")

    def test_what_is_written_after_a_timeout_reaches_no_other_rank(self):
        self.assert_done("late_memory")

    def test_what_is_written_after_a_message_has_failed_reaches_no_other_rank(self):
        self.assert_done("told_messages")

    def test_what_is_written_after_ctrl_c_reaches_no_other_rank(self):
        self.assert_done("interrupted_memory")

    def test_ctrl_c_in_a_call_counts_as_one_in_its_wait(self):
        self.assert_done("interrupted_submissions")

    def test_memory_that_calls_use_is_not_freed_by_another_size_of_its_tensors(self):
        self.assert_done("sizes")

    def test_tensors_that_share_memory_are_refused_wherever_a_call_writes_them(self):
        self.assert_done("shared_outputs")

    def test_sequence_numbers_count_collectives_alone(self):
        self.assert_done("sequence_numbers")

    def test_callbacks_of_futures_may_wait_for_what_they_begin(self):
        self.assert_done("callbacks")

    def test_callbacks_that_wait_for_what_fails_after_them_end_with_their_group(self):
        self.assert_done("ending_callbacks")

    def test_more_messages_than_fit_may_be_sent_before_they_are_received(self):
        self.assert_done("many_messages")

    def test_any_ranks_next_message_can_be_received_and_none_is_lost(self):
        self.assert_done("any_source")

    def test_sparse_tensors_are_added_and_train_embeddings(self):
        self.assert_done("sparse_sums")

    def test_ranks_learn_which_tensors_differ_and_where(self):
        self.assert_done("comparisons")

    def test_groups_can_be_split_by_pytorchs_own_call(self):
        self.assert_done("splits")

    def test_groups_can_follow_each_other_in_one_process(self):
        self.assert_done("again")

    def test_nothing_is_left_behind(self):
        wait_until(lambda: self.cluster.status()["jobs"] == [], "all jobs to be forgotten")


class Places(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--topology", "bcube:2,2")
        cls.addClassCleanup(cls.cluster.end)

    def run_at(self, size, **places):
        with Ranks(self.cluster, [PROGRAM, "places"], **places) as ranks:
            ranks.succeed()
            said = [ranks.said(rank, "size") for rank in range(size)]
        self.assertEqual(said, [[size]] * size)

    def test_ranks_need_not_have_the_order_of_the_servers(self):
        sockets = self.cluster.sockets()
        self.run_at(4, sockets=[sockets[server] for server in (2, 0, 3, 1)])

    def test_two_ranks_of_a_row_are_a_job_of_their_own(self):
        self.run_at(2, sockets=self.cluster.sockets()[2:])

    def test_ranks_that_are_told_no_server_share_those_of_the_run_directory(self):
        self.run_at(8, untold=8)
        self.run_at(6, untold=6)  # two on each of three
        self.run_at(3, untold=3)

    def spawned(self, *arguments):
        with reserved_port() as port:
            spawned = run_launcher([sys.executable, SPAWNED, port, *arguments], self.cluster.environment)
        self.assertEqual(spawned.returncode, 0, spawned.stdout)
        return spawned.stdout

    def test_those_that_torch_starts_by_itself_find_them_too(self):
        said = self.spawned(4)
        self.assertEqual(said.count("trained"), 4, said)

    def test_those_that_torch_starts_leave_when_their_threads_have_ended(self):
        for start_method, ranks in ("fork", 4), ("spawn", 2):
            said = self.spawned(ranks, start_method, "threads")
            self.assertEqual(said.count("added"), 2 * ranks, said)

    def test_threads_for_which_the_interpreter_waits_are_told_when_it_has_left(self):
        said = self.spawned(2, "fork", "left")
        self.assertEqual(said.count("told: this process group was destroyed"), 4, said)

    def test_a_rank_alone_needs_no_cluster(self):
        environment = {**os.environ, "GRADCUBE_RUN": "/nowhere", "RANK": "0", "WORLD_SIZE": "1"}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [sys.executable, str(PROGRAM), "alone"], env=environment, capture_output=True, text=True, timeout=LONG
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_servers_with_different_numbers_of_ranks_are_refused(self):
        sockets = self.cluster.sockets()
        with Ranks(self.cluster, [PROGRAM], sockets=[sockets[0], sockets[0], sockets[1]]) as ranks:
            self.assertNotIn(0, ranks.wait())
            self.assertIn("2 on server 0, 1 on server 1", ranks.errors(0))

    def test_a_rank_that_is_done_first_does_not_end_what_the_others_still_do(self):
        with Ranks(self.cluster, [PROGRAM, "parting"]) as ranks:
            ranks.succeed()

    def test_a_rank_that_cannot_begin_a_collective_ends_its_group(self):
        with Ranks(self.cluster, [PROGRAM, "short_of_memory"]) as ranks:
            ranks.succeed()

    def test_a_rank_whose_script_ends_first_does_not_end_what_the_others_still_do(self):
        with Ranks(self.cluster, [PROGRAM, "undestroyed"], forked=False) as ranks:
            ranks.succeed()

    def test_threads_that_wait_when_the_interpreter_ends_are_left_alone(self):
        with Ranks(self.cluster, [PROGRAM, "listening"], forked=False) as ranks:
            self.assertEqual(ranks.wait(), [1, 0, 0, 0], ranks.everything())
            self.assertIn("the script of rank 0 fails", ranks.errors(0))

    def test_ranks_leave_whatever_becomes_of_the_store(self):
        with Ranks(self.cluster, [PROGRAM, "stopped_store"]) as ranks:
            wait_until(lambda: all(process.poll() is not None for process in ranks.processes[1:]), "them to end")
            ranks.processes[0].send_signal(signal.SIGCONT)
            ranks.succeed()

    def test_servers_behind_absent_ones_are_a_job_of_their_own(self):
        with Cluster("--topology", "star:4", "--absent", "1") as cluster:
            with Ranks(cluster, [PROGRAM, "places"], sockets=cluster.sockets()[1:]) as ranks:
                ranks.succeed()

    def test_without_a_cluster_the_error_says_what_to_start(self):
        for place in ({"sockets": ["/nowhere/server-0-0.sock"] * 2}, {"untold": 2, "run": "/nowhere"}):
            with Ranks(self.cluster, [PROGRAM], **place) as ranks:
                self.assertNotIn(0, ranks.wait())
                self.assertRegex(ranks.errors(0), "ranks 0, 1: .*gradcube up")
                self.assertNotIn("gradcube up", ranks.errors(1), "once is enough")
                self.assertIn("rank 0 says", ranks.errors(1))

    def test_numbers_of_ranks_that_no_servers_fit_are_told(self):
        with Ranks(self.cluster, [PROGRAM], untold=5) as ranks:
            self.assertNotIn(0, ranks.wait())
            self.assertIn("ranks on a host with 4 servers: 5", ranks.errors(0))


if __name__ == "__main__":
    main()
