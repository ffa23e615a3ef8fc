"""The table of synchronization times, who wins from which size on, and the papers' figures."""

import unittest

from gradcube.model import crossover, figures
from gradcube.model.crossover import GstLine, crossovers
from gradcube.model.figure_command import FIGURES
from gradcube.model.figures import Assumed, MeasuredRun, place
from gradcube.model.gst_table import ALGORITHMS, Load, gst_row
from gradcube.model.topology import parse_topology


def rows(spec, latency=0.0, group=0):
    """By names; T_F is a second."""
    load = Load(1.25e9, 10e9, latency, group)
    found = {name: gst_row(parse_topology(spec, "test"), name, load) for name in ALGORITHMS}
    return {name: row for name, row in found.items() if row is not None}


class Numbers(unittest.TestCase):
    def near(self, value, expected, within=1e-9):
        self.assertLessEqual(abs(value - expected), within, f"{value} is not {expected}")


class GstTable(Numbers):
    def expect(self, spec, expected):
        found = {name: row.relative for name, row in rows(spec).items()}
        self.assertEqual(set(found), set(expected))
        for name, relative in expected.items():
            self.near(found[name], relative, 1e-12)

    def test_lists_bcube_by_the_figures_of_the_papers(self):
        hips = {"hips:mesh": 0.9375, "hips:ring": 0.9375, "hips:root": 6}
        blueconnect = {"blueconnect": 1.875, "halving_doubling": 1.875, "two-level": 4.5}
        self.expect("bcube:4,2", {"bml": 0.9375, "mesh": 1.5, "ring": 1.875, **hips, **blueconnect})

    def test_lists_a_torus_by_table_3(self):
        self.expect("torus:4,2", {"mesh": 0.75, "ring": 0.9375, "hips:ring": 0.46875, "blueconnect": 1.875})
        self.assertIn("lower bound", rows("torus:4,2")["mesh"].source)

    def test_lists_a_generalized_bcube_by_its_busiest_level(self):
        hips = {"hips:mesh": 1, "hips:ring": 1}
        self.expect(
            "bcube:3x2", {"bml": 1, "mesh": 4 / 3, "ring": 5 / 3, **hips, "two-level": 10 / 3, "blueconnect": 5 / 3}
        )
        self.assertIn("lower bound", rows("bcube:3x2")["bml"].source)

    def test_gives_every_balanced_algorithm_the_same_time_under_one_switch(self):
        for spec in ("star:16", "fattree:16", "bcube:16,1"):
            for name, row in rows(spec).items():
                self.near(row.relative, 30 if name in ("hips:root", "ps") else 1.875)

    def test_leaves_out_what_no_paper_gives(self):
        for spec, algorithm in (
            ("fattree:16", "hips:mesh"),
            ("star:9", "halving_doubling"),  # 9 is no power of two
            ("bcube:16,1", "two-level"),  # there is one group
            ("torus:4,2", "bml"),
            ("bcube:4,2", "ps"),  # one for all servers
        ):
            self.assertNotIn(algorithm, rows(spec))

    def test_groups_servers_by_their_level_0_switch(self):
        # Four reduce and broadcast, 4 * 3/4; sixteen masters synchronize, 2 * 15/16.
        self.near(rows("bcube:4,3")["two-level"].relative, 4.875)

    def test_describes_each_row(self):
        row = gst_row(parse_topology("bcube:3,2", "test"), "bml", Load(1e8, 10e9))
        self.assertEqual((row.topology, row.algorithm, row.servers, row.source), ("bcube:3,2", "bml", 9, "BML 3.2"))
        self.near(row.seconds, 0.08 * 8 / 9)
        self.near(row.relative, 8 / 9)

    def test_has_two_levels_on_a_topology_of_one_level_for_groups_that_divide_it(self):
        for spec in ("fattree:16", "star:16"):
            grouped = rows(spec, group=4)["two-level"]
            self.assertEqual(grouped.relative, rows("bcube:4,2")["two-level"].relative)
        for group in (0, 1, 3, 16, 32):
            self.assertNotIn("two-level", rows("fattree:16", group=group))
        self.assertNotIn("two-level", rows("torus:4,2", group=4))

    def test_adds_the_latency_of_every_message(self):
        """Messages that a server's busiest port passes one after the other in both stages."""
        hips = {"hips:mesh": 12, "hips:ring": 12, "hips:root": 12}
        blueconnect = {"blueconnect": 8, "halving_doubling": 8, "two-level": 14}
        for spec, expected in {
            "bcube:4,2": {"bml": 12, "mesh": 24, "ring": 30, **hips, **blueconnect},
            "star:9": {"mesh": 16, "bml": 16},
            "bcube:3x2": {"bml": 2 * (1 + 2), "mesh": 2 * 4},
            "torus:4,2": {"mesh": 12, "hips:ring": 12, "ring": 30, "blueconnect": 12},  # no stage is halved on cables
            "torus:5,2": {"blueconnect": 16},
        }.items():
            fast, slow = rows(spec), rows(spec, latency=1.0)
            for name, count in expected.items():
                self.near(slow[name].seconds - fast[name].seconds, count)

    def test_relates_to_a_transfer_without_latency(self):
        for row in rows("bcube:4,2", latency=0.001).values():
            self.near(row.relative, row.seconds)

    def test_refuses_what_has_no_time(self):
        cube = parse_topology("bcube:4,2", "test")
        for algorithm, load in (
            ("magic", Load(1, 1)),
            ("bml", Load(0, 1e9)),
            ("bml", Load(1, 0)),
            ("bml", Load(1, 1, -1)),
        ):
            self.assertRaises(ValueError, gst_row, cube, algorithm, load)


class Crossover(Numbers):
    def lines_of(self, spec, latency=5e-6):
        return crossover.gst_lines(parse_topology(spec, "test"), Load(0, 8e9, latency))

    def names(self, winners):
        return [line.algorithm for line in winners.lines]

    def test_knows_the_time_of_every_row_for_any_number_of_bytes(self):
        for spec in ("bcube:4,2", "bcube:16,4", "bcube:4x3x2", "torus:4,2", "star:9", "fattree:16"):
            for line in self.lines_of(spec):
                for size in (1.0, 1500.0, 64e3, 1e8):
                    row = gst_row(parse_topology(spec, "test"), line.algorithm, Load(size, 8e9, 5e-6))
                    self.near(line.seconds(size), row.seconds, 1e-9 * row.seconds)

    def test_names_a_winner_that_no_algorithm_beats_for_any_size(self):
        for spec in ("bcube:2,2", "bcube:3,2", "bcube:16,4", "bcube:4x3x2", "torus:4,2", "star:9", "fattree:1024"):
            lines = self.lines_of(spec)
            everyone = crossovers(lines)
            self.assertEqual(everyone[0].from_bytes, 0)
            size = 1.0
            while size < 1e12:
                winner = [winners for winners in everyone if winners.from_bytes <= size][-1].lines[0]
                least = min(line.seconds(size) for line in lines)
                self.near(winner.seconds(size), least, 1e-9 * least)
                size *= 1.7

    def test_lets_the_fewest_messages_win_until_the_bytes_count_more(self):
        """On BCube(16,4): 32 messages of 2 transfers, against 120 messages of half a transfer."""
        first, second = crossovers(self.lines_of("bcube:16,4"))
        self.assertEqual(self.names(first), ["blueconnect", "halving_doubling"])
        self.near(first.lines[0].latency_seconds, 32 * 5e-6, 1e-12)
        self.assertEqual(self.names(second), ["bml", "hips:mesh", "hips:ring"])
        self.near(second.from_bytes, (120 - 32) * 5e-6 / (1.5 * 65535 / 65536 * 1e-9), 1e-3)

    def test_has_one_winner_for_all_sizes_where_messages_take_no_time(self):
        (winners,) = crossovers(self.lines_of("bcube:4,2", 0.0))
        self.assertEqual(self.names(winners), ["bml", "hips:mesh", "hips:ring"])

    def test_begins_with_the_flattest_of_those_that_begin_alike(self):
        (winners,) = crossovers([GstLine("steep", 1, 10), GstLine("flat", 1, 5)])
        self.assertEqual(self.names(winners), ["flat"])

    def test_passes_over_a_line_that_two_others_undercut(self):
        _, winners = crossovers([GstLine("steep", 0, 10), GstLine("between", 9, 5), GstLine("flat", 10, 1)])
        self.assertEqual(self.names(winners), ["flat"])
        self.near(winners.from_bytes, 10 / 9)


def series(panel, name):
    return next(each for each in panel.series if each.name == name)


def reduction(less, more):
    """In percent."""
    return 100 * (1 - less / more)


class Figures(Numbers):
    def figure(self, name, **assumed):
        return FIGURES[name](Assumed(**assumed))

    def test_are_complete(self):
        for name in FIGURES:
            with self.subTest(name):
                figure = self.figure(name, latency_seconds=1e-6)
                self.assertEqual(figure.name, name)
                self.assertTrue(figure.panels)
                for panel in figure.panels:
                    self.assertEqual(len({each.name for each in panel.series}), len(panel.series))
                    for each in panel.series:
                        self.assertTrue(each.y and len(each.x) == len(each.y) and all(y > 0 for y in each.y))
                        self.assertTrue(not panel.categories or max(each.x) < len(panel.categories))

    def test_have_the_reductions_of_the_hips_paper(self):
        """ "HiPS reduces the GST by 37.5%~73.3% compared with PSS/MS and by 50.0%~75.0% compared with RS" (HiPS,
        section 4.2), as for BCube and Torus."""
        for name, first in (("hips-6", 0.9375), ("hips-7", 0.46875)):
            (panel,) = self.figure(name).panels
            self.assertEqual(panel.categories, ["(4,2)", "(8,3)", "(16,4)"])
            hips, mesh, ring = panel.series
            self.assertEqual(hips.y[0], first)
            for i, than_mesh, than_ring in ((0, 37.5, 50), (1, None, 66.7), (2, 73.3, 75)):
                self.near(reduction(hips.y[i], ring.y[i]), than_ring, 0.05)
                if than_mesh:
                    self.near(reduction(hips.y[i], mesh.y[i]), than_mesh, 0.05)

    def test_have_the_four_combinations_of_bmls_figure_5(self):
        """BML on BCube takes 1/k of PS on Fat-Tree (section 3.2), and on Fat-Tree both take the same (3.3)."""
        (panel,) = self.figure("bml-5").panels
        bml, mesh, hierarchical, fat_tree = (each.y for each in panel.series)
        self.assertEqual([2 * y for y in bml], fat_tree)
        self.assertEqual(hierarchical, fat_tree)
        self.near(mesh[0], 1.5)
        self.near(mesh[1] / bml[1], 1.94, 0.005)

    def test_reduce_the_time_of_bmls_trainings_by_half_and_by_less_the_more_is_computed(self):
        """ "theoretically BML should reduce the JCT by 0%~50%" (section 4.3)."""
        for name, size in (("bml-6", 12.5e6), ("bml-7", 548e6)):
            bml, fat_tree = self.figure(name).panels[0].series
            self.near(bml.y[0], 1000 * size * 8 / 40e9 * 8 / 9)
            self.near(reduction(bml.y[2], fat_tree.y[2]), 50)
            bml, fat_tree = self.figure(name, seconds_per_sample=0.005).panels[0].series
            less = [reduction(*ys) for ys in zip(bml.y, fat_tree.y)]
            self.assertTrue(50 > less[0] > less[1] > less[2] > 0)

    def test_compare_blueconnect_with_a_ring_on_both_systems(self):
        slow, fast = ([each.y[-1] for each in panel.series] for panel in self.figure("blueconnect-5").panels)
        self.near(slow[1] / slow[0], 1.56, 0.005)
        self.near(fast[1] / fast[0], 1.19, 0.005)
        self.near(slow[1] / fast[1], 10)  # "about 10x faster than the Intel platform"

    def test_order_the_three_schemes_of_blueconnects_figure_6(self):
        overhead, efficiency, throughput = self.figure("blueconnect-6", latency_seconds=1e-4).panels
        blueconnect, two_level, ring = (each.y for each in overhead.series[:3])
        self.assertEqual(overhead.series[0].x, [4, 8, 16, 32, 64, 128, 192])
        self.assertEqual(blueconnect[0], two_level[0])  # inside a node both are NCCL
        self.assertTrue(all(less < more for less, more in zip(blueconnect[1:], two_level[1:])))
        self.assertGreater(ring[6], two_level[6])  # a ring has 382 messages
        # 196.3 images per second on one learner without any communication.
        iteration = 0.163 + blueconnect[6] / 1e3
        self.near(efficiency.series[0].y[6], 100 * 0.163 / iteration)
        self.near(throughput.series[0].y[6], 192 * 32 / iteration, 1e-6)
        self.assertEqual(series(overhead, "BlueConnect, the paper's text").y, [31.0])

    def test_put_a_measured_run_beside_its_bar(self):
        figure = self.figure("hips-6")
        run = MeasuredRun("bcube:4,2", "ring", 8e6, [(10**6, 2.5), (1000, 0.1)])
        self.assertTrue(place(figure, run))
        point = figure.panels[0].series[-1]
        self.assertEqual((point.origin, point.beside, point.x, point.y), (figures.MEASURED, 2, [0], [2.5]))
        for change in (
            {"topology": "bcube:3,2"},
            {"algorithm": "two-level"},
            {"bits_per_second": None},
            {"results": []},
            {"results": [(0, 1.0)]},
        ):
            self.assertFalse(place(figure, run._replace(**change)))

    def test_put_a_run_on_a_fat_tree_beside_its_bar(self):
        figure = self.figure("bml-5")
        run = MeasuredRun("tree:4x4", "blueconnect", 8e6, [(10**6, 2.0)])
        self.assertFalse(place(figure, run))  # its uplinks may bind
        self.assertTrue(place(figure, run._replace(like="star:16")))
        point = figure.panels[0].series[-1]
        self.assertEqual((point.name, point.beside), ("measured: blueconnect on tree:4x4", 2))
        self.assertEqual((point.x, point.y), ([0], [2]))

    def test_draw_a_measured_run_as_a_line_over_its_sizes(self):
        figure = self.figure("blueconnect-5")
        self.assertTrue(place(figure, MeasuredRun("bcube:2x4", "blueconnect", None, [(4000, 0.5), (0, 0.1)])))
        for panel in figure.panels:
            line = panel.series[-1]
            self.assertEqual((line.name, line.x, line.y), ("measured: blueconnect on bcube:2x4", [1000], [500]))
        self.assertFalse(place(self.figure("blueconnect-6"), MeasuredRun("bcube:3,2", "bml", 40e9, [(1000, 0.1)])))

    def test_put_a_measured_synchronization_into_the_iterations_of_bmls_trainings(self):
        for name, batches in (("bml-6", (128, 256, 512, 1024)), ("bml-7", (16, 32, 64))):
            figure = self.figure(name, seconds_per_sample=0.005)
            for number, run in enumerate(
                (MeasuredRun("bcube:3,2", "bml", 8e6, [(10**6, 0.9)]), MeasuredRun("star:9", "mesh", 8e6, [(10**6, 1.8)]))
            ):
                self.assertTrue(place(figure, run))
                panel, point = figure.panels[0], figure.panels[0].series[-1]
                self.assertEqual((point.beside, point.x), (number, list(range(len(batches)))))
                for i, samples in enumerate(batches):
                    # Of the rest, the model's is 8/9 or 16/9 of T_F.
                    computed = samples * 5.0
                    modelled = panel.series[number].y[i] - computed
                    self.near(point.y[i] - computed, modelled * run.results[0][1] / (8 / 9 * (number + 1)), 1e-9)


if __name__ == "__main__":
    unittest.main()
