"""What the lab is set to, and its first try."""

from __future__ import annotations

from measuretwice.facts import (
    Facts,
    Number,
    RecordedSets,
    Table,
    factor,
    ms,
    percent,
    runs_as_rows,
    seconds,
    size,
    table,
    whole,
)
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import values_for_percentile
from measuretwice.tcp.model import bdp_bytes, drain_ms

from .runs import (
    CODEL_10,
    DCTCP,
    FIFO,
    FQ_CODEL,
    NAMES,
    PING_UNDER_LOAD,
    name_of,
    room_takes,
    set_mbit,
)

FIRST_TRY, OWN_QUEUE = "first-try", "own-queue"


def set_settings(f: Facts, sets: RecordedSets) -> None:
    """Set what the trials are set to, and what the set first-try came to."""
    _settings(f, sets)
    _queues(f, sets)
    _trials(f, sets)
    _samples_needed(f)
    _first_try(f, sets)
    _own_queue(f, sets)


def _settings(f: Facts, sets: RecordedSets) -> None:
    """Settings of trials 1 (a full home), 4 (its FIFO), 11 (flows in one direction) and 21 (DCTCP) are set to."""
    home, fifo = sets.trial(FQ_CODEL), sets.trial(FIFO)
    f.link_up, f.link_down = (set_mbit(home[f"link_{way}_mbit"]) for way in ("up", "down"))
    f.router_up, f.router_down = (set_mbit(home[f"router_{way}_mbit"]) for way in ("up", "down"))
    f.given_up = percent(1 - home["router_up_mbit"] / home["link_up_mbit"])
    f.flows = whole(home["up_flows"])
    f.flows_both = whole(home["up_flows"] + home["down_flows"])
    f.algorithm = str(home["congestion_control"]).upper()
    f.rtt = ms(home["rtt_ms"])
    f.lasts = seconds(home["duration_s"])
    f.ping_interval = ms(1e3 * home["ping_interval_s"])
    f.call_bytes = size(home["call_bytes"])
    f.call_interval = ms(home["call_interval_ms"])
    f.deadline = ms(home["deadline_ms"])
    f.page_bytes = size(home["page_bytes"])
    f.page_pause = ms(home["page_pause_ms"])
    f.burst = size(home["router_burst_bytes"])
    f.home_fifo = size(fifo["fifo_bytes"])
    f.modem_room, f.isp_room = size(home["modem_fifo_bytes"]), size(home["isp_fifo_bytes"])
    f.codel_rate = set_mbit(sets.trial(CODEL_10)["router_up_mbit"])
    f.dctcp_rate = set_mbit(sets.trial(DCTCP)["router_up_mbit"])


def _queues(f: Facts, sets: RecordedSets) -> None:
    """Each queue of a full home with a FIFO on its router (trial 4), and how long it takes to empty when it is full."""
    fifo = sets.trial(FIFO)
    ways = (("up", "router"), ("up", "modem"), ("down", "isp"), ("down", "router"))
    rates = {"router": "router_{}_mbit", "modem": "link_{}_mbit", "isp": "link_{}_mbit"}
    rooms = {"router": "fifo_bytes", "modem": "modem_fifo_bytes", "isp": "isp_fifo_bytes"}
    places = {"router": "the router", "modem": "the modem", "isp": "the provider's end"}
    f.queues = table(
        ("direction", "in front of", "rate", "room", "takes to empty", "who can set it"),
        (
            (
                way,
                places[node],
                set_mbit(fifo[rates[node].format(way)]),
                size(fifo[rooms[node]]),
                room_takes(fifo, rooms[node], rates[node].format(way)),
                "those at home" if node == "router" else "nobody at home",
            )
            for way, node in ways
        ),
    )
    f.router_up_takes = room_takes(fifo, "fifo_bytes", "router_up_mbit")
    f.router_down_takes = room_takes(fifo, "fifo_bytes", "router_down_mbit")
    f.modem_full_takes = room_takes(fifo, "modem_fifo_bytes", "link_up_mbit")
    f.isp_full_takes = room_takes(fifo, "isp_fifo_bytes", "link_down_mbit")
    full_ms = fifo["rtt_ms"] + sum(
        drain_ms(fifo["fifo_bytes"], fifo[rate]) for rate in ("router_up_mbit", "router_down_mbit")
    )
    f.both_full_ping = ms(full_ms, 3)
    f.bdp_up, f.bdp_down = (
        size(bdp_bytes(fifo[f"link_{way}_mbit"], fifo["rtt_ms"])) for way in ("up", "down")
    )


def _trials(f: Facts, sets: RecordedSets) -> None:
    """All trials: what is set, and where the flows go."""
    trials = {number: sets.trial(number) for number in sorted(sets.lab.trials)}
    f.trials = table(
        ("trial", "discipline", "router up", "router down", "flows up", "flows down", "algorithm"),
        (
            (
                Number(number),
                NAMES.get(trial["discipline"], str(trial["discipline"])),
                set_mbit(trial["router_up_mbit"]),
                set_mbit(trial["router_down_mbit"]),
                whole(trial["up_flows"] + trial["classic_flows"]),
                whole(trial["down_flows"]),
                str(trial["congestion_control"]).upper()
                + (" and CUBIC" if trial["classic_flows"] else ""),
            )
            for number, trial in trials.items()
        ),
    )


def _samples_needed(f: Facts) -> None:
    """Numbers of independent values that a percentile needs before there is a 95 % interval at all."""
    needed = {share: values_for_percentile(share) for share in (0.5, 0.95, 0.99, 0.999)}
    f.samples_median, f.samples_p95, f.samples_p99, f.samples_p999 = map(whole, needed.values())
    f.samples_needed = table(
        ("percentile", "samples needed"),
        ((f"{100 * share:g}", whole(count)) for share, count in needed.items()),
    )


def _first_try(f: Facts, sets: RecordedSets) -> None:
    """The first try: fq_codel and a FIFO on a router that sends as fast as it can, a run of each."""
    f.first_try = _pings(sets, FIRST_TRY)
    factor_of = factor(*_fifo_and_fq_codel(sets, FIRST_TRY), "busy_ping_mean_ms")
    f.first_try_factor = Number(factor_of)
    f.first_try_is_alike = 0.9 < factor_of < 1.1


def _own_queue(f: Facts, sets: RecordedSets) -> None:
    """The first try's second step: the same on a router that sends more slowly than the link, a run of each."""
    f.own_queue = _pings(sets, OWN_QUEUE)
    factor_of = factor(*_fifo_and_fq_codel(sets, OWN_QUEUE), "busy_ping_mean_ms")
    f.own_queue_factor = Number(factor_of, digits=2)
    f.own_queue_differs = factor_of > 2


def _fifo_and_fq_codel(sets: RecordedSets, name: str) -> tuple[Result, Result]:
    return sets.run(name, trial=FIFO), sets.run(name, trial=FQ_CODEL)


def _pings(sets: RecordedSets, name: str) -> Table:
    cells = {"discipline": name_of, "ping under load": PING_UNDER_LOAD}
    return runs_as_rows(_fifo_and_fq_codel(sets, name), cells)
