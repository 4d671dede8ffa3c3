"""Every case of every lab, played on its page by what stands there, from the prediction to "solved".

A student reads the check's lines, writes down a diagnosis, and takes from what then opens the setting to change and its
new value; a case that a question solves is answered, with the number that the runs of this very browser give. Where a
page says that its machine can't make the first run, or that the fix takes long, it has to name the terminal's command.
tests/run/test_every_case_played.py plays the same cases at a terminal.

All forty take an hour and a half of one quiet CPU by what the pages say, and most of that is the browser's machine at
work. So `make test-nightly` plays those of one lab, and `make test-all` all of them. Each has a time limit, and a table
at the end says how long each took.
"""

from __future__ import annotations

import faulthandler
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browsers_machine
import pytest
from all_cases import CASES
from kept_runs import kept_runs

from measuretwice.book.prediction import number_of
from measuretwice.lab import Lab
from measuretwice.lab.schema.cases import Judgement, Pitfall
from measuretwice.runs.result import read_result

SEED = "77"
PREDICTION = "5, a guess of somebody's"
DIAGNOSIS = "it was what the page says further down"
# A browser on a busy machine takes many times as long as its page says, and Python has to start first.
TIMES_LIKELY, START_S = 20, 300
# What is likely to take longer, a page advises to run in a terminal.
LONG_S = 600
ENDED = re.compile(r"^(Done|Measured already|Nothing was measured again|It didn|Change something)")

pytestmark = [
    pytest.mark.skipif(bool(browsers_machine.lacking()), reason=browsers_machine.lacking()),
    pytest.mark.slow,
]


def plain(text: str) -> str:
    return text.replace(" ", "")


def of_unit(number: str, unit: str) -> str:
    """A rate in Mbit/s."""
    return f"{float(plain(number)) * {'Mbit/s': 1, 'Gbit/s': 1000}[unit]:g}"


def mebibytes(number: str) -> str:
    return str(int(number) * 2**20)


def with_room(number: str) -> str:
    """Ten times what is in a queue by the page's account."""
    return str(10 * int(plain(number)))


# The lab whose cases are short, and of every kind: a setting, one that is taken away, several trials, a question.
BY_NIGHT = "queues"
PLAYED = [
    pytest.param(
        *case.values,
        id=case.id,
        marks=() if str(case.id).startswith(BY_NIGHT) else pytest.mark.release,
    )
    for case in CASES
]

# How a student finds a setting's new value in what opens behind the diagnosis, where the setting takes more than two:
# the words around it, and what is worked out from them. Settings of which the page names no value stay as they are.
READ: dict[str, dict[str, tuple[str, Callable[..., str]]]] = {
    "mathis-2": {"duration_s": (r"DURATION_S becomes (\d[\d ]*)", plain)},
    "mathis-3": {"rate_mbit": (r"own setting is (\d[\d .]*) (\wbit/s)", of_unit)},
    "mathis-5": {"mtu_bytes": (r"needs an MTU of \d+ \+ 40 = (\d[\d ]*)", plain)},
    "mathis-8": {"limit_packets": (r"The lab allows (\d[\d ]*)", plain)},
    "mathis-9": {
        "wmem_max_bytes": (r"takes (\d+) MiB for the sender", mebibytes),
        "rmem_max_bytes": (r"and (\d+) MiB for the receiver", mebibytes),
    },
    "mathis-12": {"constant_claimed": (r"has to be corrected: .{1,200}? near (\d\.\d+)", plain)},
    "buffers-3": {"host_limit_packets": (r"would have to hold (\d[\d ]*) of them", with_room)},
    "buffers-4": {"queue_by": (r"by the (word) before it", plain)},
    "buffers-5": {"cwnd_trace": (r"each row to (one) unit", "{}-unit".format)},
    "scale-2": {"halvings_by": (r"kernel.s own (events)", plain)},
    "variants-3": {
        "duration_s": (r"get in a (minute)", {"minute": "60"}.__getitem__),
        "average_from_s": (r"averaged over the (second half)", {"second half": "30"}.__getitem__),
    },
    "variants-4": {
        "report_interval_s": (r"can report every (tenth) of a", {"tenth": "0.1"}.__getitem__)
    },
    "queues-1": {"rate_mbit": (r"does a link of (\d[\d .]*) (\wbit/s) take", of_unit)},
    "queues-4": {"red_limit_bytes": (r"with a limit of (\d[\d ]*)", plain)},
}
# How many runs of each trial make a case's conclusion a sound one, where no setting is wrong.
RUNS = {
    "mathis-13": r"tries of each until it fits, at most (\d+)",
    "buffers-6": r"will (\d+) runs of each tell",
    "variants-6": r"will (\d+) runs of each tell",
}
# A setting's line behind the diagnosis: its name, its value now, and the words that it takes.
SETTING = re.compile(
    r"^(?P<name>\w+)(?: \((?:now (?P<now>[^;)]+))?(?:; )?(?:takes (?P<takes>.+?))?\))?: "
)


def asked_of(panel: Any) -> dict[str, Any]:
    """What a panel is for, and how long its runs are likely to take."""
    return dict(json.loads(panel.get_attribute("data-here")))


class Student:
    """A reader of a case's page, who goes down it from heading to heading."""

    def __init__(self, page: Any, address: str, lab: Lab, number: int) -> None:
        self.page, self.lab, self.number = page, lab, number
        page.set_default_timeout(1000 * START_S)
        page.goto(f"{address}modules/{lab.folder.name}/case-{number:02d}/")
        self.behind = page.locator('details.behind[data-behind="diagnosis"]')

    @property
    def case(self) -> str:
        """Its name in the tables above."""
        return f"{self.lab.name}-{self.number}"

    def panel(self, kind: str) -> Any:
        """The panel of a kind."""
        return self.page.locator(f'.here[data-here*=\'"kind": "{kind}"\']')

    def opens(self, summary: str) -> None:
        self.page.locator("summary", has_text=summary).first.click()

    def longest_s(self) -> float:
        """How long the runs of any of the page's panels may take."""
        panels = self.page.locator(".here[data-here]").all()
        likely_s = [asked_of(panel)["likely_s"] for panel in panels]
        return float(START_S + TIMES_LIKELY * max(likely_s))

    def writes(self, kind: str, words: str) -> None:
        field = self.page.locator(f".notebook[data-kind={kind}]").first
        field.locator("input, textarea").fill(words)
        field.locator("button").click()
        field.get_by_text("Written down, in this browser.").wait_for()

    def runs(self, panel: Any, limit_s: float) -> str:
        """Press the button; return all that the panel says at the end, which is no complaint."""
        panel.get_by_role("button", name="Run it here").click()
        says = panel.locator(".here-says").first
        until = time.monotonic() + limit_s
        while not ENDED.match(says.inner_text()):
            assert time.monotonic() < until, says.inner_text()
            self.page.wait_for_timeout(500)
        assert "here-wrong" not in says.get_attribute("class"), says.inner_text()
        return str(panel.inner_text())

    @staticmethod
    def checks(panel: Any) -> str:
        panel.get_by_role("button", name="Is something off?").click()
        detail = panel.locator(".here-detail")
        detail.locator(".here-said, .here-finding, strong").first.wait_for()
        return str(detail.inner_text())

    def found(self, words: str) -> tuple[str, ...]:
        """What stands in what opened behind the diagnosis."""
        assert self.behind.get_attribute("open") is not None
        found = re.search(words, " ".join(self.behind.text_content().split()))
        assert found, f"the page no longer says {words}"
        return found.groups()

    def fix(self) -> dict[str, str]:
        """The settings that the page says to change, with the values that it gives."""
        lines = [
            match
            for line in self.behind.locator("li").all_text_contents()
            if (match := SETTING.match(" ".join(line.split())))
        ]
        heading = self.behind.locator("p", has_text="What to change").first
        named = set(heading.locator("code").all_text_contents())
        read = READ.get(self.case, {})
        values = {}
        for line in lines:
            name = line["name"]
            if name not in named:
                continue
            others = [word for word in (line["takes"] or "").split(", ") if word != line["now"]]
            if "takes it away" in line.string:
                values[name] = ""
            elif name in read:
                words, value = read[name]
                values[name] = value(*self.found(words))
            elif len(others) == 1 and others != [""]:
                values[name] = others[0]
        assert values, f"{named}: the page gives no value"
        return values

    def changes(self, panel: Any) -> int:
        """Type what is to change into a panel: settings, or how many runs of each trial there are to be; return that."""
        if self.case in RUNS:
            [runs] = self.found(RUNS[self.case])
            panel.get_by_label(re.compile("^How many runs")).fill(runs)
            many = int(runs) * asked_of(panel)["runs"]
            panel.locator(".here-says", has_text=f"These {many} runs take about").wait_for()
            return int(runs)
        rows = panel.locator(".here-setting")
        for n, (name, value) in enumerate(self.fix().items()):
            if n:
                panel.get_by_role("button", name="One more setting").click()
            rows.nth(n).locator(".here-name").fill(name)
            rows.nth(n).locator("input:not(.here-name)").fill(value)
        return 1

    def is_sent_to_a_terminal(self, panel: Any, times: int) -> bool:
        """Does the page say that what is filled in is long for it, and what to type instead? Not where only this machine
        is slow."""
        says = panel.locator(".here-says").first.inner_text()
        if "long for a page" not in says:
            return False
        assert f"./lab run {self.lab.name} --case {self.number} --repeat {times}" in says
        return bool(asked_of(panel)["likely_s"] * times > LONG_S)

    def answers(self, judgement: Judgement, kept: Path) -> str:
        """Choose what the page takes for right, with the number that this browser's runs give; return what it says."""
        place = self.page.locator(".judgement").first
        asked = json.loads(place.get_attribute("data-asked"))
        right = asked["letters"][asked["whys"].index("")]
        form = place.locator("form")
        form.locator(f"input[value={right}]").check()
        if judgement.number:
            runs = kept_runs(self.page, self.lab.name, kept)
            results = [result for run in runs if (result := read_result(run, self.lab))]
            number = number_of(judgement.number, results)
            assert number is not None
            form.locator("input:not([type=radio])").fill(f"{number:.5g}")
        form.locator("button").click()
        says = form.locator("[role=status] p")
        says.first.wait_for()
        return "\n".join(says.all_inner_texts())


@pytest.fixture
def limited() -> Iterator[Callable[[float], None]]:
    """Set after how many seconds a test that hangs ends its worker, instead of the time that all tests have."""
    yield lambda seconds: faulthandler.dump_traceback_later(
        seconds, exit=True, file=sys.__stderr__ or sys.stderr
    )
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.nightly(
    "in_page/test_api.py: a case from prediction to hand-in, and one that a question solves"
)
@pytest.mark.parametrize(("lab", "pitfall"), PLAYED)
def test_a_case_is_played_on_its_page(
    page: Any,
    address: str,
    lab: Lab,
    pitfall: Pitfall,
    tmp_path: Path,
    limited: Callable[[float], None],
    record_property: Callable[[str, object], None],
) -> None:
    number = lab.case_number(pitfall)
    student = Student(page, address, lab, number)
    first = student.panel("first")
    if not first.count():
        text = page.locator("article").text_content()
        assert "Use a terminal, or look at the recorded run." in text
        assert f"./lab run {lab.name} --case {number}" in text
        record_property("played", (student.case,))
        return
    limit_s = student.longest_s()
    limited(2 * limit_s + 5 * START_S)
    begun = time.monotonic()

    student.writes("prediction", PREDICTION)
    student.opens("Seed, and how many runs")
    first.get_by_label("Seed, where all randomness starts").fill(SEED)
    ran = student.runs(first, limit_s)
    first_s = time.monotonic() - begun
    # Of several runs only where the question says which of them answer it.
    asked = pitfall.predict
    if asked.compared and (asked.is_of_several or asked.of_trial or not pitfall.trials):
        assert f"You predicted: {PREDICTION}" in ran
    said = student.checks(first)
    assert "is solved:" not in said
    assert "diagnosis below" in said or "written down your diagnosis" in said
    student.writes("diagnosis", DIAGNOSIS)
    if pitfall.judgement:
        said = student.answers(pitfall.judgement, tmp_path)
    else:
        student.opens("Change it, and run it again")
        panel = student.panel("fix")
        times = student.changes(panel)
        if student.is_sent_to_a_terminal(panel, times):
            record_property("played", (student.case, first_s))
            return
        limited(times * limit_s + 5 * START_S)
        student.runs(panel, times * limit_s)
        said = student.checks(panel)
    assert f"Case {number} is solved" in said, said
    assert student.behind.get_attribute("open") is not None
    record_property("played", (student.case, first_s, time.monotonic() - begun - first_s))
