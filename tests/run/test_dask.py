"""Trials on a dask scheduler, as a cluster has them: its own programs, killed at bad moments."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import until
from own_network import Network, own_network
from processes import command_lines, is_alive, processes_with, stat_of

from measuretwice.backends.virtual import find_kernel

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.kernel, pytest.mark.slow]
# As the command line, but soon out of patience.
HASTY = """
import sys
from measuretwice.cli.main import main
from measuretwice.execute import cluster
cluster.PATIENCE_S, cluster.CONNECT_S = 3, 2
sys.argv[0] = "lab"
main()
"""


NO_PAGES = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
CLOSED = ("--host", "127.0.0.1", *NO_PAGES)


class Dask:
    """A scheduler and its workers, started elsewhere than in the checkout."""

    def __init__(
        self, home: Path, *options: str, inside: Sequence[str] = (), **environment: str
    ) -> None:
        self.home, self.inside, self.environment = home, inside, environment
        self.file = home / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start(
            "scheduler", "--port", "0", "--scheduler-file", str(self.file), *(options or CLOSED)
        )
        try:
            until(self.written)
        except AssertionError:
            self.end()
            raise
        self.address = json.loads(self.file.read_text())["address"]
        self.url = self.address.replace("tcp://", "dask://").replace("tls://", "dask+tls://")

    def written(self) -> bool:
        """Whether the scheduler's file is whole: Dask creates it before it writes into it."""
        try:
            return "address" in json.loads(self.file.read_text())
        except (OSError, ValueError):
            return False

    def start(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self.environment, **more}
        environment.pop("PYTHONPATH", None)
        process = subprocess.Popen(
            [*self.inside, sys.executable, "-P", "-m", "dask", *words],
            cwd=self.home,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=open(self.home / "log", "ab"),  # noqa: SIM115
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def workers(
        self, count: int = 1, options: Sequence[str] = (*CLOSED, "--no-nanny"), **more: str
    ) -> list[subprocess.Popen[bytes]]:
        before = (self.home / "log").read_text().count("Registered to")
        started = [
            self.start(
                "worker", "--scheduler-file", str(self.file), "--nthreads", "1",
                "--local-directory", str(self.home), *options, **more,
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

        with Client(self.address, set_as_default=False) as client:
            return int(client.run_on_scheduler(count))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Dask]]:
    """Begins a cluster, which ends with the test."""
    begun: list[Dask] = []

    def begin_one(*options: str, inside: Sequence[str] = (), **environment: str) -> Dask:
        home = tmp_path / f"cluster-{len(begun)}"
        home.mkdir()
        begun.append(Dask(home, *options, inside=inside, **environment))
        return begun[-1]

    yield begin_one
    for cluster in begun:
        cluster.end()


@pytest.fixture
def dask(begin: Callable[..., Dask]) -> Dask:
    return begin()


@pytest.fixture
def network() -> Iterator[Network]:
    """A network of its own; without, the machine's, where nothing may be open."""
    with own_network() as network:
        yield network or Network([])


@pytest.fixture
def open_network(network: Network) -> Network:
    """Where ports may be open: not on the machine of whoever runs the tests, but on one of CI's."""
    if not (network.inside or os.environ.get("CI")):
        pytest.skip("no network of its own: a port that is open to all would be so on this one")
    return network


def start(
    *words: str, hasty: bool = False, code: str = "", inside: Sequence[str] = (), **more: str
) -> subprocess.Popen[str]:
    program = ["-c", code + HASTY] if hasty else ["-m", "measuretwice"]
    return subprocess.Popen(
        [*inside, sys.executable, "-P", *program, "run", *words],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "MEASURETWICE_OPEN_CLUSTER": "",
            **more,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    return [{**result, "run_dir": None} for result in json.loads(output)]


def only_line(process: subprocess.Popen[str], code: int) -> str:
    """What a run with --json complained of: one line, and nothing else."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert output == ""
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
    return processes_with(1, pid)


def kernels(worker: subprocess.Popen[bytes]) -> list[int]:
    """The virtual kernels that a worker's program has started."""
    return [kernel for program in children(worker.pid) for kernel in children(program)]


def cpus(worker: subprocess.Popen[bytes]) -> set[int]:
    """The CPUs that a worker's virtual kernel may use; none while there is no such kernel."""
    for kernel in kernels(worker):
        with contextlib.suppress(OSError):
            if "MT_FOLDER" in command_lines().get(kernel, ""):
                return os.sched_getaffinity(kernel)
    return set()


def has_measured(kernel: int) -> bool:
    """Is it well under way? It has used half a second of its CPU."""
    return sum(map(int, stat_of(kernel)[11:13])) >= 0.5 * os.sysconf("SC_CLK_TCK")


def busy(worker: subprocess.Popen[bytes]) -> list[int]:
    return [kernel for kernel in kernels(worker) if has_measured(kernel)]


@pytest.mark.nightly(
    "a trial on a cluster: test_every_loopback_address_will_do; the same bytes by any process: test_run.py"
)
def test_same_bytes_with_a_worker_killed_midway(
    all_cpus: set[int], dask: Dask, tmp_path: Path
) -> None:
    workers = dask.workers(3)
    doomed = workers[0]
    choice = ("mathis", "--trials", "2,8,11,12", "--duration", "240", "--json")
    run = start(*choice, "--jobs", dask.url, "--out", str(tmp_path / "cluster-runs"))
    allowed: list[set[int]] = []

    def all_have_begun() -> bool:
        allowed[:] = [cpus(worker) for worker in workers]
        return all(allowed)

    until(all_have_begun)
    assert list(map(len, allowed)) == [1, 1, 1]
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


@pytest.mark.nightly(
    "dask's own doing; trials handed over to another of our processes: test_two_at_once.py"
)
def test_a_worker_told_to_end_hands_its_trial_over(dask: Dask, tmp_path: Path) -> None:
    (first,) = dask.workers()
    choice = ("mathis", "--trials", "8,11", "--duration", "240", "--json")
    run = start(*choice, "--jobs", dask.url, "--out", str(tmp_path / "runs"))
    until(lambda: busy(first))
    dask.workers()
    os.killpg(first.pid, signal.SIGINT)
    assert len(results(run)) == 2
    assert not list((tmp_path / "runs").rglob(".*"))


@pytest.mark.nightly("Ctrl-C of the same command: test_run.py")
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


@pytest.mark.nightly("a run that was killed goes on: test_run.py")
def test_a_killed_run_leaves_no_queue_and_keeps_what_ran(dask: Dask, tmp_path: Path) -> None:
    (worker,) = dask.workers()
    runs = tmp_path / "runs"
    choice = ("mathis", "--trials", "8,11", "--duration", "240", "--json", "--out", str(runs))
    run = start(*choice, "--jobs", dask.url)
    until(lambda: busy(worker))
    run.kill()
    run.communicate()
    until(lambda: dask.tasks() == 0)
    until(lambda: not kernels(worker))
    until(lambda: len(list(runs.glob("mathis/*/DONE"))) == 1)
    assert len(results(start(*choice, "--jobs", dask.url))) == 2
    assert not list(runs.rglob(".*"))


@pytest.mark.nightly("a scheduler that isn't there or keeps silent: test_wrong_address_is_one_line")
def test_all_workers_or_the_scheduler_gone(dask: Dask, tmp_path: Path) -> None:
    out = ("--jobs", dask.url, "--out", str(tmp_path / "runs"), "--json")
    line = only_line(start("calibrate", "--trial", "1", *out), 2)
    assert f"no worker is there; start one: .venv/bin/dask worker {dask.address} --host" in line

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


@pytest.mark.nightly("one that keeps silent from the beginning: test_wrong_address_is_one_line")
def test_a_frozen_scheduler_is_noticed(dask: Dask, tmp_path: Path) -> None:
    (worker,) = dask.workers()
    run = start(
        "mathis", "--trials", "11", "--jobs", dask.url, "--out", str(tmp_path / "runs"), "--json",
        hasty=True,
    )  # fmt: skip
    until(lambda: busy(worker))
    dask.scheduler.send_signal(signal.SIGSTOP)
    assert "the scheduler does not answer any more" in only_line(run, 1)


@pytest.mark.nightly("what a worker refuses: tests/unit/test_cluster.py")
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
    line = only_line(run, 1)
    assert f"{socket.gethostname()}: the virtual kernel is linux 7.1.0-other " in line
    assert not [path for path in out.rglob("*") if path.is_file()]


@pytest.mark.nightly("CI runs it: by day every loopback address will do")
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
        line = only_line(start(*words, hasty=True), 2)
    finally:
        listener.close()
        if server:
            server.kill()
            server.wait()
    assert f"--jobs {url}" in line
    assert expected in line


def test_without_dask_it_says_how_to_install_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['distributed'] = None\n"
    words = ("calibrate", "--trial", "1", "--jobs", "dask://127.0.0.1:8786", "--json")
    line = only_line(start(*words, "--out", str(tmp_path), hasty=True, code=code), 2)
    assert "MEASURETWICE_SETUP=cluster ./lab" in line


ANYBODY = ("--host", "0.0.0.0", *NO_PAGES)
PAGES_OPEN = ("--host", "127.0.0.1", "--no-dashboard")
TRIAL = ("calibrate", "--trial", "1", "--duration", "2", "--json")


@pytest.mark.parametrize(
    ("options", "listens", "harm"),
    [
        (PAGES_OPEN, "the scheduler's dashboard on HOST listens on 0.0.0.0:", "sees what runs there"),
        (ANYBODY, "the scheduler on HOST listens on 0.0.0.0:", "runs programs as you"),
    ],
)  # fmt: skip
def test_a_scheduler_that_anybody_may_reach_is_refused(
    options: Sequence[str], listens: str, harm: str,
    begin: Callable[..., Dask], open_network: Network, tmp_path: Path,
) -> None:  # fmt: skip
    dask = begin(*options, inside=open_network.inside)
    # By whatever address it listens, this one reaches it.
    url = f"dask://127.0.0.1:{dask.address.rpartition(':')[2]}"
    line = only_line(
        start(*TRIAL, "--jobs", url, "--out", str(tmp_path), inside=open_network.inside), 2
    )
    print(line)
    assert listens.replace("HOST", socket.gethostname()) in line
    assert f"whoever reaches such a port {harm}. Start the scheduler again with --" in line
    assert " ".join(NO_PAGES) in line


@pytest.mark.nightly(
    "of what listens where, what is refused: tests/unit/test_cluster.py; a scheduler's: the test before this one"
)
def test_a_worker_that_anybody_may_reach_is_refused(
    begin: Callable[..., Dask], open_network: Network, tmp_path: Path
) -> None:
    dask = begin(inside=open_network.inside)
    choice = (*TRIAL, "--jobs", dask.url, "--out", str(tmp_path / "runs"))
    cases = [
        (NO_PAGES, "worker", "0.0.0.0", "runs programs as you"),
        (PAGES_OPEN, "worker's dashboard", "0.0.0.0", "sees what runs there"),
        (("--host", "192.0.2.11", *NO_PAGES), "worker", "192.0.2.11", "runs programs as you"),
    ]
    for options, whose, where, harm in cases if open_network.inside else cases[:2]:
        (worker,) = dask.workers(options=(*options, "--no-nanny"))
        line = only_line(start(*choice, inside=open_network.inside), 2)
        print(line)
        assert f"{dask.url}: a {whose} on {socket.gethostname()} listens on {where}:" in line
        assert f": whoever reaches such a port {harm}. Start the workers again with --" in line
        assert " ".join(NO_PAGES) in line
        assert "MEASURETWICE_OPEN_CLUSTER=1" in line
        worker.kill()
        worker.wait()
    assert not [path for path in tmp_path.glob("runs/**/*") if path.is_file()]
    # As people start one who have not read the page; and who knows what they do may.
    dask.workers(options=())
    line = only_line(start(*choice, inside=open_network.inside), 2)
    print(line)
    assert " a worker on " in line
    assert " a worker's dashboard on " in line
    run = start(*choice, inside=open_network.inside, MEASURETWICE_OPEN_CLUSTER="1")
    assert len(results(run)) == 1


@pytest.mark.nightly("of what listens where, what is refused: tests/unit/test_cluster.py")
def test_an_open_nanny_is_refused(
    begin: Callable[..., Dask], open_network: Network, tmp_path: Path
) -> None:
    dask = begin(inside=open_network.inside)
    dask.workers(2, options=CLOSED)
    choice = (*TRIAL, "--jobs", dask.url, "--out", str(tmp_path))
    assert len(results(start(*choice, inside=open_network.inside))) == 1
    # It keeps to its worker's host.
    dask.workers(options=ANYBODY)
    line = only_line(start(*choice, "--fresh", inside=open_network.inside), 2)
    print(line)
    for whose in ("nanny", "worker"):
        assert f"a {whose} on {socket.gethostname()} listens on 0.0.0.0:" in line
    assert "Start the workers again with --host 127.0.0.1" in line


@pytest.mark.nightly("of what listens where, what is refused: tests/unit/test_cluster.py")
def test_a_worker_that_comes_later_is_looked_at(
    begin: Callable[..., Dask], open_network: Network, tmp_path: Path
) -> None:
    dask = begin(inside=open_network.inside)
    (first,) = dask.workers()
    choice = ("mathis", "--trials", "2,6,8,11,12", "--duration", "300", "--json")
    out = ("--jobs", dask.url, "--out", str(tmp_path))
    run = start(*choice, *out, inside=open_network.inside)
    until(lambda: busy(first))
    dask.workers(options=(*CLOSED, "--no-nanny"))
    time.sleep(3)
    assert run.poll() is None
    dask.workers(options=(*NO_PAGES, "--no-nanny"))
    line = only_line(run, 1)
    assert f"a worker on {socket.gethostname()} listens on 0.0.0.0:" in line
    assert "finished trials are kept" in line
    until(lambda: not kernels(first), 10)


def test_every_loopback_address_will_do(dask: Dask, tmp_path: Path) -> None:
    dask.workers(
        options=("--host", "127.0.0.2", "--no-nanny", "--dashboard-address", "127.0.0.3:0")
    )
    assert len(results(start(*TRIAL, "--jobs", dask.url, "--out", str(tmp_path)))) == 1


@pytest.mark.nightly("a scheduler that keeps silent: test_wrong_address_is_one_line")
def test_a_worker_that_does_not_say_where_it_listens(dask: Dask, tmp_path: Path) -> None:
    _, frozen = dask.workers(2)
    frozen.send_signal(signal.SIGSTOP)
    choice = (*TRIAL, "--jobs", dask.url, "--out", str(tmp_path))
    line = only_line(start(*choice, hasty=True), 2)
    assert "the worker tcp://127.0.0.1:" in line
    assert "does not say where it listens" in line


def certificate(folder: Path) -> dict[str, str]:
    """Make a key and a certificate, as the page says; return what has dask use them."""
    home = folder / "home"
    home.mkdir(parents=True)
    environment = {**os.environ, "HOME": str(home)}
    subprocess.run(
        ["bash", "-euc", block("openssl")], env=environment, check=True, capture_output=True
    )
    export = f'{block("export")}printf %s "$DASK_CONFIG"'
    config = subprocess.check_output(["bash", "-euc", export], env=environment, text=True)
    assert Path(config).is_file()
    assert (home / "dask-tls/key.pem").stat().st_mode & 0o077 == 0
    return {"DASK_CONFIG": config}


@pytest.mark.nightly(
    "of what listens where, what is refused: tests/unit/test_cluster.py; a trial on a cluster: test_every_loopback_address_will_do"
)
def test_tls_reaches_beyond_the_machine(
    begin: Callable[..., Dask], network: Network, tmp_path: Path
) -> None:
    tls = certificate(tmp_path / "tls")
    address = network.here("192.0.2.10")
    host = ("--host", address, "--protocol", "tls")
    dask = begin(*host, *NO_PAGES, inside=network.inside, **tls)
    dask.workers(2, options=("--host", network.here("192.0.2.11"), *NO_PAGES))
    assert dask.url.startswith(f"dask+tls://{address}:")
    words = (*TRIAL, "--out", str(tmp_path / "runs"))
    choice = (*words, "--jobs", dask.url)
    assert len(results(start(*choice, inside=network.inside, **tls))) == 1

    # Who has no certificate, or another cluster's, isn't let in.
    line = only_line(
        start(*choice, "--fresh", inside=network.inside, DASK_CONFIG="/nonexistent"), 2
    )
    assert "names no certificate for clients" in line
    other = certificate(tmp_path / "other")
    line = only_line(start(*choice, "--fresh", inside=network.inside, hasty=True, **other), 2)
    assert "no dask scheduler that these certificates fit" in line
    gone = Path(other["DASK_CONFIG"]).with_name("key.pem")
    gone.unlink()
    line = only_line(start(*choice, "--fresh", inside=network.inside, **other), 2)
    assert "can't be read (No such file or directory)" in line
    line = only_line(
        start(
            *words, "--jobs", dask.url.replace("+tls", ""), inside=network.inside, hasty=True, **tls
        ),
        2,
    )
    # Without a word to it, where it is beyond this machine.
    assert (f" listens on {address}:" if network.inside else "(one with TLS: dask+tls://)") in line

    # No certificate is asked for the pages.
    if network.inside:
        dask.workers(options=("--host", "192.0.2.11", "--no-dashboard"))
        line = only_line(start(*choice, "--fresh", inside=network.inside, **tls), 2)
        print(line)
        assert f"a worker's dashboard on {socket.gethostname()} listens on " in line
        assert "sees what runs there. Start the workers again with --no-dashboard" in line


def block(*words: str) -> str:
    """The one sh block of the page's that has all these words."""
    page = (ROOT / "docs/reference/cluster.md").read_text()
    (found,) = [
        text for text in re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        if all(word in text for word in words)
    ]  # fmt: skip
    return str(found)


@pytest.mark.nightly("a trial on a cluster: test_every_loopback_address_will_do")
@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_the_commands_of_the_page_start_a_cluster_that_is_accepted(
    scheme: str, network: Network, tmp_path: Path
) -> None:
    jobs = {"tcp": "dask://", "tls": "dask+tls://"}[scheme]
    tls = certificate(tmp_path) if scheme == "tls" else {}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])

    def command(*words: str) -> str:
        return network.here(block(*words)).strip().replace("8786", port)

    begun: list[subprocess.Popen[bytes]] = []

    def begin(words: str) -> None:
        environment = {**os.environ, **tls, "DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
        environment.pop("PYTHONPATH", None)
        begun.append(
            subprocess.Popen(
                [*network.inside, "bash", "-euc", f"exec {words} >>{tmp_path}/log 2>&1"],
                cwd=ROOT,
                env=environment,
                start_new_session=True,
            )
        )

    def says(words: str, times: int) -> bool:
        log = tmp_path / "log"
        return log.exists() and len(re.findall(words, log.read_text())) == times

    try:
        begin(command("dask scheduler", "--protocol tls" if tls else "--host 127.0.0.1"))
        until(lambda: says(rf"Scheduler at: +{scheme}://", 1))
        worker = command("dask worker", f"{scheme}://")
        begin(worker)
        until(lambda: says("Registered to", 4))
        url = command("./lab run", jobs).split()[-1]
        assert url.startswith(jobs)
        choice = (*TRIAL, "--jobs", url, "--out", str(tmp_path / "runs"))
        assert len(results(start(*choice, inside=network.inside, **tls))) == 1
        # What it says where there is no worker starts one, too.
        os.kill(begun[1].pid, signal.SIGINT)
        begun[1].wait(30)
        line = only_line(start(*choice, "--fresh", inside=network.inside, **tls), 2)
        worker_command = line.partition("start one: ")[2].replace(
            "ITS-OWN-ADDRESS", network.here("192.0.2.11")
        )
        begin(worker_command)
        until(lambda: says("Registered to", 5))
        assert len(results(start(*choice, "--fresh", inside=network.inside, **tls))) == 1
        # And where there is no scheduler, that.
        for process in begun:
            process.kill()
            process.wait()
        line = only_line(start(*choice, "--fresh", inside=network.inside, **tls), 2)
        scheduler_command = line.partition("is the scheduler running? ")[2].partition(
            " and --jobs"
        )[0]
        assert scheduler_command == command(
            "dask scheduler", "--protocol tls" if tls else "--host 127.0.0.1"
        )
    finally:
        for process in begun:
            process.kill()
            process.wait()
