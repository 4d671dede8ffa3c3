#!/usr/bin/env bash
# Lab 03, switch: what joins the receivers' cables. It has no queue to speak of.
#
#     sudo bash switch.sh prepare     offloads as everywhere; a second way for some packets, if asked for
#     sudo bash switch.sh undo        take that away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

OFFLOADS="${OFFLOADS:-off}"
DETOUR_PERCENT="${DETOUR_PERCENT:-0}"
DETOUR_MS="${DETOUR_MS:-0}"

prepare() {
  local host
  set_offloads "$OFFLOADS" "$(iface_to 10.10.3.1)"
  for host in {10..19}; do
    set_offloads "$OFFLOADS" "$(iface_to "10.10.2.$host")"
    [[ $DETOUR_PERCENT == 0 ]] || detour "$(iface_to "10.10.2.$host")"
  done
}

# detour INTERFACE: some packets take a longer way, and those behind them arrive first.
detour() {
  # --8<-- [start:detour]
  # reorder is the share that goes at once; the others are delayed.
  tc qdisc add dev "$1" root netem delay "${DETOUR_MS}ms" reorder "$(awk "BEGIN { print 100 - $DETOUR_PERCENT }")%" \
    limit 100000
  undo tc qdisc del dev "$1" root
  # --8<-- [end:detour]
}

run_phase "${1:-}" prepare
