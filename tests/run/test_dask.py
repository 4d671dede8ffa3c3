"""Trials on a dask scheduler, as a cluster has them: its own programs, killed at bad moments."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from measuretwice.backends.uml import find_kernel

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.kernel, pytest.mark.slow(30)]
# As the command line, but soon out of patience.
HASTY = """
import sys
from measuretwice.cli.main import main
from measuretwice.execute import cluster
cluster.PATIENCE_S, cluster.CONNECT_S = 3, 2
sys.argv[0] = "lab"
main()
"""


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


class Dask:
    """A scheduler and its workers, started elsewhere than in the checkout."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(self.file),
        )  # fmt: skip
        until(self.file.exists)
        self.url = json.loads(self.file.read_text())["address"].replace("tcp://", "dask://")

    def _start(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **more}
        environment.pop("PYTHONPATH", None)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dask", *words],
            cwd=self.home,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=open(self.home / "log", "ab"),  # noqa: SIM115
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def workers(self, count: int = 1, **more: str) -> list[subprocess.Popen[bytes]]:
        before = (self.home / "log").read_text().count("Registered to")
        started = [
            self._start(
                "worker", "--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny",
                "--no-dashboard", "--local-directory", str(self.home), **more,
            )
            for _ in range(count)
        ]  # fmt: skip
        until(lambda: (self.home / "log").read_text().count("Registered to") == before + count)
        return started

    def tasks(self) -> int:
        """How many tasks the scheduler knows of."""
        from distributed import Client

        def count(dask_scheduler: Any) -> int:
            return len(dask_scheduler.tasks)

        with Client(self.url.replace("dask", "tcp"), set_as_default=False) as client:
            return int(client.run_on_scheduler(count))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Dask]:
    home = tmp_path / "cluster"
    home.mkdir()
    cluster = Dask(home)
    try:
        yield cluster
    finally:
        cluster.end()


def start(*words: str, hasty: bool = False, code: str = "") -> subprocess.Popen[str]:
    program = ["-c", code + HASTY] if hasty else ["-m", "measuretwice"]
    return subprocess.Popen(
        [sys.executable, "-P", *program, "run", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    return [{**result, "run_dir": None} for result in json.loads(said)]


def only_line(process: subprocess.Popen[str], code: int) -> str:
    """What a run with --json complained of: one line, and nothing else."""
    said, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert said == ""
    lines = errors.strip().splitlines()
    assert len(lines) == 1, errors
    return lines[0]


def files(out: Path) -> dict[str, bytes]:
    """All that a folder of runs holds, but who, where and when."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name != "provenance.json"
    }


def children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(folder.name))
    return found


def kernels(worker: subprocess.Popen[bytes]) -> list[int]:
    """The virtual kernels that a worker's program has started."""
    return [kernel for program in children(worker.pid) for kernel in children(program)]


def cpus(worker: subprocess.Popen[bytes]) -> set[int]:
    """The CPUs that a worker's virtual kernel may use; none while there is no such kernel."""
    for kernel in kernels(worker):
        try:
            if b"MT_FOLDER" in (Path("/proc") / str(kernel) / "cmdline").read_bytes():
                return os.sched_getaffinity(kernel)
        except OSError:
            continue
    return set()


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def has_measured(kernel: int) -> bool:
    """Is it well under way? It has used half a second of its CPU."""
    try:
        fields = (Path("/proc") / str(kernel) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[11]) + int(fields[12]) >= 0.5 * os.sysconf("SC_CLK_TCK")


def busy(worker: subprocess.Popen[bytes]) -> list[int]:
    return [kernel for kernel in kernels(worker) if has_measured(kernel)]


def test_same_bytes_with_a_worker_killed_midway(
    all_cpus: set[int], dask: Dask, tmp_path: Path
) -> None:
    workers = dask.workers(3)
    doomed = workers[0]
    choice = ("mathis", "--trials", "2,8,11,12", "--duration", "20", "--json")
    run = start(*choice, "--jobs", dask.url, "--out", str(tmp_path / "cluster-runs"))
    allowed: list[set[int]] = []

    def all_have_begun() -> bool:
        allowed[:] = [cpus(worker) for worker in workers]
        return all(allowed)

    until(all_have_begun)
    assert [len(each) for each in allowed] == [1, 1, 1]
    # Where there are fewer CPUs than workers, some share one; none stays idle for that.
    assert len(set.union(*allowed)) == min(3, len(all_cpus))
    until(lambda: busy(doomed))
    kernel, program = busy(doomed)[0], children(doomed.pid)[0]
    doomed.kill()
    until(lambda: not is_alive(kernel) and not is_alive(program), 5)
    assert run.poll() is None
    on_cluster = results(run)
    local = results(start(*choice, "--out", str(tmp_path / "local")))
    assert len(local) == 4
    assert on_cluster == local
    assert files(tmp_path / "cluster-runs") == files(tmp_path / "local")
    assert not list((tmp_path / "cluster-runs").rglob(".*"))


@pytest.mark.nightly
def test_a_worker_told_to_end_hands_its_trial_over(dask: Dask, tmp_path: Path) -> None:
    (first,) = dask.workers()
    choice = ("mathis", "--trials", "8,11", "--duration", "20", "--json")
    run = start(*choice, "--jobs", dask.url, "--out", str(tmp_path / "runs"))
    until(lambda: busy(first))
    dask.workers()
    os.killpg(first.pid, signal.SIGINT)
    assert len(results(run)) == 2
    assert not list((tmp_path / "runs").rglob(".*"))


def test_ctrl_c_ends_what_runs_and_cancels_what_waits(dask: Dask, tmp_path: Path) -> None:
    (worker,) = dask.workers()
    out = ("--jobs", dask.url, "--out", str(tmp_path / "runs"), "--json")
    run = start("mathis", "--trials", "2,6,8,11,12", *out)
    until(lambda: busy(worker))
    (kernel,) = kernels(worker)
    run.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert only_line(run, 130).startswith("lab: stopped; finished trials are kept")
    assert time.monotonic() - began < 5
    until(lambda: not is_alive(kernel), 5)
    until(lambda: dask.tasks() == 0, 10)
    # The cluster is free for the next, and nothing stands in its way.
    assert len(results(start("calibrate", "--trial", "1", "--duration", "2", *out))) == 1
    again = start("mathis", "--trial", "11", "--duration", "2", *out)
    assert len(results(again)) == 1
    assert not list((tmp_path / "runs").rglob(".*"))


@pytest.mark.nightly
def test_a_killed_run_leaves_no_queue_and_keeps_what_ran(dask: Dask, tmp_path: Path) -> None:
    (worker,) = dask.workers()
    runs = tmp_path / "runs"
    choice = ("mathis", "--trials", "8,11", "--duration", "20", "--json", "--out", str(runs))
    run = start(*choice, "--jobs", dask.url)
    until(lambda: busy(worker))
    run.kill()
    run.communicate()
    until(lambda: dask.tasks() == 0)
    until(lambda: not kernels(worker))
    until(lambda: len(list(runs.glob("mathis/*/DONE"))) == 1)
    assert len(results(start(*choice, "--jobs", dask.url))) == 2
    assert not list(runs.rglob(".*"))


@pytest.mark.nightly
def test_all_workers_or_the_scheduler_gone(dask: Dask, tmp_path: Path) -> None:
    out = ("--jobs", dask.url, "--out", str(tmp_path / "runs"), "--json")
    said = only_line(start("calibrate", "--trial", "1", *out), 2)
    assert "no worker is there; start one: .venv/bin/dask worker tcp://127.0.0.1:" in said

    choice = ("mathis", "--trials", "11,12", *out)
    (worker,) = dask.workers()
    run = start(*choice, hasty=True)
    until(lambda: busy(worker))
    worker.kill()
    assert "all workers have gone; finished trials are kept" in only_line(run, 1)

    (worker,) = dask.workers()
    run = start(*choice)
    until(lambda: busy(worker))
    kernel = kernels(worker)[0]
    dask.scheduler.kill()
    assert "the scheduler has gone; finished trials are kept" in only_line(run, 1)
    until(lambda: not is_alive(kernel), 10)


def test_a_frozen_scheduler_is_noticed(dask: Dask, tmp_path: Path) -> None:
    (worker,) = dask.workers()
    run = start(
        "mathis", "--trials", "11", "--jobs", dask.url, "--out", str(tmp_path / "runs"), "--json",
        hasty=True,
    )  # fmt: skip
    until(lambda: busy(worker))
    dask.scheduler.send_signal(signal.SIGSTOP)
    assert "the scheduler does not answer any more" in only_line(run, 1)


def test_a_worker_with_another_kernel_ends_the_run(dask: Dask, tmp_path: Path) -> None:
    """It would take every trial in turn, and measure something else than the plans say."""
    ours = find_kernel()
    assert ours is not None
    other = tmp_path / "cache/kernel" / ours.folder.name
    other.mkdir(parents=True)
    for name in ("linux", "config", "root"):
        (other / name).symlink_to(ours.folder / name)
    facts = (ours.folder / "kernel.json").read_text()
    (other / "kernel.json").write_text(facts.replace(ours.facts.version, "7.1.0-other"))
    dask.workers(MEASURETWICE_CACHE=str(tmp_path / "cache"))
    out = tmp_path / "runs"
    run = start("mathis", "--trials", "1-20", "--jobs", dask.url, "--out", str(out), "--json")
    said = only_line(run, 1)
    assert f"{socket.gethostname()}: the virtual kernel is linux 7.1.0-other " in said
    assert not [path for path in out.rglob("*") if path.is_file()]


@pytest.mark.parametrize("what", ["nothing", "a web server", "silence", "no name"])
def test_wrong_address_is_one_line(what: str, tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    url, expected = f"dask://127.0.0.1:{port}", "is no dask scheduler"
    server = None
    if what == "silence":
        listener.listen()
    elif what == "no name":
        url, expected = "dask://no-such-host.invalid:8786", "can't be reached"
    else:
        listener.close()
        expected = "can't be reached (Connection refused)"
    if what == "a web server":
        expected = "is no dask scheduler"
        server = subprocess.Popen(
            [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

        def is_up() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        until(is_up)
    try:
        words = ("calibrate", "--trial", "1", "--jobs", url, "--out", str(tmp_path), "--json")
        said = only_line(start(*words, hasty=True), 2)
    finally:
        listener.close()
        if server:
            server.kill()
            server.wait()
    assert f"--jobs {url}" in said
    assert expected in said


def test_without_dask_it_says_how_to_install_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['distributed'] = None\n"
    words = ("calibrate", "--trial", "1", "--jobs", "dask://127.0.0.1:8786", "--json")
    said = only_line(start(*words, "--out", str(tmp_path), hasty=True, code=code), 2)
    assert "pip install -r requirements-cluster.txt" in said
