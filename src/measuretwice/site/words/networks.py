"""A lab's network as a drawing, made from lab.toml: with a trial's settings, and small for a map."""

from __future__ import annotations

import html
from collections.abc import Sequence

from measuretwice.lab import Value, trial_params
from measuretwice.site.drawings import network as draw
from measuretwice.site.drawings.sketch import Sketch, sketch
from measuretwice.site.words.blocks import UNSEARCHED, Block
from measuretwice.site.words.pitfalls import pitfall, stage_set
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords

# A case's page says itself which trial it is of, and has to be short. Whether it came out so is what a case asks.
AS_MEANT = "As it was meant."


@word("network()")
def network(
    words: LabWords, trial: int | None = None, case: str = "", told: Sequence[str] = ()
) -> Block:
    """The lab's network, drawn with the settings of its first trial, or of `trial=`;
    `network(case="mtu")` small, with those that the case's trial is meant to have, and those that its page says, `told`,
    as they are."""
    number = pitfall(words, case).trial if case else trial or min(words.lab.trials)
    params = trial_params(words.lab, number) | (_meant(words, case, told) if case else {})
    drawn = sketch(words.lab, params)
    title = f"The network of {words.lab.name}, trial {number}"
    caption = f"The network, with the settings of trial {number}. What stands at an arrow is done to packets that go that way."
    return _figure(drawn, title, AS_MEANT if case else caption, small=bool(case))


@word('where_it_was("mtu")')
def where_it_was(words: LabWords, name: str) -> Block:
    """The network with the place marked that a case is about: behind the diagnosis only. Nothing where
    a case is about no place."""
    staged = pitfall(words, name)
    if not staged.place:
        return Block("")
    params = trial_params(words.lab, staged.trial, pitfall=staged.id, stage="broken")
    drawn = sketch(words.lab, params, staged.place)
    places = "; ".join(place.replace("/", " towards ") for place in staged.place)
    return _figure(drawn, f"Where it was: {places}", f"Where: {places}.", small=True)


@word("network_thumbnail()")
def network_thumbnail(words: LabWords) -> str:
    """The lab's network as an SVG of 160 by 90, without words: an ornament beside the lab's name."""
    return draw.thumbnail(sketch(words.lab, trial_params(words.lab, min(words.lab.trials))))


def _meant(words: LabWords, case: str, told: Sequence[str]) -> dict[str, Value]:
    """What both stages of a case set: it was asked for, and is nothing that is off; and what is `told`."""
    broken, fixed = (stage_set(words, case, stage) for stage in ("broken", "fixed"))
    return {
        name: value for name, value in broken.items() if name in told or fixed.get(name) == value
    }


def _figure(drawn: Sketch, title: str, caption: str, *, small: bool) -> Block:
    pictures = "".join(
        view(drawn, title=title, addresses=not small) for view in (draw.wide, draw.tall)
    )
    below = f"<figcaption>{html.escape(caption, quote=False)}</figcaption>" if caption else ""
    return Block(f'<figure class="network" {UNSEARCHED}>{pictures}{below}</figure>\n')
