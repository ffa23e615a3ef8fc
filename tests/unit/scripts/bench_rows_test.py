"""How scripts/bench.sh judges what it measured against a model.

Usage: PYTHONPATH=scripts bench_rows_test.py
"""

import unittest

from bench_algorithms import order
from bench_row import Row, within
from bench_table import cells


class Rows(unittest.TestCase):
    def test_miss_a_model_on_both_sides_of_it(self):
        for ratio, met in ((0.58, "no"), (0.89, "no"), (0.91, "yes"), (1, "yes"), (1.09, "yes"), (1.11, "no")):
            with self.subTest(ratio):
                row = within(Row("ring", 1, "s", ratio=ratio), 0.1)
                self.assertEqual(cells(row)[-2:], ["1 +- 0.1", met])

    def test_of_an_order_name_the_plans_from_the_fastest_on(self):
        modelled = {"ring": 3.75, "two-level": 4.5, "blueconnect": 1.5}
        row = order("order", {"ring": 3.8, "two-level": 4.4, "blueconnect": 0.9}, modelled)
        self.assertEqual(row.bound, "model blueconnect < ring < two-level; measured blueconnect < ring < two-level")
        self.assertEqual(cells(row)[1:2] + cells(row)[-2:], ["3 of 3 pairs", "3 of 3 pairs", "yes"])

    def test_miss_an_order_where_one_plan_overtakes_another(self):
        modelled = {"ring": 3.75, "two-level": 4.5, "blueconnect": 1.5}
        row = order("order", {"ring": 3.83, "two-level": 3.37, "blueconnect": 0.867}, modelled)
        self.assertEqual(row.bound, "model blueconnect < ring < two-level; measured blueconnect < two-level < ring")
        self.assertEqual(cells(row)[1:2] + cells(row)[-2:], ["2 of 3 pairs", "3 of 3 pairs", "no"])


if __name__ == "__main__":
    unittest.main()
