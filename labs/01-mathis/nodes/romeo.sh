#!/usr/bin/env bash
# Lab 01, romeo: the sender.
#
#     sudo bash romeo.sh prepare      set the host up
#     bash romeo.sh validate          ping before you measure
#     bash romeo.sh measure           one TCP flow to juliet, its state sampled meanwhile
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"

# --8<-- [start:settings]
MSS_BYTES="${MSS_BYTES:-1460}"
MTU_BYTES="${MTU_BYTES:-1500}"
DURATION_S="${DURATION_S:-240}"
CONGESTION_CONTROL="${CONGESTION_CONTROL:-reno}"
TIMESTAMPS="${TIMESTAMPS:-off}"
OFFLOADS="${OFFLOADS:-off}"
WMEM_MAX_BYTES="${WMEM_MAX_BYTES:-4194304}"
# --8<-- [end:settings]
PING_COUNT="${PING_COUNT:-25}"
PING_INTERVAL_S="${PING_INTERVAL_S:-0.2}"
PICK_SOCKET="${PICK_SOCKET:-port}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

prepare() {
  local to_juliet timestamps=0
  to_juliet=$(iface_to 10.10.2.100)
  [[ $TIMESTAMPS == off ]] || timestamps=1
  # --8<-- [start:prepare]
  ip link set dev "$to_juliet" mtu "$MTU_BYTES"
  set_offloads "$OFFLOADS" "$to_juliet"
  sysctl -qw net.ipv4.tcp_timestamps="$timestamps" \
    net.ipv4.tcp_no_metrics_save=1 \
    net.ipv4.tcp_wmem="4096 16384 $WMEM_MAX_BYTES"
  # --8<-- [end:prepare]
}

validate() {
  # A lost ping is no failure here: losing packets is what this path does.
  # --8<-- [start:validate]
  ping -n -c "$PING_COUNT" -i "$PING_INTERVAL_S" 10.10.2.100 >"$OUT/ping.txt" || true
  # --8<-- [end:validate]
}

measure() {
  sample_ss 10.10.2.100 "$SAMPLE_INTERVAL_S" "$OUT/ss.txt" &
  local sampler_pid=$!
  # --8<-- [start:measure]
  iperf3 -c 10.10.2.100 -t "$DURATION_S" -C "$CONGESTION_CONTROL" -M "$MSS_BYTES" -J \
    >"$OUT/iperf3.json" || die "iperf3 failed: $(grep -s '"error"' "$OUT/iperf3.json" || echo "no answer")"
  # --8<-- [end:measure]
  kill -TERM "$sampler_pid"
  wait "$sampler_pid"
  last_lines
}

# The connection's last lines: the very last sums up the whole run.
last_lines() {
  local mark=$CONGESTION_CONTROL port
  if [[ $PICK_SOCKET == port ]]; then
    port=$(sed -n 's/.*"local_port":[^0-9]*\([0-9]*\).*/\1/p' "$OUT/iperf3.json" | head -n 1)
    mark="10.10.1.100:$port"
  fi
  grep -w -- "$mark" "$OUT/ss.txt" | tail -n 20 >"$OUT/ss-last.txt" || true
}

case "${1:-}" in
  prepare | validate | measure) "$1" ;;
  *) die "say what to do: prepare, validate or measure" ;;
esac
