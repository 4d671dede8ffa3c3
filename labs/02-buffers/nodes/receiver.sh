#!/usr/bin/env bash
# Lab 02, what both receivers do: d1.sh and d2.sh set DELAY_MS and PEER, then read this file.
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
HOST_LIMIT_PACKETS="${HOST_LIMIT_PACKETS:-100000}"
OFFLOADS="${OFFLOADS:-off}"
RMEM_MAX_BYTES="${RMEM_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
OUT="${OUT:-.}"

prepare() {
  local out_interface
  out_interface=$(iface_to "$PEER")
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$out_interface"
  undo_sysctl net.ipv4.tcp_rmem
  sysctl -qw net.ipv4.tcp_rmem="4096 131072 $RMEM_MAX_BYTES"
  tc qdisc add dev "$out_interface" root netem delay "${DELAY_MS}ms" limit "$HOST_LIMIT_PACKETS"
  undo tc qdisc del dev "$out_interface" root
  # --8<-- [end:prepare]
}

serve() {
  # --8<-- [start:serve]
  iperf3 -s -1 -J >"$OUT/iperf3-server.json" &
  # --8<-- [end:serve]
  server_on 5201
  serve_to_the_end
}

run_phase "${1:-}" prepare serve
