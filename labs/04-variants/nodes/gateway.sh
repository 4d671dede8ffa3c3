#!/usr/bin/env bash
# Lab 04, gateway: the router before the bottleneck. It may also end the client's TCP itself, and
# speak to the server in its place (relay.py).
#
#     sudo bash gateway.sh prepare      set rate and buffer, and the relay's route
#     sudo bash gateway.sh watch        sample the queue; relay; until told to end (Ctrl-C)
#     sudo bash gateway.sh undo         take it all away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"

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
  # --8<-- [end:bottleneck]
  [[ $RELAY == on ]] || return 0
  # --8<-- [start:relay_route]
  # What comes from the client for the server's iperf3 is for this machine: a routing table that
  # only such packets look at. All else, as ping, goes on to the server.
  sysctl -qw net.ipv4.tcp_wmem="4096 16384 $BUFFER_MAX_BYTES" net.ipv4.tcp_no_metrics_save=1
  ip route add local "$SERVER" dev lo table 100
  ip rule add iif "$to_client" ipproto tcp dport 5201 lookup 100
  # --8<-- [end:relay_route]
}

watch() {
  local pid pids=()
  sample_queue "$(iface_to "$SERVER")" "$SAMPLE_INTERVAL_S" "$OUT/queue.txt" &
  pids+=($!)
  if [[ $RELAY == on ]]; then
    # --8<-- [start:relay]
    PYTHONHASHSEED=0 python3 -SIB "$(dirname "${BASH_SOURCE[0]}")/relay.py" 5201 "$SERVER" &
    # --8<-- [end:relay]
    pids+=($!)
    wait_until 10 listens 5201 || die "the relay does not listen on port 5201"
    look_once &
    pids+=($!)
  fi
  # shellcheck disable=SC2064 # the pids are meant as they are now
  trap "kill -TERM ${pids[*]} 2>/dev/null" TERM INT
  announce_ready
  for pid in "${pids[@]}"; do
    # A signal ends this wait, not what is waited for.
    until wait "$pid"; do
      kill -0 "$pid" 2>/dev/null || break
    done
  done
}

# In the middle of the test: which connections are there on this machine?
look_once() {
  trap 'exit 0' TERM
  pause "$(awk "BEGIN { print $DURATION_S / 2 }")"
  # --8<-- [start:look_once]
  ss -tinOH state established >"$OUT/ss-gateway.txt"
  # --8<-- [end:look_once]
}

undo() {
  # --8<-- [start:undo]
  tc qdisc del dev "$(iface_to "$SERVER")" root
  # --8<-- [end:undo]
  [[ $RELAY == on ]] || return 0
  ip rule del lookup 100
  ip route del local "$SERVER" dev lo table 100
}

case "${1:-}" in
  prepare | watch | undo) "$1" ;;
  *) die "say what to do: prepare, watch or undo" ;;
esac
