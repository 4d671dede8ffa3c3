"""Whatever stands in plan.json or live.json: what is taken of it is a plan of the lab, and nothing in it reaches a shell."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile import LABS, ROOT, Hostile, amounts, explore, files, watched
from hostile_runs import signed

from measuretwice.backends.script import environment, experiment_script
from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, Plan
from measuretwice.runs.remeasure import plan_in

# Nothing that a shell, awk or tc takes for its own; the space stands in words that lab.toml lists.
PLAIN_VALUE = re.compile(r"[A-Za-z0-9_./:+@% -]{1,64}")
PLAIN_LINE = re.compile(
    r"[A-Za-z0-9_./:+@%=,\"'#$ -]*|echo '[0-9 ]+' >/proc/sys/net/[a-z0-9_/]+"  # memory limits
)
FORBIDDEN = re.compile(
    r"BASH_ENV|ENV|LD_.*|PATH|IFS|PS4|SHELLOPTS|BASHOPTS|PYTHON.*|PERL.*|PROMPT_COMMAND|CDPATH|GLOBIGNORE|HOME|TMPDIR"
)


@cache
def plans() -> dict[str, bytes]:
    """A recorded plan of each lab, a case's and one by edited scripts among them."""
    found: dict[str, bytes] = {}
    for lab in sorted((ROOT / "sample-data").glob("0*")):
        path = sorted(lab.glob("*/*/plan.json"))[0]
        found[f"{lab.name}/plan.json"] = signed(path.read_bytes())
    document = json.loads(found["01-mathis/plan.json"])
    found["case"] = signed(json.dumps({**document, "pitfall": None, "case": 2}).encode())
    edited = {"romeo.sh": "c162ecad661d888a"}
    found["edited"] = signed(json.dumps({**document, "edited": edited}).encode())
    return found


def with_setting(**settings: Any) -> Hostile:
    document = json.loads(plans()["01-mathis/plan.json"])
    document["params"] |= settings
    return Hostile(signed(json.dumps(document).encode()))


def check_settings(lab: Lab, plan: Plan) -> None:
    """Every value is the lab's to have: known, of its type, within its bounds."""
    for name, value in plan.params.items():
        parameter = lab.file.parameters[name]
        if parameter.numeric:
            assert type(value) in (int, float)
            assert isinstance(value, int | float)
            assert math.isfinite(value)
            assert parameter.min is None or value >= parameter.min
            assert parameter.max is None or value <= parameter.max
            assert not parameter.integer or type(value) is int
        else:
            assert type(value) is str
            assert parameter.choices is None or value in parameter.choices
            assert parameter.pattern is None or re.fullmatch(parameter.pattern, value)


def check_environment(lab: Lab, plan: Plan) -> None:
    """No variable but the lab's own, and no value that is more than a word or a number."""
    declared = {name.upper() for name in lab.file.parameters}
    for name, value in environment(plan).items():
        assert name in declared
        assert not FORBIDDEN.fullmatch(name), name
        assert PLAIN_VALUE.fullmatch(value), (name, value)


def check_script(lab: Lab, plan: Plan, base: Plan) -> None:
    """A trial's script has, beside what it has for a plan that nobody touched, only plain lines."""
    if base.params.keys() - plan.params.keys() or base.lab != plan.lab:
        return
    known = set(experiment_script(lab, base, Path("/kit"), "/out", "/sampler").splitlines())
    for line in experiment_script(lab, plan, Path("/kit"), "/out", "/sampler").splitlines():
        if line not in known:
            assert PLAIN_LINE.fullmatch(line), line
            assert "$(" not in line


def check_plan(lab: Lab, plan: Plan, base: Plan) -> None:
    assert isinstance(plan, Plan)
    assert plan.lab == lab.name
    assert plan.trial in lab.trials
    assert type(plan.trial) is int
    assert type(plan.seed) is int
    assert Path(plan.folder_name).name == plan.folder_name
    assert plan.folder_name.isprintable()
    for words in (plan.scripts, plan.tools, plan.edited or {}):
        assert all(
            isinstance(word, str) and word.isprintable() for pair in words.items() for word in pair
        )
    assert all(re.fullmatch(r"[A-Za-z0-9][\w.-]*", name) for name in plan.scripts)
    json.dumps(plan.to_json(), allow_nan=False)
    check_settings(lab, plan)
    check_environment(lab, plan)
    check_script(lab, plan, base)


KNOWN = [
    with_setting(bash_env="$(touch x)"),
    with_setting(path="/tmp"),
    with_setting(ld_preload="/tmp/x.so"),
    with_setting(rtt_ms=float("nan")),
    with_setting(rtt_ms=10**400),
    with_setting(rtt_ms="abc"),
    with_setting(rtt_ms=True),
    with_setting(loss_ratio='0; system("x"); x = 1'),
    with_setting(congestion_control="reno\n"),
    with_setting(congestion_control=["reno"]),
    with_setting(congestion_control={}),
    Hostile(b'{"a":' * 200_000),
]


@amounts
@pytest.mark.parametrize("name", ["plan.json", "live.json"])
def test_a_plan_is_one_of_its_lab_or_refused(amount: str, name: str, tmp_path: Path) -> None:
    by_lab = {
        plan.lab: plan
        for content in plans().values()
        for plan in [read(tmp_path / "base.json", content)]
        if plan is not None
    }
    assert len(by_lab) == len(list((ROOT / "labs").glob("0*"))), "recorded plans aren't refused"

    def check(hostile: Hostile) -> None:
        path = tmp_path / name
        path.write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            lab, plan = plan_in(ROOT, path)
            check_plan(lab, plan, by_lab[plan.lab])

    explore(amount, files(plans(), finish=signed), check, known=KNOWN, few=40)


def read(path: Path, content: bytes) -> Plan | None:
    path.write_bytes(content)
    try:
        return plan_in(ROOT, path)[1]
    except UserError:
        return None


@amounts
@pytest.mark.parametrize("lab", LABS)
def test_settings_alone(amount: str, lab: str, tmp_path: Path) -> None:
    """One setting after another, in a plan that is right but for it and its digest."""
    base = next(content for content in plans().values() if json.loads(content)["lab"] == lab)
    of_lab = read(tmp_path / "base.json", base)
    assert of_lab is not None
    params = json.dumps(json.loads(base)["params"]).encode()
    whole = json.loads(base)

    def in_plan(content: bytes) -> bytes:
        return json.dumps({**whole, "params": "<>"}).encode().replace(b'"<>"', content)

    def check(hostile: Hostile) -> None:
        path = tmp_path / "plan.json"
        path.write_bytes(signed(in_plan(hostile.content)))
        with watched(tmp_path, UserError):
            found, plan = plan_in(ROOT, path)
            check_plan(found, plan, of_lab)

    explore(amount, files({"params": params}, most=2), check)
