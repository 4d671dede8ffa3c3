#!/usr/bin/env bash
# Lab 04, client: the host that sends. Its algorithm is the one that is studied.
#
#     sudo bash client.sh prepare      set the host up
#     bash client.sh validate          ping before you measure
#     bash client.sh measure           one TCP flow to the server, its state sampled meanwhile
#     sudo bash client.sh undo         set all of it back
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
SERVER=10.4.3.2
CONGESTION_CONTROL="${CONGESTION_CONTROL:-cubic}"
DURATION_S="${DURATION_S:-60}"
REPORT_INTERVAL_S="${REPORT_INTERVAL_S:-0.1}"
START_SPREAD_MS="${START_SPREAD_MS:-1000}"
OFFLOADS="${OFFLOADS:-off}"
BUFFER_MAX_BYTES="${BUFFER_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
CHOOSE_BY="${CHOOSE_BY:-flag}"
CONFIG_COMMENT="${CONFIG_COMMENT:-hash}"
HOST_QDISC="${HOST_QDISC:-}"
QDISC_SET="${QDISC_SET:-before}"
TABLE_OF="${TABLE_OF:-one-run}"
CAPTURE_S="${CAPTURE_S:-0}"
PING_COUNT="${PING_COUNT:-20}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

prepare() {
  local out_interface
  out_interface=$(iface_to "$SERVER")
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$out_interface"
  undo_sysctl net.ipv4.tcp_{no_metrics_save,wmem}
  sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem="4096 16384 $BUFFER_MAX_BYTES"
  # --8<-- [end:prepare]
  [[ -z $HOST_QDISC ]] || set_queue "$out_interface"
  [[ $CHOOSE_BY == flag ]] || read_settings
}

# The host's own queue. A cable between two namespaces has none, so packets take the way through
# an interface that has one, as a network card does (ifb), before they come to the cable.
set_queue() {
  undo_sysctl net.core.default_qdisc
  case $QDISC_SET in
    before)
      # --8<-- [start:qdisc_before]
      machine_wide sysctl -qw net.core.default_qdisc="$HOST_QDISC"
      add_card "$1"
      # --8<-- [end:qdisc_before]
      ;;
    after)
      # --8<-- [start:qdisc_after]
      add_card "$1"
      machine_wide sysctl -qw net.core.default_qdisc="$HOST_QDISC"
      # --8<-- [end:qdisc_after]
      ;;
    *) die "QDISC_SET is before or after, not $QDISC_SET" ;;
  esac
  tc qdisc show dev card >"$OUT/tc.txt"
}

add_card() {
  ip link add card type ifb
  undo ip link del card
  ip link set card up
  tc qdisc add dev "$1" clsact
  undo tc qdisc del dev "$1" clsact
  tc filter add dev "$1" egress matchall action mirred egress redirect dev card
}

# machine_wide COMMAND...: default_qdisc belongs to the machine. A network namespace, which is what
# each node is here, doesn't see it.
machine_wide() {
  nsenter --net=/proc/1/ns/net "$@"
}

# The algorithm from a file of settings, as people keep it in /etc/sysctl.conf.
read_settings() {
  local comment='#'
  [[ $CONFIG_COMMENT == hash ]] || comment='//'
  if [[ $comment == '#' ]]; then
    # --8<-- [start:hash]
    printf '%s\n' \
      "# the algorithm of this run" \
      "net.ipv4.tcp_congestion_control=$CONGESTION_CONTROL" >"$OUT/sysctl.conf"
    # --8<-- [end:hash]
  else
    # --8<-- [start:slashes]
    printf '%s\n' \
      "net.ipv4.tcp_congestion_control=$CONGESTION_CONTROL  // the algorithm of this run" \
      >"$OUT/sysctl.conf"
    # --8<-- [end:slashes]
  fi
  undo_sysctl net.ipv4.tcp_congestion_control
  # Not die: whoever types this goes on to the next line.
  # --8<-- [start:read_settings]
  sysctl -p "$OUT/sysctl.conf" >"$OUT/sysctl-p.txt" 2>&1 || true
  # --8<-- [end:read_settings]
  sysctl net.ipv4.tcp_congestion_control >"$OUT/sysctl-now.txt"
}

validate() {
  # --8<-- [start:validate]
  ping -n -c "$PING_COUNT" -i 0.2 "$SERVER" >"$OUT/ping.txt"
  # --8<-- [end:validate]
}

measure() {
  local capture_pid
  random_pause "$START_SPREAD_MS"
  if [[ $TABLE_OF == two-runs ]]; then
    # The first of two runs, from which one column of the table will be taken. A server of its own:
    # the other takes no second test for a moment.
    flow "$OUT/iperf3-first.json" -p 5202
  fi
  if [[ $CAPTURE_S != 0 ]]; then
    capture &
    capture_pid=$!
    wait_until 10 says "$OUT/tcpdump.log" 'listening on' || die "tcpdump did not start: see tcpdump.log"
  fi
  begin_samples "$SERVER" "$SAMPLE_INTERVAL_S" "$OUT/ss.txt"
  flow "$OUT/iperf3.json"
  end_samples
  [[ -z ${capture_pid:-} ]] || wait "$capture_pid"
  if [[ $TABLE_OF == two-runs ]]; then
    # --8<-- [start:two_runs]
    paste -d ' ' <(rows "$OUT/iperf3.json") <(rows "$OUT/iperf3-first.json") |
      awk 'NF == 10 { print $1, $2, $3, $9, $5 }' >"$OUT/table.txt"
    # --8<-- [end:two_runs]
  else
    # --8<-- [start:one_run]
    rows "$OUT/iperf3.json" >"$OUT/table.txt"
    # --8<-- [end:one_run]
  fi
}

# flow FILE [OPTION...]: one test, in iperf3's own words.
flow() {
  local file=$1 choose=(-C "$CONGESTION_CONTROL")
  [[ $CHOOSE_BY == flag ]] || choose=()
  shift
  # --8<-- [start:measure]
  iperf3 -c "$SERVER" -t "$DURATION_S" -i "$REPORT_INTERVAL_S" -J "${choose[@]}" "$@" \
    >"$file" || iperf3_failed "$file"
  # --8<-- [end:measure]
}

# rows FILE: the table that reports print: start, end (s), rate (bit/s), cwnd (bytes), segments
# sent again; a line an interval, from iperf3's JSON.
rows() {
  # --8<-- [start:rows]
  awk -F '[:,]' '
    /"start":/ { start = $2 }
    /"end":/ { end = $2 }
    /"bits_per_second":/ { rate = $2 }
    /"retransmits":/ { again = $2 }
    /"snd_cwnd":/ { printf "%.6f %.6f %.0f %d %d\n", start, end, rate, $2, again }' "$1"
  # --8<-- [end:rows]
}

# The first CAPTURE_S seconds of packets, headers only.
capture() {
  local pid
  # --8<-- [start:capture]
  tcpdump -n -tt -s 96 -i "$(iface_to "$SERVER")" "tcp port 5201" \
    >"$OUT/capture.txt" 2>"$OUT/tcpdump.log" &
  # --8<-- [end:capture]
  pid=$!
  pause "$CAPTURE_S"
  kill -TERM "$pid"
  wait "$pid" || true
}

run_phase "${1:-}" prepare validate measure
