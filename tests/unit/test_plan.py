"""Plans: all that decides a result decides the folder's name; and what a file says a run was becomes one only where a lab can have it."""

from __future__ import annotations

import base64
import json
import pickle
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from edited_labs import refusal

from measuretwice.backends import live_script
from measuretwice.backends import script as nodes
from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError
from measuretwice.checks import telling_values
from measuretwice.lab import (
    CheckedParams,
    Plan,
    Toolchain,
    complaints,
    hide_unlisted,
    load_lab,
    make_plan,
    needed_settings,
    read_lab,
    read_plan,
    settings_to_change,
    trial_params,
    with_unlisted,
)
from measuretwice.lab.schema.parameters import is_reserved
from measuretwice.runs.result import for_students, from_json
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.cases import to_change

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")
RECORDED = ROOT / "sample-data/01-mathis/case-05-fixed/trial-09-seed1/plan.json"


def plan(**changes: Any) -> Plan:
    toolchain = Toolchain("virtual", "k", tools={"iperf3": "3"}, scripts={"a.sh": "0"})
    return make_plan(LAB, **{"trial": 7, "seed": 1, "toolchain": toolchain, **changes})


@pytest.mark.parametrize(
    "change",
    [
        {"trial": 8},
        {"seed": 2},
        {"changes": {"rtt_ms": 7}},
        {"toolchain": Toolchain("virtual", "other", {"iperf3": "3"}, {"a.sh": "0"})},
        {"toolchain": Toolchain("virtual", "k", {"iperf3": "4"}, {"a.sh": "0"})},
        {"toolchain": Toolchain("virtual", "k", {"iperf3": "3"}, {"a.sh": "1"})},
    ],
)
def test_what_decides_a_result_decides_the_folder(change: dict[str, Any]) -> None:
    assert plan(**change).folder_name != plan().folder_name
    assert plan().folder_name == plan().folder_name


@pytest.mark.parametrize(
    ("value", "text"), [(0.01, "0.01"), (5e-06, "0.000005"), (1.0, "1"), (0.1566, "0.1566")]
)
def test_a_number_reaches_scripts_as_it_was_written(value: float, text: str) -> None:
    settings = nodes.environment(plan(changes={"loss_ratio": value}), as_written=True)
    assert settings["LOSS_RATIO"] == text


def test_trial_values_come_before_defaults_and_changes_before_both() -> None:
    assert plan(trial=9).params["mss_bytes"] == 4312
    assert plan(trial=9).params["mtu_bytes"] == 4352
    assert plan(trial=9, changes={"mss_bytes": 1000}).params["mss_bytes"] == 1000


def test_a_stages_value_may_be_another_parameters() -> None:
    broken = plan(trial=5, pitfall="loss-percent", stage="broken")
    assert broken.params["loss_percent"] == broken.params["loss_ratio"] == 0.1566283969
    other = plan(trial=5, pitfall="loss-percent", stage="broken", changes={"loss_ratio": 0.25})
    assert other.params["loss_percent"] == 0.25


def test_environment_has_no_exponents() -> None:
    """Shells and tc read no 5e-05."""
    text = nodes.environment(plan(trial=53))["LOSS_RATIO"]
    assert "e" not in text
    assert float(text) == pytest.approx(0.0000559121270201603, rel=1e-12)


def test_experiment_is_valid_shell_with_every_step_in_order() -> None:
    script = nodes.experiment_script(LAB, plan(), Path("/a folder"), "/out of it", None)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    order = [
        "ip netns exec router sysctl -qw net.ipv4.ip_forward=1",
        "step router prepare",
        "step romeo validate",
        "snapshot before romeo router juliet",
        "background router capture stop",
        "background juliet serve wait",
        "step romeo measure",
        "end_background",
        "snapshot after romeo router juliet",
        'state romeo="${prefix}romeo" router="${prefix}router" juliet="${prefix}juliet"',
    ]
    places = [script.index(f"\n{line}\n") for line in order]
    assert places == sorted(places)


def test_trial_table_is_what_its_script_writes() -> None:
    script = ROOT / "labs" / "01-mathis" / "make_trials.py"
    assert subprocess.run([sys.executable, str(script), "--check"], check=False).returncode == 0


def test_trial_numbers_are_the_published_ones() -> None:
    """RTT first, then segment size, four p each; eight p are known."""
    known = {3: (6, 536), 5: (6, 1460), 9: (6, 4312), 17: (154.5, 1460), 53: (600, 1460)}
    for number, (rtt_ms, mss_bytes) in known.items():
        assert LAB.trials[number].set["rtt_ms"] == rtt_ms
        assert LAB.trials[number].set["mss_bytes"] == mss_bytes
    losses = [float(trial.set["loss_ratio"]) for trial in LAB.trials.values()]
    assert all(3e-5 <= loss <= 0.3 for loss in losses)
    assert sum(trial.notes["loss_from"] == "published" for trial in LAB.trials.values()) == 8


def test_a_title_names_the_runs_own_values() -> None:
    trial = LAB.trials[7]
    assert "rtt_ms 6" in trial.title
    assert trial.title_with({**LAB.defaults(), **trial.set}) == trial.title
    changed = trial.title_with({**LAB.defaults(), **trial.set, "rtt_ms": 8.5, "duration_s": 3})
    assert changed == trial.title.replace("rtt_ms 6", "rtt_ms 8.5")
    assert "duration_s" not in changed


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"bash_env": "$(id)"}, "mathis has no setting bash_env"),
        ({"path": "/tmp"}, "mathis has no setting path"),
        ({"RTT_MS": 6}, "no setting RTT_MS"),
        ({3: 6}, "name is 3"),
        ({"rtt_ms": "6"}, "rtt_ms: expected a number, got 6"),
        ({"rtt_ms": True}, "rtt_ms: expected a number, got True"),
        ({"rtt_ms": None}, "rtt_ms: expected a number, got None"),
        ({"rtt_ms": [6]}, "rtt_ms: expected a number"),
        ({"rtt_ms": float("nan")}, "rtt_ms: expected a number, got nan"),
        ({"rtt_ms": float("inf")}, "rtt_ms: expected a number, got inf"),
        ({"rtt_ms": 10**400}, "rtt_ms: expected a number, got one of 401 digits"),
        ({"rtt_ms": -1}, "rtt_ms: expected"),
        ({"rtt_ms": 1e9}, "rtt_ms: expected"),
        ({"mss_bytes": 1460.5}, "whole number"),
        ({"loss_ratio": '0; system("id")'}, "loss_ratio: expected a number"),
        ({"congestion_control": 3}, "congestion_control: expected a word"),
        ({"congestion_control": "reno; id"}, "congestion_control: expected a name"),
        ({"congestion_control": "reno\n"}, "congestion_control: expected a name"),
        ({"congestion_control": "a" * 65}, "congestion_control: expected a name"),
        ({"offloads": "maybe"}, "offloads: expected one of"),
        ({"offloads": "\x1b]0;x\x07"}, "offloads: expected one of"),
    ],
)
def test_what_a_lab_cant_have(setting: dict[Any, Any], why: str) -> None:
    params = {**trial_params(LAB, 7), **setting}
    with pytest.raises(UserError) as raised:
        CheckedParams(LAB, params, "a file")
    assert str(raised.value).startswith("a file: ")
    assert why in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 400
    assert len(complaints(LAB, params)) == 1


def test_what_a_lab_can_have_stays_as_it_is() -> None:
    params = trial_params(LAB, 7)
    checked = CheckedParams(LAB, params, "a file")
    assert dict(checked) == params
    assert checked | {"rtt_ms": 8} == {**params, "rtt_ms": 8}
    assert deepcopy(checked) is checked
    assert dict(pickle.loads(pickle.dumps(checked))) == params
    with pytest.raises(TypeError):
        checked["rtt_ms"] = 8  # type: ignore[index]


def with_digest(document: dict[str, Any]) -> dict[str, Any]:
    decided = {k: v for k, v in document.items() if k not in ("kernel_seed", "digest")}
    digest = sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()[:8]
    return {**document, "digest": digest}


def change(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: with_digest({**document, **fields})


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (change(trial=10**9), "no trial 1000000000"),
        (change(trial="7"), "trial: input should be a valid integer"),
        (change(seed=-5), f"seed: expected 0 to {LAST_SEED}"),
        (change(seed=10**400), "seed: expected"),
        (change(case=99), "no case 99"),
        (change(case=True), "case: input should be a valid integer"),
        (change(pitfall="$(id)"), "no pitfall"),
        (change(stage="other"), "stage: "),
        (change(lab="calibrate"), "lab: expected mathis"),
        (change(where="\x1b[2J"), "where: expected a short line"),
        (change(kernel="k" * 201), "kernel: expected a short line"),
        (change(tools={"ip": 3}), "tools.ip: input should be a valid string"),
        (change(scripts={"../../x.sh": "0"}), "is no script's name"),
        (change(edited={"/etc/passwd": "0"}), "is no script's name"),
        (change(edited=["router.sh"]), "edited: input should be an object"),
        (change(recipe=None), "recipe: input should be a valid integer"),
        (change(more="x"), "more: no field of a plan"),
        (change(params=[]), "params: input should be an object"),
        (lambda document: {**document, "seed": 2}, "was changed after the run"),
        (lambda document: {k: v for k, v in document.items() if k != "tools"}, "tools: field required"),
    ],
)  # fmt: skip
def test_a_plan_that_a_lab_cant_have(
    edit: Callable[[dict[str, Any]], dict[str, Any]], why: str
) -> None:
    document = json.loads(RECORDED.read_text())
    assert read_plan(LAB, document, "plan.json").to_json() == document
    with pytest.raises(UserError) as raised:
        read_plan(LAB, edit(document), "plan.json")
    message = str(raised.value)
    assert message.startswith("plan.json: ")
    assert why in message
    assert message.isprintable()


def test_every_recorded_plan_passes() -> None:
    plans = sorted(ROOT.glob("sample-data/*/*/*/plan.json"))
    assert len(plans) > 100
    for path in plans:
        document = json.loads(path.read_text())
        assert read_plan(load_lab(ROOT, document["lab"]), document, str(path)).to_json() == document


def test_a_plan_with_packed_settings_is_the_same_plan() -> None:
    """Their names are nowhere in it, and who reads it finds them all, in their order: so it has the same digest."""
    for path in sorted(ROOT.glob("sample-data/*/*/*/plan.json")):
        document = json.loads(path.read_text())
        lab = load_lab(ROOT, document["lab"])
        written = json.loads(json.dumps(hide_unlisted(lab, document)))
        for name, parameter in lab.file.parameters.items():
            is_there = name in document["params"]
            assert (name in written["params"]) is (is_there and not parameter.unlisted), path
        whole = with_unlisted(written)
        assert whole == document
        assert list(whole["params"]) == list(document["params"])
        assert read_plan(lab, written, str(path)).digest == document["digest"]
        assert with_unlisted(document) == document


def test_a_result_with_packed_values_is_the_same_result() -> None:
    """None of the values is there whose names tell a case's mistake; and a file written before is read as it is."""
    left_out: set[str] = set()
    for path in sorted(ROOT.glob("sample-data/*/*/*/result.json")):
        document = json.loads(path.read_text())
        lab = load_lab(ROOT, document["lab"])
        written = json.loads(json.dumps(for_students(lab, document)))
        telling = telling_values(lab, document["measured"])
        assert document["measured"].keys() - written["measured"].keys() == telling, path
        assert not any(f'"{name}"' in json.dumps(written) for name in telling), path
        left_out |= telling
        whole = with_unlisted(written)
        assert whole == document
        assert list(whole["measured"]) == list(document["measured"])
        assert from_json(written) == from_json(document)
        assert with_unlisted(document) == document
    assert {"rate_rows_spanning", "window_rows_ratio", "length_rows", "other_qdisc_drops", "own_flows"} <= left_out  # fmt: skip


def test_a_value_tells_as_long_as_no_case_about_it_is_known() -> None:
    queues = load_lab(ROOT, "queues")
    names = ["rate_rows_spanning", "host_2_seconds_deviation_bps", "goodput_bps", "host_3_received_flows"]  # fmt: skip
    assert telling_values(queues, names) == {*names[:2]}
    assert telling_values(queues, names, {1, 2, 3, 4}) == {*names[:2]}
    assert telling_values(queues, names, {5}) == set()


def packed(hidden: object) -> str:
    return base64.b64encode(zlib.compress(json.dumps(hidden).encode())).decode()


@pytest.mark.parametrize(
    ("unlisted", "why"),
    [
        ("x", "unlisted_params: can't be read"),
        (3, "unlisted_params: can't be read"),
        (packed({"params": [[0, "mtu_bytes"]]}), "unlisted_params: can't be read"),
        (packed({"params": [[0, ["mtu_bytes"], 1500]]}), "unlisted_params: can't be read"),
        (packed({"params": [[10**30, "mtu_bytes", 1500]]}), "unlisted_params: can't be read"),
        (packed({"params": [[0, "x" * 10**6, 1]]}), "unlisted_params: can't be read"),
        (packed({"params": [[0, "rtt_ms", 7]]}), "unlisted_params: a setting stands twice"),
        (packed({"measured": [[0, "rtt_ms", 7]]}), "unlisted_params: can't be read"),
        (packed({"params": [[0, "bash_env", "$(id)"]]}), "mathis has no setting"),
        (packed({"params": [[0, "mtu_bytes", "$(id)"]]}), "mtu_bytes: expected a number"),
        (packed([]), "unlisted_params: can't be read"),
        (packed({"params": []}), "was changed after the run"),
    ],
)
def test_packed_settings_that_a_plan_cant_have(unlisted: object, why: str) -> None:
    document = hide_unlisted(LAB, json.loads(RECORDED.read_text()))
    assert read_plan(LAB, document, "plan.json").params["mtu_bytes"] == 4352
    with pytest.raises(UserError) as raised:
        read_plan(LAB, {**document, "unlisted_params": unlisted}, "plan.json")
    assert why in str(raised.value)


def test_a_script_with_packed_settings_sets_the_same(tmp_path: Path) -> None:
    made = plan(
        changes={"offloads": "on", "compare_with": "nothing", "constant_claimed": "sqrt(3/2)"}
    )
    script = nodes.guest_script(LAB, made)
    hidden = nodes.hide_exports(LAB, script)
    assert not re.search("OFFLOADS|COMPARE_WITH|MTU_BYTES", hidden)
    assert sorted(nodes.plain_exports(hidden).split("\n")) == sorted(script.split("\n"))
    assert nodes.hide_exports(LAB, hidden) == hidden
    lines = [
        line for line in hidden.split("\n") if line.startswith(("export ", "printf -v packed "))
    ]
    said = subprocess.run(
        ["bash", "-c", "\n".join([*lines, "env"])],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    assert {f"{name}={value}" for name, value in nodes.environment(made).items()} <= set(
        said.stdout.split("\n")
    )


def test_a_live_labs_packed_setting_is_a_word_and_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No plan can have such a value; were there a way to one, no shell would run it."""
    value = f'a"$(touch {tmp_path}/ran)`touch {tmp_path}/ran`}}\\'
    monkeypatch.setattr(live_script, "environment", lambda *_, **__: {"OFFLOADS": value})
    script = live_script._node_script(LAB, plan(), "labs/01-mathis").replace(
        "script=", "env; exit #"
    )
    for given in ({}, {"OFFLOADS": "mine"}):
        said = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, check=True, env=given
        )
        assert f"OFFLOADS={given.get('OFFLOADS', value)}" in said.stdout.split("\n")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name",
    ["bash_env", "env", "path", "ifs", "ps4", "shellopts", "bashopts", "ld_preload", "ld_library_path",
     "pythonpath", "python_home", "home", "out", "ready_file", "ss_sampler", "lc_all", "tmpdir"],
)  # fmt: skip
def test_names_that_programs_read_for_themselves(name: str, tmp_path: Path) -> None:
    assert is_reserved(name)
    added = f'[parameters]\n{name} = {{ help = "x", pattern = "[a-z]+" }}\n'
    message = refusal(tmp_path, "[parameters]\n", added)
    assert f"parameters.{name}: node scripts would find it as" in message


def test_no_lab_has_such_a_name() -> None:
    for path in sorted((ROOT / "labs").glob("0*/lab.toml")):
        assert not [name for name in read_lab(path.parent).file.parameters if is_reserved(name)]


def test_what_to_change_in_each_case() -> None:
    """Each setting that is wrong in the first try; one that is to be taken away says so; each line reads it."""
    of_queues = load_lab(ROOT, "queues")
    named = {n: [setting.name for setting in settings_to_change(of_queues, n)] for n in range(1, 8)}
    assert named[1] == ["rate_mbit", "access_mbit"]
    assert named[3] == ["set_discipline"]
    [destination] = settings_to_change(of_queues, 6)
    assert "destination = host-3 (it takes host-1" in destination.says
    assert "--set destination= with nothing after the = takes it away" in destination.says
    [discipline] = settings_to_change(of_queues, 3)
    number = int(re.search(r"line ([0-9]+) of router.sh", discipline.says)[1])  # type: ignore[index]
    line = (of_queues.folder / "nodes/router.sh").read_text().split("\n")[number - 1]
    assert "$SET_DISCIPLINE" in line
    needs = {setting.name: setting.need for setting in settings_to_change(of_queues, 4)}
    assert needs == {"red_limit_bytes": "needed", "red_bandwidth": "beside"}
    needed = needed_settings(settings_to_change(of_queues, 4))
    assert [setting.name for setting in needed] == ["red_limit_bytes"]
    about = to_change(LabContext(ROOT, of_queues), "red-limits")
    assert "red_bandwidth" not in about
    assert {setting.need for setting in settings_to_change(of_queues, 1)} == {"one way"}
    for name in ("mathis", "buffers", "scale", "variants", "queues"):
        lab = load_lab(ROOT, name)
        for number, pitfall in enumerate(lab.file.pitfalls, start=1):
            settings = settings_to_change(lab, number)
            # One that needn't change doesn't stand alone.
            assert not settings or any(setting.need != "beside" for setting in settings)
            # Where no setting differs, it is how often trials are run.
            runs = (pitfall.broken.repeat, pitfall.broken.again)
            assert settings or runs != (pitfall.fixed.repeat, pitfall.fixed.again), (name, number)
            assert {setting.name for setting in settings} <= pitfall.settings
