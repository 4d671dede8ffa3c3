"""Models of TCP: what they promise, and where they end."""

from __future__ import annotations

from measuretwice.site.words.registry import model_word
from measuretwice.tcp import model

MATHIS = "mss_bytes, rtt_ms, loss_ratio"

model_word(f"model.mathis({MATHIS})", name="mathis")(model.mathis_bandwidth_bps)
model_word(f"model.pftk({MATHIS})", name="pftk")(model.pftk_bandwidth_bps)
model_word("model.losses(rtt_ms, loss_ratio, duration_s)", name="losses")(
    model.mathis_expected_losses
)
model_word("model.time_for_losses_s(rtt_ms, loss_ratio, losses)", name="time_for_losses_s")(
    model.mathis_time_for_losses_s
)
model_word("model.rto_ms(rtt_ms)", name="rto_ms")(model.linux_rto_ms)
model_word("model.highspeed_decrease(window_segments)", name="highspeed_decrease")(
    model.highspeed_decrease_ratio
)
model_word("model.linux_highspeed_decrease(window_segments)", name="linux_highspeed_decrease")(
    model.linux_highspeed_decrease_ratio
)
model_word("model.bdp_bytes(rate_mbit, rtt_ms)")(model.bdp_bytes)


@model_word("model.reno_constant(loss_ratio)")
def reno_constant(loss_ratio: float, segments_per_window_step: int = 1) -> float:
    """The C of a Reno sender as it is built today, from a simulation; with 2 behind, of a sender that
    counts ACKs for two segments each."""
    return model.sack_reno_constant(loss_ratio, segments_per_window_step)


@model_word("model.payload_limit(rate)")
def payload_limit(
    link: float,
    mss_bytes: float = model.USUAL_MSS_BYTES,
    *,
    wire: bool = True,
    timestamps: bool = True,
) -> float:
    """The most goodput that a link allows with an MTU of 1500, in the link's own unit."""
    return model.payload_limit(link, mss_bytes, wire=wire, timestamps=timestamps)


@model_word("model.cubic_kept", fact=True)
def cubic_kept() -> float:
    """The share of its window that CUBIC keeps after a loss, RFC 9438."""
    return model.CUBIC_KEPT_RATIO


@model_word("model.constants", fact=True)
def constants() -> dict[str, float]:
    """The published values of C in the Mathis model, by the name that lab.toml has for each."""
    return {name: constant.value for name, constant in model.MATHIS_CONSTANTS.items()}
