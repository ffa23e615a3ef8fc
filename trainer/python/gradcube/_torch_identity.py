"""Which PyTorch an extension of it is built for: all that must be the same of the one that loads it.

An extension has its identity as text in its file (trainer/torch/module.cc), so it can be asked without being loaded:
into another PyTorch it would load the libraries of its own, and the process would abort.

Run as a program it prints what trainer/torch/meson.build gives to the compiler, a line each.
"""

import sysconfig

import torch

# By these pybind11 finds PyTorch's classes. PyTorch has none where its pybind11 needs none.
_PYBIND = {name: getattr(torch._C, f"_PYBIND11_{name}", None) for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")}


def identity():
    """The version comes first. Nothing is guessed: PyTorch and Python say how they were built."""
    return ",".join([
        torch.__version__,
        str(torch.version.git_version),
        str(sysconfig.get_config_var("SOABI")),
        f"cxx11abi{int(torch.compiled_with_cxx11_abi())}",
        "".join(tag or "" for tag in _PYBIND.values()),
    ])  # fmt: skip


def definition():
    """By which an extension gets to know it."""
    return f'-DGRADCUBE_TORCH_IDENTITY="{identity()}"'


def main():
    print(definition())
    # What PyTorch's own C++ extension tools give, too.
    print(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}")
    for name, tag in _PYBIND.items():
        if tag is not None:
            print(f'-DPYBIND11_{name}="{tag}"')


if __name__ == "__main__":
    main()
