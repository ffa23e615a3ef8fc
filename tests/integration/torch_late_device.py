"""The device "late" for tests (late_device/): builds it for this process's PyTorch, once, and loads it.

`torch_late_device.py FOLDER` compiles it in that folder, by PyTorch's own C++ extension tools.
"""

import functools
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import types

import torch
from gradcube import _torch_builder, _torch_extension

SOURCE = pathlib.Path(__file__).resolve().parent / "late_device" / "late_device.cc"
ROOT = SOURCE.parents[3]
NAME = "late_device"


def place():
    sources = b"".join(path.read_bytes() for path in sorted(SOURCE.parent.iterdir()))
    digest = hashlib.sha256(_torch_extension.identity().encode() + sources).hexdigest()
    return _torch_extension.cache() / f"late-device-{digest[:16]}" / _torch_extension.FILE.replace("_gradcube_torch", NAME)


def built():
    """The path of the extension, which may have to be compiled first."""
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True)
    with _torch_builder.locked(path.parent / "lock", 900):
        if not path.exists():
            scratch = path.parent / "building"
            scratch.mkdir(exist_ok=True)
            compiler = "ccache g++" if shutil.which("ccache") else "g++"
            environment = {**os.environ, "CXX": compiler, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
            done = subprocess.run(
                [sys.executable, os.path.abspath(__file__), str(scratch)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if done.returncode != 0:
                raise AssertionError(f"{SOURCE.name} does not compile: {done.stdout[-4000:]}")
            os.replace(scratch / path.name, path)
            shutil.rmtree(scratch)
    return path


@functools.cache
def load():
    """The extension; from then on torch.device(name()) is there."""
    loader = _loaded(built())
    if hasattr(torch.utils, "rename_privateuse1_backend"):
        torch.utils.rename_privateuse1_backend("late")
    module = types.ModuleType("torch.late")
    module.cudart = lambda: loader  # where memory of the CPU is registered for copies, as with CUDA's runtime
    module.device_count = lambda: 2
    module.is_available = lambda: True
    module.current_device = lambda: 0
    torch._register_device_module(name(), module)
    return loader


def _loaded(path):
    spec = importlib.util.spec_from_file_location(NAME, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def name():
    return "late" if hasattr(torch.utils, "rename_privateuse1_backend") else "privateuseone"


def compile_in(folder):
    import setuptools
    from gradcube import _torch_identity
    from torch.utils import cpp_extension

    os.chdir(folder)
    standard = ["-std=c++17"] if torch.__version__.startswith("1.") else []
    extension = cpp_extension.CppExtension(
        NAME,
        [str(SOURCE)],
        include_dirs=[str(ROOT)],
        extra_compile_args=["-O1", "-g0", _torch_identity.definition(), *standard],
    )
    setuptools.setup(
        name=NAME,
        packages=[],
        py_modules=[],
        ext_modules=[extension],
        cmdclass={"build_ext": cpp_extension.BuildExtension.with_options(use_ninja=False)},
        script_args=["build_ext", "--build-lib", ".", "--build-temp", "objects"],
    )


if __name__ == "__main__":
    compile_in(sys.argv[1])
