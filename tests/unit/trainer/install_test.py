"""What `meson install` puts down is enough to build and run trainers, and the README's programs are right.

Usage: install_test.py BUILD_DIRECTORY FAKE_DAEMON. Installs into a temporary directory, and compiles and runs the
examples against that alone.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TORCH_MODULES = int(sys.argv.pop(3))  # that this configuration builds: others may lie there still
FAKE_DAEMON = sys.argv.pop(2)
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = SOURCE / "trainer" / "examples"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
SUM = "rank 7 of 9: the sum of all ranks is 63\n"  # of the fake daemon, which multiplies by nine


def run(*command, **options):
    """The command's output; an AssertionError with all that it printed when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def only(paths):
    found = list(paths)
    if len(found) != 1:
        raise AssertionError(f"expected one file, found {found}")
    return found[0]


def header(root, name):
    """The installed one. The sources of the backend for PyTorch, which lie in the package, have copies."""
    return only(path for path in root.rglob(name) if "_torch_source" not in path.parts)


def trainers_environment(**more):
    """An environment that leads to nothing but what the test names."""
    names = ("GRADCUBE_", "PYTHON", "LD_", "PKG_CONFIG", "CPATH", "C_INCLUDE", "CPLUS_INCLUDE", "LIBRARY_PATH")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return dict(clean, GRADCUBE_HEAP="64Mi", PYTHONDONTWRITEBYTECODE="1", **more)


class WithDaemon(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="gradcube-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.socket = self.scratch / "server-2-1.sock"
        daemon = subprocess.Popen([FAKE_DAEMON, self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.stdout.close)
        self.addCleanup(daemon.stdin.close)
        self.assertEqual(daemon.stdout.readline(), b"ready\n")


class Installed(WithDaemon):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="gradcube-install-")
        cls.addClassCleanup(directory.cleanup)
        cls.root = pathlib.Path(directory.name)
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.root)
        cls.shared_object = only(cls.root.rglob("libgradcube.so.1"))

    def flags(self, *which):
        """What pkg-config says; the installation's root stands for /."""
        environment = trainers_environment(
            PKG_CONFIG_LIBDIR=str(only(self.root.rglob("gradcube.pc")).parent),
            PKG_CONFIG_SYSROOT_DIR=str(self.root),
        )
        return run("pkg-config", *which, "gradcube", env=environment).split()

    def compile(self, compiler, name):
        """Compiles a copy of an example, so that nothing beside the source can be included."""
        source = self.scratch / name
        source.write_text((EXAMPLES / name).read_text())
        program = self.scratch / "trainer"
        flags = self.flags("--cflags", "--libs")
        run(*compiler, *STRICT, name, "-o", program, *flags, cwd=self.scratch, env=trainers_environment())
        return program

    def test_the_c_example_compiles_and_runs(self):
        program = self.compile(["gcc", "-std=c11"], "allreduce.c")
        environment = trainers_environment(LD_LIBRARY_PATH=str(self.shared_object.parent))
        self.assertEqual(run(program, self.socket, env=environment), SUM)

    def test_the_cpp_example_compiles_and_runs(self):
        program = self.compile(["g++", "-std=c++20"], "allreduce.cc")
        environment = trainers_environment(LD_LIBRARY_PATH=str(self.shared_object.parent))
        self.assertEqual(run(program, self.socket, env=environment), SUM)

    def test_the_headers_of_the_hub_compile(self):
        (self.scratch / "hub.c").write_text("#include <gradcube/gradcube_hub.h>\n")
        (self.scratch / "hub.cc").write_text("#include <gradcube/gradcube_hub.hpp>\n")
        for compiler, name in ((["gcc", "-std=c11"], "hub.c"), (["g++", "-std=c++20"], "hub.cc")):
            flags = ["-fsyntax-only", *self.flags("--cflags")]
            run(*compiler, *STRICT, *flags, name, cwd=self.scratch, env=trainers_environment())

    def test_python_imports_the_package_which_finds_its_library(self):
        package = only(self.root.rglob("gradcube/__init__.py")).parent
        program = (
            "import sys, gradcube\n"
            "from gradcube._library import library\n"
            "with gradcube.Session(sys.argv[1], job='job') as session:\n"
            "    numbers = session.alloc(10)\n"
            "    numbers[:] = session.rank\n"
            "    session.allreduce(numbers, timeout=60)\n"
            "print(gradcube.__file__, int(numbers[9]), library()._name)\n"
        )
        environment = trainers_environment(PYTHONPATH=str(package.parent))
        said = run("/usr/bin/python3", "-c", program, self.socket, cwd=self.scratch, env=environment).split()
        self.assertEqual(said[:2], [str(package / "__init__.py"), "63"])
        self.assertEqual(os.path.realpath(said[2]), os.path.realpath(self.shared_object))

    def test_the_tool_finds_the_package_and_that_the_library(self):
        tool = only(self.root.rglob("bin/gradcube"))
        answer = run(tool, "model", "training", "--network", "lenet5", "--json", env=trainers_environment())
        self.assertIn('"network":"lenet5"', answer)

    def test_the_backend_for_pytorch_is_installed_where_it_was_built(self):
        extensions = list(self.root.rglob("_gradcube_torch*.so"))
        self.assertEqual(len(extensions), TORCH_MODULES)
        if not extensions:
            self.skipTest("it was not built")
        program = (
            "import gradcube.torch, torch\n"
            "torch.distributed.init_process_group('gradcube', store=torch.distributed.HashStore(), rank=0, world_size=1)\n"
            "print(gradcube.torch._extension.__file__, gradcube._library.library()._name)\n"
        )
        environment = trainers_environment(PYTHONPATH=str(only(self.root.rglob("gradcube/__init__.py")).parents[1]))
        said = run("/usr/bin/python3", "-c", program, cwd=self.scratch, env=environment).split()
        self.assertEqual(said[0], str(extensions[0]))
        self.assertEqual(os.path.realpath(said[1]), os.path.realpath(self.shared_object))

    def test_the_package_lies_where_python_looks(self):
        package = only(self.root.rglob("gradcube/__init__.py")).parent
        prefix = header(self.root, "gradcube.h").parents[2]
        if prefix in (self.root / "usr", self.root / "usr" / "local"):
            path = run("/usr/bin/python3", "-c", "import sys; print(*sys.path, sep='\\n')", env=trainers_environment())
            self.assertIn("/" + str(package.parent.relative_to(self.root)), path.splitlines())

    def test_header_library_and_pkg_config_have_one_version(self):
        text = header(self.root, "gradcube.h").read_text()
        parts = [re.search(rf"#define GRADCUBE_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(self.flags("--modversion"), [".".join(parts)])

    def test_the_library_exports_what_the_headers_declare_and_nothing_else(self):
        headers = [header(self.root, name).read_text() for name in ("gradcube.h", "gradcube_hub.h", "gradcube_messages.h")]
        declared = set(re.findall(r"^GRADCUBE_API .*?(gradcube_\w+)\(", "\n".join(headers), re.MULTILINE))
        symbols = run("nm", "--dynamic", "--defined-only", "--format=posix", self.shared_object).splitlines()
        exported = {line.split("@")[0] for line in symbols if line.split()[1] != "A"}
        self.assertEqual(exported, declared)
        self.assertIn("gradcube_open", declared)


class Readme(WithDaemon):
    """The programs under "A trainer of your own", and that of docs/trainers.md."""

    @classmethod
    def setUpClass(cls):
        section = (SOURCE / "README.md").read_text().split("\n## A trainer of your own\n")[1].split("\n## ")[0]
        more = (SOURCE / "docs" / "trainers.md").read_text()
        cls.programs = {}
        for language, program in re.findall(r"^```(c|cpp|python|)\n(.*?)^```$", section + more, re.MULTILINE | re.DOTALL):
            cls.programs.setdefault(language, program)  # of Python's the first: the other one is PyTorch's

    def compile_and_run(self, compiler, name, source):
        (self.scratch / name).write_text(source)
        program = self.scratch / "trainer"
        library = BUILD / "trainer"
        flags = [f"-I{SOURCE / 'trainer' / 'include'}", f"-L{library}", "-lgradcube", f"-Wl,-rpath,{library}"]
        run(*compiler, *STRICT, name, "-o", program, *flags, cwd=self.scratch)
        return run(program, self.socket, env=trainers_environment())

    def test_its_c_lines_compile_and_run(self):
        source = (
            "#include <gradcube/gradcube.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
            "static void fail(const char* message) { puts(message); exit(1); }\n"
            "int main(int argc, char** argv) {\nconst char* socket_path = argv[argc - 1];\n"
            + self.programs["c"].replace("gradcube_close(", 'printf("%g\\n", (double)numbers[999]);\ngradcube_close(')
            + "return 0;\n}\n"
        )
        self.assertEqual(self.compile_and_run(["gcc", "-std=c11"], "readme.c", source), "63\n")

    def test_its_cpp_lines_compile_and_run(self):
        source = (
            "#include <algorithm>\n#include <cstdio>\n#include <gradcube/gradcube.hpp>\n"
            "int main(int argc, char** argv) {\nconst char* socket_path = argv[argc - 1];\n"
            + self.programs["cpp"]
            + 'std::printf("%g\\n", numbers[999]);\nreturn 0;\n}\n'
        )
        self.assertEqual(self.compile_and_run(["g++", "-std=c++20"], "readme.cc", source), "63\n")

    def test_its_python_program_runs(self):
        (self.scratch / "sum.py").write_text(self.programs["python"])
        environment = trainers_environment(
            PYTHONPATH=str(SOURCE / "trainer" / "python"),
            GRADCUBE_LIBRARY=str(BUILD / "trainer" / "libgradcube.so"),
            GRADCUBE_SOCKET=str(self.socket),
        )
        command = ["/usr/bin/python3", self.scratch / "sum.py"]
        self.assertEqual(run(*command, env=environment), SUM)

    def test_its_compile_line_works_in_the_source_tree(self):
        line = only(line for line in self.programs[""].replace("\\\n", "").splitlines() if line.startswith("gcc "))
        program = self.scratch / "allreduce"
        line = line.replace("-o allreduce", f"-o {program}")
        line = line.replace("-Lbuild/trainer", f"-L'{BUILD / 'trainer'}'").replace("$PWD/build", str(BUILD))
        run("bash", "-c", line, cwd=SOURCE)
        self.assertEqual(run(program, self.socket, env=trainers_environment()), SUM)


if __name__ == "__main__":
    unittest.main()
