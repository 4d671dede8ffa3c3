"""A lab's first try on pages: the claim, the question, the command, and what the recorded runs came to."""

from __future__ import annotations

from measuretwice.lab import after_cases, first_try_of, step_cases
from measuretwice.lab.schema.cases import FirstTry, Shown
from measuretwice.runs.first_try_history import Outcome, outcome_of
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.cases import answer_field, closes_fold, opens_fold
from measuretwice.site.words.registry import word
from measuretwice.site.words.runs import recorded
from measuretwice.site.words.subjects import LabWords


@word("own.first_try", fact=True, rare=True)
def first_try(words: LabWords) -> FirstTry:
    """The lab's first try as lab.toml has it: `.claim`, `.ask`, `.found`, `.steps`."""
    return first_try_of(words.lab)


@word("begin()")
def begin(words: LabWords) -> Block:
    """The beginning of a module: the claim, a question with the place for its answer, `./lab start`, and
    folded what the recorded first try came to."""
    about = first_try_of(words.lab)
    step = about.steps[0]
    parts = [
        f"Here is a claim: **{about.claim}.** Test it before you read on.",
        f"**{about.ask}** Write it down.",
        answer_field(words, "start", "prediction", about.ask),
        f"```sh\n./lab start {words.lab.name}\n```",
        "The settings are those that one would choose on a first day. The numbers are your own: they come from your "
        "[lab book](../../start/half-an-hour.md#solve-a-case)'s seed.",
    ]
    if words.runs_here:
        parts.append(
            "Without a terminal, begin with the first case below. On its page choose the tab *in this page*, and press *Run it here*: "
            "[nothing is installed](../../start/browser.md)."
        )
    if recorded(words, step.of):
        came = _outcome(words, step.of, about.shown)
        parts += [
            opens_fold("prediction"),
            _listed(came),
            f"{came.counted} {came.judged} These are the recorded runs; yours differ a little.",
            closes_fold(),
        ]
    parts.append(
        "The cases ask what is behind it. When you have solved some of them, run the same command again. It repeats your first "
        "try with what you found, and prints what came of it each time."
    )
    return Block("\n\n".join(parts) + "\n")


@word("became()")
def became(words: LabWords) -> Block:
    """What became of the first try's claim, from its recorded steps: for a page that comes after the cases."""
    about = first_try_of(words.lab)
    lines = [f"The claim was: {about.claim}.", ""]
    for step in about.steps:
        if not recorded(words, step.of):
            continue
        came = _outcome(words, step.of, step.shown or about.shown)
        after = after_cases(step_cases(words.lab, step.of))
        told = "; ".join(came.lines)
        lines.append(f"- **{after[0].upper()}{after[1:]}**: {told}. {came.counted} {came.judged}")
    return Block("\n".join([*lines, "", about.found]) + "\n")


def _outcome(words: LabWords, name: str, shown: Shown) -> Outcome:
    return outcome_of(words.lab, shown, words.results_of(name))


def _listed(came: Outcome) -> str:
    return "\n".join(f"- {line}" for line in came.lines)
