"""Every backend has what the others ask it for, and --on means one of them or is refused."""

import pickle
from pathlib import Path

import pytest

from measuretwice.backends import BACKENDS, backend_for
from measuretwice.backends.backend import Backend
from measuretwice.backends.host import Host
from measuretwice.backends.ssh import SshNodes
from measuretwice.backends.virtual import Kernel, Virtual
from measuretwice.base.errors import UserError
from measuretwice.execute.dispatch import Pool, SerialDispatcher, dispatcher, refuse_jobs
from measuretwice.execute.scheduler import Scheduler
from measuretwice.lab import KernelFacts

ROOT = Path(__file__).parents[2]
VIRTUAL = Virtual(
    Kernel(
        Path("/cache/anything"),
        KernelFacts("6.1", {"results_key": "0123456789abcdef0123", "programs": {"bash": "5"}}),
    )
)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_backend_has_what_the_others_ask_it_for(backend: type[Backend]) -> None:
    wanted = {
        name for name in Backend.__annotations__ if "ClassVar" in str(Backend.__annotations__[name])
    }
    assert {name for name in wanted if not hasattr(backend, name)} == set()
    assert backend.__abstractmethods__ == frozenset()
    assert len({other.name for other in BACKENDS}) == len(BACKENDS)


def test_on_means_a_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machines").touch()
    for where, backend in {
        "virtual": Virtual, "host": Host, "nodes.toml": SshNodes, "machines": SshNodes,
    }.items():  # fmt: skip
        assert backend_for(where) is backend
    with pytest.raises(
        UserError, match="--on moon: expected virtual, host, browser, or a file as nodes"
    ):
        backend_for("moon")


def test_a_portable_backend_is_the_same_in_another_process() -> None:
    for backend in (VIRTUAL, Host({"bash": "5"}, owner=1)):
        assert backend.portable
        there = pickle.loads(pickle.dumps(backend))
        assert (there.name, there.kernel, there.tools) == (
            backend.name,
            backend.kernel,
            {"bash": "5"},
        )
        assert there.kernel_facts() == backend.kernel_facts()


def test_a_plan_names_the_kernel_by_version_and_sources() -> None:
    assert VIRTUAL.kernel == "linux 6.1 0123456789abcdef"


def test_who_hands_out_trials() -> None:
    class Tied(Host):
        portable = False

    with dispatcher(VIRTUAL, None, 1) as crew:
        assert isinstance(crew, Pool)
        assert crew.at_once == 1
    with dispatcher(VIRTUAL, 7, 5) as crew:
        assert crew.at_once == 5
    with dispatcher(Host({}, owner=1), None, 5) as crew:
        assert isinstance(crew, Pool)
        assert crew.at_once == 1
    with dispatcher(Tied({}, owner=1), None, 5) as crew:
        assert isinstance(crew, SerialDispatcher)
        assert crew.at_once == 1


@pytest.mark.parametrize("jobs", [2, Scheduler("127.0.0.1", 1)])
def test_in_real_time_there_is_one_trial_at_a_time(jobs: int | Scheduler) -> None:
    for backend in BACKENDS:
        if backend.real_time:
            with pytest.raises(UserError, match="--jobs"):
                refuse_jobs(backend, "there", jobs)
        else:
            refuse_jobs(backend, "there", jobs)
        refuse_jobs(backend, "there", None)
        refuse_jobs(backend, "there", 1)
