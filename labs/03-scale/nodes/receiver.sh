#!/usr/bin/env bash
# Lab 03, what each of the ten receivers does.
#
#     sudo bash receiver.sh prepare     the delay of the path, on the way back
#     bash receiver.sh serve            answer the sender's tests, then end
#     sudo bash receiver.sh undo        set all of it back
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"
# shellcheck source=labs/03-scale/nodes/flows.sh
. "$here/flows.sh"

# --8<-- [start:settings]
RTT_MS="${RTT_MS:-20}"
LIMIT_PACKETS="${LIMIT_PACKETS:-1000000}"
RMEM_MAX_BYTES="${RMEM_MAX_BYTES:-33554432}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
OUT="${OUT:-.}"

prepare() {
  local out_interface
  out_interface=$(iface_to 10.10.3.1)
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$out_interface"
  undo_sysctl net.ipv4.tcp_rmem
  sysctl -qw net.ipv4.tcp_rmem="4096 131072 $RMEM_MAX_BYTES"
  tc qdisc add dev "$out_interface" root netem delay "${RTT_MS}ms" limit "$LIMIT_PACKETS"
  undo tc qdisc del dev "$out_interface" root
  # --8<-- [end:prepare]
}

serve() {
  local port ports
  mapfile -t ports < <(processes "$(number)" | cut -d ' ' -f 1 | sort -u)
  for port in "${ports[@]}"; do
    # --8<-- [start:serve]
    iperf3 -s -1 -p "$port" >/dev/null &
    # --8<-- [end:serve]
    server_on "$port"
  done
  serve_to_the_end
}

run_phase "${1:-}" prepare serve
