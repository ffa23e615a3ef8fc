"""Processes that the benchmarks start: each with a deadline, none outlives its caller."""

import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile


class Failure(Exception):
    """Something could not be measured; the text says what and why."""


def _stop(process):
    """Ends the process and its whole group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=5)
            break
        except subprocess.TimeoutExpired:
            continue


def _failed(command, code, errors):
    lines = errors.strip().splitlines()
    reason = lines[-1] if lines else "no message"
    return Failure(f"{pathlib.Path(command[0]).name} ended with code {code}: {reason}")


def run_all(commands, seconds, environment=None):
    """Runs the commands side by side; returns the first one's standard output."""
    started = []
    # Files, not pipes: a command that talks much never waits for a reader.
    with contextlib.ExitStack() as stack:
        try:
            for command in commands:
                output = stack.enter_context(tempfile.TemporaryFile("w+"))
                errors = stack.enter_context(tempfile.TemporaryFile("w+"))
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    env=environment,
                    start_new_session=True,
                )
                started.append((command, process, output, errors))
            for command, process, _, errors in started:
                try:
                    code = process.wait(timeout=seconds)
                except subprocess.TimeoutExpired:
                    raise Failure(f"{command[0]} took longer than {seconds} s") from None
                if code != 0:
                    errors.seek(0)
                    raise _failed(command, code, errors.read())
            output = started[0][2]
            output.seek(0)
            return output.read()
        except FileNotFoundError as error:
            raise Failure(f"{error.filename} is not there") from None
        finally:
            for _, process, _, _ in started:
                if process.poll() is None:
                    _stop(process)


def run_json(command, seconds, environment=None):
    """Runs a command that prints one JSON object; returns the object."""
    text = run_all([command], seconds, environment)
    try:
        return json.loads(text)
    except ValueError:
        raise Failure(f"{' '.join(command[:2])} printed no JSON") from None


def cpu_seconds(pid):
    """Of all threads of the process, in user and system mode."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_background(command, errors):
    """A process that leaves when its standard input is closed."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise Failure(f"{error.filename} is not there") from None


def wait_for_line(process, line, seconds, errors):
    """Until the process has printed this line, its first."""
    readable, _, _ = select.select([process.stdout], [], [], seconds)
    if readable and process.stdout.readline().strip() == line:
        return
    _stop(process)
    errors.seek(0)
    raise _failed(process.args, process.returncode, errors.read())


class Cluster:
    """An embedded cluster in a run directory of its own: up on entry, down on exit."""

    def __init__(self, build, *options, topology="bcube:3,2"):
        self._gradcube = str(pathlib.Path(build) / "cli/gradcube")
        self._tenants = pathlib.Path(build) / "tests/bench/tenants"
        self._hub = pathlib.Path(build) / "tests/bench/hub"
        self._options = ["--topology", topology, *options]

    def __enter__(self):
        # Directly in /tmp: a socket's path holds only 107 characters.
        self._directory = tempfile.mkdtemp(prefix="gradcube-bench.", dir="/tmp")
        self._environment = {**os.environ, "GRADCUBE_RUN": self._directory}
        try:
            self._run(60, "up", *self._options)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_):
        self._end()

    def _run(self, seconds, *arguments):
        return run_all([[self._gradcube, *arguments]], seconds, self._environment)

    def _end(self):
        with contextlib.suppress(Failure):
            self._run(30, "down")
        shutil.rmtree(self._directory, ignore_errors=True)

    def _json(self, seconds, *arguments):
        return run_json([self._gradcube, *arguments, "--json"], seconds, self._environment)

    def allreduce(self, size, iterations, *options, algorithm=None):
        """The result of `gradcube perf allreduce` for one size; by the cluster's default without an algorithm."""
        flags = ["--sizes", size, "--iterations", str(iterations), *options]
        if algorithm is not None:
            flags += ["--algorithm", algorithm]
        result = self._json(300, "perf", "allreduce", *flags)["results"][0]
        if result["wrong"]:
            raise Failure(f"{result['wrong']} elements of {size} are wrong")
        return result

    def sendrecv(self, size, iterations, *options):
        """The same of a message from the first rank to the last."""
        command = [self._gradcube, "perf", "sendrecv", "--json", "--check"]
        command += ["--sizes", size, "--iterations", str(iterations), *options]
        result = run_json(command, 300, self._environment)["results"][0]
        if result["wrong"]:
            raise Failure(f"{result['wrong']} bytes of {size} are wrong")
        return result

    def trainers(self, command, environment, seconds):
        """The JSON object that these trainers print together, one process on each server (`gradcube run`)."""
        run = [self._gradcube, "run", "--no-prefix", "--", *command]
        return run_json(run, seconds, {**self._environment, **environment})

    def status(self):
        return self._json(30, "status")

    def fitted_auto(self):
        """The name of `auto` with the costs that `gradcube model fit` measures."""
        return self._json(300, "model", "fit")["algorithm"]

    def why(self, size, auto):
        """What `gradcube plan --why` says of an all-reduce."""
        return self._json(30, "plan", "--why", size, "--algorithm", auto)

    def impair(self, *options):
        self._run(30, "impair", *options)

    def _sockets(self):
        return [server["socket"] for server in self.status()["servers"]]

    def idle_jobs(self, count):
        """with ...: so many jobs are attached, each with a trainer on every server."""
        return self._background("idle", str(count))

    def busy_jobs(self, count, size):
        """with ...: so many jobs make all-reduces of `size` bytes without pause."""
        return self._background("busy", str(count), str(size))

    @contextlib.contextmanager
    def _background(self, *arguments):
        command = [str(self._tenants / "background_jobs"), *arguments, *self._sockets()]
        with tempfile.TemporaryFile("w+") as errors:
            process = start_background(command, errors)
            try:
                wait_for_line(process, "ready", 60, errors)
                yield
                process.stdin.close()
                if process.wait(timeout=60) != 0:
                    errors.seek(0)
                    raise _failed(command, process.returncode, errors.read())
            except subprocess.TimeoutExpired:
                raise Failure(f"{command[0]} did not end") from None
            finally:
                _stop(process)
                process.stdout.close()

    def jobs_at_once(self, count, size, rounds):
        """What tests/bench/tenants/jobs_at_once.cc prints."""
        command = [str(self._tenants / "jobs_at_once"), str(count), str(size), str(rounds)]
        return run_json(command + self._sockets(), 120)

    def hub_rounds(self, keys, count, how="push_pull", optimizer="sgd", chunk=0, algorithm="default", jobs=1):
        """What tests/bench/hub/hub_rounds.cc prints; of several jobs at once that of the first."""
        given = [how, optimizer, str(chunk), algorithm, str(count), ",".join(map(str, keys)), *self._sockets()]
        return json.loads(run_all([[str(self._hub / "hub_rounds"), f"hub-{n}", *given] for n in range(jobs)], 300))

    def perf_hub(self, keys, count, *options):
        """The result of `gradcube perf hub` for keys of so many elements: whole rounds, in which nothing is computed."""
        path = pathlib.Path(self._directory) / "keys.json"
        named = [{"name": f"key{n}", "elements": elements, "dtype": "float32"} for n, elements in enumerate(keys)]
        path.write_text(json.dumps({"keys": named}), encoding="utf-8")
        flags = ["--keys", str(path), "--iterations", str(count), *options]
        return self._json(300, "perf", "hub", *flags)["results"][0]
