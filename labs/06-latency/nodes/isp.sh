#!/usr/bin/env bash
# Lab 06, isp: the provider's end of the narrow link, with a FIFO of its own, and half of the delay to the server.
#
#     sudo bash isp.sh prepare     set the link's rate downwards, the FIFO before it, and the delay
#     sudo bash isp.sh undo        take all of it away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
MODEM=10.6.4.1
SERVER=10.6.5.2
LINK_DOWN_MBIT="${LINK_DOWN_MBIT:-50}"
BURST_BYTES="${BURST_BYTES:-1600}"
ISP_FIFO_BYTES="${ISP_FIFO_BYTES:-1000000}"
RTT_MS="${RTT_MS:-40}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
OUT="${OUT:-.}"

prepare() {
  local to_modem to_server half_rtt_ms
  to_modem=$(iface_to "$MODEM") to_server=$(iface_to "$SERVER")
  half_rtt_ms=$(awk "BEGIN { printf \"%.6f\", $RTT_MS / 2 }")
  set_offloads "$OFFLOADS" "$to_modem" "$to_server"
  # --8<-- [start:link]
  tc qdisc add dev "$to_modem" root tbf rate "${LINK_DOWN_MBIT}mbit" burst "$BURST_BYTES" limit "$ISP_FIFO_BYTES"
  undo tc qdisc del dev "$to_modem" root
  tc qdisc add dev "$to_server" root netem delay "${half_rtt_ms}ms" limit 100000
  undo tc qdisc del dev "$to_server" root
  # --8<-- [end:link]
  tc -s -d qdisc show >"$OUT/tc.txt"
}

run_phase "${1:-}" prepare
