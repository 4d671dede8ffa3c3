"""Nobody is told what they could find: of a case that isn't solved, no surface says the cause.

A surface is something that a student may see. Each stands in SURFACES, a line or two: what it says of a case, and which
words must not be among it. One test a surface looks at all cases.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from all_cases import LABS, words_found
from click.testing import CliRunner

from measuretwice.backends.live_script import page_live_script
from measuretwice.backends.script import guest_script, hide_exports
from measuretwice.base.errors import UserError
from measuretwice.cli.main import cli
from measuretwice.course.case import read_changes
from measuretwice.lab import Lab, Plan, Toolchain, hide_unlisted, make_plan, trial_params
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.runs.result import for_students
from measuretwice.site.macros import LabContext, browser_run
from measuretwice.site.macros.figure_files import symptom_pictures
from measuretwice.site.macros.lab import network

ROOT = Path(__file__).parents[2]
CASES = [(lab, pitfall) for lab in LABS for pitfall in lab.file.pitfalls]
# What tools printed and what is typed is shown as it is: there the clue is to be found.
VERBATIM = {"pre", "script", "style", "svg"}
VOID = {"br", "img", "input", "hr", "meta", "link", "wbr"}
# A place on a surface, and what it says there.
Said = Iterator[tuple[str, str]]


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
        self._done |= of.get("data-behind") in ("judgement", "diagnosis")
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


def case_place(lab: Lab, pitfall: Pitfall) -> str:
    return f"modules/{lab.folder.name}/case-{lab.case_number(pitfall):02d}"


def recorded(lab: Lab, pitfall: Pitfall) -> Path:
    return ROOT / "sample-data" / lab.folder.name / f"case-{lab.case_number(pitfall):02d}-broken"


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def plain(path: Path) -> str:
    """All words of a page."""
    return html.unescape(re.sub(r"<[^>]+>", " ", read(path)))


@cache
def lab_says(*words: str) -> str:
    """What ./lab prints; each is asked for once, whatever is then looked for."""
    return CliRunner().invoke(cli, list(words)).output


# The surfaces: what each says of a case, by place.


def page(student: Path, lab: Lab, pitfall: Pitfall) -> Said:
    parser = BeforeDiagnosis()
    name = f"{case_place(lab, pitfall)}/index.html"
    parser.feed(read(student / name))
    text = " ".join(parser.words)
    assert pitfall.hints[0].split()[0] in text, "the page up to its first hint"
    yield name, text


@cache
def index_of(student: Path) -> list[dict[str, str]]:
    return list(json.loads(read(student / "search/search_index.json"))["docs"])


def found_by_search(student: Path, lab: Lab, pitfall: Pitfall) -> Said:
    place = f"{case_place(lab, pitfall)}/"
    parts = [part for part in index_of(student) if part["location"].startswith(place)]
    assert any("Predict" in part["title"] for part in parts)
    # The page of all key points names every cause, and that of a report one: the search knows only that they are there.
    parts += [
        part
        for part in index_of(student)
        if part["location"].startswith(("modules/key-points/", "modules/report/"))
    ]
    for part in parts:
        yield part["location"], f"{part['title']} {part['text']}"


def rows_of_symptoms(student: Path, lab: Lab, pitfall: Pitfall) -> Said:
    name = "reference/troubleshooting/index.html"
    for row in re.findall(r"<tr>.*?</tr>", read(student / name), re.DOTALL):
        if f"{case_place(lab, pitfall)}/" in row:
            yield name, re.sub(r"<[^>]+>", " ", row)


def descriptions(student: Path, lab: Lab, pitfall: Pitfall) -> Said:
    folder = student / "modules" / lab.folder.name
    for name in ("", "case-*/", "print/", "sheet/", "questions/"):
        for path in sorted(folder.glob(f"{name}index.html")):
            description = re.search(r'<meta name="description" content="([^"]*)"', read(path))
            assert description, path
            yield path.relative_to(student).as_posix(), html.unescape(description[1])


def finished_report(student: Path, lab: Lab, pitfall: Pitfall) -> Said:
    """It tells the one case that it says it tells."""
    name = "modules/report/index.html"
    if (lab.name, lab.case_number(pitfall)) != ("mathis", 1):
        yield name, read(student / name).partition("<article")[2]


def on_paper(student: Path, lab: Lab, pitfall: Pitfall) -> Said:
    name = f"modules/{lab.folder.name}/print/index.html"
    yield name, plain(student / name)


def plan_for_a_class(student: Path, lab: Lab, pitfall: Pitfall) -> Said:
    name = f"instructors/tuesday/{lab.folder.name}/index.html"
    article = read(student / name).partition("<article")[2].partition("</article>")[0]
    text = re.sub(r'<img[^>]*\balt="([^"]*)"[^>]*>', r" \1 ", article)
    text = re.sub(r"<(pre|code|svg|style|script)\b.*?</\1>", " ", text, flags=re.DOTALL)
    yield name, html.unescape(re.sub(r"<[^>]+>", " ", text))


def front_of_a_lab(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    yield f"{lab.name}'s objectives", " ".join(lab.file.lab.objectives)
    yield f"{lab.name}'s network", lab.file.topology.art


def figure_of_the_symptom(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    """Its description, and each word in the picture; that beside the run after the change stands behind the diagnosis."""
    folder = symptom_pictures(LabContext(ROOT, lab), pitfall)
    for name, known in json.loads(read(folder / "figures.json")).items():
        if name.endswith("-first"):
            drawn = ElementTree.fromstring(read(folder / f"{name}.svg"))
            yield name, " ".join([known["alt"], *drawn.itertext()])


def drawing_of_the_network(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    drawn = network(LabContext(ROOT, lab), case=pitfall.id)
    yield "its texts", html.unescape(" ".join(re.findall(r">([^<]+)<", drawn)))


def what_is_seen(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    assert pitfall.symptom in lab_says("list")
    # As a word of its own: one is called by a field that tools print, too.
    assert pitfall.id not in lab_says("list").split()
    yield "its symptom", pitfall.symptom


def lab_list(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    yield "./lab list", lab_says("list")


def lab_check(_: None, lab: Lab, pitfall: Pitfall, *hint: str) -> Said:
    output = lab_says("check", str(recorded(lab, pitfall)), *hint)
    assert re.search("something (is|may be) off", output)
    # What was measured beside what was meant is most of a cause.
    assert not re.search("^ *(measured|expected):", output, re.MULTILINE), output
    yield "./lab check", output


def lab_check_with_a_hint(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    yield from lab_check(None, lab, pitfall, "--hint", "1")


def lab_show(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    run = sorted(recorded(lab, pitfall).glob("*/"))[0]
    yield "./lab show", lab_says("show", str(run))


def lab_show_what_was_set_and_measured(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    run = sorted(recorded(lab, pitfall).glob("*/"))[0]
    for what in ("settings", "measured"):
        rows = re.findall(r"^  (\w+)  ", lab_says("show", str(run), what), re.MULTILINE)
        assert "duration_s" in rows or what == "measured"
        yield f"./lab show RUN {what}", " ".join(rows)


def list_of_settings(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    settings = (
        lab_says("list", lab.name)
        .partition("  settings and their values")[2]
        .partition("  --case 1:")[0]
    )
    yield f"./lab list {lab.name}", " ".join(re.findall(r"^  (\w+)", settings, re.MULTILINE))


def plan_of(lab: Lab, pitfall: Pitfall) -> Plan:
    """Of a case's run that a student makes."""
    toolchain = Toolchain("virtual", "k", {}, {})
    case = lab.case_number(pitfall)
    return make_plan(lab, pitfall.trial, seed=7, toolchain=toolchain, case=case)


def plan_of_a_run(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    """As job.py and live/session.py write it; tests/run reads those of real runs."""
    yield "plan.json", json.dumps(hide_unlisted(lab, plan_of(lab, pitfall).to_json()))


def result_of_a_run(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    """As runs.write_result writes it, and ./lab check --json prints such values."""
    for path in sorted(recorded(lab, pitfall).glob("*/result.json")):
        yield "result.json", json.dumps(for_students(lab, json.loads(read(path))))


def variables_of(script: str) -> str:
    return " ".join(re.findall(r"(?<!\\x)\b[A-Z][A-Z0-9_]+\b(?==)", script)).lower()


def script_of_a_run(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    script = hide_exports(lab, guest_script(lab, plan_of(lab, pitfall)))
    assert "duration_s" in variables_of(script)
    yield "experiment.sh", variables_of(script)


def environment_of_a_live_pane(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    """What stands in the script that brings a live lab up is in its shells' environment."""
    script = page_live_script(lab, plan_of(lab, pitfall))
    assert "duration_s" in variables_of(script)
    yield "a live lab", variables_of(script)


def suggestions_of_set(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    """What --set offers to a name that it doesn't know: a word of the cause, or nearly the setting's own."""
    nearly = (name[:-1] for name in unlisted_settings(lab, pitfall))
    for word in (*pitfall.key_words, *nearly):
        if word.replace(" ", "_") in lab.file.parameters:
            continue
        with pytest.raises(UserError) as raised:
            read_changes(lab, [f"{word.replace(' ', '_')}=1"])
        yield f"--set {word}", str(raised.value).rpartition("; ")[2]


def recorded_documents(_: None, lab: Lab, pitfall: Pitfall) -> Said:
    for path in sorted(recorded(lab, pitfall).glob("*/*.json")):
        document = json.loads(read(path))
        yield path.name, f"{document.get('pitfall')} {document.get('command')}"


def facts_of_a_release(release: Path, lab: Lab, pitfall: Pitfall) -> Said:
    yield "lab.toml", read(release / "labs" / lab.folder.name / "lab.toml")


def recorded_set_of_a_release(release: Path, lab: Lab, pitfall: Pitfall) -> Said:
    folder = release / recorded(lab, pitfall).relative_to(ROOT)
    document = json.loads(read(folder / "results.json"))
    yield "results.json", f"{document['set']} {document['title']}"


# Which words tell.


def unlisted_settings(lab: Lab, _: Pitfall) -> list[str]:
    """Of all cases: who plays one has the others before them."""
    return [name for name, setting in lab.file.parameters.items() if setting.unlisted]


def unlisted_settings_and_values(lab: Lab, pitfall: Pitfall) -> list[str]:
    about_drops = any(it.predict.value == "other_qdisc_drops" for it in lab.file.pitfalls)
    names = [*unlisted_settings(lab, pitfall), "rate_rows_spanning", "host_1_seconds_deviation_bps"]
    return [*names, "other_qdisc_drops"] if about_drops else names


def key_words(_: Lab, pitfall: Pitfall) -> list[str]:
    return pitfall.key_words


def key_words_not_seen(_: Lab, pitfall: Pitfall) -> list[str]:
    """What is seen may be said."""
    return [word for word in pitfall.key_words if word not in pitfall.symptom]


def name_and_key_words(_: Lab, pitfall: Pitfall) -> list[str]:
    return [pitfall.id, *pitfall.key_words]


def finding_and_key_words(_: Lab, pitfall: Pitfall) -> list[str]:
    return [pitfall.id, pitfall.finding, *pitfall.key_words]


def name_and_title(_: Lab, pitfall: Pitfall) -> list[str]:
    return [pitfall.id, pitfall.title]


def title_and_hints(_: Lab, pitfall: Pitfall) -> list[str]:
    return [pitfall.title, *pitfall.hints]


def title(_: Lab, pitfall: Pitfall) -> list[str]:
    return [pitfall.title]


def headings_and_hints(_: Lab, pitfall: Pitfall) -> list[str]:
    return [pitfall.title, *pitfall.hints, "What is wrong", "Hint 3: The cause"]


def all_names(lab: Lab, _: Pitfall) -> list[str]:
    return [other.id for other in lab.file.pitfalls]


def all_names_and_key_words(lab: Lab, pitfall: Pitfall) -> list[str]:
    return [*all_names(lab, pitfall), *pitfall.key_words]


@dataclass(frozen=True)
class Surface:
    """What `read` finds of a case, in what the fixture `of` made; none of the `secret` words is among it.

    `few`: it says something of some cases only.
    """

    read: Callable[[Any, Lab, Pitfall], Said]
    secret: Callable[[Lab, Pitfall], list[str]]
    of: str = ""
    few: bool = False

    @property
    def name(self) -> str:
        return self.read.__name__.replace("_", " ")


SURFACES = [
    Surface(page, key_words, of="student"),
    Surface(found_by_search, headings_and_hints, of="student"),
    Surface(rows_of_symptoms, key_words, of="student", few=True),
    Surface(descriptions, key_words_not_seen, of="student"),
    Surface(on_paper, title_and_hints, of="student"),
    Surface(finished_report, title_and_hints, of="student", few=True),
    Surface(plan_for_a_class, name_and_title, of="student"),
    Surface(front_of_a_lab, name_and_key_words),
    Surface(figure_of_the_symptom, key_words),
    Surface(drawing_of_the_network, key_words),
    Surface(what_is_seen, key_words),
    Surface(lab_list, title),
    Surface(lab_check_with_a_hint, finding_and_key_words),
    Surface(lab_check, finding_and_key_words),
    Surface(lab_show, title_and_hints),
    Surface(lab_show_what_was_set_and_measured, unlisted_settings_and_values, few=True),
    Surface(list_of_settings, unlisted_settings),
    Surface(plan_of_a_run, unlisted_settings),
    Surface(result_of_a_run, unlisted_settings_and_values, few=True),
    Surface(script_of_a_run, unlisted_settings),
    Surface(environment_of_a_live_pane, unlisted_settings),
    Surface(suggestions_of_set, unlisted_settings),
    Surface(recorded_documents, all_names),
    Surface(facts_of_a_release, title, of="release"),
    Surface(recorded_set_of_a_release, all_names_and_key_words, of="release"),
]


def tells(surface: Surface, made: Any) -> list[str]:
    """Where which case's cause is told, and by which word."""
    found = []
    for lab, pitfall in CASES:
        case = f"{surface.name}, {lab.name}, case {lab.case_number(pitfall)}"
        parts = list(surface.read(made, lab, pitfall))
        assert surface.few or any(text.strip() for _, text in parts), f"{case}: it says nothing"
        secret = [word.replace("`", "") for word in surface.secret(lab, pitfall)]
        for place, text in parts:
            for word in words_found(secret, text.replace("`", "")):
                found.append(f"{case}: {place} says {word!r}")
    return found


def by_day(surface: Surface) -> Any:
    reason = "by day with its first hint, where all of it stands, too"
    marks = [pytest.mark.nightly(reason)] if surface.read is lab_check else []
    return pytest.param(surface, id=surface.name, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("surface", [by_day(surface) for surface in SURFACES])
def test_no_surface_tells_a_cause(request: pytest.FixtureRequest, surface: Surface) -> None:
    assert tells(surface, request.getfixturevalue(surface.of) if surface.of else None) == []


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.name)
def test_a_surface_that_tells_is_found(surface: Surface) -> None:
    """Each word of each case, by surface, case and word."""

    def talkative(_: None, lab: Lab, pitfall: Pitfall) -> Said:
        for word in surface.secret(lab, pitfall):
            yield "a page", f"it is ({word.upper()}), you see"

    found = tells(replace(surface, read=talkative), None)
    assert len(found) >= len(CASES)
    lab, last = CASES[-1]
    number, word = lab.case_number(last), surface.secret(lab, last)[-1].replace("`", "")
    assert f"talkative, {lab.name}, case {number}: a page says {word!r}" in found


def test_the_index_holds_nothing_behind_a_diagnosis(student: Path) -> None:
    for lab, pitfall in CASES:
        place = case_place(lab, pitfall)
        parts = {part["location"]: part["text"] for part in index_of(student)}
        assert parts[f"{place}/#predict"]
        for behind in ("fix-it", "run-again"):
            # A case that a question solves may have nothing to run again.
            if behind == "fix-it" or not pitfall.judgement:
                assert f'id="{behind}"' in read(student / place / "index.html"), place
            assert parts.get(f"{place}/#{behind}", "") == "", place


def test_how_long_a_page_will_take_tells_no_cause() -> None:
    for lab, pitfall in CASES:
        words = LabContext(ROOT, lab, runs_here=True)
        first = browser_run.stage_run(words, pitfall.id, "broken")
        fix = browser_run.fix_run(words, pitfall.id)
        likely = [re.search("likely_s&quot;: ([0-9]+)", place) for place in (first, fix)]
        if likely[0] and likely[1]:
            assert likely[0][1] == likely[1][1], (lab.name, pitfall.id)


@pytest.mark.slow
def test_the_last_hint_tells_it() -> None:
    """The checker knows the cause all the while: of each case by tests/check, of a lab's first by its output here."""
    for lab, pitfall in CASES:
        assert words_found(pitfall.key_words, pitfall.hints[2]), (lab.name, pitfall.id)
        if lab.case_number(pitfall) == 1:
            without, first, last = (
                lab_says("check", str(recorded(lab, pitfall)), *hint)
                for hint in ((), ("--hint", "1"), ("--hint", "3"))
            )
            assert pitfall.finding in last, (lab.name, pitfall.id)
            # What is said without a hint is said with one, but for how to have it.
            only = set(without.splitlines()) - set(first.splitlines())
            assert all(line.startswith("--hint 1") for line in only), (lab.name, only)


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
    folder = str(ROOT / "sample-data" / f"{place}-broken")
    output = lab_says("check", folder)
    assert "something is off" in output
    assert "and because of that" not in output
    assert words_found(words, output) == []
    assert words_found(words, lab_says("check", folder, "--hint", "2"))


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_front_page_calls_a_case_a_case(student: Path, lab: Lab) -> None:
    if lab.file.pitfalls:
        front = read(student / f"modules/{lab.folder.name}/index.html")
        assert "Cases to solve" in front
        assert "Mistakes to make" not in front


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_front_page_leads_to_the_first_deed_at_once(student: Path, lab: Lab) -> None:
    """The question, the first try, the network, the runs; what theory there is comes after."""
    if lab.file.pitfalls:
        front = read(student / f"modules/{lab.folder.name}/index.html")
        article = front.partition("<article")[2]
        headings = re.findall(r'<h2 id="([^"]+)"', article)
        places = [headings.index(name) for name in ("first-try", "the-network", "run-it")]
        assert places == sorted(places)
        assert places[0] == 0
        before = re.sub(r"<[^>]+>", " ", article.partition('<h2 id="first-try"')[0])
        # Words that the glossary explains stand apart.
        asked = "".join(lab.file.lab.question.split())
        assert asked in "".join(html.unescape(before).split())
        # Of a page of text one reads two hundred words a minute.
        to_the_runs = re.sub(
            r"<svg.*?</svg>|<[^>]+>", " ", article.partition('<h2 id="run-it"')[0], flags=re.DOTALL
        )
        assert len(to_the_runs.split()) < 10 * 200


def test_how_to_run_a_case_by_hand_tells_no_setting(student: Path) -> None:
    """What a node is told can't be read before the diagnosis, and a shell reads it all the same."""
    for lab, pitfall in CASES:
        page = read(student / case_place(lab, pitfall) / "index.html")
        before, _, after = page.partition('data-behind="diagnosis"')
        case = f"{lab.name} {lab.case_number(pitfall)}"
        assert after, case
        assert "export" not in before.partition("<article")[2], case
        commands = html.unescape(re.sub(r"<[^>]+>", "", before))
        packed = re.findall(r'eval "\$\(base64 -d <<<[A-Za-z0-9+/=]+\)"', commands)
        scripts = "".join(path.read_text() for path in sorted((lab.folder / "nodes").glob("*.*")))
        if not packed:
            # What the case sets is nothing that a node reads: a way to judge, and the scripts' defaults.
            assert not any(name.upper() in scripts for name in pitfall.broken.set), case
            continue
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
        assert len(told_shell.keys() & known.keys()) > 0, case
        for name in told_shell.keys() & known.keys():
            value = known[name]
            assert told_shell[name] == value or float(told_shell[name]) == pytest.approx(value), (
                case
            )


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("05-queues/case-03", "one word that tc prints of the router's queue isn't the trial's"),
        (
            "05-queues/case-05",
            "the senders' figure from their rates doesn't follow from the test's seconds",
        ),
        ("05-queues/case-06", "one thing that iperf3 wrote doesn't fit the trial"),
        ("02-buffers/case-01", "one number that tc prints of the router's queue isn't the trial's"),
        (
            "04-variants/case-05",
            "145 of 150 rows of the table don't fit what ss printed at the same times",
        ),
    ],
)
def test_without_a_hint_it_says_what_is_off_where_and_by_how_much(case: str, says: str) -> None:
    """Nothing of what follows from it, which would say where it comes from."""
    folder = ROOT / "sample-data" / f"{case}-broken"
    lines = lab_says("check", str(folder)).splitlines()
    at = lines.index("  something is off")
    assert lines[at + 1 : at + 3] == [f"    {says}", f"    page: modules/{case}/"]


def test_a_module_s_first_page_leads_from_no_assumption_to_the_case_that_breaks_it() -> None:
    text = (ROOT / "docs/modules/01-mathis/index.md").read_text(encoding="utf-8")
    [assumed] = re.findall("The derivation assumes that(.+?)Most mistakes", text, re.DOTALL)
    assert "there are no timeouts" in assumed
    assert "case-" not in assumed
    # That trials must be long enough is what case 2 finds, and where the model ends case 10.
    assert not re.search(r"\(case-(02|10)\.md", text)
