"""The optimizers' kernels beside PyTorch's: 1,000 steps of random gradients, each from the same
state. argv[1] is the binary optimizer_steps."""
import contextlib
import os
import subprocess
import sys
import unittest

import numpy
import torch

COUNT = 1003
STEPS = 1000
INSTRUCTIONS = ("scalar", "avx2", "avx512")
BINARY = ""
SEED = int(os.environ.get("GRADCUBE_TEST_SEED", "20181011"))

# Where the kernels promise PyTorch's bits (aggregation/optimizer.h).
SAME_BITS = (torch.__version__.startswith("1.13")
             and "CPU capability usage: AVX" in torch.__config__.show())


LACKS_INSTRUCTIONS = 77  # the exit code of optimizer_steps on a CPU that has not what it is asked for


class Steps:
    """A process that steps on arrays."""

    def __init__(self, instructions, dtype, rule, options):
        values = [options.get(name, default) for name, default in
                  (("momentum", 0), ("dampening", 0), ("weight_decay", 0), ("clip", "inf"))]
        self.dtype = dtype
        self.process = subprocess.Popen(
            [BINARY, instructions, dtype, rule, *map(str, values), str(COUNT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def step(self, rate, number, arrays, gradients):
        """Returns the arrays after the step, or None if this CPU lacks the instructions."""
        head = numpy.array([rate, number], dtype=numpy.float64)
        try:
            for array in (head, *arrays, *gradients):
                self.process.stdin.write(array.tobytes())
            self.process.stdin.flush()
        except BrokenPipeError:
            if self.process.wait() != LACKS_INSTRUCTIONS:
                raise
            return None
        # Where it has not ended yet, the pipe has taken what nobody reads.
        first = self.read(numpy.float32)
        if first is None:
            return None
        results = [first] + [self.read(numpy.float32) for _ in range(2)]
        return results + ([self.read(numpy.uint16)] if self.dtype != "float32" else [])

    def read(self, kind):
        size = COUNT * numpy.dtype(kind).itemsize
        data = self.process.stdout.read(size)
        if len(data) != size:
            code = self.process.wait()
            if code == LACKS_INSTRUCTIONS and not data:
                return None
            raise AssertionError(f"optimizer_steps ended with {code}")
        return numpy.frombuffer(data, dtype=kind)

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # what nobody has read
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def make_optimizer(rule, options, parameter):
    if rule == "adam":
        return torch.optim.Adam([parameter], foreach=False, **options)
    if rule == "adamw":
        return torch.optim.AdamW([parameter], foreach=False, **options)
    return torch.optim.SGD([parameter], lr=0.1, foreach=False, nesterov=rule == "nesterov",
                           **options)


def state_of(optimizer, parameter):
    """The parameter and both states, as the kernels hold them."""
    state = optimizer.state.get(parameter, {})
    zeros = torch.zeros(COUNT)
    first = state.get("momentum_buffer", state.get("exp_avg"))
    second = state.get("exp_avg_sq")
    arrays = (parameter.detach(), zeros if first is None else first,
              zeros if second is None else second)
    return [array.numpy().copy() for array in arrays]


class OptimizersTest(unittest.TestCase):
    def check(self, rule, dtype="float32", clip=None, **options):
        for instructions in INSTRUCTIONS:
            with self.subTest(instructions=instructions, seed=SEED):
                self.check_steps(instructions, rule, dtype, clip, options)

    def check_steps(self, instructions, rule, dtype, clip, options):
        random = torch.Generator().manual_seed(SEED)
        parameter = torch.nn.Parameter(torch.randn(COUNT, generator=random))
        optimizer = make_optimizer(rule, options, parameter)
        steps = Steps(instructions, dtype, rule, dict(options, clip=clip or "inf"))
        self.addCleanup(steps.close)
        kind = getattr(torch, dtype)
        for number in range(1, STEPS + 1):
            rate = 0.01 / (1 + number // 100)
            gradients = [torch.randn(COUNT, generator=random).to(kind) for _ in range(2)]
            parameter.grad = (gradients[0].float() + gradients[1].float()) / 2
            if clip is not None:
                torch.nn.utils.clip_grad_value_([parameter], clip)
            before = state_of(optimizer, parameter)
            raw = [g.view(torch.int16 if dtype != "float32" else kind).numpy() for g in gradients]
            after = steps.step(rate, number, before, raw)
            if after is None:
                return
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
            expected = state_of(optimizer, parameter)
            for ours, theirs in zip(after, expected):
                if SAME_BITS:
                    numpy.testing.assert_array_equal(ours, theirs, f"step {number}")
                # Where terms nearly cancel each other, many last places may differ.
                numpy.testing.assert_allclose(ours, theirs, 1e-5, 1e-6, err_msg=f"step {number}")
            if dtype != "float32":
                rounded = parameter.detach().to(kind).view(torch.int16).numpy()
                self.assertLessEqual(
                    numpy.max(numpy.abs(after[3].view(numpy.int16).astype(int) - rounded)),
                    0 if SAME_BITS else 1)

    def test_sgd_steps_as_pytorch_does(self):
        self.check("sgd")

    def test_weight_decay_is_added_to_the_gradient(self):
        self.check("sgd", weight_decay=0.01)

    def test_momentum_steps_as_pytorch_does(self):
        self.check("momentum", momentum=0.9)

    def test_dampening_begins_with_the_second_step(self):
        self.check("momentum", momentum=0.9, dampening=0.3, weight_decay=1e-4)

    def test_nesterov_steps_as_pytorch_does(self):
        self.check("nesterov", momentum=0.9, weight_decay=1e-4)

    def test_gradients_are_clipped_by_value_before_weight_decay(self):
        self.check("nesterov", momentum=0.9, weight_decay=0.1, clip=0.25)

    def test_adam_steps_as_pytorch_does(self):
        self.check("adam")

    def test_adam_with_weight_decay_steps_as_pytorch_does(self):
        self.check("adam", weight_decay=0.01, clip=0.5)

    def test_adamw_steps_as_pytorch_does(self):
        self.check("adamw", weight_decay=0.01)

    def test_float16_gradients_move_float32_weights(self):
        self.check("adamw", dtype="float16", weight_decay=0.01)

    def test_bfloat16_gradients_move_float32_weights(self):
        self.check("nesterov", dtype="bfloat16", momentum=0.9)


if __name__ == "__main__":
    torch.set_num_threads(1)
    BINARY = sys.argv.pop(1)
    unittest.main()
