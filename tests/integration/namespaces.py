"""Hosts that are network namespaces of this machine, joined by one bridge, each with an sshd: as an ordinary user.

Root makes them. What runs in them is user 65534, who has a home, a shell and keys there, because each has an /etc/passwd
and an /etc/hosts of its own. Addresses are those of RFC 2544 (198.18.0.0/15), which nobody's network has. Without sshds
root runs all, and `launcher` is a script that leads to a host.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from fabrics import PATIENCE, TOOL
from harness import alive, wait_until

USER = 65534
PORT = 2222
LOWER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]


def skip_without_sshd():
    if shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin") is None or shutil.which("ssh") is None:
        print("skipped: openssh-server is not installed", file=sys.stderr)
        sys.exit(77)
    seen = subprocess.run([*LOWER, TOOL, "--version"], capture_output=True, timeout=PATIENCE)
    if seen.returncode != 0:
        print(f"skipped: user {USER} cannot run {TOOL}", file=sys.stderr)
        sys.exit(77)


class Hosts:
    """with Hosts(3) as hosts: ... ; node1, node2, ... at 198.18.0.1, 198.18.0.2, ..."""

    def __init__(self, count, sshd=True):
        self.names = [f"node{number}" for number in range(1, count + 1)]
        self.has_sshd = sshd
        self.started = []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gradcube-test-"))
            stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
            self.make_files()
            self.switch = self.namespace(stack)
            self.namespaces = {name: self.namespace(stack) for name in self.names}
            self.own = {os.readlink(f"/proc/{pid}/ns/net"): name for name, pid in self.namespaces.items()}
            stack.callback(self.end_all)
            self.join()
            if self.has_sshd:
                self.daemons = {name: self.start_sshd(stack, name) for name in self.names}
                for name in self.names:
                    wait_until(lambda: self.shell(name, f"ssh {name} true").returncode == 0, f"the sshd of {name}")
            else:
                self.launcher = f"{self.write_launcher()} {{host}}"
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def address(self, name):
        return f"198.18.0.{name.removeprefix('node')}"

    def make_files(self):
        home = self.directory / "home"
        keys = home / ".ssh"
        keys.mkdir(parents=True)
        for name in self.names:
            (self.directory / name).mkdir()
        self.write("passwd", f"root:x:0:0::/root:/bin/sh\ntester:x:{USER}:{USER}::{home}:/bin/sh\n")
        self.write("hosts", "127.0.0.1 localhost\n" + "".join(f"{self.address(name)} {name}\n" for name in self.names))
        for key in keys / "id", self.directory / "host_key":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=PATIENCE)
        shutil.copy(keys / "id.pub", keys / "authorized_keys")
        self.write(
            "home/.ssh/config",
            f"Host *\nPort {PORT}\nIdentityFile {keys}/id\nStrictHostKeyChecking no\n"
            "UserKnownHostsFile /dev/null\nLogLevel ERROR\n",
        )
        for path in [self.directory, *self.directory.rglob("*")]:
            os.chown(path, USER, USER)
        self.directory.chmod(0o755)

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        os.chown(path, USER, USER)
        return str(path)

    def namespace(self, stack):
        """The pid of a process that stays in namespaces of its own."""
        mounts = " && ".join(f"mount --bind {self.directory}/{name} /etc/{name}" for name in ("passwd", "hosts"))
        command = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c"]
        ready, tells = os.pipe()
        process = subprocess.Popen([*command, f"{mounts} && echo >&{tells} && exec sleep infinity"], pass_fds=[tells])
        stack.callback(process.wait, PATIENCE)
        stack.callback(process.kill)
        os.close(tells)
        with open(ready) as line:
            if line.readline() == "":
                raise AssertionError("there is no namespace")
        return process.pid

    def join(self):
        lines = ["link add name sw type bridge", "link set dev sw up"]
        for name in self.names:
            lines.append(f"link add name {name} type veth peer netns {self.namespaces[name]} name eth0")
            lines.append(f"link set dev {name} master sw up")
        self.ip(self.switch, lines)
        for name in self.names:
            up = [f"addr add {self.address(name)}/24 dev eth0", "link set dev eth0 up", "link set dev lo up"]
            # ssh has to pass where a test lets the switch cut long packets.
            up.append(f"route replace 198.18.0.0/24 dev eth0 src {self.address(name)} advmss 1200")
            self.ip(self.namespaces[name], up)

    def ip(self, namespace, lines):
        command = ["nsenter", "-t", str(namespace), "-n", "ip", "-batch", "-"]
        subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, timeout=PATIENCE)

    def start_sshd(self, stack, name):
        configuration = self.write(
            f"{name}/sshd_config",
            f"Port {PORT}\nListenAddress {self.address(name)}\nHostKey {self.directory}/host_key\nPidFile none\n"
            f"UsePAM no\nStrictModes no\nPasswordAuthentication no\nMaxStartups 100\nPrintMotd no\nPrintLastLog no\n"
            f"SetEnv XDG_RUNTIME_DIR={self.directory}/{name}\n",
        )
        log = stack.enter_context(open(self.directory / f"{name}.log", "w"))
        process = self.popen(name, "/usr/sbin/sshd", "-D", "-e", "-f", configuration, stdout=log, stderr=log)
        stack.callback(process.wait, PATIENCE)
        stack.callback(process.kill)
        stack.callback(process.send_signal, signal.SIGCONT)
        return process

    def write_launcher(self):
        """It waits at a host as long as there is a file "closed" in the host's folder."""
        cases = "".join(f"{name}) pid={pid} ;;\n" for name, pid in self.namespaces.items())
        path = self.write(
            "reach",
            f"#!/bin/sh\nhost=$1\nshift\ncase $host in\n{cases}esac\n"
            f"while test -e {self.directory}/$host/closed; do sleep 0.05; done\n"
            f"exec nsenter -t $pid -n -m env XDG_RUNTIME_DIR={self.directory}/$host \"$@\"\n",
        )
        os.chmod(path, 0o755)
        for name in self.names:
            os.chown(self.directory / name, 0, 0)
        return path

    def start_at(self, name, *arguments):
        """The tool, typed by root on a host without sshd; with no name on a machine that is none of them."""
        kept = {key: value for key, value in os.environ.items() if key != "GRADCUBE_RUN"}
        if name is None:
            kept["XDG_RUNTIME_DIR"] = str(self.directory)
        reach = [] if name is None else [self.directory / "reach", name]
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([*reach, TOOL, *arguments], env=kept, **options)
        self.started.append(process)
        return process

    def tool_at(self, name, *arguments):
        process = self.start_at(name, *arguments)
        output, errors = process.communicate(timeout=2 * PATIENCE)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def stop_sshd(self, name):
        """From now on what connects to it hangs."""
        self.daemons[name].send_signal(signal.SIGSTOP)

    def continue_sshd(self, name):
        self.daemons[name].send_signal(signal.SIGCONT)

    def popen(self, name, *command, variables=None, **options):
        """As that host's user, in its login shell's environment."""
        kept = {key: os.environ[key] for key in os.environ if key.startswith(("GRADCUBE_LIBRARY", "PYTHON", "LD_"))}
        environment = {**kept, "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(self.directory / name)}
        environment.update(variables or {})
        enter = ["nsenter", "-t", str(self.namespaces[name]), "-n", "-m", f"--wd={self.directory}/home"]
        options = {"stdin": subprocess.DEVNULL, "env": environment, **options}
        process = subprocess.Popen([*enter, *LOWER, *command], **options)
        self.started.append(process)
        return process

    def run(self, name, *command, timeout=2 * PATIENCE, **options):
        process = self.popen(name, *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        output, errors = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def shell(self, name, line):
        return self.run(name, "sh", "-c", line)

    def tool(self, name, *arguments, **options):
        return self.run(name, TOOL, *arguments, **options)

    def start_tool(self, name, *arguments, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        return self.popen(name, TOOL, *arguments, **options)

    def processes(self, of, on=None):
        """On this host, or on any of them, with this word in their command lines."""
        return self.matching(lambda line: of.encode() in line, on)

    def running(self, *words):
        """Those with exactly these words."""
        return self.matching(lambda line: line == "".join(f"{word}\0" for word in words).encode())

    def matching(self, is_wanted, on=None):
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                host = self.own.get(os.readlink(process / "ns/net"))
                if host is None or on not in (None, host) or not alive(process.name):
                    continue
                if is_wanted((process / "cmdline").read_bytes()):
                    found.append(int(process.name))
        return found

    def end_all(self):
        for process in self.started:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait(PATIENCE)
        for pid in self.processes(""):
            if pid not in self.namespaces.values():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
