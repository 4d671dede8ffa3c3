"""What a segment becomes on its way: headers, frames, and how much of a link's rate is left for data."""

from __future__ import annotations

IP_TCP_HEADERS_BYTES = 40
TIMESTAMP_OPTION_BYTES = 12
ETHERNET_HEADER_BYTES = 14
# A frame's check sequence, preamble and gap: on the wire, but not in what Linux' shapers count.
ETHERNET_WIRE_BYTES = 24
# An MTU of 1500 with TCP's timestamps.
USUAL_MSS_BYTES = 1448


def largest_packet_bytes(mss_bytes: float, *, timestamps: bool = True) -> float:
    """Return the most that an IP packet with a segment of `mss_bytes` holds."""
    return mss_bytes + IP_TCP_HEADERS_BYTES + (TIMESTAMP_OPTION_BYTES if timestamps else 0)


def payload_limit(
    link: float, mss_bytes: float = USUAL_MSS_BYTES, *, wire: bool = True, timestamps: bool = True
) -> float:
    """Return the most goodput that a link allows, in the link's own unit.

    With `wire`, all that a frame takes on Ethernet counts; else only what Linux' shapers count.
    Each segment of `mss_bytes` carries TCP's timestamps, unless there are none.
    """
    frame = largest_packet_bytes(mss_bytes, timestamps=timestamps) + ETHERNET_HEADER_BYTES
    return link * mss_bytes / (frame + (ETHERNET_WIRE_BYTES if wire else 0))
