"""What the lab is set to, and its first try."""

from __future__ import annotations

import re

from measuretwice.facts import (
    Facts,
    Number,
    RecordedSets,
    apart_by,
    mbit,
    measured,
    ms,
    size,
    table,
    whole,
)
from measuretwice.tcp.model import USUAL_FRAME_BYTES, drain_ms

from .runs import FIFO, RED


def set_settings(f: Facts, sets: RecordedSets) -> None:
    """Set what the trials are set to, and what the set first-try came to."""
    _settings(f, sets)
    _first_try(f, sets)


def _settings(f: Facts, sets: RecordedSets) -> None:
    """What trials 1 (pfifo_fast) and 21 (RED) are set to."""
    fifo, red = sets.trial(FIFO), sets.trial(RED)
    f.rate = whole(fifo["rate_mbit"], "Mbit/s")
    f.duration = Number(fifo["duration_s"], "s")
    f.rtt = ms(fifo["rtt_ms"])
    f.fifo_room = whole(fifo["fifo_packets"])
    f.fifo_room_takes = ms(drain_ms(USUAL_FRAME_BYTES * fifo["fifo_packets"], fifo["rate_mbit"]))
    f.burst = size(fifo["burst_bytes"])
    f.red_min = size(red["red_min_bytes"])
    f.red_max = size(red["red_max_bytes"])
    f.red_limit = size(red["red_limit_bytes"])
    f.red_min_takes = ms(drain_ms(red["red_min_bytes"], red["rate_mbit"]))
    f.red_avpkt = size(red["red_avpkt_bytes"])
    f.red_burst = whole(red["red_burst_packets"])
    f.red_probability = str(red["red_probability_ratio"])
    f.red_one_in = whole(1 / red["red_probability_ratio"])
    least = red["red_min_bytes"] / red["red_avpkt_bytes"]
    k = _ewma_log(red["red_burst_packets"], least)
    f.algorithm = str(fifo["congestion_control"])
    f.burst_guideline = Number(
        (2 * red["red_min_bytes"] + red["red_max_bytes"]) / (3 * red["red_avpkt_bytes"]), digits=4
    )
    f.burst_least = whole(least)
    f.burst_k, f.burst_w = whole(k), whole(2**k)
    tc = sets.raw_text(sets.run("red-limits-fixed"), "router-1/tc.txt")
    f.ewma = whole(int(re.findall(r"ewma (\d+)", tc)[0]))
    f.red_room_needed = size(
        red["red_max_bytes"] + red["red_burst_packets"] * red["red_avpkt_bytes"]
    )


def _ewma_log(burst_packets: float, least_packets: float) -> int:
    """The smallest k with which an average that follows by 2**-k lets so long a burst pass an empty queue (Linux'
    tc_red_eval_ewma in iproute2)."""
    return next(
        k
        for k in range(1, 32)
        if burst_packets + 1 - least_packets <= (1 - (1 - 0.5**k) ** burst_packets) / 0.5**k
    )


def _first_try(f: Facts, sets: RecordedSets) -> None:
    """Trials 1 and 21, a run of each."""
    fifo, red = sets.run("first-try", trial=FIFO), sets.run("first-try", trial=RED)
    f.first_try = table(
        ("discipline", "both flows together"),
        (
            ("pfifo_fast", mbit(measured(fifo, "goodput_bps"), 4)),
            ("RED", mbit(measured(red, "goodput_bps"), 4)),
        ),
    )
    f.first_try_apart = apart_by(red, fifo, "goodput_bps", 2)
