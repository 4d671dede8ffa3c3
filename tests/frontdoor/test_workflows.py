"""The workflows: that they parse, that their actions have versions, that what they call is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture(params=WORKFLOWS, ids=lambda path: str(path.stem))
def workflow(request: pytest.FixtureRequest) -> dict[str, Any]:
    document = yaml.safe_load(request.param.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_parses_and_asks_for_little(workflow: dict[str, Any]) -> None:
    # YAML takes `on` for true.
    assert {"name", True, "permissions", "jobs"} <= set(workflow)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 30, name
        for need in [job["needs"]] if "needs" in job else []:
            assert need in workflow["jobs"]


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


def test_one_runs_all_checks_and_one_publishes() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    assert re.search(r"run: \.ci/run$", text, re.MULTILINE)
    assert re.search(r"run: \./lab docs --build$", text, re.MULTILINE)
