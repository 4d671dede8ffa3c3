"""The time-sequence figure: a capture's packets as dots, the acknowledged line below them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from measuretwice.base.errors import UserError
from measuretwice.figures.registry import figure
from measuretwice.figures.rows import Row
from measuretwice.figures.style import (
    FAINT,
    INK,
    Drawn,
    colour_of,
    in_style,
    on_phone,
    plain_axes,
    sized,
)
from measuretwice.lab import Lab
from measuretwice.lab.schema.results import SequenceFigure
from measuretwice.parse import ParseError
from measuretwice.parse.tcpdump import parse_tcpdump
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result
from measuretwice.tcp.traces import TimeSequence, time_sequence

# Around the first packet that was sent again.
BEFORE_S, AFTER_S = 0.06, 0.12
# Of so many places each way a panel's dots are told apart.
DOTS = 4000


@figure(SequenceFigure, needs="raw files")
def sequence(lab: Lab, declared: SequenceFigure, results: Sequence[Result]) -> Drawn:
    """The first of these runs: its whole capture, and the time about its first retransmission.

    A row is a packet: what (sent, again or acked), time_s, first_byte, end_byte.
    """
    run = results[0]
    packets = _read(lab, run)
    megabytes = 1e6
    again_s = packets.again[0][0] if packets.again else None
    with in_style():
        count = 2 if again_s is not None else 1
        drawn = sized(40 + 270 * count if on_phone() else 330)
        panels = drawn.subplots(*((count, 1) if on_phone() else (1, count)), squeeze=False).flat
        for panel in panels:
            _draw(panel, packets, megabytes, colour_of(run.params.get("congestion_control")))
        panels[0].set_ylabel("sequence number (MB)")
        drawn.legend(
            *panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, borderpad=0,
            markerscale=2, handletextpad=0.4, columnspacing=1.2,
        )  # fmt: skip
        panels[0].set_title("from the first packet on", loc="left")
        if again_s is not None:
            panels[1].set_title("about the first loss", loc="left")
            panels[1].set_xlim(again_s - BEFORE_S, again_s + AFTER_S)
            near = [
                end
                for time_s, _, end in packets.sent
                if again_s - BEFORE_S <= time_s <= again_s + AFTER_S
            ]
            low = min((a for t, a in packets.acked if t >= again_s - BEFORE_S), default=0)
            panels[1].set_ylim(0.98 * low / megabytes, 1.02 * max(near, default=1) / megabytes)
    drawn.caption = "one run, a dot a packet"
    drawn.description = (
        f"{len(packets.sent)} packets sent once and {len(packets.again)} sent again"
        + (f", the first of these after {again_s:.3g} s" if again_s is not None else "")
        + f"; {packets.acked[-1][1] / megabytes:.3g} MB acknowledged in {packets.acked[-1][0]:.3g} s."
    )
    rows: list[Row] = [
        {"what": what, "time_s": time_s, "first_byte": first, "end_byte": end}
        for what, listed in (("sent", packets.sent), ("again", packets.again))
        for time_s, first, end in listed
    ]
    rows += [
        {"what": "acked", "time_s": time_s, "first_byte": None, "end_byte": end}
        for time_s, end in packets.acked
    ]
    return drawn, rows


def _draw(panel: Axes, packets: TimeSequence, unit: float, colour: str) -> None:
    plain_axes(panel)
    sent = _seen([(t, end / unit) for t, _, end in packets.sent])
    panel.plot(*zip(*sent, strict=True), linestyle="", marker=".", markersize=2.4, color=FAINT,
        label="sent")  # fmt: skip
    panel.step(
        [t for t, _ in packets.acked], [a / unit for _, a in packets.acked], where="post",
        color=colour, linewidth=1.2, label="acknowledged",
    )  # fmt: skip
    if packets.again:
        panel.plot(
            [t for t, _, _ in packets.again], [end / unit for _, _, end in packets.again],
            linestyle="", marker="x", markersize=5.5, color=INK, label="sent again",
        )  # fmt: skip
    panel.set_xlabel("time (s)")


def _seen(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of points that cover each other in the larger panel only one; near the first loss all are shown."""
    kept: dict[tuple[int, int], tuple[float, float]] = {}
    width = points[-1][0] / DOTS or 1.0
    height = max(y for _, y in points) / DOTS or 1.0
    for t, y in points:
        kept.setdefault((round(t / width), round(y / height)), (t, y))
    return list(kept.values())


def _read(lab: Lab, run: Result) -> TimeSequence:
    where = lab.file.collect.one_sender
    if where is None or where.capture is None:
        raise UserError(f"{lab.name}: collect.one_sender.capture: names no capture to draw")
    folder = run.run_dir
    try:
        with raw_folder(folder) as raw:
            path = raw / where.node / where.capture
            text = path.read_text(encoding="utf-8", errors="replace")
            return time_sequence(parse_tcpdump(text, where.capture))
    except (ParseError, OSError, ValueError) as error:
        raise UserError(f"{folder.name}: its capture can't be read: {error}") from None
