"""The site: its labs and the course that they make, what the kit's files hold for pages, and audited tables."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from measuretwice.audit import NAMES, audit_table, lines_of, read_rate_bps
from measuretwice.base.errors import UserError
from measuretwice.checks import TELLING
from measuretwice.facts import table
from measuretwice.figures.rows import json_for_script
from measuretwice.lab.load import read_claims
from measuretwice.lab.schema.results import PublishedClaim
from measuretwice.runs.recorded import read_set, set_folders, still_verified, verifications
from measuretwice.runs.result import Result
from measuretwice.site import navigation, reference
from measuretwice.site.drawings.maps import Module, Part, draw_course, draw_parts
from measuretwice.site.layouts import split
from measuretwice.site.macros import LabContext, SiteContext, macro
from measuretwice.site.macros.blocks import UNSEARCHED, Block, in_words, indented, verbatim
from measuretwice.site.macros.cases import case_heading, case_page

# How pages name the language of a recorded file.
LANGUAGES = {".csv": "csv", ".txt": "text"}
# Where git fetches the kit from: the one place where that is said.
KIT = re.compile(r"^  kit: *[\"']?([^\"'\n#]*?)[\"']? *$", re.MULTILINE)


@macro('lab("mathis")', scope="site")
def lab_words(site: SiteContext, name: str) -> LabContext:
    """A lab, whose words stand behind it: `lab("mathis").trial(7).rtt_ms`."""
    return site.lab(name)


@macro("labs", scope="site")
def labs(site: SiteContext) -> list[LabContext]:
    """All labs, in order, as `lab` gives each."""
    return list(site.labs.values())


@macro("instructor", scope="site")
def instructor(site: SiteContext) -> bool:
    """Whether this is the instructors' site."""
    return site.instructor


@macro("release", scope="site")
def release(site: SiteContext) -> bool:
    """Whether this is the site of a students' release, which has no pages for instructors."""
    return site.release


@macro('fields("measured", lab("mathis").run("mtu-broken"))', scope="site")
def fields_table(site: SiteContext, part: str, example: Result | None = None) -> Block:
    """What each field of a part of a run's files is, as a table, from `measure/fields.py` and `site/reference.py`; with an `example`,
    a recorded run, its values too. Students' pages leave out the values that tell a case's cause."""
    of_run = reference.values_of(part, example) if example else None
    return Block(reference.table_of(part, of_run, without=() if site.instructor else TELLING))


@macro("glossary()", scope="site")
def glossary(site: SiteContext) -> Block:
    """The words that pages explain on hover, and the kit's own that read like others, as a list with an anchor each."""
    texts = (site.root / "docs/includes" / name for name in ("glossary.md", "kit-words.md"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in texts)
    entries = re.findall(r"^\*\[([^\]]+)\]: *(.+)$", text, re.MULTILINE)
    entries.sort(key=lambda entry: entry[0].lower())
    parts = []
    for term, meaning in entries:
        anchor = re.sub(r"[^a-z0-9_]+", "-", term.lower()).strip("-")
        parts.append(f"## {term} {{ #{anchor} }}\n\n{meaning}\n")
    return Block("\n".join(parts))


@macro("key_points()", scope="site")
def key_points(site: SiteContext) -> Block:
    """What each case leaves behind, as its own page ends: symptom, check and habit, and its question about elsewhere with the answer
    from `docs/includes/elsewhere.md`. A fold for each module, whose heading the search leaves out: it all tells causes."""
    answers = split((site.root / "docs/includes/elsewhere.md").read_text(encoding="utf-8"))
    parts = []
    for context in course(site):
        lab = context.lab
        if not lab.file.pitfalls:
            continue
        title = lab.name.capitalize()
        cards = "\n\n".join(
            _key_point(site, context, case.id, answers.get(f"{lab.name} {case.id}", ""))
            for case in lab.file.pitfalls
        )
        parts.append(
            f"## {title} {{ #{lab.name} {UNSEARCHED} }}\n\n"
            f'<details class="abstract" markdown="1">\n<summary>{title}: what its {len(lab.file.pitfalls)} cases leave '
            f"behind, with their causes</summary>\n\n{cards}\n\n</details>\n"
        )
    return Block('<div class="key-points" markdown="1">\n\n' + "\n".join(parts) + "\n</div>\n")


def _key_point(site: SiteContext, context: LabContext, case: str, answer: str) -> str:
    """One case's card; UserError where its page has no key points, or one with words in braces, which only that page can fill in."""
    module, page = context.lab.folder.name, case_page(context, case)
    path = site.root / "docs/modules" / module / page
    text = split(path.read_text(encoding="utf-8")).get("Key points", "")
    points, _, question = text.partition("**Elsewhere**: ")
    if not question or not answer or "{{" in text:
        raise UserError(
            f"{path}: its key points need three points and a question, '**Elsewhere**: ...', as they are to be read, and "
            f"docs/includes/elsewhere.md an answer below '## {context.lab.name} {case}'"
        )
    number, symptom = case_heading(context, case).split(": ", 1)
    card = (
        f"**[{number}]({page})**: {symptom}\n{{ .key-point__case }}\n\n{points.strip()}\n\n"
        f'<div class="key-point__elsewhere" markdown="1">\n\n**Elsewhere**: {question.strip()}\n\n'
        f'??? success "Answer"\n\n{indented(answer, " " * 4)}\n\n</div>'
    )
    card = re.sub(r"\]\((?![a-z]+:|#|/)", f"]({module}/", card)
    return f'<div class="key-point" markdown="1">\n\n{card}\n\n</div>'


@macro("feedback", scope="site")
def feedback(site: SiteContext) -> str:
    """Where readers say what is wrong, as `extra` in mkdocs.yml has it; empty where it doesn't."""
    settings = site.root / "mkdocs.yml"
    return navigation.feedback(settings.read_text(encoding="utf-8")) if settings.is_file() else ""


@macro("runs_here", scope="site")
def runs_here(site: SiteContext) -> bool:
    """Whether this site has the browser's machine, so that its pages run trials themselves."""
    return any(context.runs_here for context in site.labs.values())


@macro("second_runs", scope="site")
def second_runs(site: SiteContext) -> dict[str, Any]:
    """Which recorded sets `./lab record --verify --note` found the same: `.sets` of `.of`, `.runs` in them, and `.real_s`, how
    long they took in all."""
    counts: dict[str, Any] = {"sets": 0, "of": 0, "runs": 0, "real_s": 0}
    for context in site.labs.values():
        noted = verifications(context.sets.folder)
        for folder in set_folders(context.sets.folder):
            recorded = read_set(folder)
            counts["of"] += 1
            if still_verified(noted, recorded):
                counts["sets"] += 1
                counts["runs"] += len(recorded.runs)
                counts["real_s"] += noted[recorded.name].real_s
    return counts


@macro("graded_class", scope="site")
def graded_class(site: SiteContext) -> dict[str, Block]:
    """A made-up class, dealt seeds and graded, as `make site-assets` recorded it: `.roster`, `.dealt`,
    `.listing`, `.terminal`, `.marks`, `.import`."""
    folder = site.root / "docs/includes/graded-class"
    return {
        path.stem: Block(f"```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}```")
        for path in sorted(folder.glob("*.*"))
    }


@macro("minutes")
def minutes(context: LabContext) -> int:
    """The minutes of a lab's module in all: its own, and those of its cases."""
    return context.lab.file.lab.minutes + sum(
        pitfall.minutes for pitfall in context.lab.file.pitfalls
    )


@macro("it.case_minutes")
def case_minutes(context: LabContext) -> dict[str, int]:
    """A lab's cases in their order, and the minutes of each."""
    return {case.id: case.minutes for case in context.lab.file.pitfalls}


@macro('it.minutes_of("mtu", "offload")')
def minutes_of(context: LabContext, *cases: str) -> int:
    """The minutes of these cases together."""
    return sum(context.lab.pitfall(case).minutes for case in cases)


@macro("it.cases_taught")
def cases_taught(context: LabContext) -> Block:
    """A lab's cases for its teaching notes: each with a link to its section, its minutes, and what it teaches."""
    return Block(
        "\n".join(
            f"{n}. [{case.id}](#{case.id}), {case.minutes} minutes: {case.teaches}"
            for n, case in enumerate(context.lab.file.pitfalls, 1)
        )
    )


@macro("own.list_of_cases")
def list_of_cases(context: LabContext) -> Block:
    """A lab's cases in their order, each by what is seen, with a link to its page."""
    return Block(
        "\n".join(
            f"{n}. [{case.symptom[0].upper()}{case.symptom[1:]}]({case_page(context, case.id)})"
            for n, case in enumerate(context.lab.file.pitfalls, 1)
        )
    )


@macro("n | hours_and_minutes", scope="filter")
def hours_and_minutes(value: float) -> str:
    """Minutes as `4 h 10 min`."""
    hours, rest = divmod(round(value), 60)
    return " ".join([f"{hours} h"] * bool(hours) + [f"{rest} min"] * bool(rest or not hours))


def half_hours(value: float) -> str:
    """Minutes as `20½ hours`; what is shorter in tens of minutes. As docs/assets/progress.js."""
    if value < 90:
        return f"{10 * math.floor(value / 10 + 0.5)} minutes"
    return f"{math.floor(value / 30 + 0.5) / 2:g} hours".replace(".5", "½")


@macro("claims", scope="site")
def claims(site: SiteContext) -> list[PublishedClaim]:
    """The published claims that a study of one's own may take up, as `labs/claims.toml` has them."""
    return read_claims(site.root)


@macro("course", scope="site")
def course(site: SiteContext) -> list[LabContext]:
    """All labs in the order in which they are taken: each after those that it needs, else by number."""
    needs = {name: context.lab.file.lab.needs for name, context in site.labs.items()}
    return [site.labs[name] for name in in_order(needs)]


@macro("modules_in_all", scope="site")
def modules_in_all(site: SiteContext) -> str:
    """How many modules there are, as a sentence begins."""
    return in_words(len(site.labs)).capitalize()


@macro("cases_in_all", scope="site")
def cases_in_all(site: SiteContext) -> int:
    """How many cases there are in all modules."""
    return sum(len(context.lab.file.pitfalls) for context in site.labs.values())


@macro("time_in_all", scope="site")
def time_in_all(site: SiteContext) -> str:
    """How long all modules take."""
    return half_hours(sum(map(minutes, site.labs.values())))


@macro('teaching_pages("slides")', scope="site")
def teaching_pages(site: SiteContext, kind: str) -> str:
    """Links to the labs' `slides`, `answers` or `notes`, those that there are, from a page in docs/instructors/."""
    text, page, source = {
        "slides": ("{0}", "key/{1}-slides.md", "docs/instructors/key/{1}-slides.md"),
        "answers": ("{0} answers", "key/{1}.md", "solutions/{1}.py"),
        "notes": ("{0} notes", "key/{1}-notes.md", "docs/instructors/key/{1}-notes.md"),
    }[kind]
    return ", ".join(
        f"[{text}]({page})".format(context.lab.name, context.lab.folder.name)
        for context in course(site)
        if (site.root / source.format(context.lab.name, context.lab.folder.name)).is_file()
    )


def in_order(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names, each behind those that it needs, and otherwise as they come."""
    ordered: list[str] = []
    left = list(needs)
    while left:
        ready = [name for name in left if all(need not in left for need in needs[name])]
        # What waits for itself comes last: a lab's file says so when it is read.
        ordered.append((ready or left)[0])
        left.remove(ordered[-1])
    return ordered


@macro("course_map()", scope="site")
def course_map(site: SiteContext) -> Block:
    """The way through the modules, as a drawing with links: which comes after which. For wide screens and for narrow ones."""
    modules = [
        Module(
            context.lab.name,
            f"{context.lab.folder.name}/",
            ", ".join(
                [hours_and_minutes(minutes(context))]
                + [f"{len(cases)} cases" for cases in [context.lab.file.pitfalls] if cases]
            ),
            context.lab.file.lab.needs,
        )
        for context in course(site)
    ]
    return Block(f'<div class="course-map">{draw_course(modules)}</div>\n')


@macro("labs_map()", scope="site")
def labs_map(site: SiteContext) -> Block:
    """Which lab comes after which, drawn."""
    labs = [context.lab for context in site.labs.values()]
    parts = [Part(lab.name, lab.file.lab.minutes, lab.file.lab.needs) for lab in labs]
    return Block(draw_parts("Which lab comes after which", parts))


@macro('pitfalls_map("mathis")', scope="site")
def pitfalls_map(site: SiteContext, name: str) -> Block:
    """Which mistake of a lab comes after which, drawn."""
    pitfalls = site.lab(name).lab.file.pitfalls
    parts = [Part(pitfall.id, pitfall.minutes, pitfall.needs) for pitfall in pitfalls]
    return Block(draw_parts(f"Which mistake of {name} comes after which", parts))


@macro("course_progress()", scope="site")
def course_progress(site: SiteContext) -> Block:
    """The place where a browser counts which cases are done, which is next, and how much time is left."""
    facts = [
        {
            "name": context.lab.name,
            "title": context.lab.name.capitalize(),
            "page": f"{context.lab.folder.name}/",
            "minutes": context.lab.file.lab.minutes,
            "cases": [
                {
                    "number": context.lab.case_number(pitfall),
                    "title": case_heading(context, pitfall.id),
                    "page": f"{context.lab.folder.name}/{case_page(context, pitfall.id).removesuffix('.md')}/",
                    "minutes": pitfall.minutes,
                    "solved_by": "judgement" if pitfall.judgement else "diagnosis",
                }
                for pitfall in context.lab.file.pitfalls
            ],
        }
        for context in course(site)
    ]
    return Block(
        f'<div class="course-progress"><script type="application/json">{json_for_script(facts)}</script></div>\n'
        "<noscript><style>.course-progress, .module-left { display: none !important }</style></noscript>\n"
    )


def kit_address(site: SiteContext) -> str:
    """Return where git fetches the kit from, as mkdocs.yml has it; empty where that isn't said."""
    return address_in((site.root / "mkdocs.yml").read_text(encoding="utf-8"))


def address_in(settings: str) -> str:
    """Return the kit's address in mkdocs.yml's text; empty where it names none."""
    match = KIT.search(settings)
    return match[1].strip() if match else ""


@macro('get_kit("mathis")', scope="site")
def get_kit(site: SiteContext, name: str = "") -> Block:
    """How to get the kit, in a line to be copied; with a lab's name, a second line begins with that."""
    address = kit_address(site)
    begin = f"\n./lab start {site.lab(name).lab.name}" if name else ""
    if address:
        return Block(f"```sh\ngit clone {address} measure-twice && cd measure-twice{begin}\n```\n")
    return Block(
        f"```sh\nunzip measure-twice.zip && cd measure-twice{begin}\n```\n\n"
        "Ask whoever gave you this site for `measure-twice.zip`.\n"
        "{ .kit-says }\n"
    )


@macro('audit("docs/reference/audit-example.csv", rate="10gbit")', scope="site")
def audit_printed(site: SiteContext, file: str, rate: str = "") -> Block:
    """What `./lab audit` prints of a table, from the checkout's top."""
    path = site.root / file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    report = audit_table(content, path.name, rate_bps=read_rate_bps(rate) if rate else None)
    return Block(verbatim("\n".join(lines_of(report)), "text", wrapped=True))


@macro("audit_names", scope="site")
def audit_names(_: SiteContext) -> Block:
    """What a column of an audited table can be, as a table: the commonest first."""
    # Headings are tried the other way round: the rare before the common.
    names = reversed(NAMES.values())
    return Block(table(("name", "is"), ((f"`{name.name}`", name.help) for name in names)))
