"""Settings that tell a case's cause are listed only where it is known; all are set as before."""

import json
import re
from pathlib import Path

import pytest
from all_cases import CASES, LABS, words_found
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import LabBook
from measuretwice.lab import make_copy, trial_params
from measuretwice.site.machine import settings_for_pages

ROOT = Path(__file__).parents[2]
MATHIS = next(lab for lab in LABS if lab.name == "mathis")


def no_design(lab: object, text: str) -> str:
    """A text without what the lab compares: the disciplines and algorithms of its own trials."""
    design = {str(value) for trial in lab.trials.values() for value in trial.set.values()}  # type: ignore[attr-defined]
    names = sorted((value for value in design if re.fullmatch(r"[a-z_]{3,}", value)), key=len)
    return re.sub(rf"\b({'|'.join(reversed(names))})\b", "", text) if names else text


@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_no_list_of_settings_tells_a_cause(lab, pitfall, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    number = lab.case_number(pitfall)
    unlisted = [name for name, setting in lab.file.parameters.items() if setting.unlisted]
    make_copy(tmp_path, lab, lab.visible_settings())
    run = next((ROOT / "sample-data" / lab.folder.name / f"case-{number:02d}-broken").glob("*/"))
    settings = settings_for_pages(lab, lab.visible_settings())
    shown = {
        "./lab list": call_lab("list", lab.name).stdout.partition("  --case 1:")[0],
        "./lab list --json": json.dumps(
            json.loads(call_lab("list", lab.name, "--json").stdout)[0]["parameters"]
        ),
        "settings.toml": (tmp_path / lab.name / "edit/settings.toml").read_text(encoding="utf-8"),
        "./lab show": call_lab("show", run, "settings").stdout.partition("\n")[2],
        "a page's fields": json.dumps(
            {name: [setting["help"], setting["choices"]] for name, setting in settings.items()}
        ),
    }
    for where, text in shown.items():
        assert "duration_s" in text, where
        text = re.sub(r"value +unit +meaning", "", no_design(lab, text))
        assert words_found(pitfall.key_words, text) == [], where
        for name in unlisted:
            assert not re.search(rf'(?m)(^\s*#?|"){name}("|:| =|  )', text), (where, name)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_what_only_stages_or_judges_is_unlisted(lab) -> None:  # type: ignore[no-untyped-def]
    """A word that no trial sets and a case's first try does is a way to stage it; all of these are unlisted."""
    by_trials = {name for trial in lab.trials.values() for name in trial.set}
    for pitfall in lab.file.pitfalls:
        for name, value in pitfall.broken.set.items():
            word = isinstance(value, str) and name != "congestion_control"
            if word and name not in by_trials:
                assert lab.file.parameters[name].unlisted, name


def book_of(folder: Path, case: int, kind: str, text: str) -> LabBook:
    book = LabBook(folder / "mathis", MATHIS)
    book.open(7)
    book.add(case, kind, text)
    return book


@pytest.mark.parametrize(
    ("kind", "text", "knows"),
    [
        ("Prediction", "80 Mbit/s", False),
        ("Hint", "1", False),
        ("Diagnosis", "none", False),
        ("Hint", "3", True),
        ("Diagnosis", "the packets are too small", True),
        ("Shown", "the fixed run", True),
        ("Outcome", "nothing is off any more", True),
    ],
)
def test_a_known_cases_settings_are_listed(
    tmp_path: Path, kind: str, text: str, knows: bool
) -> None:
    book = book_of(tmp_path, 5, kind, text)
    listed = MATHIS.visible_settings(book.known_cases())
    assert ("mtu_bytes" in listed) is knows
    assert "offloads" not in listed


def test_a_copy_of_ones_own_names_the_settings_of_known_cases_alone(tmp_path: Path) -> None:
    buffers = next(lab for lab in LABS if lab.name == "buffers")
    book = LabBook(tmp_path / "buffers", buffers)
    book.open(7)
    book.add(1, "Diagnosis", "the suffix means another size")
    assert call_lab("edit", "buffers", "--out", tmp_path).returncode == 0
    named = set(re.findall(r"(?m)^#(\w+) =", (tmp_path / "buffers/edit/settings.toml").read_text()))
    unlisted = {name for name, setting in buffers.file.parameters.items() if setting.unlisted}
    assert named & unlisted == {"buffer_text"}


def test_what_was_changed_is_shown_and_of_two_runs_what_differs(tmp_path: Path) -> None:
    def run(folder: str, case: int | None, trial: int, **changes: object) -> Path:
        place = tmp_path / "mathis" / folder
        place.mkdir(parents=True)
        params = trial_params(MATHIS, trial, case=case, seed=7, changes=changes)  # type: ignore[arg-type]
        plan = {"lab": "mathis", "trial": trial, "seed": 7, "case": case, "stage": None}
        (place / "plan.json").write_text(json.dumps({**plan, "params": params}))
        (place / "DONE").touch()
        (place / "raw").mkdir()
        return place

    first = run("first", 5, 9)
    own = run("own", 5, 9, mtu_bytes=4352)
    other = run("other", 6, 3)
    plain = run("plain", None, 7, offloads="on")

    def said(*arguments: object) -> str:
        return call_lab(*arguments).stdout

    assert "mtu_bytes" not in said("show", first, "settings")
    assert "4,352" in said("show", own, "settings")
    assert "offloads" not in said("show", other, "settings")
    assert "offloads" in said("show", plain, "settings")
    assert "mtu_bytes" in said("diff", first, own)
    assert "offloads" not in said("diff", first, other)
    # The same run among those of a first try: the kit has chosen its settings.
    place = tmp_path / "start/mathis"
    place.mkdir(parents=True)
    (place / "steps.json").write_text('{"steps": []}')
    plain.rename(place / "plain")
    assert "offloads" not in said("show", place / "plain", "settings")
    book_of(tmp_path, 6, "Outcome", "nothing is off any more")
    assert "offloads" in said("show", place / "plain", "settings")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("mtu", "it has rtt_ms, mss_bytes, loss_ratio"),
        ("tso", "it has rtt_ms, mss_bytes, loss_ratio"),
        ("rtt", "near it is rtt_ms"),
        ("durations_s", "near it is duration_s"),
        ("nothing_like_it", "it has rtt_ms, mss_bytes, loss_ratio"),
    ],
)
def test_a_name_that_isnt_known_gets_its_neighbours(asked: str, answer: str) -> None:
    with pytest.raises(UserError, match=re.escape(answer)):
        MATHIS.read_value(asked, "1", "--set")


@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_no_name_suggests_another_cases_setting(lab, pitfall) -> None:  # type: ignore[no-untyped-def]
    """Whatever is asked for: only what lists have, and of the case that is known its own."""
    unlisted = {name for name, setting in lab.file.parameters.items() if setting.unlisted}
    helps = " ".join(setting.help for setting in lab.file.parameters.values())
    words = {*re.findall(r"[a-z0-9]+", helps.casefold()), *pitfall.key_words}
    words |= {part for name in unlisted for part in (name[:-1], *name.split("_"))}
    own = unlisted & pitfall.settings
    offered = set()
    for word in sorted(words - lab.file.parameters.keys()):
        for due in ((), own):
            with pytest.raises(UserError) as raised:
                lab.read_value(word, "1", "--set", due=due)
            _, _, names = str(raised.value).rpartition("; ")
            near = {name for name in unlisted if re.search(rf"\b{name}\b", names)}
            assert near <= set(due), (word, near)
            offered |= near
    assert offered == own


def test_one_setting_has_one_description_in_all_labs() -> None:
    """But where it is of other nodes: whose algorithm, whose queue, who waits."""
    queues = {"limit_packets", "buffer_bytes", "fifo_packets", "fifo_bytes"}
    of_nodes = queues | {"start_spread_ms", "rate_mbit"}
    described: dict[str, set[str]] = {}
    for lab in LABS:
        for name, parameter in lab.file.parameters.items():
            if parameter.numeric and name not in of_nodes:
                described.setdefault(name, set()).add(parameter.help)
    assert [name for name, texts in described.items() if len(texts) > 1] == []


def test_instructors_list_all() -> None:
    output = call_lab("list", "mathis", "--all").stdout
    assert all(f"  {name}" in output for name in MATHIS.file.parameters)
