#!/usr/bin/env bash
# Lab 02, what both senders do: s1.sh and s2.sh set DELAY_MS and PEER, then read this file.
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"

# --8<-- [start:settings]
CONGESTION_CONTROL="${CONGESTION_CONTROL:-highspeed}"
DURATION_S="${DURATION_S:-120}"
HOST_LIMIT_PACKETS="${HOST_LIMIT_PACKETS:-100000}"
START_SPREAD_MS="${START_SPREAD_MS:-0}"
OFFLOADS="${OFFLOADS:-off}"
WMEM_MAX_BYTES="${WMEM_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
PING_COUNT="${PING_COUNT:-5}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

prepare() {
  local out_interface
  out_interface=$(iface_to "$PEER")
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$out_interface"
  sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem="4096 16384 $WMEM_MAX_BYTES"
  tc qdisc add dev "$out_interface" root netem delay "${DELAY_MS}ms" limit "$HOST_LIMIT_PACKETS"
  # --8<-- [end:prepare]
}

validate() {
  # --8<-- [start:validate]
  ping -n -c "$PING_COUNT" -i 0.2 "$PEER" >"$OUT/ping.txt"
  # --8<-- [end:validate]
}

measure() {
  local sampler_pid wait_ms=0
  # A lone sender has nobody to wait for: nothing else in this lab needs its ready file.
  announce_ready
  if ((START_SPREAD_MS > 0)); then
    wait_ms=$(($(od -An -N4 -tu4 /dev/urandom) % (START_SPREAD_MS + 1)))
    pause "$(printf '%d.%03d' $((wait_ms / 1000)) $((wait_ms % 1000)))"
  fi
  sample_ss "$PEER" "$SAMPLE_INTERVAL_S" "$OUT/ss.txt" &
  sampler_pid=$!
  # --8<-- [start:measure]
  iperf3 -c "$PEER" -t "$DURATION_S" -C "$CONGESTION_CONTROL" -i "$SAMPLE_INTERVAL_S" -J \
    >"$OUT/iperf3.json" || die "iperf3 failed: $(grep -s '"error"' "$OUT/iperf3.json" || echo "no answer")"
  # --8<-- [end:measure]
  kill -TERM "$sampler_pid"
  wait "$sampler_pid"
}

case "${1:-}" in
  prepare | validate | measure) "$1" ;;
  *) die "say what to do: prepare, validate or measure" ;;
esac
