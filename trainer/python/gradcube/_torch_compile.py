"""Compiles the extension for PyTorch by PyTorch's own C++ extension tools, in the working directory, and loads it.

Run by _torch_builder.py, in a process of its own: its exit code says whether all went well, and its output why not.
"""

import os
import pathlib

import setuptools
import torch
from torch.utils import cpp_extension

from . import _library, _torch_extension, _torch_identity


def main():
    library = _library.library()._name
    root = _torch_extension.sources()
    # One source: most of the time goes into PyTorch's headers.
    whole = pathlib.Path("gradcube_torch.cc")
    parts = sorted((root / "trainer/torch").glob("*.cc"))
    whole.write_text("".join(f'#include "trainer/torch/{part.name}"\n' for part in parts))
    # The tools add the standard that PyTorch's headers are of, unless there is one. That of PyTorch 1 is too old.
    standard = ["-std=c++17"] if torch.__version__.startswith("1.") else []
    extension = cpp_extension.CppExtension(
        _torch_extension.FILE.split(".")[0],
        [str(whole)],
        include_dirs=[str(root), str(root / "trainer/include")],
        extra_compile_args=["-O2", "-g0", "-fvisibility=hidden", _torch_identity.definition(), *standard],
        extra_link_args=[library if os.sep in library else f"-l:{library}"],
    )
    setuptools.setup(
        name="gradcube_torch",
        packages=[],
        py_modules=[],
        ext_modules=[extension],
        cmdclass={"build_ext": cpp_extension.BuildExtension.with_options(use_ninja=False)},
        script_args=["build_ext", "--build-lib", ".", "--build-temp", "objects"],
    )
    _torch_extension.loaded(pathlib.Path(_torch_extension.FILE).absolute())
