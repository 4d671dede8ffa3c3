"""Nobody is told what they could find: a case's key words stand nowhere before its diagnosis."""

import html
import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from all_cases import CASES, LABS, told
from click.testing import CliRunner

from measuretwice.cli.commands import cli
from measuretwice.lab import Lab, Pitfall, trial_params
from measuretwice.site.words import here
from measuretwice.site.words.subjects import LabWords

ROOT = Path(__file__).parents[2]
# What tools printed and what is typed is shown as it is: there the clue is to be found.
VERBATIM = {"pre", "script", "style", "svg"}
VOID = {"br", "img", "input", "hr", "meta", "link", "wbr"}


class BeforeDiagnosis(HTMLParser):
    """The words of a page's article up to the fold of its diagnosis, the first hint among them."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self._in_article = self._done = False
        self._hints = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        if tag == "article":
            self._in_article = True
        self._done |= of.get("data-behind") == "diagnosis"
        if tag in VOID:
            self.words.append(of.get("alt") or "")
            return
        is_hint = tag == "details" and "tip" in (of.get("class") or "")
        self._hints += is_hint
        unread = tag in VERBATIM or (is_hint and self._hints > 1)
        self._open.append((tag, unread))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._in_article and not self._done and not any(unread for _, unread in self._open):
            self.words.append(data)


def page_of(site: Path, lab: Lab, pitfall: Pitfall) -> Path:
    return site / f"modules/{lab.folder.name}/case-{lab.case_number(pitfall):02d}/index.html"


@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_a_page_tells_no_cause_before_its_diagnosis(
    student: Path, lab: Lab, pitfall: Pitfall
) -> None:
    parser = BeforeDiagnosis()
    parser.feed(page_of(student, lab, pitfall).read_text(encoding="utf-8"))
    text = " ".join(parser.words)
    assert pitfall.hints[0].split()[0] in text
    assert told(pitfall.key_words, text) == []


@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_how_long_a_page_will_take_tells_no_cause(lab: Lab, pitfall: Pitfall) -> None:
    words = LabWords(ROOT, lab, runs_here=True)
    first, mend = here.of_stage(words, pitfall.id, "broken"), here.of_trying(words, pitfall.id)
    said = [re.search("likely_s&quot;: ([0-9]+)", place) for place in (first, mend)]
    if said[0] and said[1]:
        assert said[0][1] == said[1][1]


@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_the_checker_names_no_cause_before_the_last_hint(lab: Lab, pitfall: Pitfall) -> None:
    number = lab.case_number(pitfall)
    folder = ROOT / "sample-data" / lab.folder.name / f"case-{number:02d}-broken"
    for hint in ([], ["--hint", "1"]):
        done = CliRunner().invoke(cli, ["check", str(folder), *hint])
        assert done.exit_code == 1, done.output
        assert told([pitfall.id, pitfall.finding, *pitfall.key_words], done.output) == []
    last = CliRunner().invoke(cli, ["check", str(folder), "--hint", "3"]).output
    assert pitfall.finding in last


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("01-mathis/case-05", ["segment", "segments", "mss_bytes", "1460", "4312"]),
        ("01-mathis/case-04", ["segment", "segments", "mss_bytes"]),
        ("05-queues/case-01", ["link", "full", "in use", "its queue", "before it"]),
    ],
)
def test_without_a_hint_the_checker_says_how_much_and_not_where(
    place: str, words: list[str]
) -> None:
    folder = ROOT / "sample-data" / f"{place}-broken"
    said = CliRunner().invoke(cli, ["check", str(folder)]).output
    assert "something is off" in said
    assert "and because of that" not in said
    assert told(words, said) == []
    assert told(words, CliRunner().invoke(cli, ["check", str(folder), "--hint", "2"]).output)


@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_the_last_hint_does(lab: Lab, pitfall: Pitfall) -> None:
    assert told(pitfall.key_words, pitfall.hints[2])


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_labs_own_facts_tell_no_cause(student: Path, lab: Lab) -> None:
    """What a front page begins with: what one learns, and the network; and it calls a case a case."""
    facts = " ".join([*lab.file.lab.objectives, lab.file.topology.art])
    for pitfall in lab.file.pitfalls:
        assert told([pitfall.id, *pitfall.key_words], facts) == []
    if lab.file.pitfalls:
        front = (student / f"modules/{lab.folder.name}/index.html").read_text(encoding="utf-8")
        assert "Cases to solve" in front
        assert "Mistakes to make" not in front


@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_how_to_run_a_case_by_hand_tells_no_setting(
    student: Path, lab: Lab, pitfall: Pitfall
) -> None:
    """What a node is told can't be read before the diagnosis, and a shell reads it all the same."""
    page = page_of(student, lab, pitfall).read_text(encoding="utf-8")
    before, _, after = page.partition('data-behind="diagnosis"')
    assert after
    assert "export" not in before.partition("<article")[2]
    commands = html.unescape(re.sub(r"<[^>]+>", "", before))
    packed = re.findall(r'eval "\$\(base64 -d <<<[A-Za-z0-9+/=]+\)"', commands)
    scripts = "".join(path.read_text() for path in sorted((lab.folder / "nodes").glob("*.*")))
    if not packed:
        # What the case sets is nothing that a node reads: a way to judge, and the scripts' defaults.
        assert not any(name.upper() in scripts for name in pitfall.broken.set)
        return
    done = subprocess.run(
        ["bash", "-euc", "\n".join([*packed, "env"])],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    told_shell = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    params = trial_params(lab, pitfall.trial, case=lab.case_number(pitfall))
    known = {name.upper(): value for name, value in params.items()}
    assert len(told_shell.keys() & known.keys()) > 0
    for name in told_shell.keys() & known.keys():
        value = known[name]
        assert told_shell[name] == value or float(told_shell[name]) == pytest.approx(value)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_lists_and_recorded_sets_say_what_is_seen(lab: Lab) -> None:
    shown = CliRunner().invoke(cli, ["list"]).output
    for pitfall in lab.file.pitfalls:
        assert pitfall.symptom in shown
        assert told(pitfall.key_words, pitfall.symptom) == []
        assert pitfall.id not in shown.split()
    for path in sorted((ROOT / "sample-data" / lab.folder.name).glob("case-*/*/*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        for key in ("pitfall", "command"):
            assert not told([p.id for p in lab.file.pitfalls], str(document.get(key)))


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("05-queues/case-03", "one word that tc prints of the router's queue isn't the trial's"),
        ("05-queues/case-05", "22 rows averaged, 20 expected"),
        (
            "04-variants/case-05",
            "145 of 150 rows of the table don't fit what ss printed at the same times",
        ),
    ],
)
def test_without_a_hint_it_says_what_is_off_where_and_by_how_much(case: str, says: str) -> None:
    """Nothing of what follows from it, which would say where it comes from."""
    folder = ROOT / "sample-data" / f"{case}-broken"
    said = CliRunner().invoke(cli, ["check", str(folder)]).output.splitlines()
    at = said.index("  something is off")
    assert said[at + 1 : at + 3] == [f"    {says}", f"    page: modules/{case}/"]


def test_a_module_s_first_page_leads_from_no_assumption_to_the_case_that_breaks_it() -> None:
    text = (ROOT / "docs/modules/01-mathis/index.md").read_text(encoding="utf-8")
    [assumed] = re.findall("The derivation assumes that(.+?)Every mistake", text, re.DOTALL)
    assert "there are no timeouts" in assumed
    assert "case-" not in assumed
    # That trials must be long enough is what case 2 finds, and where the model ends case 10.
    assert not re.search(r"\(case-(02|10)\.md", text)
