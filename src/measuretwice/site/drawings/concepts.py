"""Drawings of ideas: each computed from the model or rule that the page beside it states."""

from __future__ import annotations

import html
from math import ceil, sqrt

from measuretwice.facts.values import SPACE
from measuretwice.site.drawings.svg import WIDTH, Axes, drawing, short
from measuretwice.site.macros.blocks import UNSEARCHED, Block
from measuretwice.tcp.model import CUBIC_KEPT_RATIO, RENO_KEPT_RATIO

# RFC 6928: a connection's first window, in segments. RFC 9438: C. tcp_vegas.c: alpha, beta.
FIRST_WINDOW = 10
CUBIC_C = 0.4
VEGAS_ALPHA, VEGAS_BETA = 2, 4
# Cardwell et al. 2016: the gains of ProbeBW, a phase each.
BBR_GAINS = (1.25, 0.75, 1, 1, 1, 1, 1, 1)
STEPS = 120


def _figure(panels: list[Axes], title: str, caption: str) -> Block:
    """A figure of panels, one below the other, with a caption that says what to see."""
    parts = [part for panel in panels for part in panel.parts]
    height = sum(panel.height for panel in panels)
    picture = drawing(WIDTH, height, parts, kind="concept", title=title, description=caption)
    below = html.escape(caption, quote=False)
    return Block(
        f'<figure class="concept" {UNSEARCHED}>{picture}<figcaption>{below}</figcaption></figure>\n'
    )


def sawtooth(loss_ratio: float) -> Block:
    """Reno's window where one packet in 1/p is lost: a tooth's area is its packets."""
    top = sqrt(8 / (3 * loss_ratio))
    low = RENO_KEPT_RATIO * top
    long = top - low
    axes = Axes((0, 2.5 * long), (0, 1.25 * top), "round trips", "window (segments)")
    axes.frame([0, round(long), round(2 * long)], [0, round(low), round(top)])
    axes.area([(long, low), (2 * long, top)], "reno")
    teeth = [(0.0, low), (long, top), (long, low), (2 * long, top), (2 * long, low)]
    axes.line([*teeth, (2.5 * long, low + 0.5 * long)], "reno")
    axes.level(0.75 * top, "mean: ¾ W", anchor="start")
    axes.say(1.52 * long, 0.24 * top, "area = 1/p", anchor="middle")
    axes.say(1.52 * long, 0.1 * top, f"= {short(1 / loss_ratio)} packets", anchor="middle")
    axes.say(2 * long, 1.07 * top, "W", anchor="middle")
    axes.say(0.98 * long, 0.44 * top, "W/2", anchor="end")
    caption = (
        "One tooth: from W/2 to W takes W/2 round trips, with a window sent in each. So the shaded area, ¾ W times W/2, is "
        f"all packets from one loss to the next: 1/p. Drawn for p = {short(loss_ratio)}, where W is {top:.1f} segments."
    )
    return _figure([axes], "Reno's window over time, a sawtooth", caption)


def slow_start(pipe: float, buffer: float) -> Block:
    """A first slow start over a path that holds `pipe` segments and a buffer of so many more."""
    full = pipe + buffer
    points, window, rounds = [(0.0, float(FIRST_WINDOW))], float(FIRST_WINDOW), 0
    while 2 * window < full:
        window, rounds = 2 * window, rounds + 1
        points.append((rounds, window))
    # In the round in which the buffer overflows the window still grows: the news takes a round trip.
    points += [(rounds + 1, 2 * window), (rounds + 2, 2 * window)]
    after_loss = RENO_KEPT_RATIO * full
    end = rounds + 7
    points += [(rounds + 2, after_loss), (end, after_loss + 5)]
    axes = Axes((0, end), (0, 2.3 * window), "round trips", "window (segments)")
    axes.frame(list(range(0, end + 1, 2)), [0, round(pipe), round(full)])
    axes.level(pipe, "the path is full", anchor="start")
    axes.level(full, "the buffer is full", anchor="start")
    axes.line(points, "reno")
    axes.say(end, after_loss - 0.2 * full, "then one more a round trip", kind="reno", anchor="end")
    caption = (
        f"Slow start from {FIRST_WINDOW} segments doubles the window each round trip. After {rounds} of them {short(window)} segments still "
        f"fit into path and buffer. One more makes {short(2 * window)}: {round(2 * window - full)} too many, and these are lost. Halved, "
        "the window still nearly fills both, so it is soon halved again (not drawn). Then it is half of what fitted, and its line hardly rises on this scale."
    )
    return _figure([axes], "The window in slow start and after it", caption)


def queue_filling(rate_mbit: float, rtt_ms: float, buffer_bytes: float) -> Block:
    """Goodput and round trip against the window, for a path with a buffer: up to one BDP only the first rises."""
    bdp = rate_mbit * rtt_ms / 8  # in kB
    full = bdp + buffer_bytes / 1e3
    end = full * 1.12
    ticks = [0, round(bdp), round(full)]
    rate = Axes((0, end), (0, 1.25 * rate_mbit), "", "rate (Mbit/s)", height=140)
    rate.frame(ticks, [0, rate_mbit])
    rate.line([(0, 0), (bdp, rate_mbit), (full, rate_mbit)], "model")
    waits = Axes(
        (0, end),
        (0, 1.2 * rtt_ms * full / bdp),
        "window (kB)",
        "round trip (ms)",
        height=160,
        top=140,
    )
    longest = rtt_ms * full / bdp
    waits.frame(ticks, [0, rtt_ms, round(longest)])
    waits.area([(bdp, rtt_ms), (full, longest)], "queue")
    waits.line([(0, rtt_ms), (bdp, rtt_ms), (full, longest)], "model")
    waits.say((bdp + full) / 2, rtt_ms * 0.4, "queue", anchor="middle")
    rate.moment(bdp, "one BDP", anchor="end", up=0.3)
    rate.moment(full, "buffer full", anchor="end", up=0.3)
    waits.moment(bdp, "")
    waits.moment(full, "")
    caption = (
        f"What a larger window brings: up to one BDP, here {short(bdp)}{SPACE}kB, a higher rate and no queue. Beyond that the rate stays, and "
        f"each further byte waits: the round trip grows from {short(rtt_ms)} to {short(longest)}{SPACE}ms, where the buffer is full and packets are lost."
    )
    return _figure([rate, waits], "Rate and round trip against the window", caption)


def cubic_curve(window: float, rtt_ms: float) -> Block:
    """CUBIC's curve after a loss at `window` segments, and the line that Reno's window would follow."""
    after_loss = CUBIC_KEPT_RATIO * window
    k = ((window - after_loss) / CUBIC_C) ** (1 / 3)
    slope = 3 * (1 - CUBIC_KEPT_RATIO) / (1 + CUBIC_KEPT_RATIO) / (rtt_ms / 1e3)
    end = 2.4 * k

    def curve(t: float) -> float:
        return float(CUBIC_C * (t - k) ** 3 + window)

    times = [end * step / STEPS for step in range(STEPS + 1)]
    friendly = [t for t in times if after_loss + slope * t > curve(t)]
    top = max(curve(end), after_loss + slope * end)
    axes = Axes(
        (0, end),
        (0.9 * after_loss, 1.06 * top),
        "seconds after the loss",
        "window (segments)",
        height=220,
    )
    axes.frame(range(0, ceil(end), 2), [round(after_loss), round(window)])
    axes.level(window, "Wmax", anchor="end")
    axes.moment(k, "K", up=0.1)
    axes.line([(t, after_loss + slope * t) for t in times], "reno thin")
    axes.line([(t, curve(t)) for t in times], "cubic thin")
    axes.line([(t, max(curve(t), after_loss + slope * t)) for t in times], "cubic")
    axes.say(0.05 * k, window + 0.05 * (top - after_loss), "concave", kind="cubic")
    axes.say(0.93 * end, 0.95 * top, "convex", kind="cubic", anchor="end")
    if friendly:
        axes.say(
            friendly[0] + 0.1 * k,
            after_loss + 0.07 * (top - after_loss),
            "Reno-friendly:",
            kind="reno",
        )
        axes.say(
            friendly[0] + 0.1 * k,
            after_loss - 0.02 * (top - after_loss),
            "the line is above",
            kind="reno",
        )
    caption = (
        f"CUBIC after a loss at {short(window)} segments, over a round trip of {short(rtt_ms)}{SPACE}ms. The thick line is its window, which is the larger "
        f"of two: the curve, which is level at Wmax after K = {short(k)}{SPACE}s, and the straight line of the Reno-friendly window."
    )
    return _figure([axes], "CUBIC's window after a loss, in three regions", caption)


def vegas_band(pipe: float) -> Block:
    """What Vegas counts as waiting against its window, on a path that holds `pipe` segments."""
    low, high = pipe - 6, pipe + 6.5
    axes = Axes((low, high), (0, 7.4), "window (segments)", "waiting (segments)")
    axes.frame(
        [round(pipe), round(pipe + VEGAS_ALPHA), round(pipe + VEGAS_BETA)],
        [0, VEGAS_ALPHA, VEGAS_BETA],
    )
    axes.level(VEGAS_ALPHA, "α", anchor="start")
    axes.level(VEGAS_BETA, "β", anchor="start")
    windows = [low + (high - low) * step / STEPS for step in range(STEPS + 1)]
    points = [(w, max(0.0, w * (w - pipe) / pipe)) for w in windows]
    axes.line(points, "vegas")
    for y, text in ((0.8, "fewer: one more"), (2.8, "between: leave it"), (5.2, "more: one less")):
        axes.say(low + 0.8, y, text)
    caption = (
        f"Vegas's rule on a path that holds {short(pipe)} segments. Any more have to wait, the round trip grows, and diff is the number that waits. The "
        "window goes to the band between α and β and stays there, so a few packets wait, whatever the buffer."
    )
    return _figure(
        [axes], "How many segments wait, against Vegas's window, with its two thresholds", caption
    )


def bbr_cycle() -> Block:
    """Two cycles of ProbeBW: the pacing gain, and what is in flight, in BDP."""
    gains = BBR_GAINS * 2
    gain = Axes((0, len(gains)), (0.5, 1.5), "", "pacing gain", height=130)
    gain.frame(range(0, len(gains) + 1, 4), [0.75, 1, 1.25])
    flight = Axes(
        (0, len(gains)), (1, 1.4), "smallest round trips", "in flight (BDP)", height=150, top=130
    )
    flight.frame(range(0, len(gains) + 1, 4), [1, 1.25])
    steps, in_flight, now = [], [(0.0, 1.0)], 1.0
    for phase, value in enumerate(gains):
        steps += [(float(phase), value), (phase + 1.0, value)]
        # What is paced out beyond the link's rate in a round trip stays in flight, and waits.
        now = max(1.0, now + value - 1)
        in_flight.append((phase + 1.0, now))
    gain.line(steps, "bbr")
    flight.area(in_flight, "queue")
    flight.line(in_flight, "bbr")
    gain.say(1.2, 1.32, "probe", kind="bbr")
    gain.say(2.2, 0.66, "drain", kind="bbr")
    flight.say(1.9, 1.2, "a short queue", kind="bbr")
    caption = (
        "ProbeBW, two cycles of eight phases. For one round trip BBR sends at 1.25 times the rate that it has measured. If the link carries no more, a quarter "
        "of a BDP waits. In the next round trip it sends at 0.75 times the rate, and the queue is gone. Then it sends at the rate itself for six."
    )
    return _figure(
        [gain, flight], "BBR's pacing gain over two cycles, and what is in flight", caption
    )


def red_curve(min_bytes: float, max_bytes: float, limit_bytes: float, probability: float) -> Block:
    """RED's chance of a drop against the average queue, with its three bounds, as Linux has it."""
    low, high, end = min_bytes / 1e3, max_bytes / 1e3, 1.05 * limit_bytes / 1e3
    axes = Axes((0, end), (0, 2.2 * probability), "average queue (kB)", "chance of a drop")
    axes.frame([0, round(low), round(high), round(limit_bytes / 1e3)], [0, probability])
    axes.moment(low, "min", up=0.8)
    axes.moment(high, "max", anchor="end", up=0.8)
    axes.moment(limit_bytes / 1e3, "limit", anchor="end", up=0.3)
    axes.line([(0, 0), (low, 0), (high, probability), (high, 2.2 * probability)], "red")
    axes.say(high + 0.02 * end, 1.9 * probability, "above: each one", kind="red")
    axes.say(0.5 * low, 0.12 * probability, "none", kind="red", anchor="middle")
    caption = (
        f"RED's rule with the source's numbers. Below an average of {short(low)}{SPACE}kB nothing is dropped early. From there the chance rises to {short(probability)} at "
        f"{short(high)}{SPACE}kB, which is one in {short(1 / probability)}. Above that, every packet is dropped. The scale ends far below 1."
    )
    return _figure([axes], "RED's chance of an early drop against the average queue", caption)
