"""Drawings: a lab's network, made from lab.toml, and ideas, computed from the model or rule that the page states."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from measuretwice.lab import Value, trial_params
from measuretwice.site.drawings import concepts
from measuretwice.site.drawings import network as draw
from measuretwice.site.drawings.topology import Sketch, sketch
from measuretwice.site.macros.blocks import UNSEARCHED, Block
from measuretwice.site.macros.lab import stage_set
from measuretwice.site.macros.table import LabContext, macro

# A case's page says itself which trial it is of, and has to be short. Whether it came out so is what a case asks.
AS_MEANT = "As it was meant."


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
    caption = f"The network, with the settings of trial {number}. What stands at an arrow is done to packets that go that way."
    return _figure(drawn, title, AS_MEANT if case else caption, small=bool(case))


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


def _meant(context: LabContext, case: str, told: Sequence[str]) -> dict[str, Value]:
    """What both stages of a case set: it was asked for, and is nothing that is off; and what is `told`."""
    broken, fixed = (stage_set(context, case, stage) for stage in ("broken", "fixed"))
    return {
        name: value for name, value in broken.items() if name in told or fixed.get(name) == value
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
