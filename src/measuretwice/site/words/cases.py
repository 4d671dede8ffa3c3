"""Cases, as students meet the pitfalls: a number, what is seen, a prediction; the cause comes last."""

from __future__ import annotations

import html

from measuretwice.book.prediction import quantity_of
from measuretwice.site.words import here
from measuretwice.site.words.blocks import UNSEARCHED, Block
from measuretwice.site.words.pitfalls import pitfall
from measuretwice.site.words.registry import site_word, word
from measuretwice.site.words.subjects import LabWords, SiteWords

# What a reader opens a fold of a page with: the words on it, for those who skip the field before it.
FOLDS = {
    "prediction": "What the recorded run measured. Open it once you have predicted, or just to be shown",
    "diagnosis": "The diagnosis, with the recorded run's numbers, and what follows. Open it once you know the cause, or just to be shown",
}


@word('case_number("mtu")')
def case_number(words: LabWords, name: str) -> int:
    """The number by which students know a pitfall."""
    return words.lab.case_number(pitfall(words, name))


@word('case_heading("mtu")')
def case_heading(words: LabWords, name: str) -> str:
    """A case's heading: its number, and what is seen."""
    symptom = pitfall(words, name).symptom
    return f"Case {case_number(words, name)}: {symptom[0].upper()}{symptom[1:]}"


@word('case_page("mtu")')
def case_page(words: LabWords, name: str) -> str:
    """The name of a case's page in its module's folder."""
    return f"case-{case_number(words, name):02d}.md"


@word('case_facts("mtu")')
def case_facts(words: LabWords, name: str) -> Block:
    """The line below a case's heading: which of how many, its minutes, and the cases beside it."""
    all_of_them = words.lab.file.pitfalls
    number, minutes = case_number(words, name), pitfall(words, name).minutes
    beside = [
        f"[{label}]({case_page(words, all_of_them[place].id)})"
        for label, place in (("Previous", number - 2), ("Next", number))
        if 0 <= place < len(all_of_them)
    ]
    facts = [f"Case {number} of {len(all_of_them)} · {minutes} min", *beside]
    return Block(f"{' '.join(facts)}\n{{ .case-facts }}")


@word('predict("mtu")')
def predict(words: LabWords, name: str) -> Block:
    """A case's question, and the place where a browser puts the field for its answer."""
    predict = pitfall(words, name).predict
    field = answer_field(
        words,
        str(case_number(words, name)),
        "prediction",
        predict.ask,
        quantity=quantity_of(predict).label,
    )
    return Block(
        f"**{predict.ask}** Write it down before you go on.{_dealt(words, name)}\n\n{field}"
    )


def _dealt(words: LabWords, name: str) -> str:
    """That a student's own run has other values than the page says, and where they stand before it."""
    staged = pitfall(words, name)
    if staged.trials or not (ranges := words.lab.varied(staged)):
        return ""
    near = ", ".join(f"`{key}` {low:.3g} to {high:.3g}" for key, (low, high) in ranges.items())
    says = "`./lab run` says which before it asks for your prediction"
    if words.runs_here:
        says += "; in a browser, the button **My run’s values** says them, in the tab **in this page** below"
    return (
        "\n\nThe numbers on this page are the recorded run's. "
        f"Your own run is dealt other values, near them ({near}); {says}.\n{{ .recorded }}"
    )


@word('asks("loss", "How many of 100 pings will be lost?", "pings lost")')
def asks(words: LabWords, name: str, asked: str, quantity: str) -> Block:
    """A question of a page that is no case's, with the place where a browser puts the field for its answer.
    `name` is the answer's on this lab's pages; the last one names what is to be predicted."""
    return Block(
        f"**{asked}**\n\n{answer_field(words, name, 'prediction', asked, quantity=quantity)}"
    )


@word('diagnose("mtu")')
def diagnose(words: LabWords, name: str) -> Block:
    """The place for a student's own diagnosis."""
    asked = "What is it, in your own words?"
    return Block(
        f"**{asked}**\n\n{answer_field(words, str(case_number(words, name)), 'diagnosis', asked)}"
    )


def answer_field(words: LabWords, about: str, kind: str, asked: str, *, quantity: str = "") -> str:
    """Return the place where a browser puts a field: `about` a case's number, or the first try.

    `quantity` names what is to be predicted, with its unit.
    """
    case = f"{words.lab.name} {about}"
    of = f' data-quantity="{html.escape(quantity)}"' if quantity else ""
    return (
        f'<div class="notebook" data-case="{case}" data-kind="{kind}" '
        f'data-asked="{html.escape(asked)}"{of}></div>'
    )


@word('try_mend("mtu")')
def try_mend(words: LabWords, name: str) -> Block:
    """The step before the diagnosis: how to try a fix of one's own. It names no cause."""
    number, lab = case_number(words, name), words.lab.name
    decides = (
        " A claim that was chosen to fit what was measured proves nothing: think of a run in which two explanations would "
        "differ, predict it, and make it."
        if pitfall(words, name).settled_by
        else ""
    )
    return Block(
        "Do you have an idea? Try it before you read on: change a setting, or your own copy of the nodes' scripts "
        f"(`./lab edit {lab}`).{decides}\n\n{here.of_trying(words, name)}{_commands(lab, number)}\n\n"
        f"`./lab list {lab}` has the usual settings. `--set` offers the nearest to a name that it doesn't know."
    )


def _commands(lab: str, number: int) -> str:
    return (
        f"```sh\n./lab run {lab} --case {number} --set NAME=VALUE\n"
        f"./lab check runs/{lab}/case-{number:02d}-*\n```"
    )


@word('mend("mtu")')
def mend(words: LabWords, name: str) -> Block:
    """The ways for a student's own change to a case: a setting, the node scripts, by hand."""
    number, lab = case_number(words, name), words.lab.name
    return Block(
        f"{here.of_mending(words, name)}{_commands(lab, number)}\n\n{_settings(words, name)}"
        "Or type the commands yourself, in [live terminals](../../start/terminals.md#live): "
        f"`./lab up {lab} --case {number}`."
    )


def _settings(words: LabWords, name: str) -> str:
    """Which settings the case is about that no list names."""
    names = here.unlisted_of(words, name)
    listed = ", ".join(f"`{each}`" for each in names)
    return f"Its own settings, which no list has before: {listed}.\n\n" if names else ""


@site_word('opens("prediction")')
def opens(_: SiteWords, kind: str) -> Block:
    """The beginning of a fold of a case's page: behind the `prediction`, or behind the `diagnosis`.
    The search leaves it out: it would tell the cause."""
    return opens_fold(kind)


def opens_fold(kind: str) -> Block:
    """Return the beginning of a fold that opens with what is written down."""
    # Material forgets what it leaves out at the end of any element of the same name in it.
    return Block(
        f'<details class="behind" data-behind="{kind}" markdown="1">\n<summary>{FOLDS[kind]}</summary>\n'
        f'<section markdown="1" {UNSEARCHED}>\n'
    )


@site_word("closes()")
def closes(_: SiteWords) -> Block:
    """The end of such a fold."""
    return closes_fold()


def closes_fold() -> Block:
    """Return the end of a fold."""
    return Block("</section>\n</details>\n")
