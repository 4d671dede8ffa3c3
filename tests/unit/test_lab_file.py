"""lab.toml: what is wrong is named by file, key and what was expected."""

import shutil
from pathlib import Path

import pytest
from edited_labs import edited_lab, refusal

from measuretwice.base.errors import UserError
from measuretwice.lab import find_labs, load_lab, read_lab, select_trials

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", find_labs(ROOT))
def test_every_lab_of_the_kit_is_valid(name: str) -> None:
    lab = load_lab(ROOT, name)
    assert lab.trials
    for step in (*lab.file.run.prepare, *lab.file.run.measure):
        assert step.phase in lab.script(step.node).read_text()


@pytest.mark.parametrize("name", find_labs(ROOT))
def test_defaults_in_node_scripts_are_those_of_lab_toml(name: str) -> None:
    """A person who pastes a script measures what the runner measures."""
    lab = load_lab(ROOT, name)
    seen = set()
    for script in sorted((lab.folder / "nodes").glob("*.sh")):
        for key, value in lab.defaults().items():
            line = f'{key.upper()}="${{{key.upper()}:-{value}}}"'
            if f"\n{key.upper()}=" in script.read_text():
                assert line in script.read_text(), f"{script.name}: {key}"
                seen.add(key)
    # What is claimed is for the analysis, no node needs it.
    claims = {"average_from_s", "compare_with", "compare_by", "judged_by", "claim"}
    left = {name for name in set(lab.defaults()) - seen if "claimed" not in name}
    # Nor what the virtual kernel is given, nor a choice that sets others.
    left -= {lab.file.run.memory, lab.file.run.reader_interval}
    if edges := lab.file.topology.edges:
        left -= {*edges.parameters}
    left -= {name for name, parameter in lab.file.parameters.items() if parameter.sets}
    # Nor from when on a packet is late.
    if (few := lab.file.collect.flows) and few.delays:
        left -= {few.delays.deadline}
    assert left <= claims


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("minutes = 120", "minuets = 120", "labs/01-mathis/lab.toml: lab.minu"),
        ("minutes = 120", "minutes = 120\nteacher = 'me'", "lab.teacher: no such key; expected one of title, question, minutes"),
        ("minutes = 120", "minutes = ", "line"),
        ('file = "trials.csv"', 'file = "trials.csv"\nx = 1', "x: no such key; expected one of file"),
        ("tries = 2", "tries = 2, x = 1", "again.x: no such key; expected one of measured, min"),
        ('node = "romeo", address', 'x = 1, node = "romeo", address', "a.x: no such key; expected one of node, address"),
        ("rtt_ms = { default = 6,", 'rtt_ms = { default = "6ms",', "labs/01-mathis/lab.toml: parameters.rtt_ms: rtt_ms: expected a number in milliseconds, got '6ms'"),
        ("rate_mbit = {", "rate = {", "parameters.rate: rate: a number's name ends in its unit, one of _ms, _us"),
        ("[parameters]\n", '[parameters]\nx_ms = { help = "x", min = 0 }\n', "parameters.x_ms: a number needs its bounds"),
        ('{ node = "romeo", phase = "validate" }', '{ node = "mercutio", phase = "validate" }', "'mercutio' is no node; nodes are ['juliet', 'romeo', 'router']"),
        ("tolerance_ratio = 0.01", "tolerance_ratio = 0.01\nbinomial_of = 'x'\nconfidence = 0.9", "expect.0: expected param with tolerance_ratio"),
        ('delay_ms = "=rtt_ms"', 'delay_ms = "=rtt"', "pitfalls: rtt-doubling: broken: delay_ms = '=rtt': no such parameter"),
        ("[model]", "[checks.means.tcp-split]\nhops = ['x']\n\n[model]", "checks.means.tcp-split: mathis has no parameter 'hops'"),
        ("[model]", "[checks.means.tcp-split]\ntimestamps = ['perhaps']\n\n[model]", "checks.means.tcp-split: timestamps: expected one of"),
        ("case = 1\nseed = 1820\n\n", "case = 14\n\n", "recordings: handed-in-first-try: case: mathis has no case 14"),
        ("case = 1\nseed = 1820\n\n", 'case = 1\ntrials = "5"\n\n', "handed-in-first-try: case: its own trials are run"),
        ('trials = "1,3,4,7,9"', 'trials = "1,61"', "cherry-picking: trials 1,61: mathis has no trial 61"),
        ('unit = "%", compared = false }', 'of_trial = 2 }', "cherry-picking: predict: of_trial: 2 is none of its trials"),
        ('enough = ["rate_mbit"]', 'hides = ["rate"]', "hides: 'rate' is no parameter"),
        ('enough = ["rate_mbit"]', 'enough = ["rate_mbit"]\nhides = ["rate_mbit"]', "hides: rate_mbit is enough"),
        ('needs = ["timestamps"]', 'needs = ["cherry-picking"]', "mtu: needs: 'cherry-picking'"),
        ('needs = ["timestamps"]', 'needs = ["mtu"]', "mtu: needs: 'mtu' doesn't come before it"),
        ("{ trial = 21, broken = { mtu", "{ trial = 61, broken = { mtu", "there is no trial 61"),
        ("{ mtu_bytes = 1000 }", "{ mtu_byte = 1000 }", "elsewhere: trial 7: mathis has no"),
        ("rtt_ms = { low = 0.8", "rtt_m = { low = 0.8", "vary: 'rtt_m' has no number to vary"),
        ("rtt_ms = { low = 0.8", "timestamps = { low = 0.8", "'timestamps' has no number"),
        ("low = 0.8, high = 1.25", "low = 1.8, high = 1.25", "less than or equal to 1"),
        ("loss_ratio = { low = 0.8, high = 1.25", "loss_ratio = { low = 0.8, high = 9", "vary"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert says in refusal(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("flows = { default", "flows = { x = 1, default", "parameters.flows.x: no such key; expected one of default, help"),
        ("trial = 1\n", "trial = 1\nx = 1\n", "x: no such key; expected one of trial, title, set"),
        ("sets.core = { rate_mbit", "sets.care = { rate_mbit", "'care' is no choice"),
        ("sets.core = { rate_mbit", "sets.core = { rate_gbit", "no parameter 'rate_gbit'"),
        ('memory = "memory_bytes"', 'memory = "memory"', "'memory' is no parameter"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_lab_with_choices_and_many_flows(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert says in refusal(tmp_path, old, new, "03-scale")


def test_a_streams_deadline_is_a_parameter(tmp_path: Path) -> None:
    begin = "[collect]\nflows = { "
    stream = 'delays = { file = "call.txt", deadline = "deadline_ms" }, '
    says = refusal(tmp_path, begin, begin + stream, "05-queues")
    assert "collect.flows.delays: 'deadline_ms' is no parameter" in says


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("61,6,1460", "trials.csv, line 62: expected as many columns"),
        ("61,6,1460,1500,1.5,me", "trial 61: loss_ratio: expected 0 to 1"),
    ],
)
def test_a_wrong_row_of_a_table_of_trials(tmp_path: Path, row: str, says: str) -> None:
    folder = edited_lab(tmp_path, "", "")
    with (folder / "trials.csv").open("a") as table:
        table.write(f"{row}\n")
    with pytest.raises(UserError, match=says):
        read_lab(folder)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("7", [7]), ("1-3,20", [1, 2, 3, 20]), (" 5 , 4 ", [4, 5]), ("all", list(range(1, 61)))],
)
def test_selection(text: str, numbers: list[int]) -> None:
    assert select_trials(load_lab(ROOT, "mathis"), text) == numbers


@pytest.mark.parametrize("text", ["99", "0", "x", "", "3-1", "1,,2", "-5", "1-99999999999"])
def test_selection_that_is_wrong(text: str) -> None:
    with pytest.raises(UserError) as caught:
        select_trials(load_lab(ROOT, "mathis"), text)
    assert f"--trial {text}:"[:9] in str(caught.value)


def test_no_such_lab_names_those_there_are() -> None:
    with pytest.raises(UserError, match=r"there is no lab 'nosuchlab'; there are: .*mathis"):
        load_lab(ROOT, "nosuchlab")


def test_a_copied_folder_is_a_lab(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "labs" / "01-mathis", tmp_path / "labs" / "06-mine")
    lab = load_lab(tmp_path, "mine")
    assert lab.name == "mine"
    assert len(lab.trials) == 60


def test_varied_values_are_of_the_fixed_stage() -> None:
    lab = load_lab(ROOT, "mathis")
    low, high = lab.varied(lab.pitfall("mtu"))["rtt_ms"]
    assert (low, high) == pytest.approx((0.8 * 6, 1.25 * 6))
