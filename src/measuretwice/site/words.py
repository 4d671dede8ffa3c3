"""The words that pages know: recorded runs, the model, a lab's facts. CONTRIBUTING.md lists them.

Every number and every line of output on a page comes through here.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from measuretwice.backends.node_list import node_list_text
from measuretwice.base.errors import UserError
from measuretwice.checks.engine import check_run, with_help
from measuretwice.checks.finding import Finding
from measuretwice.checks.sets import check_set
from measuretwice.figures import rows as plot_data
from measuretwice.grading.rubric import Rubric, read_rubric
from measuretwice.lab import (
    About,
    Lab,
    ModelUse,
    Pitfall,
    QdiscAt,
    StageName,
    Value,
    read_questions,
    refers,
)
from measuretwice.measure.signatures import Signature, read_sender, signature_of
from measuretwice.parse.nstat import parse_nstat
from measuretwice.parse.ss import SsSocket, parse_ss
from measuretwice.report.report import fence
from measuretwice.runs import recorded
from measuretwice.runs.archive import raw_folder
from measuretwice.runs.result import Result
from measuretwice.site import interactive as docs_interactive
from measuretwice.site.excerpts import (
    Block,
    Cut,
    counters_excerpt,
    excerpt,
    json_excerpt,
    json_object,
    raw_text,
    seen,
)
from measuretwice.site.terminals import terminals
from measuretwice.site.traces import traces_data
from measuretwice.stats.intervals import ConstantFit
from measuretwice.tcp import headers as frames
from measuretwice.tcp import model
from measuretwice.tcp import published_tables as audit
from measuretwice.testbeds.layout import Layout, layout_of

# What of longer JSON a reader is shown: the rest stands in the run's folder.
QDISC_KEYS = ("kind", "dev", "options", "packets", "drops", "backlog")
SENDER_COUNTERS = ("TcpOutSegs", "TcpRetransSegs", "TcpExtTCPTimeouts", "TcpExtTCPLostRetransmit")
RECEIVER_COUNTERS = ("TcpInSegs", "TcpExtTCPOFOQueue", "TcpExtTCPOFODrop", "TcpExtPruneCalled")
STEPS = ("Where to look", "What to compare", "The cause")


class ModelWords:
    """The models, in pages: `model.mathis(mss_bytes, rtt_ms, loss_ratio)` in bit/s, and kin."""

    mathis = staticmethod(model.mathis_bandwidth_bps)
    pftk = staticmethod(model.pftk_bandwidth_bps)
    losses = staticmethod(model.mathis_expected_losses)
    time_for_losses_s = staticmethod(model.mathis_time_for_losses_s)
    highspeed_decrease = staticmethod(model.highspeed_decrease_ratio)
    bdp_bytes = staticmethod(model.bdp_bytes)
    payload_limit = staticmethod(frames.payload_limit)
    cubic_kept: ClassVar[float] = model.CUBIC_KEPT_RATIO
    reno_constant = staticmethod(model.sack_reno_constant)
    rto_ms = staticmethod(model.linux_rto_ms)
    constants: ClassVar[dict[str, float]] = {
        name: constant.value for name, constant in model.MATHIS_CONSTANTS.items()
    }


class FindingWords(Block):
    """What the checker says of recorded runs: printed as its words, or one part of them."""

    _findings: list[Finding]

    def __new__(cls, findings: list[Finding], command: str) -> FindingWords:
        lines = [
            line
            for one in findings
            for line in (
                f"{one.id} ({one.severity})",
                f"  measured: {one.measured}",
                f"  expected: {one.expected}",
            )
        ]
        text = "\n".join(lines or ["no finding"])
        self = super().__new__(cls, fence(text, f'text title="{command}"'))
        self._findings = findings
        return self

    @property
    def found(self) -> bool:
        return bool(self._findings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not self._findings:
            raise AttributeError(name)
        return getattr(self._findings[0], name)


class LabWords:
    """What pages can say of one lab."""

    def __init__(self, root: Path, lab: Lab) -> None:
        self._root, self._lab = root, lab
        self._samples = root / "sample-data" / lab.folder.name
        self._results: dict[str, list[Result]] = {}

    @property
    def name(self) -> str:
        return self._lab.name

    @property
    def folder(self) -> str:
        return self._lab.folder.name

    @property
    def about(self) -> About:
        return self._lab.file.lab

    @property
    def art(self) -> str:
        return self._lab.file.topology.art.strip("\n")

    @property
    def pitfalls(self) -> list[Pitfall]:
        return self._lab.file.pitfalls

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self._lab.file.parameters)

    @property
    def trials(self) -> list[dict[str, Any]]:
        return [self.trial(number) for number in self._lab.trials]

    @cached_property
    def nodes(self) -> list[str]:
        names = [node.name for node in self._lab.file.topology.nodes]
        return [name for name in names if self._lab.script(name).is_file()]

    @cached_property
    def layout(self) -> Layout:
        """What a testbed builds for the lab: `.machines`, `.networks`, `.interfaces`, `.cores`, ..."""
        return layout_of(self._lab)

    @property
    def node_list(self) -> Block:
        """A nodes.toml for the lab, with names of machines that nobody has."""
        names = [machine.name for machine in self.layout.machines]
        destinations = {name: f"you@{name}.example.org" for name in names}
        text = node_list_text(destinations, f"{self.name}: where each node is")
        return Block(fence(text, 'toml title="nodes.toml"'))

    @cached_property
    def hours(self) -> float:
        """How long all trials measure, one after the other, in hours of a real clock."""
        own = self._lab.defaults()
        chosen = [trial.set for trial in self._lab.trials.values()]
        runs = [{**own, **self._lab.presets({**own, **one}), **one} for one in chosen]
        return sum(float(run["duration_s"]) for run in runs) / 3600

    def pitfall(self, wanted: str) -> Pitfall:
        return self._lab.pitfall(wanted)

    def trial(self, number: int) -> dict[str, Any]:
        """A trial's parameters as the lab has them, and its `number` and `title`."""
        trial = self._lab.trials.get(number)
        if trial is None:
            raise UserError(f"{self.name} has no trial {number}")
        return {**self._lab.defaults(), **trial.set, "number": number, "title": trial.title}

    def stage_set(self, pitfall: str, stage: str) -> dict[str, Value]:
        """What a stage of a pitfall changes in its trial; `=name` stands for that parameter."""
        meant = self.pitfall(pitfall)
        own = self.trial(meant.trial)
        changes = meant.broken.set if stage == "broken" else meant.fixed.set
        return {k: own[str(v)[1:]] if str(v).startswith("=") else v for k, v in changes.items()}

    def settings(self, trial: int, values: dict[str, Value]) -> list[str]:
        """Values over a trial's own as --set takes them: `loss_percent=0.006`, without exponents."""
        own = {**self.trial(trial), **values}
        meant = {key: own[str(v)[1:]] if refers(v) else v for key, v in values.items()}
        return [
            f"{key}={value}" if isinstance(value, str) else f"{key}={Decimal(repr(value)):f}"
            for key, value in meant.items()
        ]

    def elsewhere_command(self, pitfall: str, number: int, stage: str) -> str:
        """The command of a pitfall's stage on the first (0) or next of its other trials."""
        other = self.pitfall(pitfall).elsewhere[number]
        values = other.both | (other.broken if stage == "broken" else {})
        changes = "".join(
            f" --set {shlex.quote(each)}" for each in self.settings(other.trial, values)
        )
        return f"./lab run {self.name} --trial {other.trial}{changes}"

    def varied(self, pitfall: str) -> dict[str, tuple[float, float]]:
        """Which parameters of a pitfall may be varied, each from which to which value."""
        return self._lab.varied(self.pitfall(pitfall))

    def command(self, pitfall: str, stage: str) -> str:
        """The command that stages a pitfall."""
        self.pitfall(pitfall)
        return f"./lab run {self.name} --pitfall {pitfall} --stage {stage}"

    def terminals(self, pitfall: str, stage: StageName) -> Block:
        """The ways to run a stage, a tab each: virtual kernel, live, own kernel, testbed."""
        number = self.pitfall(pitfall).trial
        changes = self.stage_set(pitfall, stage)
        params = {**self._lab.defaults(), **self._lab.trials[number].set, **changes}
        return terminals(self._lab, f"--pitfall {pitfall} --stage {stage}", params)

    def recorded(self, name: str) -> bool:
        return (self._samples / name / recorded.SET_FILE).is_file()

    def runs(self, name: str) -> list[Result]:
        """All runs of a recorded set: each with params, measured, model, ratio, comparable."""
        if name not in self._results:
            self._results[name] = recorded.results_of(self._lab, self._samples / name)
        return self._results[name]

    def run(self, name: str, trial: int | None = None, seed: int | None = None) -> Result:
        """The one run of a set with this trial and seed."""
        runs = [
            run
            for run in self.runs(name)
            if trial in (None, run.trial) and seed in (None, run.seed)
        ]
        if len(runs) != 1:
            raise UserError(
                f"{name}: {len(runs)} runs fit; say which: run({name!r}, trial=, seed=)"
            )
        return runs[0]

    def excerpt(
        self,
        name: str,
        file: str,
        *,
        first: int | None = None,
        last: int | None = None,
        grep: str | None = None,
        between: tuple[str, str] | None = None,
        where: dict[str, Any] | None = None,
        keys: Sequence[str] = (),
        trial: int | None = None,
        seed: int | None = None,
    ) -> Block:
        """Lines of what a tool printed in a recorded run; of a JSON file, one object of it."""
        folder = self.run(name, trial, seed).place
        if where is not None:
            return json_excerpt(folder, file, where, keys)
        return excerpt(folder, file, Cut(first, last, grep, between))

    def counters(
        self,
        name: str,
        node: str,
        names: Sequence[str],
        *,
        trial: int | None = None,
        seed: int | None = None,
    ) -> Block:
        """A node's nstat counters before and after a recorded run, and their differences."""
        folder = self.run(name, trial, seed).place
        return counters_excerpt(folder, node, names)

    def sockets(self, name: str, file: str, **which: int) -> tuple[SsSocket, ...]:
        """The lines of ss in a recorded run's file, read: `.bytes_sent`, `.cwnd_segments`, ..."""
        return parse_ss(raw_text(self.run(name, **which).place, file), file)

    def nstat(self, name: str, node: str, **which: int) -> dict[str, int]:
        """By how much each counter of a node's kernel grew in a recorded run; 0 is left out."""
        folder = self.run(name, **which).place
        before, after = (
            parse_nstat(raw_text(folder, file), file)
            for file in (f"{node}/nstat.before.json", f"{node}/nstat.after.json")
        )
        grown = {key: value - before.get(key, 0) for key, value in after.items()}
        return {key: value for key, value in grown.items() if value}

    def signature(self, name: str, trial: int | None = None, seed: int | None = None) -> Signature:
        """What gives the algorithm of a run's one sender away: `.epochs`, `.cycle`, `.band`."""
        run = self.run(name, trial, seed)
        with raw_folder(run.place) as raw:
            seen = read_sender(self._lab, raw)
        one = self._lab.file.collect.one_sender
        from_s = float(run.params[one.average_from]) if one else 0.0
        return signature_of(seen.trace, seen.queue, seen.samples, from_s)

    def fit(self, name: str) -> ConstantFit:
        """C over a set's comparable trials, and the slope on logarithmic axes, with 95 % intervals."""
        runs = self.runs(name)
        rows = plot_data.rows_for_table(runs)
        found = plot_data.fit_rows(rows, plot_data.model_constant(runs))
        if found is None:
            raise UserError(f"{name}: too few trials in which the model makes a claim, to fit C")
        return found

    def seen(
        self,
        name: str,
        file: str,
        what: str,
        *,
        first: int | None = None,
        last: int | None = None,
        grep: str | None = None,
        between: tuple[str, str] | None = None,
        where: dict[str, Any] | None = None,
        trial: int | None = None,
        seed: int | None = None,
    ) -> Any:
        """One value as a tool printed it: the group of a pattern, within what excerpt() would show.

        With `where`, `what` is a key of that object; a dot leads into an inner one.
        """
        folder = self.run(name, trial, seed).place
        if where is None:
            return seen(folder, file, what, Cut(first, last, grep, between))
        found: Any = json_object(folder, file, where)
        for key in what.split("."):
            if not isinstance(found, dict) or key not in found:
                raise UserError(f"{name}: {file} has no {what}")
            found = found[key]
        return found

    def provenance(
        self, name: str, trial: int | None = None, seed: int | None = None
    ) -> dict[str, Any]:
        """A recorded run's provenance, and `real_s`: how long it took by the clock on the wall."""
        run = self.run(name, trial, seed).place
        said = dict(json.loads((run / "provenance.json").read_text(encoding="utf-8")))
        begun, ended = (datetime.fromisoformat(said[key]) for key in ("started", "ended"))
        return said | {"real_s": (ended - begun).total_seconds()}

    def outputs(self, name: str) -> dict[str, Block]:
        """The places where a reader looks first, each as an excerpt, by the tool's name.

        Of the first run where a set has several.
        """
        how, first = self._lab.file.collect, self.runs(name)[0]
        at = {"trial": first.trial, "seed": first.seed}
        found: dict[str, Block] = {}
        if how.ping:
            file = f"{how.ping.node}/{how.ping.file}"
            found["ping"] = self.excerpt(name, file, last=3, trial=first.trial, seed=first.seed)
        if last := how.ss_last or how.ss:
            file, lines = f"{last.node}/{last.file}", 3 if how.ss_last else 1
            found["ss"] = self.excerpt(name, file, last=lines, trial=first.trial, seed=first.seed)
        if how.bottleneck:
            found["tc"] = self._counters(name, how.bottleneck, at)
        if how.capture and float(first.params.get("capture_packets") or 0):
            file = f"{how.capture.node}/{how.capture.file}"
            found["tcpdump"] = self.excerpt(name, file, last=4, trial=first.trial, seed=first.seed)
        for node, keys in ((how.sender, SENDER_COUNTERS), (how.receiver, RECEIVER_COUNTERS)):
            if node is None:
                continue
            found[f"nstat, {node}"] = self.counters(name, node, keys, **at)
        return found

    def _counters(self, name: str, at: QdiscAt, run: dict[str, Any]) -> Block:
        """The bottleneck's counters: the qdisc of that kind on the interface with that address."""
        folder = self.run(name, **run).place
        links = json.loads(raw_text(folder, f"{at.node}/addr.json"))
        device = next(
            link["ifname"]
            for link in links
            if any(own["local"] == at.address for own in link["addr_info"])
        )
        where = {"kind": at.kind, "dev": device}
        return self.excerpt(
            name, f"{at.node}/qdisc.after.json", where=where, keys=QDISC_KEYS, **run
        )

    def finding(self, name: str) -> FindingWords:
        """What ./lab check says of a recorded set."""
        runs = self.runs(name)
        found = [one for run in runs for one in check_run(self._lab, run.params, run.measured)]
        if len(runs) > 1:
            told = check_set(self._lab, [run.member for run in runs])
            found = [with_help(self._lab, one.finding, None) for one in told] + found
        place = runs[0].place.relative_to(self._root / "sample-data")
        if len(runs) > 1:
            place = place.parent
        unique = list({one.id: one for one in found}.values())
        return FindingWords(unique, f"./lab check sample-data/{place.as_posix()}")

    def hints(self, pitfall: str) -> Block:
        """The three hints of a pitfall, each folded."""
        return folded_hints(self.pitfall(pitfall).hints)

    @property
    def audited(self) -> list[dict[str, Any]]:
        """The rows of the lab's audit.csv as they stand there, each with what can't be true in it."""
        path = self._lab.folder / "audit.csv"
        if not path.is_file():
            return []
        text = path.read_text(encoding="utf-8")
        problems = [audit.problems_of(row) for row in audit.read_rows(text, "audit.csv")]
        return [
            {"number": number, **cells, "problems": [one.said for one in found]}
            for number, (cells, found) in enumerate(
                zip(csv.DictReader(io.StringIO(text)), problems, strict=True), start=1
            )
        ]

    def questions(self) -> Block:
        """The lab's report questions as a numbered list."""
        asked = read_questions(self._lab)
        return Block("\n\n".join(f"{n}. {text}" for n, text in enumerate(asked, 1)) + "\n")

    @property
    def answered(self) -> bool:
        """Has the lab an answer key, in the instructors' site?"""
        return (self._root / f"solutions/{self.folder}.py").is_file()

    @property
    def noted(self) -> bool:
        """Has the lab teaching notes there?"""
        return (self._root / f"docs/instructors/key/{self.folder}-notes.md").is_file()

    @cached_property
    def rubric(self) -> Rubric | None:
        """How the lab's report is marked: `.criteria`, `.ladder`, `.points`; None if it has none."""
        return read_rubric(self._lab)

    @property
    def steps(self) -> list[str]:
        """The recorded sets that lead from the first try to the result, in order."""
        wanted = (one.id for one in self._lab.file.recordings if one.step)
        return [name for name in wanted if self.recorded(name)]

    @property
    def expected_ratio(self) -> tuple[float, float]:
        """The range in which lab.toml expects goodput over the model's bandwidth."""
        for each in self._lab.file.expect:
            if each.measured == "ratio" and each.min is not None and each.max is not None:
                return each.min, each.max
        raise UserError(f"{self.name}: lab.toml expects no range of the ratio")

    def within(self, name: str) -> int:
        """How many of a set's runs have a ratio in that range: what the figures count, too."""
        low, high = self.expected_ratio
        return sum(run.ratio is not None and low <= run.ratio <= high for run in self.runs(name))

    @property
    def bounds(self) -> ModelUse:
        """Where the lab's model ends: .max_loss_ratio, .min_expected_losses."""
        if self._lab.file.model is None:
            raise UserError(f"{self.name}: its lab.toml has no [model]")
        return self._lab.file.model

    def interactive(self, name: str) -> Block:
        """A figure that the reader can change: "steps", all recorded steps; "explorer", the model;
        "traces", the recorded flows of the set "signatures"."""
        if name == "traces":
            fallback = self.figure(
                "signatures", "Each flow's window over time, and the queue below it"
            )
            return docs_interactive.element(
                name, traces_data(self._lab, self.runs("signatures")), fallback
            )
        picture = self.figure("stages", "Goodput against the model, one panel for each step")
        return docs_interactive.block(self._lab, self.bounds, self._named_steps(), name, picture)

    def steps_table(self) -> Block:
        """Every trial's goodput over the model at every recorded step."""
        return docs_interactive.steps_table(self.bounds, self._named_steps())

    def _named_steps(self) -> list[tuple[str, list[Result]]]:
        titles = {one.id: one.title for one in self._lab.file.recordings}
        return [(titles[name], self.runs(name)) for name in self.steps]

    def figure(self, name: str, alt: str) -> str:
        """A figure of the recorded steps: first-and-last, stages, and of the last step
        measured-against-model and window-against-loss; spread, of the last two."""
        return f"![{alt}](/assets/figures/{self.folder}/{name}.svg){{ .figure }}"


def folded_hints(hints: Sequence[str]) -> Block:
    """A ladder of hints, each step folded."""
    parts = [
        f'??? tip "Hint {n}: {title}"\n\n    {text}\n'
        for n, (title, text) in enumerate(zip(STEPS, hints, strict=True), 1)
    ]
    return Block("\n".join(parts))
