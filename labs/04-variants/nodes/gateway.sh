#!/usr/bin/env bash
# Lab 04, gateway: the router before the bottleneck. It may also end the client's TCP itself, and
# speak to the server in its place (relay.py).
#
#     sudo bash gateway.sh prepare      set rate and buffer, and the relay's route
#     sudo bash gateway.sh watch        sample the queue; relay; until told to end (Ctrl-C)
#     sudo bash gateway.sh undo         take it all away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
SERVER=10.4.3.2
RATE_MBIT="${RATE_MBIT:-100}"
BURST_BYTES="${BURST_BYTES:-3200}"
BUFFER_BYTES="${BUFFER_BYTES:-500000}"
RELAY="${RELAY:-off}"
OFFLOADS="${OFFLOADS:-off}"
BUFFER_MAX_BYTES="${BUFFER_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
DURATION_S="${DURATION_S:-60}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

prepare() {
  local to_server to_client
  to_server=$(iface_to "$SERVER") to_client=$(iface_to 10.4.1.2)
  set_offloads "$OFFLOADS" "$to_server" "$to_client" "$(iface_to 10.4.4.2)"
  # --8<-- [start:bottleneck]
  tc qdisc add dev "$to_server" root tbf rate "${RATE_MBIT}mbit" burst "$BURST_BYTES" limit "$BUFFER_BYTES"
  undo tc qdisc del dev "$to_server" root
  # --8<-- [end:bottleneck]
  [[ $RELAY == on ]] || return 0
  # --8<-- [start:relay_route]
  # What comes from the client for the server's iperf3 is for this machine: a routing table that
  # only such packets look at. All else, as ping, goes on to the server.
  undo_sysctl net.ipv4.tcp_{wmem,no_metrics_save}
  sysctl -qw net.ipv4.tcp_wmem="4096 16384 $BUFFER_MAX_BYTES" net.ipv4.tcp_no_metrics_save=1
  ip route add local "$SERVER" dev lo table 100
  undo ip route del local "$SERVER" dev lo table 100
  ip rule add iif "$to_client" ipproto tcp dport 5201 lookup 100
  undo ip rule del iif "$to_client" ipproto tcp dport 5201 lookup 100
  # --8<-- [end:relay_route]
}

watch() {
  local pids=()
  sample_queue "$(iface_to "$SERVER")" "$SAMPLE_INTERVAL_S" "$OUT/queue.txt" &
  pids+=($!)
  if [[ $RELAY == on ]]; then
    # --8<-- [start:relay]
    PYTHONHASHSEED=0 python3 -SIB "$here/relay.py" 5201 "$SERVER" &
    # --8<-- [end:relay]
    pids+=($!)
    wait_until 10 listens 5201 || die "the relay does not listen on port 5201"
    look_once &
    pids+=($!)
  fi
  until_told "${pids[@]}"
}

# In the middle of the test: which connections are there on this machine?
look_once() {
  trap 'exit 0' TERM
  pause "$(awk "BEGIN { print $DURATION_S / 2 }")"
  # --8<-- [start:look_once]
  ss -tinOH state established >"$OUT/ss-gateway.txt"
  # --8<-- [end:look_once]
}

run_phase "${1:-}" prepare watch
