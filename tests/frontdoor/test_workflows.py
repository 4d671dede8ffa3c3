"""The workflows: that they parse, that their actions have versions, that what they call is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read(name: str) -> dict[str, Any]:
    document = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


@pytest.fixture(params=[path.stem for path in WORKFLOWS])
def workflow(request: pytest.FixtureRequest) -> dict[str, Any]:
    return read(request.param)


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def needs(job: dict[str, Any]) -> list[str]:
    """The jobs that must have ended well before this one."""
    named = job.get("needs", [])
    return [named] if isinstance(named, str) else list(named)


def test_parses_and_asks_for_little(workflow: dict[str, Any]) -> None:
    # YAML takes `on` for true.
    assert {"name", True, "permissions", "jobs"} <= set(workflow)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 30, name
        assert set(needs(job)) <= set(workflow["jobs"]), name


def test_no_job_waits_for_itself(workflow: dict[str, Any]) -> None:
    waiting = {name: set(needs(job)) for name, job in workflow["jobs"].items()}
    while ready := {name for name, others in waiting.items() if not others & set(waiting)}:
        waiting = {name: others for name, others in waiting.items() if name not in ready}
    assert waiting == {}


def test_actions_have_versions(workflow: dict[str, Any]) -> None:
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step), step
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@(v\d+|[0-9a-f]{40})", step["uses"])


def test_what_they_call_is_there(workflow: dict[str, Any]) -> None:
    for step in steps(workflow):
        for program in re.findall(
            r"(?:^|\s|\()((?:\./|scripts/|\.ci/)[\w./-]+)", step.get("run", "")
        ):
            assert (ROOT / program).is_file(), program


def test_make_has_what_they_ask_of_it(workflow: dict[str, Any]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for step in steps(workflow):
        for target in re.findall(r"^make ([a-z-]+)", step.get("run", ""), re.MULTILINE):
            assert target in targets


def test_each_change_has_every_check_and_builds_no_machine() -> None:
    runs = {step.get("run", "") for step in steps(read("ci"))}
    assert {"make lint", "make quick", "make docs", "make test"} <= runs
    assert not [command for command in runs if "build" in command]
    assert not [step for step in steps(read("ci")) if "cache" in step.get("uses", "")]


def test_each_change_is_tested_on_both_debians() -> None:
    tests = read("ci")["jobs"]["tests"]
    assert tests["strategy"]["matrix"] == {"image": ["debian:12", "debian:13"]}
    assert tests["steps"][-1]["run"] == "make test"


def test_all_is_done_from_source_each_night_and_for_each_version() -> None:
    nightly = read("nightly")
    # YAML takes `on` for true.
    assert set(nightly[True]) >= {"schedule", "workflow_dispatch"}  # type: ignore[index]
    assert "v*" in nightly[True]["push"]["tags"]  # type: ignore[index]
    jobs = nightly["jobs"]
    assert jobs["newcomer"]["strategy"]["matrix"]["image"] == ["debian:12", "debian:13"]
    assert jobs["newcomer"]["steps"][-1]["run"] == ".ci/run"
    # Whatever make test leaves out is run here, but for what is left to a release.
    folders, others = jobs["dear"]["strategy"]["matrix"]["part"]
    assert others == " ".join(f"--ignore {folder}" for folder in folders.split())
    assert jobs["dear"]["steps"][-1]["run"] == "make test-nightly ARGS='${{ matrix.part }}'"
    # And both machines are built, on two releases of Debian.
    assert jobs["machines"]["strategy"]["matrix"]["image"] == ["debian:12", "debian:13"]
    assert jobs["machines"]["steps"][-1]["run"] == "make machines-verify"
    assert jobs["witnesses"]["steps"][-1]["run"] == "make witnesses ARGS='${{ matrix.by }}'"
    assert all(
        (ROOT / "benchmarks" / by.split()[0]).is_file()
        for by in jobs["witnesses"]["strategy"]["matrix"]["by"]
    )
    assert not [step for step in steps(nightly) if "cache" in step.get("uses", "")]


def test_one_publishes() -> None:
    assert "./lab docs --build" in {step.get("run") for step in steps(read("site"))}
