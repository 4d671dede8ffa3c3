"""lab.toml: what is wrong is named by file, key and what was expected."""

import shutil
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.lab import find_labs, load_lab, read_lab, select_trials

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a lab, to be broken."""
    return Path(shutil.copytree(ROOT / "labs" / "01-mathis", tmp_path / "labs" / "01-mathis"))


def broken(folder: Path, old: str, new: str) -> str:
    path = folder / "lab.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        read_lab(folder)
    return str(caught.value)


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
    claims = {
        "average_from_s",
        "compare_with",
        "constant_claimed",
        "compare_by",
        "judged_by",
        "claim",
    }
    left = {name for name in set(lab.defaults()) - seen if "claimed" not in name}
    # Nor what the virtual kernel is given, nor a choice that sets others.
    left -= {lab.file.run.memory, lab.file.run.reader_interval}
    if edges := lab.file.topology.edges:
        left -= {edges.speed, edges.processing}
    left -= {name for name, one in lab.file.parameters.items() if one.sets}
    assert left <= claims


def test_wrong_key_names_file_key_and_the_keys_there_are(folder: Path) -> None:
    said = broken(folder, "minutes = 120", "minuets = 120")
    assert said.startswith("labs/01-mathis/lab.toml: lab.")
    assert "minut" in said


def test_unknown_key_lists_the_known_ones(folder: Path) -> None:
    said = broken(folder, "minutes = 120", "minutes = 120\nteacher = 'me'")
    assert "lab.teacher: no such key; expected one of title, question, minutes" in said


@pytest.mark.parametrize(
    ("lab", "old", "new", "says"),
    [
        ("03-scale", "flows = { default", "flows = { x = 1, default", "parameters.flows.x: no such key; expected one of default, help"),
        ("03-scale", "trial = 1\n", "trial = 1\nx = 1\n", "x: no such key; expected one of trial, title, set"),
        ("01-mathis", 'file = "trials.csv"', 'file = "trials.csv"\nx = 1', "x: no such key; expected one of file"),
        ("01-mathis", "tries = 2", "tries = 2, x = 1", "again.x: no such key; expected one of measured, min"),
        ("01-mathis", 'node = "romeo", address', 'x = 1, node = "romeo", address', "a.x: no such key; expected one of node, address"),
    ],
)  # fmt: skip
def test_unknown_key_is_answered_with_the_keys_of_its_own_table(
    tmp_path: Path, lab: str, old: str, new: str, says: str
) -> None:
    folder = Path(shutil.copytree(ROOT / "labs" / lab, tmp_path / "labs" / lab))
    assert says in broken(folder, old, new)


def test_number_with_unit_in_its_value(folder: Path) -> None:
    said = broken(folder, "rtt_ms = { default = 6,", 'rtt_ms = { default = "6ms",')
    assert "labs/01-mathis/lab.toml: parameters.rtt_ms: " in said
    assert "expected a number in milliseconds, got '6ms'" in said


def test_name_without_unit(folder: Path) -> None:
    said = broken(folder, "rate_mbit = {", "rate = {")
    assert "parameters.rate" in said
    assert "ends in its unit" in said
    assert "_mbit" in said


def test_step_on_a_node_that_is_not_there(folder: Path) -> None:
    said = broken(
        folder,
        '{ node = "romeo", phase = "validate" }',
        '{ node = "mercutio", phase = "validate" }',
    )
    assert "'mercutio' is no node; nodes are ['juliet', 'romeo', 'router']" in said


def test_expectation_needs_one_kind(folder: Path) -> None:
    said = broken(
        folder,
        "tolerance_ratio = 0.01",
        "tolerance_ratio = 0.01\nbinomial_of = 'x'\nconfidence = 0.9",
    )
    assert "expect.0" in said
    assert "param with tolerance_ratio" in said


def test_bad_toml_names_the_line(folder: Path) -> None:
    assert "line" in broken(folder, "minutes = 120", "minutes = ")


def test_trial_table_with_a_missing_column(folder: Path) -> None:
    path = folder / "trials.csv"
    path.write_text(path.read_text() + "61,6,1460\n")
    with pytest.raises(UserError, match=r"trials.csv, line 62: expected as many columns"):
        read_lab(folder)


def test_trial_value_out_of_range(folder: Path) -> None:
    path = folder / "trials.csv"
    path.write_text(path.read_text() + "61,6,1460,1500,1.5,me\n")
    with pytest.raises(UserError, match=r"trial 61: loss_ratio: expected 0 to 1"):
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


def test_a_stage_may_set_a_parameter_to_anothers_value(folder: Path) -> None:
    said = broken(folder, 'delay_ms = "=rtt_ms"', 'delay_ms = "=rtt"')
    assert "pitfalls: rtt-doubling: broken: delay_ms = '=rtt': no such parameter" in said


def test_what_a_setting_means_is_said_of_one_that_is_there(folder: Path) -> None:
    before = "[model]"
    for setting, told in (
        ("hops = ['x']", "hops"),
        ("timestamps = ['perhaps']", "expected one of"),
    ):
        after = f"[checks.means.tcp-split]\n{setting}\n\n[model]"
        said = broken(folder, before, after)
        before = after
        assert "checks.means.tcp-split" in said
        assert told in said


def test_a_pitfalls_trials_must_be_there(folder: Path) -> None:
    said = broken(folder, 'trials = "1,3,4,7,9"', 'trials = "1,61"')
    assert "cherry-picking" in said
    assert "no trial 61" in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('needs = ["timestamps"]', 'needs = ["cherry-picking"]', "mtu: needs: 'cherry-picking'"),
        ('needs = ["timestamps"]', 'needs = ["mtu"]', "mtu: needs: 'mtu' doesn't come before it"),
        ("{ trial = 21, broken = { mtu", "{ trial = 61, broken = { mtu", "there is no trial 61"),
        ("{ mtu_bytes = 1000 }", "{ mtu_byte = 1000 }", "elsewhere: trial 7: mathis has no"),
        ("rtt_ms = { low = 0.8", "rtt_m = { low = 0.8", "vary: 'rtt_m' has no number to vary"),
        ("rtt_ms = { low = 0.8", "timestamps = { low = 0.8", "'timestamps' has no number"),
        ("low = 0.8, high = 1.25", "low = 1.8, high = 1.25", "less than or equal to 1"),
        ("loss_ratio = { low = 0.8, high = 1.25", "loss_ratio = { low = 0.8, high = 9", "vary"),
    ],
)
def test_what_instructors_are_told_is_checked(folder: Path, old: str, new: str, says: str) -> None:
    assert says in broken(folder, old, new)


def test_varied_values_are_of_the_mended_stage(folder: Path) -> None:
    lab = read_lab(folder)
    low, high = lab.varied(lab.pitfall("mtu"))["rtt_ms"]
    assert (low, high) == pytest.approx((0.8 * 6, 1.25 * 6))
