"""What tools printed in recorded runs: lines of it verbatim, with their origin beneath, or values of it.

Nothing here is written by hand: a page that wants other lines asks for other lines.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

from measuretwice.base.errors import UserError
from measuretwice.lab import read_questions
from measuretwice.lab.schema.network import QdiscAt
from measuretwice.parse.host import parse_nstat
from measuretwice.report.report import make_report, render_html
from measuretwice.runs.folder import raw_files
from measuretwice.runs.recorded import read_set
from measuretwice.runs.remeasure import read_run
from measuretwice.site.macros import LabContext, SiteContext, macro
from measuretwice.site.macros.blocks import UNSEARCHED, Block, day, verbatim

# What of longer JSON a reader is shown: the rest stands in the run's folder.
QDISC_KEYS = ("kind", "dev", "options", "packets", "drops", "backlog")
SENDER_COUNTERS = ("TcpOutSegs", "TcpRetransSegs", "TcpExtTCPTimeouts", "TcpExtTCPLostRetransmit")
RECEIVER_COUNTERS = ("TcpInSegs", "TcpExtTCPOFOQueue", "TcpExtTCPOFODrop", "TcpExtPruneCalled")
WRAPPED_FROM = 160
# What a report of one case's two runs has, in order.
REPORT_PARTS = ("head", "lab_book", "summary", "questions", "first_try", "fixed")
# A page cuts several excerpts out of one archive, and a module's pages show the same runs.
_raw_files = lru_cache(maxsize=4)(raw_files)


@dataclass(frozen=True)
class LineSelection:
    """Which lines of a file: matching `grep`, `between` two patterns, the `first` or `last` few, or
    the `falls` lines among which the last number of a line falls most often."""

    first: int | None = None
    last: int | None = None
    grep: str | None = None
    between: tuple[str, str] | None = None
    falls: int | None = None

    def apply(self, lines: list[str]) -> list[str]:
        if self.between:
            lines = _between(lines, *self.between)
        if self.grep is not None:
            lines = [line for line in lines if re.search(self.grep, line)]
        if self.falls:
            lines = _falling(lines, self.falls)
        if self.first is not None:
            lines = lines[: self.first]
        return lines[-self.last :] if self.last else lines


def _between(lines: list[str], start: str, end: str) -> list[str]:
    """From the first line that matches `start` to the next that matches `end`, both included."""
    begins = next((n for n, line in enumerate(lines) if re.search(start, line)), None)
    if begins is None:
        return []
    ends = next(
        (n for n, line in enumerate(lines[begins + 1 :], begins + 1) if re.search(end, line)),
        len(lines) - 1,
    )
    return lines[begins : ends + 1]


def _falling(lines: list[str], count: int) -> list[str]:
    """The first `count` lines in a row among which the last number falls most often."""
    numbers = [re.search(r"([0-9.]+)\s*$", line) for line in lines]
    values = [float(match[1]) if match else float("-inf") for match in numbers]
    falls = [0, *(int(now < before) for before, now in itertools.pairwise(values))]
    seen = list(itertools.accumulate(falls, initial=0))
    # A fall into the first line isn't seen among them.
    starts = range(max(1, len(lines) - count + 1))
    best = max(starts, key=lambda n: seen[min(n + count, len(lines))] - seen[n + 1])
    return lines[best : best + count]


def raw_text(run_dir: Path, file: str) -> str:
    """Return a recorded run's raw file; UserError names the files that there are."""
    files = _raw_files(run_dir)
    if not files:
        raise UserError(f"{run_dir.parent.name}/{run_dir.name} is not recorded with its raw files")
    if file not in files:
        raise UserError(f"{run_dir.name} has no {file}; it has {', '.join(files)}")
    text = files[file].decode(errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def selected_lines(run_dir: Path, file: str, selection: LineSelection) -> tuple[str, str]:
    """Return some lines of a raw file, and which they are; UserError where none is left."""
    lines = raw_text(run_dir, file).rstrip("\n").split("\n")
    selected = selection.apply(lines)
    if not selected:
        raise UserError(f"{run_dir.parent.name}: no line of {file} is left to show")
    of_all = f", {len(selected)} of its {len(lines)} lines" if len(selected) < len(lines) else ""
    return "\n".join(selected), f"`{file}`{of_all}"


def selected_object(
    run_dir: Path, file: str, where: dict[str, Any], keys: Sequence[str] = ()
) -> tuple[str, str]:
    """Return of the objects in a raw JSON file the first that has these values, or some of its keys, as text; and what it
    is. Values are as recorded; only their layout is ours. UserError where there is none, or a key is missing."""
    of_set = run_dir.parent.name
    try:
        items = json.loads(raw_text(run_dir, file))
    except ValueError as error:
        raise UserError(f"{of_set}: {file} is no JSON ({error})") from None
    # nstat's counters stand in one object under one name.
    for item in items.values() if isinstance(items, dict) else items:
        if all(item.get(key) == value for key, value in where.items()):
            break
    else:
        raise UserError(f"{of_set}: nothing in {file} has {where}")
    if missing := [key for key in keys if key not in item]:
        raise UserError(f"{of_set}: {file} has no {missing[0]}; it has {', '.join(item)}")
    shown = {key: item[key] for key in keys} if keys else item
    how = "abridged" if len(shown) < len(item) else "reformatted"
    return json.dumps(shown, indent=2), f"`{file}`, one object, {how}"


def _block(run_dir: Path, title: str, quoted: tuple[str, str]) -> Block:
    """A raw file's text, and what it is, as a fenced block with a line on its origin."""
    text, what = quoted
    # A line of ss is far longer than a page is wide, and all of it is to be read.
    long = max(map(len, text.split("\n"))) > WRAPPED_FROM
    block = verbatim(text, "text", title=title, wrapped=long)
    return Block(f"{block}\n\n{origin_of(what, run_dir)}")


def origin_of(what: str, run_dir: Path) -> str:
    """Return the paragraph below an excerpt: what it is of, by which command, on which kernel, when."""
    document = json.loads((run_dir / "provenance.json").read_text(encoding="utf-8"))
    kernel, begun = document["kernel"]["version"], day(document["started"])
    origin = f"{what} · `{document['command']}` · Linux {kernel} · {begun}"
    return f"{origin}\n{{ .recorded {UNSEARCHED} }}\n"


class Lines(TypedDict, total=False):
    """How pages say which lines of a file they want: the fields of a LineSelection."""

    first: int | None
    last: int | None
    grep: str | None
    between: tuple[str, str] | None
    falls: int | None


@macro('excerpt("mtu-broken", "romeo/ss-last.txt", last=1)')
def excerpt(
    context: LabContext,
    name: str,
    file: str,
    *,
    where: dict[str, Any] | None = None,
    keys: Sequence[str] = (),
    trial: int | None = None,
    seed: int | None = None,
    **lines: Unpack[Lines],
) -> Block:
    """Lines of a raw file in a block, with its origin beneath; `first=`, `last=`, `grep=`,
    `between=("from", "to")`, or the `falls=` lines in which the last number falls most often. Of a JSON file one object, or some keys of it: `excerpt("mtu-broken",
    "router/qdisc.after.json", where={"kind": "netem", "dev": "eth1"}, keys=["packets", "drops"])`."""
    run_dir = context.sets.run(name, trial, seed).run_dir
    if where is not None:
        return _block(run_dir, file, selected_object(run_dir, file, where, keys))
    return _block(run_dir, file, selected_lines(run_dir, file, LineSelection(**lines)))


@macro('counters("mtu-broken", "juliet", ["TcpInSegs"])')
def counters(
    context: LabContext,
    name: str,
    node: str,
    names: Sequence[str],
    *,
    trial: int | None = None,
    seed: int | None = None,
) -> Block:
    """nstat's counters of a node: before, after and the difference."""
    return _counters(context.sets.run(name, trial, seed).run_dir, node, names)


def _counters(run_dir: Path, node: str, names: Sequence[str]) -> Block:
    """A node's counters before and after a run, and what they grew by. nstat counts since boot."""
    files = [f"{node}/nstat.{when}.json" for when in ("before", "after")]
    before, after = (parse_nstat(raw_text(run_dir, file), file) for file in files)
    if missing := [name for name in names if name not in after]:
        raise UserError(f"{run_dir.parent.name}: {files[1]} has no {missing[0]}")
    rows = [("counter", "before", "after", "difference")]
    for name in names:
        was, now = before.get(name, 0), after[name]
        rows.append((name, str(was), str(now), str(now - was)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    what = (
        f"`{files[0]}` and `{files[1]}`, {len(names)} counter{'s' * (len(names) > 1)}, reformatted"
    )
    return _block(run_dir, f"{node}: nstat -az", ("\n".join(lines), what))


@macro('outputs("mtu-broken")')
def outputs(context: LabContext, name: str) -> dict[str, Block]:
    """Where to look first: an excerpt of ping, ss, tc, tcpdump and nstat, by name; of the first run
    where a set has several."""
    collect, first = context.lab.file.collect, context.sets.runs(name)[0]
    run_dir = first.run_dir
    captures = float(first.params.get("capture_packets") or 0) > 0
    blocks: dict[str, Block] = {}
    for tool, source, count in (
        ("ping", collect.ping, 3),
        ("ss", collect.ss_last or collect.ss, 3 if collect.ss_last else 1),
        ("tc", None, 0),
        ("tcpdump", collect.capture if captures else None, 4),
    ):
        if source:
            file = f"{source.node}/{source.file}"
            last = LineSelection(last=count)
            blocks[tool] = _block(run_dir, file, selected_lines(run_dir, file, last))
        elif tool == "tc" and collect.bottleneck:
            blocks[tool] = _bottleneck(run_dir, collect.bottleneck)
    for node, names in (
        (collect.sender, SENDER_COUNTERS),
        (collect.receiver, RECEIVER_COUNTERS),
    ):
        if node is not None:
            blocks[f"nstat, {node}"] = _counters(run_dir, node, names)
    return blocks


def _bottleneck(run_dir: Path, bottleneck: QdiscAt) -> Block:
    """The counters of the qdisc of that kind on the interface with that address."""
    links = json.loads(raw_text(run_dir, f"{bottleneck.node}/addr.json"))
    device = next(
        link["ifname"]
        for link in links
        if any(address["local"] == bottleneck.address for address in link["addr_info"])
    )
    file, where = f"{bottleneck.node}/qdisc.after.json", {"kind": bottleneck.kind, "dev": device}
    return _block(run_dir, file, selected_object(run_dir, file, where, QDISC_KEYS))


@macro("finished_report", scope="site")
def finished_report(site: SiteContext) -> dict[str, Block]:
    """A student's report, as `./lab report` writes it of two recorded sets and of the lab book that `make site-assets` recorded:
    `.head`, `.lab_book`, `.summary`, `.questions`, `.first_try` and `.fixed`; and `.commands`, with which it was made. It names the
    case's cause, so a page says first which case it is."""
    folder = site.root / "docs/includes/finished-report"
    if not folder.is_dir():
        return {}
    played = tomllib.loads((folder / "played.toml").read_text(encoding="utf-8"))
    context = site.lab(played["lab"])
    runs = []
    for name in played["sets"]:
        [recorded] = read_set(context.sets.set_folder(name)).runs
        runs.append(read_run(site.root, recorded.result.run_dir, recorded.run))
    asked = read_questions(context.lab)
    report = make_report(
        runs,
        title=None,
        author=played["author"],
        made=datetime.fromisoformat(max(str((run.provenance or {})["ended"]) for run in runs)),
        answers={asked[int(n) - 1]: text.strip() for n, text in played["answers"].items()},
        books={context.lab.name: (folder / "lab-book.txt").read_text(encoding="utf-8")},
    )
    commands = "\n".join(f"# {step['does']}\n{step['command']}" for step in played["steps"])
    return {"commands": Block(verbatim(commands, "sh")), **report_parts(render_html(report))}


def report_parts(page: str) -> dict[str, Block]:
    """Return the parts of a report of two runs by what they are, each to stand below a heading of a page of the site, with classes of its own."""
    head = page.partition("<header>")[2].partition("</header>")[0]
    sections = re.findall(r"<section [^>]*>(.*?)</section>", page, re.DOTALL)
    return {
        name: _report_part(html) for name, html in zip(REPORT_PARTS, (head, *sections), strict=True)
    }


def _report_part(html: str) -> Block:
    html = re.sub(
        r'class="([^"]+)"',
        lambda found: 'class="' + " ".join(f"report-{name}" for name in found[1].split()) + '"',
        html,
    )
    html = html.replace("<table>", '<table class="report-table">')
    html = re.sub(r"(</?h)([123])\b", lambda found: f"{found[1]}{int(found[2]) + 2}", html)
    # What a report says is no text of the page, nor a part of it what stands below its headings.
    html = re.sub(r"<h[345]\b", rf"\g<0> {UNSEARCHED}", html)
    return Block(
        f'<!-- vale off -->\n\n<div class="report-part" {UNSEARCHED}>\n{html.strip()}\n</div>\n\n<!-- vale on -->\n'
    )
