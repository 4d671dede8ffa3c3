#!/usr/bin/env bash
# Lab 06, server: the other end of everything, behind the provider and half of the delay.
#
#     sudo bash server.sh prepare     set the host up, and its share of the delay
#     bash server.sh validate         ping the laptop before you measure
#     bash server.sh serve            answer the flows from home, then end
#     bash server.sh serve_pages      give pages to whoever asks, until you end it (Ctrl-C)
#     bash server.sh measure          flows to the laptop; pings and a call with the phone
#     sudo bash server.sh undo        set all of it back
set -euo pipefail
# shellcheck source=labs/06-latency/nodes/host.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./host.sh"

prepare() {
  local out_interface half_rtt_ms
  out_interface=$(iface_to "$LAPTOP")
  half_rtt_ms=$(awk "BEGIN { printf \"%.6f\", $RTT_MS / 2 }")
  set_host "$out_interface" "$(tcp_ecn grants)"
  # --8<-- [start:delay]
  tc qdisc add dev "$out_interface" root netem delay "${half_rtt_ms}ms" limit 100000
  undo tc qdisc del dev "$out_interface" root
  # --8<-- [end:delay]
}

validate() {
  ping -n -c "$PING_COUNT" -i 0.2 "$LAPTOP" >"$OUT/ping.txt"
}

serve() {
  local port flows
  for port in "$UP_PORT" "$CLASSIC_PORT"; do
    if [[ $port == "$UP_PORT" ]]; then flows=$UP_FLOWS; else flows=$CLASSIC_FLOWS; fi
    ((flows > 0)) || continue
    # --8<-- [start:serve]
    iperf3 -s -1 -p "$port" -J >"$OUT/iperf3-server-$port.json" &
    # --8<-- [end:serve]
    server_on "$port"
  done
  if [[ -z ${server_pids[*]-} ]]; then
    announce_ready
    return
  fi
  serve_to_the_end
}

serve_pages() {
  # --8<-- [start:serve_pages]
  PYTHONHASHSEED=0 python3 -SIB "$here/pages.py" serve "$PAGE_PORT" "$PAGE_BYTES" &
  # --8<-- [end:serve_pages]
  server_on "$PAGE_PORT"
  serve_until_told
}

measure() {
  local pids=() pid
  announce_ready
  if ((DOWN_FLOWS > 0)); then
    bulk "$LAPTOP" "$DOWN_PORT" "$DOWN_FLOWS" "$CONGESTION_CONTROL" &
    pids+=($!)
  fi
  pause "$WARMUP_S"
  call "$PHONE" &
  pids+=($!)
  pings "$PHONE"
  for pid in "${pids[@]}"; do
    wait "$pid"
  done
}

run_phase "${1:-}" prepare validate serve serve_pages measure
