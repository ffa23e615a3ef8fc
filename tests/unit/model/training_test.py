"""The networks have the sizes that their papers give, and the simulation of MG-WFBP's section V-C says what its text
says."""

import math
import unittest

from gradcube._merging import POLICIES, Layer
from gradcube.model import training
from gradcube.model.iteration import Iteration, Message, messages_of
from gradcube.model.mgwfbp import AllReduceCost, ring_cost
from gradcube.model.networks import NAMES, network
from gradcube.model.training_figure import figure_9


def parameters_of(net, begin):
    return sum(layer.parameters for layer in net.layers if layer.name.startswith(begin))


class Networks(unittest.TestCase):
    def test_have_resnet50_with_its_convolutions_and_their_normalizations(self):
        """ "ResNet-50 has about 25.5 millions" (MG-WFBP, section V), and "102 MB" (section I)."""
        net = network("resnet50")
        self.assertEqual((net.parameters, len(net.layers)), (25_557_032, 107))
        self.assertEqual(sum(layer.name.endswith("_bn") for layer in net.layers), 53)
        self.assertEqual(net.layers[0].parameters, 7 * 7 * 3 * 64)
        self.assertEqual(net.layers[-1].parameters, 2048 * 1000 + 1000)

    def test_have_googlenet_with_both_auxiliary_heads(self):
        """ "GoogleNet has about 13 millions": with both heads. Table 1 of its paper has 6.8 million without them: in
        1024s, and of weights alone."""
        net = network("googlenet")
        self.assertEqual((net.parameters, len(net.layers)), (13_378_280, 64))
        self.assertEqual(net.parameters - parameters_of(net, "loss1/") - parameters_of(net, "loss2/"), 6_998_552)

    def test_have_the_inceptions_of_googlenets_table_1(self):
        """The column "params". Of 4c and 5a it has 463 and 1072, which the sizes in the same rows do not give."""
        table = {"3a": 159, "3b": 380, "4a": 364, "4b": 437, "4d": 580, "4e": 840, "5b": 1388}
        for name, thousands in table.items():
            here = parameters_of(network("googlenet"), f"inception_{name}/") / 1024
            self.assertAlmostEqual(here, thousands, delta=0.02 * thousands)

    def test_have_vgg19_and_the_lenet5_of_bml(self):
        """ "The model of VGG-19 contains 19 layers and the total number of parameters is about 143.65 million"; of
        LeNet-5 "3.27 million parameters. The size of full gradient is about 12.5MB" (BML, section 4.1)."""
        vgg19, lenet5 = network("vgg19"), network("lenet5")
        self.assertEqual((vgg19.parameters, len(vgg19.layers)), (143_667_240, 19))
        self.assertEqual((lenet5.parameters, len(lenet5.layers)), (3_274_634, 4))
        self.assertAlmostEqual(4 * lenet5.parameters / 2**20, 12.5, delta=0.01)

    def test_have_layers_that_differ_and_take_time(self):
        for name in NAMES:
            net = network(name)
            self.assertEqual(net.name, name)
            self.assertEqual(len({layer.name for layer in net.layers}), len(net.layers))
            for layer in net.layers:
                self.assertGreater(layer.parameters, 0)
                self.assertGreater(layer.microseconds, 0)
                self.assertEqual(layer.bytes, 4 * layer.parameters)
            total = net.forward_microseconds + sum(layer.microseconds for layer in net.layers)
            self.assertAlmostEqual(net.cpu_seconds, total / 1e6, delta=1e-9)
        self.assertRaises(ValueError, network, "alexnet")

    def test_were_measured_with_the_batches_of_the_papers(self):
        """The sub-minibatches of MG-WFBP, section V, and of BML, section 4.2."""
        self.assertEqual([network(name).batch for name in NAMES], [64, 32, 16, 128])


class Iterations(unittest.TestCase):
    # docs/mg-wfbp.md: what Algorithm 1 takes is 9, and the least is 8.
    THREE = Iteration(AllReduceCost(2.0, 1.0), [Layer(1, 2.0), Layer(1, 1.0), Layer(1, 1.0)])

    # Of four layers, as MG-WFBP's Fig. 2 to 4.
    FOUR = Iteration(AllReduceCost(2, 0.5), [Layer(2, 4), Layer(4, 3), Layer(6, 2), Layer(8, 1)], 10)
    ALONE = [Message(3, 3), Message(2, 2), Message(1, 1), Message(0, 0)]

    def test_have_a_layers_gradients_ready_when_its_part_of_the_backward_pass_ends(self):
        self.assertEqual(self.FOUR.ready_seconds(), [20, 16, 13, 11])
        self.assertEqual(self.FOUR.computing_seconds(), 20)

    def test_send_a_layer_when_it_is_ready_and_the_one_before_has_travelled(self):
        """Eq. 7, by hand: layer 4 takes 6 from 11 on, layer 3 waits for it, layer 2 for that."""
        times = self.FOUR.times(self.ALONE)
        self.assertEqual(times, [(11, 11, 17), (13, 17, 22), (16, 22, 26), (20, 26, 29)])
        self.assertEqual(self.FOUR.seconds(self.ALONE), 29)

    def test_send_merged_layers_when_the_last_of_them_in_the_pass_is_ready(self):
        """Layers 3 and 2 leave when 2 is ready, and need one startup time less."""
        times = self.FOUR.times([Message(3, 3), Message(1, 2), Message(0, 0)])
        self.assertEqual(times[1:], [(16, 17, 24), (20, 24, 27)])

    def test_hide_messages_that_take_less_than_the_pass_of_the_next_layer(self):
        """Eq. 11: what is left is the first layer's own message."""
        quick = Iteration(AllReduceCost(0.25, 0.0625), self.FOUR.layers, 10)
        self.assertEqual(quick.seconds(self.ALONE), 20 + quick.cost.seconds(2))

    def test_overlap_nothing_if_all_layers_share_a_message(self):
        """Eq. 3."""
        self.assertEqual(self.FOUR.seconds([Message(0, 3)]), 20 + 2 + 0.5 * 20)

    def test_have_the_messages_that_the_library_gives_trainers(self):
        for policy, messages, seconds in (
            ("wfbp", [(2, 2), (1, 1), (0, 0)], 10),
            ("synceasgd", [(0, 2)], 9),
            ("mgwfbp", [(1, 2), (0, 0)], 9),
            ("optimal", [(2, 2), (0, 1)], 8),
        ):
            found = messages_of(policy, self.THREE)
            self.assertEqual(found, messages)
            self.assertEqual(self.THREE.seconds(found), seconds)

    def test_count_the_forward_pass_before_all_messages(self):
        late = Iteration(self.THREE.cost, self.THREE.layers, 5.0)
        for policy in POLICIES:
            self.assertEqual(messages_of(policy, late), messages_of(policy, self.THREE))
        self.assertEqual(late.seconds(messages_of("optimal", late)), 5 + 8)

    def test_compare_each_policy_with_wfbp_and_synceasgd(self):
        wfbp, _, _, optimal = training.policy_times(self.THREE)
        self.assertEqual((wfbp.seconds, wfbp.messages, wfbp.over_synceasgd), (10, 3, 0.9))
        self.assertEqual(tuple(optimal), ("optimal", 2, 8, 1.25, 9 / 8))


def simulate(name, nodes):
    """The time of each policy on the paper's GPU."""
    iteration = training.iteration_of(
        network(name), training.gpu_seconds(name), ring_cost(nodes, training.paper_costs())
    )
    return {time.policy: time for time in training.policy_times(iteration)}


class Simulation(unittest.TestCase):
    def test_has_the_costs_of_the_papers_all_reduce(self):
        """ "the startup overheads are 90.52 us, 271.56 us and 633.64 us in 2-, 4- and 8-node clusters", and with 400 KB
        an all-reduce on 8 nodes takes 0.3 ms longer than with 200 KB (section I)."""
        for N, a in ((2, 90.52e-6), (4, 271.56e-6), (8, 633.64e-6)):
            self.assertAlmostEqual(ring_cost(N, training.paper_costs()).a, a, delta=1e-12)
        eight = ring_cost(8, training.paper_costs())
        self.assertAlmostEqual(eight.seconds(400e3) - eight.seconds(200e3), 0.3e-3, delta=1e-9)

    def test_scales_the_measured_times_to_that_of_the_gpu(self):
        for name in NAMES:
            net = network(name)
            iteration = training.iteration_of(net, 0.25, AllReduceCost(1, 2))
            self.assertAlmostEqual(iteration.computing_seconds(), 0.25, delta=1e-12)
            self.assertEqual(iteration.cost, (1, 2))
            scale = 0.25 / net.cpu_seconds * 1e-6
            self.assertAlmostEqual(iteration.forward_seconds, scale * net.forward_microseconds, delta=1e-12)
            for here, layer in zip(iteration.layers, net.layers):
                self.assertEqual(here.bytes, 4 * layer.parameters)
                self.assertAlmostEqual(here.backward_seconds, scale * layer.microseconds, delta=1e-12)

    def test_takes_the_gpus_time_from_how_far_wfbp_is_behind_at_64_nodes(self):
        """The ratios to which the GPU's time was fitted."""
        for name, ratio in (("googlenet", 1.78), ("resnet50", 1.75)):
            self.assertAlmostEqual(simulate(name, 64)["mgwfbp"].over_wfbp, ratio, delta=0.005)
        factors = {name: training.gpu_seconds(name) / network(name).cpu_seconds for name in NAMES}
        mean = math.sqrt(factors["googlenet"] * factors["resnet50"])
        for name in ("vgg19", "lenet5"):
            self.assertAlmostEqual(factors[name], mean, delta=1e-12)

    def test_is_within_15_percent_of_the_papers_ratios_at_64_nodes(self):
        """ "MG-WFBP outperforms WFBP and SyncEASGD by 1.78x and 1.35x, respectively on GoogleNet", "about 1.75x and
        1.45x" on ResNet-50."""
        for name, ratio in (("googlenet", 1.35), ("resnet50", 1.45)):
            self.assertAlmostEqual(simulate(name, 64)["mgwfbp"].over_synceasgd, ratio, delta=0.15 * ratio)

    def test_has_mgwfbp_first_whatever_the_number_of_nodes(self):
        for name in ("googlenet", "resnet50"):
            for nodes in (4, 8, 16, 32, 64):
                times = simulate(name, nodes)
                self.assertGreaterEqual(times["mgwfbp"].over_wfbp, 1)
                self.assertGreaterEqual(times["mgwfbp"].over_synceasgd, 1)
                self.assertLessEqual(times["optimal"].seconds, times["mgwfbp"].seconds)

    def test_has_wfbp_ahead_of_synceasgd_on_few_nodes_and_behind_on_many(self):
        """ "the lines of WFBP and SyncEASGD have a crossing point": WFBP is ahead on "4-16 nodes", and behind on 64."""
        for name in ("googlenet", "resnet50"):
            for nodes in (4, 8, 16, 64):
                times = simulate(name, nodes)
                self.assertEqual(times["wfbp"].seconds < times["synceasgd"].seconds, nodes < 64)

    def test_scales_resnet50_almost_linearly_with_mgwfbp_alone(self):
        """ "On ResNet-50, MG-WFBP performs almost linear speedup, while WFBP and SyncEASGD only have around 55% scaling
        efficiency"."""
        times = simulate("resnet50", 64)
        efficiency = {policy: training.gpu_seconds("resnet50") / times[policy].seconds for policy in times}
        self.assertGreater(efficiency["mgwfbp"], 0.95)
        self.assertAlmostEqual(efficiency["wfbp"], 0.55, delta=0.15 * 0.55)

    def test_draws_figure_9_with_what_the_papers_text_says_of_64_nodes(self):
        googlenet, resnet50 = (panel.series for panel in figure_9(None).panels)
        for series in (googlenet, resnet50):
            self.assertEqual(series[0].name, "linear")
            for line in series[1:4]:
                self.assertEqual(line.x, [4, 8, 16, 32, 64])
                self.assertTrue(all(0.3 * x < y < x for x, y in zip(line.x, line.y)))  # no more than linear
            self.assertTrue(all((each.origin, each.x) == ("paper", [64]) for each in series[4:]))
        alone = training.gpu_seconds("resnet50")
        self.assertAlmostEqual(resnet50[1].y[1], 8 * alone / simulate("resnet50", 8)["wfbp"].seconds, delta=1e-12)
        for series, texts in ((googlenet, (1.78, 1.35)), (resnet50, (1.75, 1.45))):
            for point, ratio in zip(series[4:], texts):
                self.assertEqual(point.y, [series[3].y[4] / ratio])
        self.assertAlmostEqual(resnet50[6].y[0], 35.2, delta=1e-12)


if __name__ == "__main__":
    unittest.main()
