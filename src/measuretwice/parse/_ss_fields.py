"""What stands behind a socket's addresses in ss's text: names and values, options, groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from measuretwice.parse._text import excerpt
from measuretwice.parse.ss_socket import SsUser

_FLAGS = frozenset({"ts", "sack", "ecn", "ecnseen", "fastopen"})
_USER = re.compile(r'\("([^"]*)",pid=(\d+),fd=(\d+)\)')
_TIMER = re.compile(
    r"\((?P<name>\w+),(?:(?P<minutes>\d+)min)?(?:(?P<seconds>\d+)(?:sec|\.))?"
    r"(?:(?P<milliseconds>\d{3})ms)?,(?P<retransmits>\d+)\)"
)
_SKMEM = re.compile(r"([a-z]+)(\d+)")
_RATE = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d+)?)([KMGT]?)bps")
_SCALE = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# ss's name for a number, this field, and its type.
_NUMBERS: dict[str, tuple[str, Callable[[str], float]]] = {
    "rto": ("rto_ms", float),
    "ato": ("ato_ms", float),
    "mss": ("mss_bytes", int),
    "pmtu": ("pmtu_bytes", int),
    "rcvmss": ("rcvmss_bytes", int),
    "advmss": ("advmss_bytes", int),
    "cwnd": ("cwnd_segments", int),
    "ssthresh": ("ssthresh_segments", int),
    "bytes_sent": ("bytes_sent", int),
    "bytes_retrans": ("bytes_retrans", int),
    "bytes_acked": ("bytes_acked", int),
    "bytes_received": ("bytes_received", int),
    "segs_out": ("segs_out", int),
    "segs_in": ("segs_in", int),
    "data_segs_out": ("data_segs_out", int),
    "data_segs_in": ("data_segs_in", int),
    "delivered": ("delivered_segments", int),
    "delivered_ce": ("delivered_ce_segments", int),
    "lastsnd": ("lastsnd_ms", int),
    "lastrcv": ("lastrcv_ms", int),
    "lastack": ("lastack_ms", int),
    "unacked": ("unacked_segments", int),
    "lost": ("lost_segments", int),
    "sacked": ("sacked_segments", int),
    "dsack_dups": ("dsack_dups", int),
    "reordering": ("reordering", int),
    "rcv_rtt": ("rcv_rtt_ms", float),
    "rcv_space": ("rcv_space_bytes", int),
    "rcv_ssthresh": ("rcv_ssthresh_bytes", int),
    "notsent": ("notsent_bytes", int),
    "minrtt": ("minrtt_ms", float),
    "snd_wnd": ("snd_wnd_bytes", int),
}


class BadToken(Exception):
    """A word that is not what it should be; the text says both."""

    def __init__(self, token: str, expected: str) -> None:
        super().__init__(f"found {excerpt(token)}; expected {expected}")


def read_details(tokens: Iterator[str], values: dict[str, Any]) -> None:
    """Read what follows the addresses. Every word is looked at once."""
    flags: list[str] = []
    other: dict[str, str] = values["other"]
    for token in tokens:
        key, colon, text = token.partition(":")
        try:
            known = _NUMBERS.get(key)
            if known is not None and colon:
                values[known[0]] = known[1](text)
            elif colon and key in _SPECIAL:
                _SPECIAL[key](text, values)
            elif not colon:
                if token in _RATES:
                    _RATES[token](next(tokens), values)
                elif token == "app_limited":
                    values["app_limited"] = True
                elif token in _FLAGS:
                    flags.append(token)
                elif token in _SHUTDOWN:
                    other["shutdown"] = token
                elif "congestion_control" not in values:
                    # The one word without a name: it stands after the flags, before the numbers.
                    values["congestion_control"] = token
                else:
                    other[token] = ""
            elif key == "dctcp" or (key == values.get("congestion_control") and text[:1] == "("):
                # A dctcp that fell back calls itself dctcp-reno, and its group dctcp.
                values["algorithm"] = _group(text)
            else:
                other[key] = text
        except (ValueError, StopIteration):
            raise BadToken(token, "a number as ss prints it") from None
    values["flags"] = tuple(flags)
    if "rto_ms" in values:
        # There is a struct tcp_info, so that what ss doesn't mention is off.
        values["timestamps"] = "ts" in flags
        values.setdefault("app_limited", False)


# How ss -e shows which directions of a socket are open.
_SHUTDOWN = frozenset({"<->", "-->", "<--", "---"})


def _rate_bps(text: str) -> float:
    match = _RATE.fullmatch(text)
    if not match:
        raise ValueError(text)
    return float(match[1]) * _SCALE[match[2]]


def _group(text: str) -> dict[str, str]:
    """A group such as (bw:1bps,mrtt:3), or a single word such as fallback_mode."""
    pairs = (item.partition(":") for item in text.strip("()").split(","))
    return {key: value for key, _, value in pairs}


def _read_rtt(text: str, values: dict[str, Any]) -> None:
    rtt, _, rttvar = text.partition("/")
    values["rtt_ms"], values["rttvar_ms"] = float(rtt), float(rttvar)


def _read_retrans(text: str, values: dict[str, Any]) -> None:
    now, _, total = text.partition("/")
    values["retrans_now"], values["retrans_total"] = int(now), int(total)


def _read_wscale(text: str, values: dict[str, Any]) -> None:
    received, _, sent = text.partition(",")
    values["wscale"] = (int(received), int(sent))


def _read_timer(text: str, values: dict[str, Any]) -> None:
    # "1.234ms" is ss's way of writing 1 s and 234 ms.
    match = _TIMER.fullmatch(text)
    if not match:
        raise ValueError(text)
    minutes, seconds, milliseconds = (
        int(match[part] or 0) for part in ("minutes", "seconds", "milliseconds")
    )
    values["timer_name"] = match["name"]
    values["timer_expires_ms"] = (minutes * 60 + seconds) * 1000 + milliseconds
    values["timer_retransmits"] = int(match["retransmits"])


def _read_users(text: str, values: dict[str, Any]) -> None:
    values["users"] = tuple(SsUser(u[1], int(u[2]), int(u[3])) for u in _USER.finditer(text))


def _read_skmem(text: str, values: dict[str, Any]) -> None:
    values["skmem"] = {m[1]: int(m[2]) for m in _SKMEM.finditer(text)}


def _read_pacing_rate(text: str, values: dict[str, Any]) -> None:
    rate, slash, limit = text.partition("/")
    values["pacing_rate_bps"] = _rate_bps(rate)
    if slash:
        values["max_pacing_rate_bps"] = _rate_bps(limit)


def _rate_into(name: str) -> Callable[[str, dict[str, Any]], None]:
    def read(text: str, values: dict[str, Any]) -> None:
        values[name] = _rate_bps(text)

    return read


def _milliseconds_into(name: str) -> Callable[[str, dict[str, Any]], None]:
    def read(text: str, values: dict[str, Any]) -> None:
        # A share of the busy time may follow: 60ms(3.1%).
        number, unit, _ = text.partition("ms")
        if not unit:
            raise ValueError(text)
        values[name] = int(number)

    return read


_SPECIAL: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "rtt": _read_rtt,
    "retrans": _read_retrans,
    "wscale": _read_wscale,
    "timer": _read_timer,
    "users": _read_users,
    "skmem": _read_skmem,
    "busy": _milliseconds_into("busy_ms"),
    "rwnd_limited": _milliseconds_into("rwnd_limited_ms"),
    "sndbuf_limited": _milliseconds_into("sndbuf_limited_ms"),
}
# Names that a blank, not a colon, parts from their value.
_RATES: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "send": _rate_into("send_rate_bps"),
    "pacing_rate": _read_pacing_rate,
    "delivery_rate": _rate_into("delivery_rate_bps"),
}
