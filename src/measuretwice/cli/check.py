"""`lab check`: what is wrong with runs, ours or those that a person brings. `lab audit`: which rows of a published table
can't be true, and what they recompute to."""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from measuretwice.audit import audit_table, lines_of, read_choices, read_rate_bps, read_rtt_s
from measuretwice.backends import what_differs
from measuretwice.base.errors import UserError
from measuretwice.book.prediction import Answer, quantity_of
from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, PATH, root_folder
from measuretwice.cli.show import plain_text, print_paged
from measuretwice.course import wording
from measuretwice.course.archives import Unpacked
from measuretwice.course.check import Check, open_check
from measuretwice.course.findings import DeclaredRun, Document
from measuretwice.course.judging import Question
from measuretwice.course.lab_books import CaseBooks, CaseOutcome, CaseSolved
from measuretwice.lab import load_lab
from measuretwice.runs.result import for_students

# So many lines on files that can't be used are printed; of the others only how many there are.
MOST_REFUSED = 8
MAX_TABLE_BYTES = 4 * 2**20


@click.command()
@click.argument("targets", metavar="RUN...", nargs=-1, required=True, type=PATH)
@click.option("--lab", "lab_name", metavar="LAB", help="The lab, for files of your own.")
@click.option("--trial", help="The trial, for files of your own.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Settings that differed, for files of your own.",
)
@click.option("--hint", type=click.IntRange(1, 3), help="A hint: 1, 2 or 3.")
@click.option("--answer", metavar="LETTER", help="Your answer, in a case that a question solves.")
@click.option(
    "--number", metavar="NUMBER", help="The number that the question asks for, besides the letter."
)
@click.option(
    "--diagnosis",
    metavar="TEXT",
    help="A case's mistake in your own words, for your lab book and report. Then this command names what to change.",
)
@click.option(
    "--limits", is_flag=True, help="Show what limits each flow (always, for your own files)."
)
@AS_JSON
def check(
    targets: tuple[Path, ...],
    lab_name: str | None,
    trial: str | None,
    changes: tuple[str, ...],
    hint: int | None,
    answer: str | None,
    number: str | None,
    diagnosis: str | None,
    limits: bool,
    as_json: bool,
) -> int:
    """Diagnose runs: did each measure what it was meant to?

    RUN is a folder that ./lab run made, an archive of such folders, or files of your own from any
    testbed, with the output of iperf3, ss, tc, ping and tcpdump -e. Exit status: 0 without findings, 1 with findings, 2 for
    unusable input, 3 without findings if some of the files couldn't be read.
    """
    root = root_folder()
    with open_check(root, targets, hint) as check:
        if hint and check.places.archives:
            terminal.complain(["an archive's lab book stays as it is; unpack it to note hints"])
        _complain(check, check.look(targets))
        _take_diagnosis(check, diagnosis)
        if not check.places.archives:
            _take_hint(check.books, hint)
        _complain(check, check.leave_out_empty())
        documents = check.read(DeclaredRun(lab_name, trial, changes))
        if not documents and check.unread:
            _complain(check, check.unread[:-1])
            raise UserError(check.unread[-1])
        if as_json:
            shown = [_shown(root, document, check.places) for document in documents]
            print(json.dumps(shown, indent=2))
        else:
            wrong = _answer(check, answer, number)
            documents = check.judge()
            for document in documents:
                _print(document, hint, check.places, limits=limits)
            for run in [] if documents else check.runs_of_solved:
                print(f"{check.places.named(run)}: nothing is off but what its case is about")
            _print_outcomes(check.books, check.note_outcomes(documents))
            _print_outcomes(check.books, check.note_live_outcomes())
            documents = _ask_questions(check, documents, wrong, ask=not hint)
            _print_unsolved(check.books, documents, ask=hint is None)
        # Last, where it is seen, and after what was printed before.
        sys.stdout.flush()
        _complain(check, check.unread)
        return check.exit_code(documents)


def _complain(check: Check, lines: list[str]) -> None:
    terminal.complain(" ".join(check.places.named(line).split()) for line in lines)


def _take_diagnosis(check: Check, diagnosis: str | None) -> None:
    """Note a diagnosis that was given with the command, if one was."""
    if diagnosis is None:
        return
    if check.places.archives:
        raise UserError("--diagnosis: an archive's lab book stays as it is; unpack it first")
    _note_diagnosis(check.books, check.books.only_case(), diagnosis)


def _note_diagnosis(books: CaseBooks, number: int, diagnosis: str) -> None:
    if books.is_enough(number, diagnosis):
        books.note_diagnosis(number, diagnosis)
    else:
        terminal.complain([f"case {number}: {wording.SAY_MORE}"])


def _print_unsolved(books: CaseBooks, documents: list[Document], *, ask: bool) -> None:
    """Print of each case that isn't solved what to change, once its cause is known; of a single one `ask` for that."""
    unsolved = books.unsolved(documents)
    if ask and terminal.is_attended() and [case.is_known for case in unsolved] == [False]:
        number = unsolved[0].case
        question = f"Case {number}. What is it, in your own words? Then you are told what to change"
        if guess := _ask_in_words(books, number, question, "Enter: not yet"):
            books.note_diagnosis(number, guess)
        unsolved = [case for case in books.unsolved(documents) if case.is_known]
    for case in unsolved:
        for line in wording.unsolved_lines(case):
            print(line)


def _take_hint(books: CaseBooks, hint: int | None) -> None:
    """Note a hint that is taken. The last one tells the cause, so it comes once the student has said what they think it is.

    UserError where they haven't: who guesses before being told, even wrongly, remembers better.
    """
    guess = ""
    if case := books.diagnosis_wanted(hint):
        question = (
            f"Case {case.number}. Before the last hint: what do you think it is, in your own words?"
        )
        guess = _ask_in_words(books, case.number, question, "Enter: no hint yet")
        if not guess:
            raise UserError(
                "the last hint tells the cause, so first say what you think it is, in three words or more; a wrong guess will do: "
                f"./lab check {case.pattern} --hint 3 --diagnosis 'WORDS'"
            )
    books.note_hint(hint, guess)


def _ask_in_words(books: CaseBooks, number: int, question: str, enter: str) -> str:
    """Return what a person at the terminal says that a case's mistake is, asked until it is said in words; nothing where they
    answer nothing."""
    guess = terminal.ask_person(f"{question} ({enter}): ")
    while guess and not books.is_enough(number, guess):
        guess = terminal.ask_person(f"{wording.IN_WORDS} ({enter}): ")
    return guess


def _print_outcomes(books: CaseBooks, outcomes: list[CaseOutcome]) -> None:
    """Print what cases came to; of one that is solved ask for the diagnosis, where the book has none."""
    for outcome in outcomes:
        for line in wording.outcome_lines(outcome):
            print(line)
        if isinstance(outcome, CaseSolved) and not outcome.diagnosed:
            question = "What was it, in your own words?"
            if not terminal.is_attended():
                print(
                    f'{question} Nobody can be asked here. ./lab check {outcome.runs} --diagnosis "TEXT" notes your answer '
                    "in your lab book, from which ./lab report takes it."
                )
            elif diagnosis := _ask_in_words(books, outcome.case, question, "Enter skips"):
                books.note_diagnosis(outcome.case, diagnosis)


def _answer(check: Check, answer: str | None, number: str | None) -> list[str]:
    """Note an answer to a case's question that was given with the command; return what isn't right about it."""
    if answer is None:
        if number is not None:
            raise UserError("--number goes with --answer LETTER")
        return []
    if check.places.archives:
        raise UserError("--answer: an archive's lab book stays as it is; unpack it first")
    return check.questions.only().answer(Answer(answer.casefold(), number or ""))


def _ask_questions(
    check: Check, documents: list[Document], wrong: list[str], *, ask: bool
) -> list[Document]:
    """Print what isn't right about an answer, and which cases are solved by one; ask for what is still to be answered.

    Return the documents that count then: what was off in the runs of a case solved just now is no fault any more.
    """
    for line in wrong:
        print(line)
    printed = set()
    for question in check.questions.answered:
        print(*wording.answered_lines(question), sep="\n")
        printed.add(question.key)
    for question in check.open_questions(documents) if ask and not check.places.archives else []:
        _ask_question(check.books, question)
        if question.outcome and question.key not in printed:
            print(*wording.answered_lines(question), sep="\n")
    return check.judge()


def _ask_question(books: CaseBooks, question: Question) -> None:
    """Ask a person for a case's diagnosis, then its question until the answer is right or none is given; where nobody is at
    the terminal, say how to answer."""
    if not question.is_diagnosed:
        asked = f"Case {question.case}. What is it, in your own words? Then there is a question to answer"
        if guess := _ask_in_words(books, question.case, asked, "Enter: not yet"):
            question.book.add(question.case, "Diagnosis", guess)
    if question.is_diagnosed:
        print(*wording.question_lines(question), sep="\n")
        while choice := terminal.ask_person("Your answer, a letter (Enter: not yet): "):
            number = ""
            if number_asked := question.judgement.number:
                with_unit = ", with its unit" if quantity_of(number_asked).has_unit else ""
                number = terminal.ask_person(f"And the number{with_unit}: ")
            try:
                wrong = question.answer(Answer(choice.casefold(), number))
            except UserError as error:
                wrong = [str(error)]
            if not wrong:
                return
            print(*wrong, sep="\n")
    print(wording.how_to_answer(question))


def _print(document: Document, hint: int | None, places: Unpacked, *, limits: bool) -> None:
    out = terminal.console(sys.stdout)

    def say(line: str, style: str = "", soft_wrap: bool = True) -> None:
        # Names of files are no markup, and no pictures between colons.
        out.print(line, style=style, markup=False, emoji=False, soft_wrap=soft_wrap)

    def say_of_files(line: str) -> None:
        # A stranger's name of a file makes no line of its own.
        say("  " + " ".join(places.named(line).splitlines()))

    findings = document["findings"]
    unread = document.get("unread", [])
    among = " among what could be read" if unread else ""
    say(f"{places.named(document['run'])}: {_count(len(findings))}{among}", "bold")
    # First: whoever reads no further knows what nothing is said of.
    refused = wording.left_out(document)
    for line in refused[:MOST_REFUSED]:
        say_of_files(f"not used: {line}")
    if (more := len(refused) - MOST_REFUSED) > 0:
        say(f"  not used: {more} more (--json names all)")
    for line in document.get("missing", []):
        say_of_files(f"not looked at: {line}")
    if "plan" in document and (of_place := what_differs(str(document["plan"].get("where")))):
        say(f"  run on {of_place}")
    for line in [*document.get("notes", []), *wording.recognised_files(document)]:
        say_of_files(line)
    for finding in findings:
        heading, lines = wording.finding_lines(finding, hint, brought="used" in document)
        say(f"  {heading}", "bold", soft_wrap=False)
        for line in lines:
            say(f"    {places.named(line)}", soft_wrap=False)
    if findings and hint is None:
        out.print("--hint 1, 2 or 3 helps a step further each.")
    # Of a case it may be the cause: there it is said only where it is asked for.
    if limits or ("used" in document and "case" not in document):
        say("  what limits the flow:")
        for line in document.get("limits", []):
            say(f"    {places.named(line)}")
    if "used" in document and document.get("looked_at") and not findings:
        say(f"  looked at and right: {', '.join(document['looked_at'])}", soft_wrap=False)


def _count(number: int) -> str:
    return {0: "no finding", 1: "1 finding"}.get(number, f"{number} findings")


def _shown(root: Path, document: Document, places: Unpacked) -> Any:
    """Return a document as it is printed: what tells a cause by its name is packed, as in a run's files."""
    if "params" not in document:
        return places.named_in(document)
    return places.named_in(for_students(load_lab(root, document["lab"]), document))


@click.command()
@click.argument("path", metavar="FILE.csv", type=PATH)
@click.option(
    "--columns",
    multiple=True,
    metavar="NAME=COLUMN[:UNIT],...",
    help="Which column is what, if its heading isn't clear. NAME= leaves it out.",
)
@click.option("--rate", metavar="RATE", help="The link's rate, such as 10gbit.")
@click.option(
    "--mss",
    type=click.IntRange(1, 65535),
    metavar="BYTES",
    help="Data in a segment, for the Mathis model's C.",
)
@click.option(
    "--rtt", metavar="TIME", help="The round-trip time, such as 40ms, for the Mathis model's C."
)
@AS_JSON
def audit(
    path: Path,
    columns: tuple[str, ...],
    rate: str | None,
    mss: int | None,
    rtt: str | None,
    as_json: bool,
) -> int:
    """Find the rows in a table of results that can't be true, and the reason.

    FILE.csv has a line of headings, then a line for each flow or run: rates, bytes and times, round-trip times, losses
    and halvings; or sums, squares and Jain's indices; shares; constants. A Markdown file may have several tables.
    Everything that follows from other columns is recomputed. Exit status: 0 if nothing is off, 1 if something is, 2
    if the table can't be read. It is 3 if nothing is off as far as could be checked, but an option had no effect or a
    cell couldn't be read.
    """
    report = audit_table(
        _table_content(path),
        path.name,
        read_choices(columns),
        rate_bps=None if rate is None else read_rate_bps(rate),
        mss_bytes=mss,
        rtt_s=None if rtt is None else read_rtt_s(rtt),
    )
    if as_json:
        print(json.dumps(asdict(report), indent=2, allow_nan=False))
    else:
        print_paged(lambda out: out.print(plain_text("\n".join(lines_of(report)))))
    return 1 if report.problems else 3 if report.unseen else 0


def _table_content(path: Path) -> bytes:
    """A plain file's bytes; never waits for a pipe, never reads without end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if stat.S_ISDIR(facts.st_mode):
                raise UserError(f"{path}: a folder; name a table, such as FILE.csv")
            if not stat.S_ISREG(facts.st_mode):
                raise UserError(f"{path}: no plain file; write the table into one, and name that")
            if facts.st_size > MAX_TABLE_BYTES:
                raise UserError(
                    f"{path}: {facts.st_size >> 20} MiB, and a table of results has no more than "
                    f"{MAX_TABLE_BYTES >> 20}; keep a row for each flow or run"
                )
            return file.read(MAX_TABLE_BYTES)
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
