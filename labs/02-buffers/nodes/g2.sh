#!/usr/bin/env bash
# Lab 02, g2: the router behind the bottleneck. It adds a part of the delay, on the way back.
#
#     sudo bash g2.sh prepare       set the delay
#     sudo bash g2.sh undo          take it away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

BACK_DELAY_MS="${BACK_DELAY_MS:-10}"
HOST_LIMIT_PACKETS="${HOST_LIMIT_PACKETS:-100000}"
OFFLOADS="${OFFLOADS:-off}"

prepare() {
  local to_g1
  to_g1=$(iface_to 10.10.10.11)
  set_offloads "$OFFLOADS" "$to_g1" "$(iface_to 10.10.20.11)" "$(iface_to 10.10.20.12)"
  # --8<-- [start:prepare]
  tc qdisc add dev "$to_g1" root netem delay "${BACK_DELAY_MS}ms" limit "$HOST_LIMIT_PACKETS"
  undo tc qdisc del dev "$to_g1" root
  # --8<-- [end:prepare]
}

run_phase "${1:-}" prepare
