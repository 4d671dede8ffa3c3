#!/usr/bin/env bash
# Lab 04, air: what is between the client and its gateway. A cable, or a radio hop.
#
# The radio is a model. It sends what waits in bursts, at random moments: between two of them pass
# AIR_LOW_MS to AIR_HIGH_MS, in which other stations send, or a frame is sent again that was
# not acknowledged. How much goes at once changes now and then, as a radio's rate does. Packets
# keep their order, and nearly all of them arrive.
#
#     sudo bash air.sh prepare      make the radio
#     sudo bash air.sh vary         change its rate, until told to end
#     sudo bash air.sh undo         take it away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
HOP="${HOP:-cable}"
AIR_LOW_MS="${AIR_LOW_MS:-1}"
AIR_HIGH_MS="${AIR_HIGH_MS:-7}"
AIR_LOW_PACKETS="${AIR_LOW_PACKETS:-8}"
AIR_HIGH_PACKETS="${AIR_HIGH_PACKETS:-40}"
AIR_CHANGE_S="${AIR_CHANGE_S:-0.5}"
AIR_LOSS_RATIO="${AIR_LOSS_RATIO:-0.0001}"
AIR_LIMIT_PACKETS="${AIR_LIMIT_PACKETS:-500}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
OUT="${OUT:-.}"

prepare() {
  local up down interface loss_percent
  up=$(iface_to 10.4.2.1) down=$(iface_to 10.4.1.2)
  set_offloads "$OFFLOADS" "$up" "$down"
  [[ $HOP == radio ]] || return 0
  loss_percent=$(awk "BEGIN { printf \"%.8f\", 100 * $AIR_LOSS_RATIO }")
  for interface in "$up" "$down"; do
    # --8<-- [start:radio]
    tc qdisc add dev "$interface" root netem loss "$loss_percent%" limit "$AIR_LIMIT_PACKETS" \
      slot "${AIR_LOW_MS}ms" "${AIR_HIGH_MS}ms" packets "$AIR_HIGH_PACKETS"
    undo tc qdisc del dev "$interface" root
    # --8<-- [end:radio]
  done
}

vary() {
  local told='' up down interface loss_percent packets to_tc tc_pid
  announce_ready
  [[ $HOP == radio ]] || return 0
  up=$(iface_to 10.4.2.1) down=$(iface_to 10.4.1.2)
  loss_percent=$(awk "BEGIN { printf \"%.8f\", 100 * $AIR_LOSS_RATIO }")
  trap 'told=yes' TERM
  # One tc reads a command a line: starting it anew for each costs more than the experiment.
  exec {to_tc}> >(exec tc -batch -)
  tc_pid=$!
  until [[ -n $told ]]; do
    # --8<-- [start:vary]
    random_below $((AIR_HIGH_PACKETS - AIR_LOW_PACKETS + 1))
    packets=$((AIR_LOW_PACKETS + random))
    for interface in "$up" "$down"; do
      echo "qdisc change dev $interface root netem loss $loss_percent% limit $AIR_LIMIT_PACKETS" \
        "slot ${AIR_LOW_MS}ms ${AIR_HIGH_MS}ms packets $packets" >&"$to_tc"
    done
    # --8<-- [end:vary]
    printf '%s %d\n' "$EPOCHREALTIME" "$packets" >>"$OUT/radio.txt"
    pause "$AIR_CHANGE_S"
  done
  exec {to_tc}>&-
  wait "$tc_pid"
}

run_phase "${1:-}" prepare vary
