"""The equations of the papers give the numbers that their texts give."""

import math
import unittest

from gradcube.model import blueconnect, bml, grid, hips, mgwfbp, phub
from gradcube.model.blueconnect import Stage
from gradcube.model.failure import UsageError
from gradcube.model.topology import parse_topology

BYTE_PER_SECOND = 8  # bits
UNLIMITED = 1e300  # with a second of latency, the seconds are the number of messages


class Formulas(unittest.TestCase):
    def near(self, value, expected, within=1e-9):
        self.assertLessEqual(abs(value - expected), within, f"{value} is not {expected}")

    def refuses(self, *calls):
        for function, *arguments in calls:
            with self.subTest(f"{function.__module__}.{function.__name__}{tuple(arguments)}"):
                self.assertRaises(ValueError, function, *arguments)


class Bml(Formulas):
    def test_takes_the_steps_of_the_papers_example(self):
        """The worked example of section 3.2, in pieces: 18 of them make T_F."""
        t_c = bml.piece_seconds(3, 2, 1)
        self.near(t_c, 1 / 18)
        self.near(bml.step_seconds(3, 2, 0, 1), 6 * t_c)
        self.near(bml.step_seconds(3, 2, 1, 1), 2 * t_c)
        self.near(bml.gst(3, 2, 1), 16 * t_c)
        self.near(bml.gst(3, 2, 1), 8 / 9)

    def test_is_the_sum_of_the_steps_of_both_stages(self):
        for n in range(2, 6):
            for k in range(1, 5):
                self.near(bml.gst(n, k, 0.08), 2 * sum(bml.step_seconds(n, k, w, 0.08) for w in range(k)), 1e-15)

    def test_sums_the_shares_of_a_generalized_bcubes_levels(self):
        # Level 0 of radix 2: thread 0 sends half of its half, thread 1 half of what level 1 left it, a third. Level 1
        # of radix 3: thread 1 two thirds of its half, thread 0 two thirds of a half.
        self.near(bml.level_share((2, 3), 0), (1 / 2 + 1 / 6) / 2)
        self.near(bml.level_share((2, 3), 1), (2 / 3 + 1 / 3) / 2)
        self.near(bml.generalized_gst((2, 3), 10), 10)
        self.near(sum(bml.level_share((4, 2, 5, 3), level) for level in range(4)), 119 / 120)

    def test_is_the_papers_where_all_levels_have_one_radix_and_a_kth_of_the_time_on_a_fat_tree(self):
        for k in range(1, 5):
            self.near(bml.generalized_gst((4,) * k, 0.5), bml.gst(4, k, 0.5))
            self.near(bml.gst(4, k, 0.5), bml.fat_tree_gst(4**k, 0.5) / k)
            self.near(bml.gst(4, k, 0.5), bml.fat_tree_gst(4**k, 0.5, k))  # with k NICs

    def test_gives_a_fat_tree_the_time_of_section_2(self):
        for servers, t_f, expected in ((2, 3, 3), (9, 1, 16 / 9), (16, 1, 1.875)):
            self.near(bml.fat_tree_gst(servers, t_f), expected)

    def test_is_about_half_of_ps_on_the_same_bcube(self):
        """Section 3.3: PS on BCube "will double the GST"; the networks are those of Figure 5."""
        self.near(hips.mesh_gst(hips.BCUBE, 4, 2, 1) / bml.gst(4, 2, 1), 1.6)
        self.near(hips.mesh_gst(hips.BCUBE, 32, 2, 1) / bml.gst(32, 2, 1), 1.94, 0.001)

    def test_counts_the_switches_of_section_3_1(self):
        self.assertEqual(bml.bcube_switches(3, 2), 6)
        self.assertEqual(bml.bcube_switches(16, 4), 4 * 4096)
        self.assertEqual(bml.fat_tree_switches(16, 4), 20)
        self.assertEqual(bml.fat_tree_switches(1024, 16), 320)
        self.assertEqual(bml.fat_tree_switches(9, 3, 2), 30)  # with two NICs at every server
        for k in range(2, 5):  # "40 to 80 percent of the switches of a Fat-Tree"
            self.near(bml.bcube_switches(8, k) / bml.fat_tree_switches(8**k, 8), k / 5)

    def test_refuses_what_is_no_network(self):
        self.refuses(
            (bml.gst, 1, 2, 1),
            (bml.gst, 2, 0, 1),
            (bml.gst, 100_000, 2, 1),  # too many servers
            (bml.piece_seconds, 1, 1, 1),
            (bml.step_seconds, 3, 2, 2, 1),
            (bml.level_share, (2, 3), 2),
            (bml.fat_tree_gst, 1, 1),
            (bml.fat_tree_gst, 4, 1, 0),
            (bml.bcube_switches, 1, 2),
            (bml.fat_tree_switches, 1, 4),
            (bml.fat_tree_switches, 4, 1),
            (bml.fat_tree_switches, 4, 4, 0),
        )


class Hips(Formulas):
    def test_reduces_the_time_by_the_papers_percentages(self):
        """Section 4.2, of (n, h) = (4,2), (8,3) and (16,4): "HiPS reduces the GST by 37.5%~73.3% compared with PSS/MS
        and by 50.0%~75.0% compared with RS", on both networks."""
        for network in (hips.BCUBE, hips.TORUS):
            for n, h, than_mesh, than_ring in ((4, 2, 0.375, 0.5), (8, 3, None, 2 / 3), (16, 4, 0.733, 0.75)):
                gst = hips.gst(network, n, h, 1)
                self.near(1 - gst / hips.ring_gst(network, n, h, 1), than_ring)
                if than_mesh:
                    self.near(1 - gst / hips.mesh_gst(network, n, h, 1), than_mesh, 0.0005)

    def test_has_every_cell_of_table_3(self):
        for row, expected in ((hips.gst, 8 / 9), (hips.mesh_gst, 4 / 3), (hips.ring_gst, 16 / 9)):
            self.near(row(hips.BCUBE, 3, 2, 0.08), expected * 0.08)
            self.near(row(hips.TORUS, 3, 2, 0.08), expected * 0.08 / 2)

    def test_is_the_sum_over_the_stages(self):
        """Section 4.1 takes the sum: the reading of the closed form depends on it."""
        for n in (2, 3, 8):
            for h in range(1, 6):
                stages = sum(1 / n**j for j in range(h))
                self.near(hips.gst(hips.BCUBE, n, h, 1), 2 / h * (n - 1) / n * stages, 1e-12)

    def test_gives_hierarchical_mesh_the_time_of_bml_and_with_one_level_that_of_a_fat_tree(self):
        for n in (2, 3, 16):
            for h in range(1, 5):
                self.near(hips.gst(hips.BCUBE, n, h, 0.08), bml.gst(n, h, 0.08))
        for n in (2, 9, 64):
            for row in (hips.gst, hips.mesh_gst, hips.ring_gst):
                self.near(row(hips.BCUBE, n, 1, 1), bml.fat_tree_gst(n, 1))

    def test_lets_a_root_receive_from_all_others_of_its_group_and_answer_them(self):
        self.near(hips.root_gst(9, 1, 0.5), 8)  # a central parameter server
        self.near(hips.root_gst(3, 2, 1), 4)
        self.near(hips.root_gst(2, 3, 1), 2)

    def test_refuses_what_is_no_group(self):
        for network in (hips.BCUBE, hips.TORUS):
            self.refuses((hips.gst, network, 1, 2, 1), (hips.gst, network, 2, 0, 1), (hips.mesh_gst, network, 1, 2, 1))
            self.refuses((hips.ring_gst, network, 1, 2, 1))
        self.refuses((hips.root_gst, 1, 2, 1), (hips.root_gst, 3, 0, 1))


class BlueConnect(Formulas):
    def test_counts_the_steps_of_a_ring_and_of_halving(self):
        for stage, p, steps in (
            (blueconnect.ring_stage_seconds, 12, 11),
            (blueconnect.recursive_stage_seconds, 16, 4),
            (blueconnect.best_stage_seconds, 16, 4),  # a power of two
            (blueconnect.best_stage_seconds, 12, 11),
            (blueconnect.recursive_stage_seconds, 3, 2),  # rounds of 3
            (blueconnect.broadcast_seconds, 3, 2 + 2),
        ):
            self.near(stage(p, 1, 1, UNLIMITED), steps)

    def test_moves_all_but_one_share_of_the_gradient(self):
        for stage, seconds in (
            (blueconnect.ring_stage_seconds, 75),
            (blueconnect.recursive_stage_seconds, 75),
            (blueconnect.broadcast_seconds, 150),
            (blueconnect.one_level_seconds, 150),
            (blueconnect.halving_doubling_seconds, 150),
        ):
            self.near(stage(4, 100, 0, BYTE_PER_SECOND), seconds)
        for stage in (blueconnect.ring_stage_seconds, blueconnect.recursive_stage_seconds):
            self.assertEqual(stage(1, 100, 1, BYTE_PER_SECOND), 0)

    def test_reduces_to_masters_and_back_in_two_levels(self):
        """Section 2.3, Figure 1: twelve learners, three in each node."""
        # 2 (T_c + T_r) of 3 learners, then 2 T_c of 4 masters.
        self.near(blueconnect.two_level_seconds(3, 4, 1, 1, UNLIMITED, UNLIMITED), 2 * 4 + 2 * 2)
        # The masters' bandwidth is a quarter of that in the node.
        seconds = blueconnect.two_level_seconds(3, 4, 120, 0, 4 * BYTE_PER_SECOND, BYTE_PER_SECOND)
        self.near(seconds, 4 * 2 / 3 * 120 / 4 + 2 * 0.75 * 120)

    def test_divides_data_and_bandwidth_as_in_the_papers_example(self):
        """Section 3.2.2, Figure 4: the stages have N, N/3 and N/6, and their streams w1/3 and w2/6."""
        stages = [Stage(p, w * BYTE_PER_SECOND) for p, w in ((3, 60), (2, 30), (2, 12))]
        expected = 2 * (2 / 3 * 360 / 60 + 1 / 2 * (360 / 3) / (30 / 3) + 1 / 2 * (360 / 6) / (12 / 6))
        self.near(blueconnect.tree_seconds(stages, 360, 0), expected)

    def test_keeps_to_the_least_bandwidth_of_the_levels_below(self):
        slow_nodes = [Stage(2, BYTE_PER_SECOND), Stage(2, 100 * BYTE_PER_SECOND)]
        for seconds in (blueconnect.tree_seconds, blueconnect.torus_seconds):
            self.near(seconds(slow_nodes, 8, 0), 2 * (0.5 * 8 + 0.5 * 4))

    def test_on_a_torus_shares_a_cable_among_the_learners_of_one_node_only(self):
        stages = [Stage(2, w * BYTE_PER_SECOND) for w in (100, 4, 4)]
        inside = 0.5 * 80 / 100
        self.near(blueconnect.torus_seconds(stages, 80, 0), 2 * (inside + 0.5 * 40 / 2 + 0.5 * 20 / 2))
        self.near(blueconnect.tree_seconds(stages, 80, 0), 2 * (inside + 0.5 * 40 / 2 + 0.5 * 20 / 1))

    def test_takes_no_longer_than_a_ring_where_uplinks_carry_all_that_is_below(self):
        """ "to ideally match the total uplink bandwidth from all the hanging nodes" (section 2.2)"""
        stages = [Stage(p, w * BYTE_PER_SECOND) for p, w in ((3, 1), (2, 3), (2, 6))]
        ring = blueconnect.one_level_seconds(12, 360, 0, BYTE_PER_SECOND)
        self.near(blueconnect.tree_seconds(stages, 360, 0), ring)

    def test_has_fewer_steps_than_two_levels_and_than_one_ring(self):
        """Section 3.2.2: 96 learners are no power of two, but 16 x 6 lets the first stage halve."""
        steps = blueconnect.tree_seconds([Stage(16, UNLIMITED), Stage(6, UNLIMITED)], 1, 1)
        self.near(steps, 2 * 4 + 2 * 5)
        self.assertLess(steps, blueconnect.two_level_seconds(16, 6, 1, 1, UNLIMITED, UNLIMITED))
        self.assertLess(steps, blueconnect.one_level_seconds(96, 1, 1, UNLIMITED))

    def test_is_faster_than_a_ring_about_as_measured_on_the_papers_intel_systems(self):
        """Section 4.1 measures "about 1.6x" of NCCL's ring on two systems of four GPUs with PCIe gen3 (126 Gbit/s,
        which the paper does not say) and 10 Gbit/s Ethernet between them."""
        tree = blueconnect.tree_seconds([Stage(4, 126e9), Stage(2, 10e9)], 1e8, 0)
        self.near(blueconnect.one_level_seconds(8, 1e8, 0, 10e9) / tree, 1.6, 0.05)

    def test_refuses_what_is_no_decomposition(self):
        self.refuses(
            (blueconnect.ring_stage_seconds, 0, 1, 0, 1),
            (blueconnect.recursive_stage_seconds, 0, 1, 0, 1),
            (blueconnect.ring_stage_seconds, 2, 1, 0, 0),  # no bandwidth
            (blueconnect.ring_stage_seconds, 2, -1, 0, 1),
            (blueconnect.ring_stage_seconds, 2, math.nan, 0, 1),
            (blueconnect.halving_doubling_seconds, 12, 1, 0, 1),
            (blueconnect.halving_doubling_seconds, 0, 1, 0, 1),
            (blueconnect.tree_seconds, [], 1, 0),
            (blueconnect.torus_seconds, [], 1, 0),
            (blueconnect.tree_seconds, [Stage(1, 1), Stage(2, 1)], 1, 0),
            (blueconnect.torus_seconds, [Stage(1, 1), Stage(1, 1)], 1, 0),
        )
        blueconnect.torus_seconds([Stage(1, 1), Stage(2, 1)], 1, 0)


class MgWfbp(Formulas):
    COSTS = mgwfbp.NodeCosts(alpha=1, beta=10, gamma=100)
    ROWS = (mgwfbp.binary_tree_cost, mgwfbp.recursive_doubling_cost, mgwfbp.halving_doubling_cost, mgwfbp.ring_cost)

    def test_has_every_row_of_table_2(self):
        expected = (
            (2 * 3, (2 * 10 + 100) * 3),
            (3, (10 + 100) * 3),
            (2 * 3, 2 * 10 - (2 * 10 + 100) / 8 + 100),
            (2 * 7, 2 * 7 / 8 * 10 + 7 / 8 * 100),
        )
        for row, (a, b) in zip(self.ROWS, expected):
            cost = row(8, self.COSTS)
            self.near(cost.a, a)
            self.near(cost.b, b)

    def test_gives_the_startup_times_of_the_papers_cluster(self):
        """Section V-A: the startup times of the ring on 2, 4 and 8 nodes of a cluster with 10GbE, in us."""
        for N, a in ((2, 90.52), (4, 271.56), (8, 633.64)):
            self.near(mgwfbp.ring_cost(N, mgwfbp.NodeCosts(alpha=90.52 / 2)).a, a, 0.005)

    def test_prefers_one_message_to_two_of_the_same_bytes(self):
        for row in self.ROWS:
            cost = row(4, self.COSTS)
            self.near(cost.seconds(0), cost.a)
            self.near(cost.seconds(200) + cost.seconds(400) - cost.seconds(600), cost.a)

    def test_without_additions_agrees_with_blueconnect_and_bml(self):
        rate, size, alpha = 10e9, 1e8, 5e-6
        costs = mgwfbp.NodeCosts(alpha=alpha, beta=8 / rate)
        for N in (2, 3, 9, 64):
            ring = mgwfbp.ring_cost(N, costs)
            self.near(ring.seconds(size), blueconnect.one_level_seconds(N, size, alpha, rate), 1e-12)
            self.near(ring.b * size, bml.fat_tree_gst(N, size * 8 / rate), 1e-12)
        halving = mgwfbp.halving_doubling_cost(64, costs)
        self.near(halving.seconds(size), blueconnect.halving_doubling_seconds(64, size, alpha, rate), 1e-12)

    def test_refuses_numbers_of_nodes_that_a_row_does_not_have(self):
        for N in (0, 1, 6):
            self.refuses(*((row, N, self.COSTS) for row in self.ROWS[:3]))
        self.refuses((mgwfbp.ring_cost, 1, self.COSTS))
        mgwfbp.ring_cost(6, self.COSTS)


class Phub(Formulas):
    # Table 2, in Gbit/s: cc, cs, ncc, ncs.
    TABLE_2 = {
        "resnet269": (122, 31, 140, 17),
        "inception-v3": (44, 11, 50, 6),
        "googlenet": (40, 10, 46, 6),
        "alexnet": (1232, 308, 1408, 176),
    }

    def test_has_the_four_columns_of_table_2(self):
        """From the M/T that its first column has; the others are rounded to whole Gbit/s."""
        for name, row in self.TABLE_2.items():
            for layout, expected, within in zip(phub.LAYOUTS, row, (1e-9, 0.6, 0.6, 0.5)):
                with self.subTest(f"{layout} of {name}"):
                    rate = phub.hiding_bits_per_second(layout, 8, row[0] / 14 * 1e9 / 8, 1)
                    self.near(rate / 1e9, expected, within)

    def test_is_within_11_percent_of_table_2_with_the_times_of_section_4_2(self):
        for network in phub.NETWORKS:
            if network.name in self.TABLE_2:
                here = phub.hiding_bits_per_second("cc", 8, network.bytes, network.seconds) / 1e9
                self.assertGreater(here, self.TABLE_2[network.name][0])
                self.assertLess(here, 1.11 * self.TABLE_2[network.name][0])

    def test_has_twice_the_traffic_where_many_workers_and_servers_share_hosts(self):
        """ "each network interface must process roughly 2x the network traffic" if servers are colocated (section 2.1),
        and N times with one server for all."""
        at = {layout: phub.hiding_bits_per_second(layout, 1000, 1, 1) for layout in phub.LAYOUTS}
        self.near(at["cs"] / at["ncs"], 2, 0.01)
        self.near(at["ncc"] / at["ncs"], 1000)
        self.near(at["ncs"], 16)

    def test_compares_hierarchical_reduction_with_a_flat_one(self):
        """By hand: 8 workers in each of 4 racks, 1 GB, 100 Gbit/s, 20 Gbit/s and 10 Gbit/s."""
        times = phub.hierarchy_times(8, 4, phub.HubRates(100e9, 20e9, 10e9), 1e9)
        self.near(times.flat, 8 * 0.75 * 0.4)
        # The workers' links take longer than the hub's, and the core is behind the hub.
        self.near(times.hierarchical, 0.8 + 0.75 * 0.4)
        self.assertTrue(times.pays())
        # A slow hub: 8 gradients at 50 Gbit/s.
        times = phub.hierarchy_times(8, 4, phub.HubRates(50e9, 80e9, 10e9), 1e9)
        self.near(times.hierarchical, 1.28 + 0.75 * 0.16)

    def test_finds_no_benefit_in_a_hierarchy_without_oversubscription(self):
        """A core as fast as all workers together leaves nothing to save."""
        for N, R, core, pays in ((8, 4, 80e9, False), (8, 4, 40e9, True), (2, 2, 10e9, False)):
            self.assertEqual(phub.hierarchy_times(N, R, phub.HubRates(80e9, core, 10e9), 1e9).pays(), pays)

    def test_refuses_what_is_no_setup(self):
        ones = phub.HubRates(1, 1, 1)
        self.refuses(*((phub.hiding_bits_per_second, "cc", *numbers) for numbers in ((1, 1, 1), (8, 0, 1), (8, 1, 0))))
        for numbers in ((8, 1, ones, 1), (1, 8, ones, 1), (8, 8, ones, 0)):
            self.refuses((phub.hierarchy_times, *numbers))
        self.refuses(*((phub.hierarchy_times, 8, 8, ones._replace(**{each: 0}), 1) for each in ones._fields))


class Topologies(Formulas):
    def test_are_read_and_written_the_same_way(self):
        for spec in ("bcube:4,2", "bcube:9,1", "bcube:4x3x2", "torus:4,3", "star:9", "fattree:1024"):
            self.assertEqual(parse_topology(spec, "test").spec, spec)
        self.assertEqual(parse_topology("bcube:3x3", "test").spec, "bcube:3,2")

    def test_have_the_highest_level_first_and_count_their_servers(self):
        self.assertEqual(parse_topology("bcube:4x3x2", "test").radices, (2, 3, 4))
        for spec, servers in (("bcube:16,4", 65536), ("bcube:4x3x2", 24), ("torus:4,3", 64), ("fattree:1024", 1024)):
            self.assertEqual(parse_topology(spec, "test").servers, servers)

    def test_refuse_what_is_none(self):
        for spec in (
            *("", ":", "bcube", "bcube:", "bcube:4", "bcube:4,", "bcube:4,2,2", "bcube4,2", "bcube:x,2", "bcube:4,17"),
            *("star:4,2", "star", "star:-1", "torus:4", "fattree:4,2", "bcube:2,2 ", "bcube:40000,2", "bcube:4x"),
            *("bcube:x", "bcube:4x3,2", "torus:4x3", "star:4x3", "bcube:100000x100000", "star:" + "9" * 5000),
        ):
            with self.subTest(spec):
                self.assertRaises(UsageError, parse_topology, spec, "test")

    def test_have_up_to_the_most_servers(self):
        self.assertEqual(grid.grid_servers(1000, 3), grid.MOST_SERVERS)
        self.refuses((grid.grid_servers, 1001, 3), (grid.checked_servers, 1))
        self.refuses((grid.checked_servers, grid.MOST_SERVERS + 1), (grid.product_of, ()))


if __name__ == "__main__":
    unittest.main()
