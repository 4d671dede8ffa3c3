#!/usr/bin/env bash
# Lab 04, wan: the long way to the server. It delays, half of the round trip in each direction.
#
#     sudo bash wan.sh prepare      set the delay
#     sudo bash wan.sh undo         take it away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
WIRE_RTT_MS="${WIRE_RTT_MS:-40}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]

prepare() {
  local there back half_ms
  there=$(iface_to 10.4.3.2) back=$(iface_to 10.4.2.1)
  half_ms=$(awk "BEGIN { printf \"%.6f\", $WIRE_RTT_MS / 2 }")
  set_offloads "$OFFLOADS" "$there" "$back"
  # --8<-- [start:prepare]
  tc qdisc add dev "$there" root netem delay "${half_ms}ms" limit 100000
  undo tc qdisc del dev "$there" root
  tc qdisc add dev "$back" root netem delay "${half_ms}ms" limit 100000
  undo tc qdisc del dev "$back" root
  # --8<-- [end:prepare]
}

run_phase "${1:-}" prepare
