"""The state of TCP connections over time, as the labs' sampler writes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from measuretwice.parse._text import SAMPLE_MARK, clean, cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError, TruncatedError
from measuretwice.parse.ss import has_second_lines, read_sockets
from measuretwice.parse.ss_socket import SsSocket

_EXPECTED = "samples of ss, each after a line '# t=SECONDS'"


@dataclass(frozen=True)
class SsSample:
    """The sockets at one time. `time_s` is Unix time on the sampled node's clock; a float holds
    it to about a quarter of a microsecond."""

    time_s: float
    sockets: tuple[SsSocket, ...]


def parse_ss_samples(
    text: str,
    source: str,
    *,
    allow_truncated_tail: bool = False,
    local_ports: Collection[int] | None = None,
) -> tuple[SsSample, ...]:
    """Read lines '# t=1795213564.741568000', each followed by what ss printed then.

    A sample may have no sockets. A sampler that was killed may leave its last sample cut off:
    with `allow_truncated_tail` that sample is left out, without it that is a ParseError, as is
    anything else that isn't ss's text. With `local_ports`, and where ss printed a line a socket,
    the sockets of other ports are left out unread: reading is what takes the time.
    """
    text = clean(text, source, _EXPECTED)
    if not "# t=".startswith(text[:4]):
        raise foreign(text, source, _EXPECTED)
    lines = text.split("\n")
    # After the last line's end stands nothing, unless the last line is cut off.
    tail = lines.pop()
    if tail and not allow_truncated_tail:
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    starts = [i for i, line in enumerate(lines) if line.startswith("#")]
    ends = [*starts[1:], len(lines)]
    if tail and not tail.startswith("#"):
        # The last sample's last socket is what is cut off.
        del starts[-1:]
    second_lines = has_second_lines(text)
    marks = None if local_ports is None or second_lines else [f":{port} " for port in local_ports]
    samples: list[SsSample] = []
    for start, end in zip(starts, ends, strict=False):
        mark = SAMPLE_MARK.fullmatch(lines[start])
        if not mark:
            raise ParseError(
                source,
                f"line {start + 1}",
                f"found {excerpt(lines[start])}; expected '# t=SECONDS' with nine decimals",
            )
        numbered: Iterable[tuple[int, str]] = enumerate(lines[start + 1 : end], start=start + 2)
        if marks is not None:
            numbered = [
                (number, line) for number, line in numbered if any(mark in line for mark in marks)
            ]
        try:
            sockets = read_sockets(numbered, source, second_lines)
        except TruncatedError:
            if allow_truncated_tail and end == len(lines):
                break
            raise
        samples.append(SsSample(float(f"{mark[1]}.{mark[2]}"), sockets))
    return tuple(samples)
