"""A lab: its trials and parameters, its network drawn, its machines, how it is marked, the mistakes that it stages, its
recorded runs, and the checker's findings in them; and drawings of ideas, computed from the model or rule that a page
states."""

from __future__ import annotations

import html
import shlex
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from measuretwice.backends.ssh_nodes import node_list_text
from measuretwice.base.errors import UserError
from measuretwice.checks import Finding, check_run, check_set, run_under_test, with_help
from measuretwice.grading.rubric import Rubric, read_rubric, unmatched_points
from measuretwice.lab import Value, trial_params
from measuretwice.lab.schema import About
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.lab.schema.parameters import Parameter, refers
from measuretwice.report.markdown import fence
from measuretwice.runs.folder import ARCHIVE
from measuretwice.runs.remeasure import remeasure
from measuretwice.runs.result import Result, goodput_means
from measuretwice.site.drawings import concepts
from measuretwice.site.drawings import network as draw
from measuretwice.site.drawings.topology import Sketch, sketch
from measuretwice.site.macros import LabContext, macro
from measuretwice.site.macros.blocks import UNSEARCHED, Block, seconds, verbatim
from measuretwice.testbeds import Layout, layout_of


@macro("name")
def name(context: LabContext) -> str:
    """The lab's name, as `./lab run` takes it."""
    return context.lab.name


@macro("folder")
def folder(context: LabContext) -> str:
    """Its folder's name in labs/, sample-data/ and docs/modules/: `01-mathis`."""
    return context.lab.folder.name


@macro("about")
def about(context: LabContext) -> About:
    """What lab.toml says of the lab: `.title`, `.minutes`, `.needs`, `.objectives`, `.source`."""
    return context.lab.file.lab


@macro("parameters")
def parameters(context: LabContext) -> dict[str, Parameter]:
    """Its parameters by name, as lab.toml has them: `.default`, `.min`, `.max`, `.choices`,
    `.help`."""
    return dict(context.lab.file.parameters)


@macro("trial(7)")
def trial(context: LabContext, number: int) -> dict[str, Any]:
    """A trial's parameters, as `.rtt_ms`, and its `.number`, `.title`."""
    params = context.sets.trial(number)
    return {**params, "number": number, "title": context.lab.trials[number].title}


@macro("trials")
def trials(context: LabContext) -> list[dict[str, Any]]:
    """All of them, in order."""
    return [trial(context, number) for number in context.lab.trials]


@macro("hours")
def hours(context: LabContext) -> float:
    """How long all its trials measure, one after the other, in hours of a real clock."""
    lab = context.lab
    defaults = lab.defaults()
    trials = [row.set for row in lab.trials.values()]
    params = [{**defaults, **lab.presets({**defaults, **row}), **row} for row in trials]
    return sum(float(values["duration_s"]) for values in params) / 3600


@macro("goodput")
def goodput(context: LabContext) -> str:
    """What the lab's tables, `./lab run` and reports call goodput: over which time, by whose count."""
    lab = context.lab
    return goodput_means(lab, {**lab.defaults(), **next(iter(lab.trials.values())).set})


@macro("layout")
def layout(context: LabContext) -> Layout:
    """What a testbed builds for the lab: `.machines`, `.networks`, `.interfaces`,
    `.most_interfaces`, `.cores`, `.memory_gb`, `.disk_gb`."""
    return layout_of(context.lab)


@macro("node_list")
def node_list(context: LabContext) -> Block:
    """A `nodes.toml` for the lab as an example, with names of machines that nobody has."""
    names = [machine.name for machine in layout(context).machines]
    destinations = {machine: f"you@{machine}.example.org" for machine in names}
    text = node_list_text(destinations, f"{context.lab.name}: where each node is")
    return Block(fence(text, 'toml title="nodes.toml"'))


@macro("runs_here")
def runs_here(context: LabContext) -> bool:
    """Whether the site has the browser's machine, so that its pages make runs themselves."""
    return context.runs_here


@macro("rubric")
def rubric(context: LabContext) -> Rubric | None:
    """How the report is marked: `.criteria`, `.ladder`, `.points`; none where the lab has no
    rubric. Its CSV is at `/assets/rubrics/NN-<lab>.csv`."""
    rubric = read_rubric(context.lab)
    if rubric and (problems := unmatched_points(context.lab, rubric)):
        raise UserError(f"labs/{context.lab.folder.name}/questions.md: {problems[0]}")
    return rubric


@macro("pitfalls")
def pitfalls(context: LabContext) -> list[Pitfall]:
    """The lab's mistakes, in order, each with its facts."""
    return context.lab.file.pitfalls


@macro('pitfall("mtu")')
def pitfall(context: LabContext, wanted: str) -> Pitfall:
    """A mistake's facts, as lab.toml has them: `.id`, `.title`, `.symptom`, `.trial`, `.minutes`,
    `.hints` and more."""
    return context.lab.pitfall(wanted)


@macro('stage_set("mtu", "broken")')
def stage_set(context: LabContext, name: str, stage: str) -> dict[str, Value]:
    """What a stage of a mistake changes in its trial; `=name` in lab.toml stands for that
    parameter, and is its value here."""
    staged = context.lab.pitfall(name)
    params = trial(context, staged.trial)
    changes = staged.broken.set if stage == "broken" else staged.fixed.set
    return {
        key: params[str(value)[1:]] if str(value).startswith("=") else value
        for key, value in changes.items()
    }


@macro('command("mtu", "broken")')
def command(context: LabContext, name: str, stage: str) -> str:
    """The command that runs a stage of a mistake, by its case's number."""
    return f"./lab run {context.lab.name} {case_options(context, name, stage)}"


def case_options(context: LabContext, name: str, stage: str) -> str:
    """Return the options of `./lab run` that run a stage of a mistake without naming it."""
    return f"--case {context.lab.case_number(context.lab.pitfall(name))}" + (
        " --show-me" if stage == "fixed" else ""
    )


@macro("settings(7, {...})")
def settings(context: LabContext, number: int, values: dict[str, Value]) -> list[str]:
    """Values over a trial's own as `--set` takes them: `loss_percent=0.006`, without exponents."""
    params = {**trial(context, number), **values}
    resolved = {key: params[str(v)[1:]] if refers(v) else v for key, v in values.items()}
    return [
        f"{key}={value}" if isinstance(value, str) else f"{key}={Decimal(repr(value)):f}"
        for key, value in resolved.items()
    ]


@macro('elsewhere_command("mtu", 0, "broken")')
def elsewhere_command(context: LabContext, name: str, number: int, stage: str) -> str:
    """The command of a mistake's stage on the first (0) or next of its other trials."""
    other = context.lab.pitfall(name).elsewhere[number]
    values = other.both | (other.broken if stage == "broken" else {})
    changes = "".join(
        f" --set {shlex.quote(setting)}" for setting in settings(context, other.trial, values)
    )
    return f"./lab run {context.lab.name} --trial {other.trial}{changes}"


@macro('varied("mtu")')
def varied(context: LabContext, name: str) -> dict[str, tuple[float, float]]:
    """Which parameters of a mistake may be varied, from which to which value."""
    return context.lab.varied(context.lab.pitfall(name))


@macro('recorded("long")')
def recorded(context: LabContext, name: str) -> bool:
    """Whether a set is recorded."""
    return context.sets.is_recorded(name)


@macro('runs("long")')
def runs(context: LabContext, name: str) -> list[Result]:
    """All runs of a recorded set: of each `.params`, `.measured`, `.model`, `.ratio`,
    `.comparable`."""
    return context.sets.runs(name)


@macro('run("mtu-broken")')
def run(
    context: LabContext, name: str, trial: int | None = None, seed: int | None = None
) -> Result:
    """The run of a recorded set: `.params`, `.measured`, `.model`, `.ratio`, `.comparable`;
    `trial=`, `seed=` where it has several."""
    return context.sets.run(name, trial, seed)


@macro('took("mtu-broken")')
def took(context: LabContext, name: str) -> str:
    """How long the runs of a recorded set took together, by the clock on the wall."""
    took_s = sum(map(context.sets.real_s, context.sets.runs(name)))
    # Of a run its beginning and its end are known to the second.
    return seconds(took_s) if took_s else "under a second"


@macro("steps")
def steps(context: LabContext) -> list[str]:
    """The recorded sets that lead from the first try to the result, in order."""
    wanted = (recording.id for recording in context.lab.file.recordings if recording.step)
    return [name for name in wanted if context.sets.is_recorded(name)]


@macro("own.expected_ratio")
def expected_ratio(context: LabContext) -> tuple[float, float]:
    """The range in which lab.toml expects goodput over the model's bandwidth."""
    for expectation in context.lab.file.expect:
        low, high = expectation.min, expectation.max
        if expectation.measured == "ratio" and low is not None and high is not None:
            return low, high
    raise UserError(f"{context.lab.name}: lab.toml expects no range of the ratio")


class FindingWords(Block):
    """Findings: printed as the checker's words; its attributes are the first one's parts."""

    _findings: list[Finding]

    def __new__(cls, findings: list[Finding], command: str) -> FindingWords:
        lines = [
            line
            for finding in findings
            for line in (
                f"{finding.id} ({finding.severity})",
                f"  measured: {finding.measured}",
                f"  expected: {finding.expected}",
            )
        ]
        text = "\n".join(lines or ["no finding"])
        self = super().__new__(cls, verbatim(text, "text", title=command))
        self._findings = findings
        return self

    @property
    def found(self) -> bool:
        return bool(self._findings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not self._findings:
            raise AttributeError(name)
        return getattr(self._findings[0], name)


@macro('finding("mtu-broken")')
def finding(context: LabContext, name: str) -> FindingWords:
    """What the checker prints of these runs; `.found`, and `.why`, `.measured`, `.expected` are its
    parts."""
    lab, results = context.lab, context.sets.runs(name)
    findings = [
        finding
        for result in results
        for finding in check_run(lab, run_under_test(lab, result.params, result.measured))
    ]
    if len(results) == 1 and not findings:
        findings = _by_its_files(context, results[0])
    folder = results[0].run_dir.relative_to(context.root / "sample-data")
    if len(results) > 1:
        findings_of_set = check_set(lab, [result.member for result in results])
        findings = [with_help(lab, of_set.finding, None) for of_set in findings_of_set] + findings
        folder = folder.parent
    unique = list({finding.id: finding for finding in findings}.values())
    # Without the last hint a finding has no name there.
    hint = " --hint 3" if unique else ""
    return FindingWords(unique, f"./lab check sample-data/{folder.as_posix()}{hint}")


def _by_its_files(context: LabContext, first_try: Result) -> list[Finding]:
    """The findings of a recorded run whose measured values show nothing, by its raw files; these take longer to read."""
    lab = context.lab
    if first_try.case is None or first_try.stage or not (first_try.run_dir / ARCHIVE).is_file():
        return []
    again = remeasure(context.root, first_try.run_dir)
    trial, state = again.plan.trial, again.host_state
    return check_run(lab, run_under_test(lab, again.plan.params, again.measured, trial, state))


@macro("network()")
def network(
    context: LabContext, trial: int | None = None, case: str = "", told: Sequence[str] = ()
) -> Block:
    """The lab's network, drawn with the settings of its first trial, or of `trial=`;
    `network(case="mtu")` small, with those that the case's trial is meant to have, and those that its page says, `told`,
    as they are."""
    number = context.lab.pitfall(case).trial if case else trial or min(context.lab.trials)
    params = trial_params(context.lab, number) | (_meant(context, case, told) if case else {})
    drawn = sketch(context.lab, params)
    title = f"The network of {context.lab.name}, trial {number}"
    caption = f"The network, with the settings of trial {number}. The text beside an arrow shows what happens to packets going that way."
    if case:
        # A case's page says itself which trial it is of, and has to be short. One of several trials is drawn.
        of_several = f", in trial {number}" if context.lab.pitfall(case).trials else ""
        caption = f"The network as it is meant to be{of_several}."
    return _figure(drawn, title, caption, small=bool(case))


@macro('where_it_was("mtu")')
def where_it_was(context: LabContext, name: str) -> Block:
    """The network with the place marked that a case is about: behind the diagnosis only. Nothing where
    a case is about no place."""
    staged = context.lab.pitfall(name)
    if not staged.place:
        return Block("")
    params = trial_params(context.lab, staged.trial, pitfall=staged.id, stage="broken")
    drawn = sketch(context.lab, params, staged.place)
    places = "; ".join(place.replace("/", " towards ") for place in staged.place)
    return _figure(drawn, f"Where it was: {places}", f"Where: {places}.", small=True)


@macro("network_thumbnail()")
def network_thumbnail(context: LabContext) -> str:
    """The lab's network as an SVG of 160 by 90, without words: an ornament beside the lab's name."""
    return draw.thumbnail(sketch(context.lab, trial_params(context.lab, min(context.lab.trials))))


def _meant(context: LabContext, case: str, quoted: Sequence[str]) -> dict[str, Value]:
    """What both stages of a case set: it was asked for, and is nothing that is off; and what is `quoted`."""
    broken, fixed = (stage_set(context, case, stage) for stage in ("broken", "fixed"))
    return {
        name: value for name, value in broken.items() if name in quoted or fixed.get(name) == value
    }


def _figure(drawn: Sketch, title: str, caption: str, *, small: bool) -> Block:
    pictures = "".join(
        view(drawn, title=title, addresses=not small) for view in (draw.wide, draw.tall)
    )
    below = f"<figcaption>{html.escape(caption, quote=False)}</figcaption>" if caption else ""
    return Block(f'<figure class="network" {UNSEARCHED}>{pictures}{below}</figure>\n')


IDEAS: dict[str, Callable[..., Block]] = {
    "model.sawtooth(0.01)": concepts.sawtooth,
    "model.slow_start(345, 345)": concepts.slow_start,
    "model.queue_filling(100, 100, 1250000)": concepts.queue_filling,
    "model.cubic_curve(100, 70)": concepts.cubic_curve,
    "model.vegas_band(345)": concepts.vegas_band,
    "model.bbr_cycle()": concepts.bbr_cycle,
    "model.red_curve(min_bytes, max_bytes, limit_bytes, probability)": concepts.red_curve,
}
for usage, draw_idea in IDEAS.items():
    macro(usage, scope="model")(draw_idea)
