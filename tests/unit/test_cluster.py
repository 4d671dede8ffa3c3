"""Which trials a worker of a cluster refuses, which CPU it takes, and what --jobs takes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from command_line import run_program

from measuretwice.base.errors import UserError
from measuretwice.cli.options import Jobs
from measuretwice.execute.cluster import Port, refuse_open
from measuretwice.execute.scheduler import Scheduler, is_loopback
from measuretwice.runs.result import code_digest

ROOT = Path(__file__).parents[2]
Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1024", 1024),
        ("dask://127.0.0.1:8786", Scheduler("127.0.0.1", 8786)),
        ("dask://node-1.cluster.example:1/", Scheduler("node-1.cluster.example", 1)),
        ("dask://[2001:db8::1]:8786", Scheduler("2001:db8::1", 8786)),
        ("dask+tls://192.0.2.10:8786", Scheduler("192.0.2.10", 8786, tls=True)),
    ],
)
def test_jobs_takes_a_number_or_a_scheduler(text: str, value: int | Scheduler) -> None:
    assert Jobs().convert(text, None, None) == value
    if isinstance(value, Scheduler):
        assert value.url() == text.rstrip("/")
        scheme = "tls" if value.tls else "tcp"
        assert value.address() == f"{scheme}://{value.url().partition('://')[2]}"


@pytest.mark.parametrize(
    "text",
    ["0", "1025", "-1", "two", "1.5", "", "dask://", "dask://host", "dask://host:0", "dask://:8786",
     "dask://host:65536", "dask://a b:1", "tcp://host:8786", "host:8786", "dask://user@host:1",
     "dask+tls://host", "dask+ssl://host:8786", "tls://host:8786"],
)  # fmt: skip
def test_jobs_refuses_in_words(text: str) -> None:
    words = r"expected a number from 1 to 1024, or dask\[\+tls\]://HOST:PORT"
    with pytest.raises(click.BadParameter, match=words):
        Jobs().convert(text, None, None)


@pytest.mark.parametrize(
    ("ip", "only_here"),
    [
        ("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False), ("::", False), ("192.0.2.10", False), ("::ffff:192.0.2.10", False),
        ("fe80::1%eth0", False), ("2001:db8::1", False), ("localhost.example", False),
    ],
)  # fmt: skip
def test_what_only_this_machine_reaches(ip: str, only_here: bool) -> None:
    assert is_loopback(ip) is only_here
    scheduler = Scheduler("127.0.0.1", 8786)
    for tls, fine in [(False, only_here), (True, True)]:
        ports = {
            Port("worker", "node", ip, 4000, tls),
            Port("nanny", "node", "127.0.0.1", 1, False),
        }
        if fine:
            refuse_open(scheduler, ports)
        else:
            with pytest.raises(UserError, match=r"a worker on node listens on .*:4000: whoever"):
                refuse_open(scheduler, ports)


def test_of_many_open_ports_one_of_each_kind_is_named() -> None:
    nodes = [f"node-{number}" for number in range(1, 33)]
    ports = {Port("worker", node, ip, 4000, False) for node in nodes for ip in ("0.0.0.0", "::")}
    ports |= {Port("worker's dashboard", node, "0.0.0.0", 4001, False) for node in nodes}
    with pytest.raises(UserError) as refused:
        refuse_open(Scheduler("node-1", 8786), ports)
    message = str(refused.value)
    print(message)
    assert (
        "dask://node-1:8786: a worker on node-1 listens on 0.0.0.0:4000, a worker's dash" in message
    )
    assert (
        "0.0.0.0:4001, and so on at 62 more: whoever reaches such a port runs programs" in message
    )
    assert "Start the workers again with --host 127.0.0.1 --no-dashboard " in message


@pytest.mark.parametrize(
    ("scheduler", "command", "worker"),
    [
        (Scheduler("127.0.0.1", 8786), "--host 127.0.0.1 --port 8786", "tcp://127.0.0.1:8786 --host 127.0.0.1 "),
        (Scheduler("localhost", 1), "--host localhost --port 1", "tcp://localhost:1 --host 127.0.0.1 "),
        (Scheduler("node-1", 1), "--host node-1 --protocol tls --port 1", "tls://node-1:1 --host ITS-OWN-ADDRESS "),
        (Scheduler("::1", 1, tls=True), "--host [::1] --protocol tls --port 1", "tls://[::1]:1 --host 127.0.0.1 "),
    ],
)  # fmt: skip
def test_commands_that_start_a_cluster_keep_to_the_machine_or_to_tls(
    scheduler: Scheduler, command: str, worker: str
) -> None:
    assert f".venv/bin/dask scheduler {command} --no-dashboard" in scheduler.safe().start()
    assert f".venv/bin/dask worker {worker}--no-dashboard" in scheduler.safe().start_worker()


def order(tmp_path: Path) -> dict[str, Any]:
    """An order that fits this machine but for its plan, which belongs to none."""
    lab_folder = ROOT / "labs/01-mathis"
    lease = tmp_path / "lease"
    lease.touch()
    return {
        "code": code_digest(lab_folder),
        "plan": {
            "lab": "mathis", "trial": 7, "pitfall": None, "stage": None, "seed": 1, "params": {},
            "where": "virtual", "kernel": "none", "scripts": {}, "tools": {}, "recipe": 2,
        },
        "lab_folder": str(lab_folder),
        "root": str(ROOT),
        "out": str(tmp_path / "out"),
        "wall_limit_s": 1,
        "lease": str(lease),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: Path(o["lease"]).unlink(), "is not what it is where ./lab run was called"),
        (lambda o: o.update(code="00000000"), "is another version of the checkout"),
        (lambda o: o.update(lab_folder="/nonexistent"), "is another version of the checkout"),
        (lambda o: None, "the scripts in"),
    ],
)
def test_a_worker_that_does_not_fit_refuses(change: Change, message: str, tmp_path: Path) -> None:
    given = order(tmp_path)
    change(given)
    worker = "measuretwice.execute.cluster_worker"
    done = run_program(sys.executable, "-P", "-m", worker, given=json.dumps(given))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["misfit"] is True
    assert message in answer["error"]
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_trials_on_one_machine_choose_different_cpus(all_cpus: set[int]) -> None:
    """As many as there are CPUs get one each; one more shares; one that ends gives its own back."""
    code = (
        "import os; from measuretwice.base.files import take_cpu; "
        f"own = take_cpu('the test in {os.getpid()}');"
        "print(*os.sched_getaffinity(0), flush=True); input()"
    )

    def begin() -> tuple[subprocess.Popen[str], set[int]]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        return process, set(map(int, process.stdout.readline().split()))

    begun = [begin() for _ in all_cpus]
    try:
        assert sorted(cpu for _, cpus in begun for cpu in cpus) == sorted(all_cpus)
        begun.append(begin())
        assert len(begun[-1][1]) == 1
        assert begun[-1][1] <= all_cpus
        first, given_back = begun[0]
        first.kill()
        first.wait()
        begun.append(begin())
        assert begun[-1][1] == given_back
    finally:
        for process, _ in begun:
            process.kill()
            process.wait()
