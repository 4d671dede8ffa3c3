"""What the lab is set to, and its first try."""

from __future__ import annotations

from measuretwice.facts import (
    Facts,
    Number,
    RecordedSets,
    ms,
    percent,
    runs_as_rows,
    seconds,
    size,
    table,
    whole,
)
from measuretwice.tcp.model import USUAL_FRAME_BYTES, drain_ms

from .runs import RENO, RENO_BY_RADIO, SHOWN_GOODPUT, name_of, path_bdp_bytes, path_of


def set_settings(f: Facts, sets: RecordedSets) -> None:
    """Set what the trials are set to, and what the set first-try came to."""
    _settings(f, sets)
    _first_try(f, sets)


def _settings(f: Facts, sets: RecordedSets) -> None:
    """What trials 1 (cable) and 5 (radio) are set to, and all trials by fours."""
    cable, radio = sets.trial(RENO), sets.trial(RENO_BY_RADIO)
    f.rate = whole(cable["rate_mbit"], "Mbit/s")
    f.wire_rtt = ms(cable["wire_rtt_ms"])
    f.one_way = ms(cable["wire_rtt_ms"] / 2)
    f.buffer = size(cable["buffer_bytes"])
    f.buffer_takes = ms(drain_ms(cable["buffer_bytes"], cable["rate_mbit"]))
    f.bdp = Number(path_bdp_bytes(cable) / 1e3, "kB")
    f.path_holds = whole(path_bdp_bytes(cable) / USUAL_FRAME_BYTES, "segments")
    f.buffer_holds = whole(cable["buffer_bytes"] / USUAL_FRAME_BYTES, "segments")
    f.start_spread = ms(cable["start_spread_ms"])
    f.duration = seconds(cable["duration_s"])
    f.average_from = whole(cable["average_from_s"])
    f.air_low, f.air_high = ms(radio["air_low_ms"]), ms(radio["air_high_ms"])
    f.air_fewest, f.air_most = whole(radio["air_low_packets"]), whole(radio["air_high_packets"])
    f.air_change = seconds(radio["air_change_s"])
    f.air_loss = percent(radio["air_loss_ratio"])
    f.air_room = whole(radio["air_limit_packets"])
    relay = next(
        n for n, pitfall in enumerate(sets.lab.file.pitfalls, 1) if pitfall.id == "terminated-tcp"
    )
    f.trials = table(
        ("trials", "path", "rate", "RTT of the wire", "buffer", "of the BDP", "rival"),
        ((
                f"{number} to {number + 3}",
                path_of(trial, f"see case {relay}"),
                whole(trial["rate_mbit"], "Mbit/s"),
                ms(trial["wire_rtt_ms"]),
                size(trial["buffer_bytes"]),
                percent(trial["buffer_bytes"] / path_bdp_bytes(trial)),
                str(trial["rival"]),
            )
            for number, trial in ((n, sets.trial(n)) for n in sorted(sets.lab.trials)[::4])),
    )  # fmt: skip


def _first_try(f: Facts, sets: RecordedSets) -> None:
    """The four over the radio, a run of each."""
    f.first_try = runs_as_rows(
        sets.runs("first-try"), {"algorithm": name_of, "goodput over the radio": SHOWN_GOODPUT}
    )
