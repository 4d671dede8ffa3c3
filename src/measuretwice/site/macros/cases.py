"""Cases: the mistakes that a lab stages, as students meet them, its first try, and its questions.

A case has a number and what is seen of it, then a prediction; the cause comes last.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

from measuretwice.book.prediction import known_units, quantity_of
from measuretwice.lab import (
    SettingToChange,
    after_cases,
    first_try_of,
    movers_of_first_try,
    needed_settings,
    read_questions,
    settings_to_change,
    step_cases,
)
from measuretwice.lab.schema.cases import FirstTry
from measuretwice.lab.spoilers import cases_asked_about
from measuretwice.runs.first_try_history import (
    FIGURE_SAID,
    START,
    outcome_of,
    said_of,
    said_of_next,
)
from measuretwice.runs.recorded import read_set
from measuretwice.site.macros import LabContext, browser_run, macro
from measuretwice.site.macros.blocks import UNSEARCHED, Block, day, hints_of_case, verbatim

# What a reader opens a fold of a page with: the words on it, for those who skip the field before it.
SUMMARIES = {
    "prediction": "The recorded run (predict first)",
    "judgement": "The question that solves the case (diagnose first)",
    "diagnosis": "The diagnosis (yours first)",
}
FOLD_END = "</section>\n</details>\n"
WHY_FOLDED = "What a question asks about a case may say what was off there, so it is folded. Open it once you have solved that case."
# A question's heading and points, and what is asked; the cases that it is about.
OF_QUESTION = re.compile(r"(\*\*[^*]+\*\* \([\d.]+ points?\)) (.+)")


# For those whom a search engine sent: what this page is, and what there is to do.
WHAT_A_CASE_IS = (
    "[A free course](../../index.md): "
    "in each [case](../../start/half-an-hour.md#solve-a-case) something is off."
)


@macro('case_number("mtu")')
def case_number(context: LabContext, name: str) -> int:
    """The number by which students know a pitfall."""
    return context.lab.case_number(context.lab.pitfall(name))


@macro('case_heading("mtu")')
def case_heading(context: LabContext, name: str) -> str:
    """A case's heading: its number, and what is seen."""
    symptom = context.lab.pitfall(name).symptom
    return f"Case {case_number(context, name)}: {symptom[0].upper()}{symptom[1:]}"


@macro('case_page("mtu")')
def case_page(context: LabContext, name: str) -> str:
    """The name of a case's page in its module's folder."""
    return f"case-{case_number(context, name):02d}.md"


@macro('case_facts("mtu")')
def case_facts(context: LabContext, name: str) -> Block:
    """The lines below a case's heading: its module, which of how many, its minutes, the cases beside it, what a case is."""
    cases = context.lab.file.pitfalls
    number = case_number(context, name)
    facts = [
        f"[{context.lab.name.capitalize()}](index.md)",
        f"Case {number} of {len(cases)}",
        _minutes(context, name),
    ]
    leads = [
        f"[{label}]({case_page(context, cases[index].id)})"
        for label, index in (("Previous", number - 2), ("Next", number))
        if 0 <= index < len(cases)
    ]
    # On paper nobody follows them.
    here, from_here = (" · ".join(part) for part in (facts, leads))
    line = f'{here}<span class="screen-only"> · {from_here}</span>\n{{ .case-facts }}'
    return Block(f"{line}\n\n{WHAT_A_CASE_IS}\n{{ .screen-only }}")


def _minutes(context: LabContext, name: str) -> str:
    """How long a case takes in a terminal, and in a page where its machine is that much slower."""
    minutes = context.lab.pitfall(name).minutes
    in_page = round(minutes + browser_run.extra_seconds(context, name) / 60)
    return f"{minutes} min{f', {in_page} in a browser' if in_page > minutes else ''}"


@macro('predict("mtu")')
def predict(context: LabContext, name: str) -> Block:
    """A case's question, and the place where a browser puts the field for its answer."""
    predict = context.lab.pitfall(name).predict
    field = answer_field(
        context,
        str(case_number(context, name)),
        "prediction",
        predict.ask,
        quantity=quantity_of(predict).label,
    )
    return Block(
        f'**{predict.ask}** <span class="screen-only">[All settings](#set-up)</span>\n\n{field}'
    )


def _without_exponent(value: float) -> str:
    """Three digits, but of large counts all before the point, as somebody would type them."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@macro('dealt("mtu")')
def dealt(context: LabContext, name: str) -> Block:
    """That a student's own run has other values than the page says, and how to see them before it; nothing where it hasn't."""
    staged = context.lab.pitfall(name)
    if staged.trials or not (ranges := context.lab.varied(staged)):
        return Block("")
    near = ", ".join(
        f"`{key}` {_without_exponent(low)} to {_without_exponent(high)}"
        for key, (low, high) in ranges.items()
    )
    shown = " and **My run’s values** show" if context.runs_here else " prints"
    return Block(
        f"These are the recorded run's values. Yours lie near them ({near}): `./lab run`{shown} them.\n{{ .recorded }}"
    )


def asks(context: LabContext, name: str, asked: str, quantity: str) -> Block:
    """Return a question of a page that is no case's, with the place where a browser puts the field for its answer.
    `name` is the answer's on this lab's pages, `quantity` what is to be predicted."""
    return Block(
        f"**{asked}**\n\n{answer_field(context, name, 'prediction', asked, quantity=quantity)}"
    )


@macro('diagnose("mtu")')
def diagnose(context: LabContext, name: str) -> Block:
    """The place for a student's own diagnosis."""
    asked = "What is it, in your own words?"
    return Block(answer_field(context, str(case_number(context, name)), "diagnosis", asked))


def answer_field(
    context: LabContext, about: str, kind: str, asked: str, *, quantity: str = ""
) -> str:
    """Return the place where a browser puts a field: `about` a case's number, or the first try.

    `quantity` names what is to be predicted, with its unit.
    """
    case = f"{context.lab.name} {about}"
    of = f' data-quantity="{html.escape(quantity)}"' if quantity else ""
    return (
        f'<div class="notebook" data-case="{case}" data-kind="{kind}" '
        f'data-asked="{html.escape(asked)}"{of}></div>'
    )


@macro('hints("mtu")')
def hints(context: LabContext, name: str) -> Block:
    """A mistake's three hints, each folded. The search leaves them out: it would tell the cause."""
    staged = context.lab.pitfall(name)
    return hints_of_case(f"{context.lab.name} {context.lab.case_number(staged)}", staged.hints)


@macro('settled_by_a_run("mtu")')
def settled_by_a_run(context: LabContext, name: str) -> bool:
    """Whether a case is about a claim that only a run of one's own can settle."""
    return bool(context.lab.pitfall(name).settled_by)


@macro('judged_by_answer("mtu")')
def judged_by_answer(context: LabContext, name: str) -> bool:
    """Whether a question solves the case, since only what is said of its runs is wrong."""
    return context.lab.pitfall(name).judgement is not None


@macro('judge("mtu")')
def judge(context: LabContext, name: str) -> Block:
    """The question that solves a case: what may be answered, the place where a browser puts the fields, and the command."""
    judgement = context.lab.pitfall(name).judgement
    assert judgement is not None, "a case without a question"
    number, lab = case_number(context, name), context.lab.name
    lines = [f"**{judgement.ask}**", ""]
    for letter, choice in zip(judgement.letters, judgement.choices, strict=True):
        lines.append(f"- {letter}: {choice.says}")
    asked: dict[str, Any] = {
        "whys": [choice.why_not for choice in judgement.choices],
        "letters": judgement.letters,
    }
    command = f"./lab check runs/{lab}/case-{number:02d}-* --answer LETTER"
    if judgement.number:
        quantity = quantity_of(judgement.number)
        recorded = context.sets.judged_number(name)
        lines += ["", f"**And a number.** {judgement.number.ask}"]
        asked |= {
            "label": quantity.label,
            "again": judgement.number.ask,
            "recorded": recorded,
            "tolerance": judgement.number.tolerance_ratio,
        }
        asked["units"], asked["others"] = known_units(quantity.unit)
        command += " --number NUMBER"
    lines += [
        "",
        f'<div class="judgement" data-case="{lab} {number}" data-asked="{html.escape(json.dumps(asked))}"></div>',
        "",
        "In a terminal, for runs that you made there:",
        "",
        f"```sh\n{command}\n```",
    ]
    return Block("\n".join(lines) + "\n")


@macro('try_fix("mtu")')
def try_fix(context: LabContext, name: str) -> Block:
    """Where a student tries a fix: a page's panel, and the commands. They name no cause; the panel names every setting once
    what `fix` leaves behind the diagnosis is open."""
    number, lab = case_number(context, name), context.lab.name
    return Block(
        f"{browser_run.fix_run(context, name)}```sh\n./lab edit {lab}  # your own copy of the scripts\n./lab run {lab} --case {number} --set NAME=VALUE  # another setting\n"
        f"./lab run {lab} --case {number} --repeat N  # or the same, N times\n"
        f"./lab check runs/{lab}/case-{number:02d}-*\n```\n\n"
        f"`./lab list {lab}` has the usual settings."
    )


@macro('fix("mtu")')
def fix(context: LabContext, name: str) -> Block:
    """Behind the diagnosis: the way back to where a fix is tried, which from now on names the settings that a case is about."""
    told = browser_run.told_settings(context, name)
    return Block(f"{told}[Change it](#try-your-fix).")


@macro('to_change("mtu")')
def to_change(context: LabContext, name: str) -> Block:
    """Which settings a case's first try is wrong in, and where scripts read them: behind the diagnosis only."""
    number = case_number(context, name)
    if context.lab.pitfall(name).judgement:
        return Block("")
    settings = settings_to_change(context.lab, number)
    if not settings:
        here = " or *How many runs*" if context.runs_here else ""
        return Block(f"**What to change**: how many runs (`--repeat N`{here}).")
    change = needed_settings(settings)
    *others, last = [f"`{setting.name}`" for setting in change]
    what = f"the setting {last}"
    if others:
        is_one = change[0].need == "one way"
        what = (
            f"{', '.join(others)} {'or' if is_one else 'and'} {last}"
            + ", either of which is enough" * is_one
        )
    return Block("\n".join([f"**What to change**: {what}.", "", *map(_setting_line, change)]))


def _setting_line(setting: SettingToChange) -> str:
    takes = [
        *([] if setting.value is None else [f"now `{setting.value}`"]),
        *(
            [f"takes {', '.join(f'`{word}`' for word in setting.choices)}"]
            if setting.choices
            else []
        ),
    ]
    about = f" ({'; '.join(takes)})" if takes else ""
    end = "" if setting.help.endswith("?") else "."
    parts = [f"- `{setting.name}`{about}: {setting.help}{end}"]
    if setting.is_taken_away:
        parts.append(f"`--set {setting.name}=`, with nothing after the `=`, takes it away.")
    if setting.lines:
        parts.append(f"The nodes' scripts read it as `{setting.name.upper()}`, in {setting.lines}.")
    return " ".join(parts)


@macro('fold("prediction")')
def fold(_: LabContext, kind: str) -> Block:
    """The beginning of a fold of a case's page, behind the `prediction`, the `diagnosis`, or, where a question solves the
    case, behind its `judgement`; it ends with `</section>` and `</details>`. The search leaves it out: it would tell the cause."""
    return folded_behind(kind)


def folded_behind(kind: str) -> Block:
    """Return the beginning of a fold that a browser opens once a prediction, or a diagnosis, is written down."""
    # Material forgets what it leaves out at the end of any element of the same name in it.
    return Block(
        f'<details class="behind" data-behind="{kind}" markdown="1">\n<summary>{SUMMARIES[kind]}</summary>\n'
        f'<section markdown="1" {UNSEARCHED}>\n'
    )


@macro("own.first_try")
def first_try(context: LabContext) -> FirstTry:
    """The lab's first try as lab.toml has it: `.claim`, `.ask`, `.found`, `.steps`."""
    return first_try_of(context.lab)


@macro("begin()")
def begin(context: LabContext) -> Block:
    """The beginning of a module: the claim, a question with the place for its answer, `./lab start`, and
    folded what the recorded first try came to."""
    about = first_try_of(context.lab)
    step = about.steps[0]
    parts = [
        f"The claim: **{about.claim}.** Test it before you read on.",
        f"**{about.ask}** Write it down.",
        answer_field(context, "start", "prediction", about.ask),
        f"```sh\n./lab start {context.lab.name}\n```",
        "The settings are those you would choose on a first day. The numbers are your own, because they come from your "
        "[lab book](../../start/half-an-hour.md#solve-a-case)'s seed.",
    ]
    if context.runs_here:
        panel = browser_run.try_run(context)
        if browser_run.is_panel(panel):
            parts.append(
                "No terminal? Make your first try on this page, [without installing anything](../../start/browser.md)."
            )
        parts.append(panel)
    if context.sets.is_recorded(step.of):
        runs = context.sets.runs(step.of)
        outcome = outcome_of(context.lab, about.shown, runs)
        source = "This is the recorded run" if len(runs) == 1 else "These are the recorded runs"
        parts += [
            folded_behind("prediction"),
            "\n".join(f"- {line}" for line in outcome.lines),
            f"{outcome.counted} {outcome.judged} {source}. Yours will differ a little.",
            FOLD_END,
        ]
    parts.append(
        f"The cases ask what is behind this result, and {movers_of_first_try(context.lab)} can change it. When you have solved these, "
        "repeat your first try. It then includes what you found, and lists every result so far."
    )
    return Block("\n\n".join(parts) + "\n")


@macro("first_try_printed()")
def first_try_printed(context: LabContext) -> Block:
    """What `./lab start` prints at its end, of the recorded first try, and where that is from. An arrow is at the line with the
    count."""
    about = first_try_of(context.lab)
    recorded = read_set(context.sets.set_folder(about.steps[0].of))
    came = outcome_of(context.lab, about.shown, context.sets.runs(recorded.name))
    figure = FIGURE_SAID.format(f"runs/{START}/{context.lab.name}/figure.html")
    printed = said_of(about.claim, came).replace(came.counted, f"→ {came.counted}")
    after = said_of_next(context.lab, 1, (), last=False)
    block = verbatim(f"{printed}\n\n{figure}\n\n{after}", "text", wrapped=True)
    return Block(
        f"{block}\n\n`./lab start {context.lab.name}`, its last lines, of the runs in `sample-data/{context.folder}/{recorded.name}/` · "
        f"Linux {recorded.kernel.split()[1]} · {day(recorded.recorded)}\n{{ .recorded {UNSEARCHED} }}\n"
    )


@macro("first_try_outcomes()")
def first_try_outcomes(context: LabContext) -> Block:
    """What became of the first try's claim, from its recorded steps: for a page that comes after the cases."""
    about = first_try_of(context.lab)
    lines = [f"The claim was this: {about.claim}.", ""]
    for step in about.steps:
        if not context.sets.is_recorded(step.of):
            continue
        outcome = outcome_of(context.lab, step.shown or about.shown, context.sets.runs(step.of))
        after = after_cases(step_cases(context.lab, step.of))
        # A line is a label, a colon and a value; here they are in a sentence of their own.
        results = "; ".join(line.replace(": ", ", ", 1) for line in outcome.lines)
        lines.append(
            f"- **{after[0].upper()}{after[1:]}**: {results}. {outcome.counted} {outcome.judged}"
        )
    return Block("\n".join([*lines, "", about.found]) + "\n")


@macro("questions()")
def questions(context: LabContext) -> Block:
    """The lab's questions, as a numbered list. What asks about a case is folded: it may say what was off there."""
    asked = list(enumerate(read_questions(context.lab), 1))
    if not asked:
        return Block("")
    folded = [f"{n}. {_folded(text, _room(context, n))}" for n, text in asked]
    if any(cases_asked_about(text) for _, text in asked):
        folded.insert(0, WHY_FOLDED)
    return Block("\n\n".join(folded) + "\n\n" + browser_run.hand_in(context))


def _room(context: LabContext, number: int) -> str:
    """Where an answer is written; it is handed in with runs that a page of the site has made."""
    return (
        answer_field(context, str(number), "answer", f"Question {number}")
        if context.runs_here
        else ""
    )


def _folded(question: str, room: str) -> str:
    """A question, folded where it asks about cases, with the room for its answer."""
    match = OF_QUESTION.match(question)
    cases = cases_asked_about(question)
    if not match or not cases:
        return f"{question}\n\n    {room}"
    named = " and ".join(map(str, cases))
    when = f"case {named} is" if len(cases) == 1 else f"cases {named} are"
    return f'{match[1]}\n\n    ??? question "Open it when {when} solved"\n\n        {match[2]}\n\n        {room}'
