"""The course as a whole: its modules in the order in which they are taken, how long each is, where the kit is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from measuretwice.site.words.blocks import Block
from measuretwice.site.words.cases import case_heading, case_page
from measuretwice.site.words.numbers import in_words
from measuretwice.site.words.registry import number_filter, site_word, word
from measuretwice.site.words.subjects import LabWords, SiteWords

# A box of the map and the room around it, in units of its drawing.
BOX, TALL, GAP = 150, 58, 34
# How far from a side's middle an arrow from or to another row or column ends: no two lie on each other.
ASIDE, ASIDE_DOWN = 14, 30
# Where git fetches the kit from: the one place where that is said.
KIT = re.compile(r"^  kit: *[\"']?([^\"'\n#]*?)[\"']? *$", re.MULTILINE)


@word("minutes", fact=True)
def minutes(words: LabWords) -> int:
    """The minutes of a lab's module in all: its own, and those of its cases."""
    return words.lab.file.lab.minutes + sum(each.minutes for each in words.lab.file.pitfalls)


@word("it.case_minutes", name="case_minutes", fact=True, rare=True)
def case_minutes(words: LabWords) -> dict[str, int]:
    """A lab's cases in their order, and the minutes of each."""
    return {case.id: case.minutes for case in words.lab.file.pitfalls}


@word('it.minutes_of("mtu", "offload")', name="minutes_of", rare=True)
def minutes_of(words: LabWords, *cases: str) -> int:
    """The minutes of these cases together."""
    return sum(words.lab.pitfall(case).minutes for case in cases)


@word("it.cases_taught", name="cases_taught", fact=True, rare=True)
def cases_taught(words: LabWords) -> Block:
    """A lab's cases for its teaching notes: each with a link to its section, its minutes, and what it teaches."""
    return Block(
        "\n".join(
            f"{n}. [{case.id}](#{case.id}), {case.minutes} minutes: {case.teaches}"
            for n, case in enumerate(words.lab.file.pitfalls, 1)
        )
    )


@word("own.list_of_cases", name="list_of_cases", fact=True, rare=True)
def list_of_cases(words: LabWords) -> Block:
    """A lab's cases in their order, each by what is seen, with a link to its page."""
    return Block(
        "\n".join(
            f"{n}. [{case.symptom[0].upper()}{case.symptom[1:]}]({case_page(words, case.id)})"
            for n, case in enumerate(words.lab.file.pitfalls, 1)
        )
    )


@word("number", fact=True)
def number(words: LabWords) -> int:
    """A lab's number, as its folder has it."""
    return int(words.lab.folder.name.split("-")[0])


@number_filter("n | hours_and_minutes")
def hours_and_minutes(value: float) -> str:
    """Minutes as `4 h 10 min`."""
    hours, rest = divmod(round(value), 60)
    return " ".join([f"{hours} h"] * bool(hours) + [f"{rest} min"] * bool(rest or not hours))


def half_hours(value: float) -> str:
    """Minutes as `20½ hours`; what is shorter in tens of minutes. As docs/assets/progress.js."""
    if value < 90:
        return f"{10 * math.floor(value / 10 + 0.5)} minutes"
    return f"{math.floor(value / 30 + 0.5) / 2:g} hours".replace(".5", "½")


@site_word("course", fact=True)
def course(site: SiteWords) -> list[LabWords]:
    """All labs in the order in which they are taken: each after those that it needs, else by number."""
    needs = {name: words.lab.file.lab.needs for name, words in site.labs.items()}
    return [site.labs[name] for name in in_order(needs)]


@site_word("modules_in_all", fact=True)
def modules_in_all(site: SiteWords) -> str:
    """How many modules there are, as a sentence begins."""
    return in_words(len(site.labs)).capitalize()


@site_word("cases_in_all", fact=True)
def cases_in_all(site: SiteWords) -> int:
    """How many cases there are in all modules."""
    return sum(len(words.lab.file.pitfalls) for words in site.labs.values())


@site_word("time_in_all", fact=True)
def time_in_all(site: SiteWords) -> str:
    """How long all modules take."""
    return half_hours(sum(map(minutes, site.labs.values())))


@site_word('teaching_pages("slides")')
def teaching_pages(site: SiteWords, kind: str) -> str:
    """Links to the labs' `slides`, `answers` or `notes`, those that there are, from a page in docs/instructors/."""
    text, page, source = {
        "slides": ("{0}", "key/{1}-slides.md", "docs/instructors/key/{1}-slides.md"),
        "answers": ("Answers, {0}", "key/{1}.md", "solutions/{1}.py"),
        "notes": ("Teaching notes, {0}", "key/{1}-notes.md", "docs/instructors/key/{1}-notes.md"),
    }[kind]
    return ", ".join(
        f"[{text}]({page})".format(words.lab.name, words.lab.folder.name)
        for words in site.labs.values()
        if (site.root / source.format(words.lab.name, words.lab.folder.name)).is_file()
    )


def in_order(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names, each behind those that it needs, and otherwise as they come."""
    found: list[str] = []
    left = list(needs)
    while left:
        ready = [name for name in left if all(need not in left for need in needs[name])]
        # What waits for itself comes last: a lab's file says so when it is read.
        found.append((ready or left)[0])
        left.remove(found[-1])
    return found


def steps_before(needs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return of each what it needs itself: without what these need already."""
    everything: dict[str, set[str]] = {}
    for name in in_order(needs):
        own = [need for need in needs[name] if need in everything]
        everything[name] = {*own, *(far for need in own for far in everything[need])}
    return {
        name: [
            need
            for need in needs[name]
            if need in everything
            and not any(need in everything.get(other, ()) for other in needs[name])
        ]
        for name in needs
    }


@site_word("course_map()")
def course_map(site: SiteWords) -> Block:
    """The way through the modules, as a drawing with links: which comes after which. For wide screens and for narrow ones."""
    modules = {words.lab.name: words for words in course(site)}
    before = steps_before({name: words.lab.file.lab.needs for name, words in modules.items()})
    depth: dict[str, int] = {}
    for name in modules:
        depth[name] = 1 + max((depth[need] for need in before[name]), default=-1)
    places = {name: (depth[name], _beside(name, depth)) for name in modules}
    return Block(
        '<div class="course-map">'
        + "".join(_drawn(modules, before, places, across=across) for across in (True, False))
        + "</div>\n"
    )


def _beside(name: str, depth: Mapping[str, int]) -> int:
    """How many of the same depth come before it."""
    same = [other for other in depth if depth[other] == depth[name]]
    return same.index(name)


def _drawn(
    modules: Mapping[str, LabWords],
    before: Mapping[str, Sequence[str]],
    places: Mapping[str, tuple[int, int]],
    *,
    across: bool,
) -> str:
    """The drawing, from left to right or from top to bottom."""

    def corner(name: str) -> tuple[int, int]:
        deep, beside = places[name]
        x, y = (deep, beside) if across else (beside, deep)
        return 2 + x * (BOX + GAP), 2 + y * (TALL + GAP)

    def ends(need: str, name: str) -> str:
        (x0, y0), (x1, y1) = corner(need), corner(name)
        turns = places[name][1] - places[need][1]
        aside = (ASIDE if across else ASIDE_DOWN) * ((turns > 0) - (turns < 0))
        if across:
            return f"M{x0 + BOX},{y0 + TALL // 2 + aside}H{x1 - GAP // 2}V{y1 + TALL // 2 - aside}H{x1 - 7}"
        return (
            f"M{x0 + BOX // 2 + aside},{y0 + TALL}V{y1 - GAP // 2}H{x1 + BOX // 2 - aside}V{y1 - 7}"
        )

    corners = [corner(name) for name in modules]
    wide, high = (max(axis) + size + 2 for axis, size in zip(zip(*corners, strict=True), (BOX, TALL), strict=True))  # fmt: skip
    marker = "across" if across else "down"
    arrows = "".join(
        f'<path d="{ends(need, name)}" marker-end="url(#arrow-{marker})"/>'
        for name, needs in before.items()
        for need in needs
    )
    boxes = "".join(_box(words, *corner(name)) for name, words in modules.items())
    return (
        f'<svg class="{marker}" viewBox="0 0 {wide} {high}" role="group" aria-label="Which module comes after which">'
        f'<defs><marker id="arrow-{marker}" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="10" markerHeight="10" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0,0L8,4L0,8z"/></marker></defs><g class="arrows">{arrows}</g>{boxes}</svg>'
    )


def _box(words: LabWords, x: int, y: int) -> str:
    middle = x + BOX // 2
    several = len(words.lab.file.pitfalls)
    about = hours_and_minutes(minutes(words))
    below = f"{about}, {several} cases" if several else about
    return (
        f'<a href="{words.lab.folder.name}/" data-module="{words.lab.name}"><rect x="{x}" y="{y}" width="{BOX}" height="{TALL}" rx="5"/>'
        f'<text x="{middle}" y="{y + 25}" class="name">{words.lab.name.capitalize()}</text>'
        f'<text x="{middle}" y="{y + 44}">{below}</text></a>'
    )


@site_word("course_progress()")
def course_progress(site: SiteWords) -> Block:
    """The place where a browser counts which cases are done, which is next, and how much time is left."""
    facts = [
        {
            "name": words.lab.name,
            "title": words.lab.name.capitalize(),
            "page": f"{words.lab.folder.name}/",
            "minutes": words.lab.file.lab.minutes,
            "cases": [
                {
                    "number": words.lab.case_number(pitfall),
                    "title": case_heading(words, pitfall.id),
                    "page": f"{words.lab.folder.name}/{case_page(words, pitfall.id).removesuffix('.md')}/",
                    "minutes": pitfall.minutes,
                }
                for pitfall in words.lab.file.pitfalls
            ],
        }
        for words in course(site)
    ]
    text = json.dumps(facts, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Block(
        f'<div class="course-progress"><script type="application/json">{text}</script></div>\n'
        "<noscript><style>.course-progress, .module-left { display: none !important }</style></noscript>\n"
    )


def kit_address(site: SiteWords) -> str:
    """Return where git fetches the kit from, as mkdocs.yml has it; empty where that isn't said."""
    return address_in((site.root / "mkdocs.yml").read_text(encoding="utf-8"))


def address_in(settings: str) -> str:
    """Return the kit's address in mkdocs.yml's text; empty where it names none."""
    found = KIT.search(settings)
    return found[1].strip() if found else ""


@site_word('get_kit("mathis")')
def get_kit(site: SiteWords, name: str = "") -> Block:
    """How to get the kit, in a line to be copied; with a lab's name, and to begin with that."""
    address = kit_address(site)
    begin = f" && ./lab start {site.lab(name).lab.name}" if name else ""
    if address:
        return Block(f"```sh\ngit clone {address} measure-twice && cd measure-twice{begin}\n```\n")
    return Block(
        f"```sh\nunzip measure-twice.zip && cd measure-twice{begin}\n```\n\n"
        "The kit is one archive. Whoever gave you this site has it; this copy names no address to fetch it from.\n"
        "{ .kit-says }\n"
    )
