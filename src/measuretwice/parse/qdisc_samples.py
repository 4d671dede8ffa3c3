"""A queue over time, as the labs' sampler writes it: `tc -j -s qdisc show`, again and again."""

from __future__ import annotations

from dataclasses import dataclass

from measuretwice.parse._text import SAMPLE_MARK, clean, cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError
from measuretwice.parse.tc import Qdisc, parse_tc_qdiscs

_EXPECTED = "samples of tc, each after a line '# t=SECONDS'"


@dataclass(frozen=True)
class QdiscSample:
    """One interface's qdiscs at one time. `time_s` is Unix time on the sampled node's clock."""

    time_s: float
    qdiscs: tuple[Qdisc, ...]


def parse_qdisc_samples(
    text: str, source: str, *, allow_truncated_tail: bool = False
) -> tuple[QdiscSample, ...]:
    """Read lines '# t=1795213564.741568000', each followed by one line of tc's JSON.

    A sampler that was killed may leave its last sample cut off: with `allow_truncated_tail` that
    sample is left out, without it that is a ParseError, as is anything else.
    """
    text = clean(text, source, _EXPECTED)
    if not "# t=".startswith(text[:4]):
        raise foreign(text, source, _EXPECTED)
    lines = text.split("\n")
    whole = lines.pop() == ""
    if not whole and not allow_truncated_tail:
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    if len(lines) % 2 and whole and not allow_truncated_tail:
        raise cut_off(source, len(lines), "tc's JSON after the last '# t='")
    samples = []
    for place in range(0, len(lines) - 1, 2):
        mark = SAMPLE_MARK.fullmatch(lines[place])
        if not mark:
            raise ParseError(
                source,
                f"line {place + 1}",
                f"found {excerpt(lines[place])}; expected '# t=SECONDS' with nine decimals",
            )
        qdiscs = parse_tc_qdiscs(lines[place + 1], f"{source}, line {place + 2}")
        samples.append(QdiscSample(float(f"{mark[1]}.{mark[2]}"), qdiscs))
    return tuple(samples)
