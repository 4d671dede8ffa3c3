"""Drawings of ideas where they are explained, computed from the model or rule that the page states."""

from __future__ import annotations

import html

from measuretwice.site.drawings import concepts
from measuretwice.site.drawings.concepts import Concept
from measuretwice.site.words.blocks import UNSEARCHED, Block
from measuretwice.site.words.registry import model_word


@model_word("model.sawtooth(0.01)")
def sawtooth(loss_ratio: float) -> Block:
    """A drawing: Reno's window, and a tooth's area, at this loss ratio."""
    return _figure(concepts.sawtooth(loss_ratio))


@model_word("model.slow_start(345, 345)")
def slow_start(pipe: float, buffer: float) -> Block:
    """A drawing: the first slow start over a path that holds so many segments, and a buffer."""
    return _figure(concepts.slow_start(pipe, buffer))


@model_word("model.queue_filling(100, 100, 1250000)")
def queue_filling(rate_mbit: float, rtt_ms: float, buffer_bytes: float) -> Block:
    """A drawing: rate and round trip against the window, below one BDP and above."""
    return _figure(concepts.queue_filling(rate_mbit, rtt_ms, buffer_bytes))


@model_word("model.cubic_curve(100, 70)")
def cubic_curve(window_segments: float, rtt_ms: float) -> Block:
    """A drawing: CUBIC's window after a loss, in its three regions."""
    return _figure(concepts.cubic(window_segments, rtt_ms))


@model_word("model.vegas_band(345)")
def vegas_band(pipe: float) -> Block:
    """A drawing: how many segments wait against Vegas' window, with both thresholds."""
    return _figure(concepts.vegas(pipe))


@model_word("model.bbr_cycle()")
def bbr_cycle() -> Block:
    """A drawing: BBR's pacing gain over two cycles of ProbeBW, and what is in flight."""
    return _figure(concepts.bbr_cycle())


@model_word("model.red_curve(min_bytes, max_bytes, limit_bytes, probability)")
def red_curve(min_bytes: float, max_bytes: float, limit_bytes: float, probability: float) -> Block:
    """A drawing: RED's chance of a drop against the average queue."""
    return _figure(concepts.red_curve(min_bytes, max_bytes, limit_bytes, probability))


def _figure(concept: Concept) -> Block:
    said = html.escape(concept.caption, quote=False)
    return Block(
        f'<figure class="concept" {UNSEARCHED}>{concept.picture}<figcaption>{said}</figcaption></figure>\n'
    )
