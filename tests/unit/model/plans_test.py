"""What the plans' busiest links carry, by the proof of `gradcube plan --verify`, is what the papers' models say.

Usage: plans_test.py [--write]

plan_times.txt has the models' times with which plan_costs_and_models_test.cc compares the costs of plans; --write makes
it anew.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import unittest

from gradcube.model import blueconnect, bml, hips
from gradcube.model.blueconnect import Stage
from gradcube.model.gst_table import Load, gst_row
from gradcube.model.topology import parse_topology

PLAN_TIMES = pathlib.Path(__file__).resolve().parent / "plan_times.txt"


@functools.lru_cache(maxsize=None)
def verified(algorithm, spec):
    """(pieces of the gradient, the most of them that a link of each level carries in both stages together)"""
    command = [os.environ["GRADCUBE_TOOL"], "plan", "--verify", "--topology", spec, "--algorithm", algorithm, "--json"]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout)
    return report["pieces"], report["link_pieces"]


def busiest_share(algorithm, spec):
    """Of the gradient: GST / T_F."""
    pieces, on_levels = verified(algorithm, spec)
    return max(on_levels) / pieces


def sum_of_shares(algorithm, spec):
    pieces, on_levels = verified(algorithm, spec)
    return sum(on_levels) / pieces


def eq_10(n, levels):
    """BlueConnect on a torus, with one learner in a node; T_F is 1."""
    return blueconnect.torus_seconds([Stage(1, 8.0)] + [Stage(n, 8.0)] * levels, 1.0, 0.0)


class Links(unittest.TestCase):
    def near(self, value, expected, what):
        self.assertAlmostEqual(value, expected, delta=1e-12, msg=what)

    def test_carry_what_the_models_say_on_a_bcube(self):
        for n in (2, 3, 4):
            for k in (1, 2, 3):
                spec = f"bcube:{n},{k}"
                for algorithm, expected in (
                    ("bml", bml.gst(n, k, 1)),
                    ("hips:mesh", hips.gst(hips.BCUBE, n, k, 1)),
                    ("hips:ring", hips.gst(hips.BCUBE, n, k, 1)),
                    ("ring", hips.ring_gst(hips.BCUBE, n, k, 1)),
                    ("mesh", hips.mesh_gst(hips.BCUBE, n, k, 1)),
                    # A root receives in the one stage and sends in the other, so its link carries half of it each way.
                    ("hips:root", hips.root_gst(n, k, 1) / 2),
                ):
                    self.near(busiest_share(algorithm, spec), expected, f"{algorithm} on {spec}")
                # Its levels work one after the other.
                self.near(sum_of_shares("blueconnect", spec), eq_10(n, k), f"blueconnect on {spec}")
            self.near(busiest_share("ps", f"bcube:{n},1"), hips.root_gst(n, 1, 1) / 2, "ps")

    def test_carry_what_the_models_say_on_a_generalized_bcube(self):
        for spec in ("bcube:3x2", "bcube:2x5", "bcube:4x3x2", "bcube:2x4x3", "bcube:3x2x2x2"):
            for algorithm in ("bml", "hips:mesh", "hips:ring", "ring", "mesh"):
                row = gst_row(parse_topology(spec, "test"), algorithm, Load(1e9, 1e9))
                self.near(busiest_share(algorithm, spec), row.relative, f"{algorithm} on {spec}")

    def test_carry_half_of_a_bcubes_on_a_torus(self):
        """Because each server has two cables per dimension."""
        for n, h in ((3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (5, 1), (5, 2)):
            spec = f"torus:{n},{h}"
            self.near(busiest_share("hips:ring", spec), hips.gst(hips.TORUS, n, h, 1), spec)
            self.near(busiest_share("ring", spec), hips.ring_gst(hips.TORUS, n, h, 1), spec)
            self.assertGreaterEqual(busiest_share("mesh", spec), hips.mesh_gst(hips.TORUS, n, h, 1) - 1e-12, spec)
            self.near(sum_of_shares("blueconnect", spec), eq_10(n, h), spec)
        # In a ring of three all are adjacent: the lower bound is met.
        self.near(busiest_share("mesh", "torus:3,1"), hips.mesh_gst(hips.TORUS, 3, 1, 1), "mesh on three")


def plan_times():
    """A line for each way to compare, algorithm, topology and latency of a message; 100 MB at 10 Gbit/s."""
    switched = ("bml", "hips:mesh", "hips:ring", "hips:root", "mesh", "ring", "blueconnect")
    cases = [
        ("lock_step", algorithm, spec, 0.0)
        for spec in ("star:2", "star:8", "bcube:2,2", "bcube:3,2", "bcube:4,2", "bcube:2,3", "bcube:3,3")
        for algorithm in switched
    ]
    cases += [("lock_step", "halving_doubling", spec, 0.0) for spec in ("star:8", "bcube:2,3", "bcube:4,2")]
    cases += [("lock_step", "ps", "star:5", 0.0)]
    cases += [
        ("lock_step", algorithm, spec, 1e-4)
        for spec in ("star:8", "bcube:4,2", "bcube:2,3")
        for algorithm in ("ring", "blueconnect", "halving_doubling")
    ]
    cases += [("server", algorithm, "star:5", 1e-4) for algorithm in ("bml", "mesh", "ps")]
    for spec in ("bcube:3x2", "bcube:4x3x2"):
        cases += [("flow", algorithm, spec, 0.0) for algorithm in ("bml", "hips:mesh", "hips:ring")]
    for way, algorithm, spec, latency in cases:
        row = gst_row(parse_topology(spec, "test"), algorithm, Load(1e8, 1e10, latency))
        yield f"{way} {algorithm} {spec} {latency} {row.seconds}\n"


class Times(unittest.TestCase):
    def test_with_which_the_costs_of_plans_are_compared_are_those_of_the_models(self):
        self.assertEqual(PLAN_TIMES.read_text(), "".join(plan_times()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PLAN_TIMES.write_text("".join(plan_times()))
    else:
        unittest.main()
