"""Which extension for PyTorch is loaded, and how one is built, with a PyTorch and a compiler that are not there.

`torch_extension_test.py build` is a process that needs the extension.
"""

import contextlib
import fcntl
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve()

fake = types.ModuleType("torch")
fake.version = types.SimpleNamespace(git_version="abc")
fake._C = types.SimpleNamespace(_PYBIND11_COMPILER_TYPE="_gcc", _PYBIND11_STDLIB="_libstdcpp", _PYBIND11_BUILD_ABI="_x")
fake.compiled_with_cxx11_abi = lambda: True
fake.__version__ = "2.15.0+cpu"
fake.__file__ = os.environ.get("FAKE_TORCH", "/nowhere/torch/__init__.py")
sys.modules["torch"] = fake

import _gradcube_for_torch  # noqa: E402
from gradcube import _torch_builder as builder  # noqa: E402
from gradcube import _torch_extension as extension  # noqa: E402

# What stands in for _torch_compile.py. The identity is told by the environment, as it is the compiler's business.
COMPILES = """
import os, pathlib, time
places = pathlib.Path(os.environ["FAKE_PLACES"])
with open(places / "compiled", "a") as file: file.write("once\\n")
while os.path.exists(places / "hold"): time.sleep(0.01)
pathlib.Path("%s").write_bytes(b"ELF gradcube-torch-identity:" + os.environ["FAKE_IDENTITY"].encode() + b"\\0 code")
""" % extension.FILE


def host(places):
    """One that has all that a build needs."""
    (places / "include").mkdir(exist_ok=True)
    (places / "include/Python.h").touch()
    yield mock.patch.object(builder, "_COMPILE", COMPILES)
    yield mock.patch.object(builder.sysconfig, "get_path", lambda *_: str(places / "include"))
    yield mock.patch.object(builder.importlib.util, "find_spec", lambda name: name)


def written(path, identity):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"ELF gradcube-torch-identity:" + identity.encode() + b"\0 code")
    return path


class Extension(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="gradcube-torch-")
        self.addCleanup(scratch.cleanup)
        self.places = pathlib.Path(scratch.name)
        self.library = self.places / "lib/libgradcube.so"
        header = self.places / "torch/include/torch/csrc/distributed/c10d/Work.hpp"
        header.parent.mkdir(parents=True)
        header.touch()
        environment = {
            "GRADCUBE_CACHE": str(self.places / "cache"),
            "GRADCUBE_LIBRARY": str(self.library),
            "FAKE_PLACES": scratch.name,
            "FAKE_TORCH": str(self.places / "torch/__init__.py"),
            "FAKE_IDENTITY": extension.identity(),
            "CXX": "true",
        }
        self.enter(mock.patch.dict(os.environ, environment))
        self.enter(mock.patch.object(fake, "__file__", environment["FAKE_TORCH"]))
        for patch in host(self.places):
            self.enter(patch)
        self.said = io.StringIO()
        self.enter(contextlib.redirect_stderr(self.said))

    def enter(self, context):
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result

    def compiled(self):
        """How often."""
        path = self.places / "compiled"
        return len(path.read_text().splitlines()) if path.exists() else 0


class Finding(Extension):
    def test_one_for_another_pytorch_is_not_taken_though_it_lies_beside_the_library(self):
        path = written(self.library.parent / "torch" / extension.FILE, extension.identity().replace("2.15.0", "1.13.0"))
        self.assertTrue(extension.built_for(path).startswith("1.13.0+cpu,"))
        self.assertIsNone(extension.find(extension.identity()))
        written(path, extension.identity())
        self.assertEqual(extension.find(extension.identity()), path)

    def test_one_that_says_nothing_is_not_taken(self):
        path = self.library.parent / "torch" / extension.FILE
        path.parent.mkdir(parents=True)
        path.write_bytes(b"ELF, of an earlier Gradcube")
        self.assertIsNone(extension.find(extension.identity()))

    def test_identities_differ_where_pytorch_or_its_abi_does(self):
        first = extension.identity()
        self.assertTrue(first.startswith("2.15.0+cpu,abc,"), first)
        with mock.patch.object(fake, "compiled_with_cxx11_abi", lambda: False):
            self.assertNotEqual(extension.identity(), first)
        with mock.patch.object(fake.version, "git_version", "def"):
            self.assertNotEqual(extension.identity(), first)

    def test_each_state_of_the_sources_has_a_place_of_its_own(self):
        before = extension.place_of(extension.identity())
        source = self.places / "trainer/torch/module.cc"
        source.parent.mkdir(parents=True)
        source.touch()
        with mock.patch.object(extension, "sources", lambda: self.places):
            empty = extension.place_of(extension.identity())
            source.write_text("int more;")
            self.assertEqual(len({before, empty, extension.place_of(extension.identity())}), 3)


class Building(Extension):
    def test_it_is_built_once_and_found_then(self):
        path = builder.build()
        self.assertEqual((builder.build(), extension.find(extension.identity())), (path, path))
        self.assertEqual(self.compiled(), 1)
        self.assertIn("building the backend for PyTorch 2.15.0+cpu, once", self.said.getvalue())
        self.assertEqual([one.name for one in path.parents[1].glob("building-*")], [])

    def test_processes_that_need_it_at_once_wait_for_one_of_them(self):
        (self.places / "hold").touch()
        command = [sys.executable, str(HERE), "build"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        first = subprocess.Popen(command, **pipes)
        self.addCleanup(first.kill)
        self.assertIn("building", first.stderr.readline())
        second = subprocess.Popen(command, **pipes)
        self.addCleanup(second.kill)
        self.assertIn("waiting for another process", second.stderr.readline())
        (self.places / "hold").unlink()
        places = [process.communicate(timeout=60)[0] for process in (first, second)]
        self.assertEqual(places[0], places[1])
        self.assertTrue(extension.is_whole(pathlib.Path(places[0].strip())))
        self.assertEqual(self.compiled(), 1)

    def test_half_a_file_is_not_taken_but_built_anew(self):
        path = builder.build()
        whole = path.read_bytes()
        path.write_bytes(whole[:-3])
        self.assertIsNone(extension.find(extension.identity()))
        self.assertEqual(builder.build().read_bytes(), whole)
        path.with_name(extension.DIGEST).unlink()
        self.assertIsNone(extension.find(extension.identity()))

    def test_what_the_compiler_refuses_is_told_and_leaves_nothing(self):
        fails = "import sys; print('g.cc:1:2: error: no such thing\\nmore'); sys.exit(1)"
        with mock.patch.object(builder, "_COMPILE", fails), self.assertRaises(ImportError) as raised:
            builder.build()
        self.assertIn("could not be built: g.cc:1:2: error: no such thing; the compiler's output: ", str(raised.exception))
        log = pathlib.Path(str(raised.exception).rpartition(": ")[2])
        self.assertIn("more", log.read_text())
        self.assertIsNone(extension.find(extension.identity()))

    def test_what_is_built_for_another_pytorch_is_refused(self):
        with mock.patch.dict(os.environ, FAKE_IDENTITY="2.6.0"), self.assertRaisesRegex(ImportError, "not for this"):
            builder.build()
        self.assertIsNone(extension.find(extension.identity()))

    def test_one_that_does_not_end_is_ended(self):
        started = self.places / "pid"
        endless = f"import os, time; os.symlink(str(os.getpid()), {str(started)!r}); time.sleep(600)"
        with (
            mock.patch.multiple(builder, _COMPILE=endless, _LONGEST_BUILD=1, _PROGRESS=0.2),
            self.assertRaisesRegex(ImportError, "longer than 1 s"),
        ):
            builder.build()
        self.assertIn("still building", self.said.getvalue())
        if started.is_symlink():
            self.assertFalse(pathlib.Path(f"/proc/{os.readlink(started)}").exists())

    def test_a_lock_is_not_waited_for_for_ever(self):
        path = self.places / "lock"
        with open(path, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with self.assertRaisesRegex(ImportError, "another process has held .*lock"), builder.locked(path, 0.2):
                self.fail("it was not held")
        with builder.locked(path, 0):
            pass

    def test_a_pytorch_newer_than_any_that_was_tried_is_built_and_told(self):
        newer = f"{builder.TRIED[-1][0]}.{builder.TRIED[-1][1] + 1}.0.dev20991231+cpu"
        for major, minor in builder.TRIED:
            self.assertEqual(builder.untried(f"{major}.{minor}.1a0+git"), "")
        with mock.patch.object(fake, "__version__", newer):
            with mock.patch.dict(os.environ, FAKE_IDENTITY=extension.identity()):
                self.assertEqual(extension.find(extension.identity()), None)
                self.assertIn(newer, str(builder.build()))
        self.assertIn(f"was not tried with PyTorch {newer}", self.said.getvalue())


class Lacking(Extension):
    def assert_lacks(self, text):
        with self.assertRaises(ImportError) as raised:
            builder.build()
        self.assertIn("the backend for PyTorch 2.15.0+cpu has yet to be built, once, and ", str(raised.exception))
        self.assertIn(text, str(raised.exception))
        self.assertEqual(self.compiled(), 0)

    def test_a_compiler(self):
        with mock.patch.dict(os.environ, CXX="no-such-compiler"):
            self.assert_lacks("there is no C++ compiler: install g++")
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            os.environ.pop("CXX")
            self.assert_lacks("there is no C++ compiler: install g++")

    def test_headers_and_setuptools(self):
        with mock.patch.object(builder.sysconfig, "get_path", lambda *_: "/nowhere"):
            self.assert_lacks("python3-dev")
        with mock.patch.object(builder.importlib.util, "find_spec", lambda _: None):
            self.assert_lacks("pip install setuptools")
        with mock.patch.object(fake, "__file__", "/nowhere/torch/__init__.py"):
            self.assert_lacks("libtorch-dev")

    def test_sources(self):
        with mock.patch.object(extension, "sources", lambda: None):
            self.assert_lacks("its sources are missing")

    def test_a_cache_of_ones_own(self):
        cache = self.places / "cache"
        cache.mkdir()
        cache.chmod(0o777)
        with self.assertRaisesRegex(ImportError, "other users can write to it.*GRADCUBE_CACHE"):
            builder.build()
        cache.rmdir()
        cache.touch()
        with self.assertRaisesRegex(ImportError, "GRADCUBE_CACHE"):
            builder.build()


class Registering(unittest.TestCase):
    """With what PyTorch has in its versions."""

    def registered(self, register_backend, **more):
        distributed = types.ModuleType("torch.distributed")
        distributed.is_available = lambda: True
        distributed.Backend = types.SimpleNamespace(register_backend=register_backend, **more)
        with (
            mock.patch.dict(sys.modules, {"torch.distributed": distributed}),
            mock.patch.object(fake, "distributed", distributed, create=True),
        ):
            _gradcube_for_torch.register()
            _gradcube_for_torch.autoload()

    def test_devices_are_named_where_pytorch_asks_for_them(self):
        calls = []

        def new(name, func, extended_api=False, devices=None):
            calls.append((name, extended_api, devices))

        self.registered(lambda name, func, extended_api=False: calls.append((name, extended_api)))
        self.registered(new)
        self.registered(new, default_device_backend_map={"cpu": "gloo", "cuda": "nccl", "xpu": "xccl"})
        self.assertEqual(calls[0], ("gradcube", True))
        others = [call for call in calls if len(call) == 3]
        self.assertEqual(others[0], ("gradcube", True, ["cpu", "cuda"]))
        self.assertEqual(others[-1], ("gradcube", True, ["cpu", "cuda", "xpu"]))

    def test_a_second_time_nothing_happens(self):
        self.registered(lambda *_, **__: self.fail("registered"), GRADCUBE="gradcube")

    def test_the_import_of_pytorch_fails_by_nothing_of_ours(self):
        with mock.patch.dict(sys.modules, {"torch.distributed": None}):
            _gradcube_for_torch.autoload()

    def test_nothing_of_the_package_is_loaded_before_a_group_is_made(self):
        program = "import sys, _gradcube_for_torch; sys.exit('gradcube' in sys.modules or 'numpy' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], timeout=60).returncode, 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["build"]:
        with contextlib.ExitStack() as patches:
            for patch in host(pathlib.Path(os.environ["FAKE_PLACES"])):
                patches.enter_context(patch)
            print(builder.build())
    else:
        unittest.main()
