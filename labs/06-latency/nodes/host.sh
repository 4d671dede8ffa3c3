#!/usr/bin/env bash
# Lab 06, what the hosts do: laptop.sh, phone.sh and server.sh read this file. Bulk flows fill the link, and
# beside them pings, a call and short transfers feel what that does to a packet.
# shellcheck disable=SC2034 # those who read this file use its names
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
LAPTOP=10.6.1.2
PHONE=10.6.2.2
SERVER=10.6.5.2
UP_FLOWS="${UP_FLOWS:-4}"
DOWN_FLOWS="${DOWN_FLOWS:-4}"
CLASSIC_FLOWS="${CLASSIC_FLOWS:-0}"
CONGESTION_CONTROL="${CONGESTION_CONTROL:-cubic}"
ECN="${ECN:-if-asked}"
DURATION_S="${DURATION_S:-10}"
WARMUP_S="${WARMUP_S:-0}"
WATCH_S="${WATCH_S:-$DURATION_S}"
RTT_MS="${RTT_MS:-40}"
CALL_BYTES="${CALL_BYTES:-172}"
CALL_INTERVAL_MS="${CALL_INTERVAL_MS:-20}"
PAGE_BYTES="${PAGE_BYTES:-100000}"
PAGE_PAUSE_MS="${PAGE_PAUSE_MS:-500}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
PROBE_STARTS="${PROBE_STARTS:-with-load}"
START_SPREAD_MS="${START_SPREAD_MS:-100}"
PING_COUNT="${PING_COUNT:-5}"
PING_INTERVAL_S="${PING_INTERVAL_S:-0.02}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.2}"
OUT="${OUT:-.}"
# Bulk flows go to these ports: up to the server, down to the laptop, and the phone's own. Then the call's and the pages'.
UP_PORT=5201 DOWN_PORT=5202 CLASSIC_PORT=5203 CALL_PORT=5204 PAGE_PORT=5205

# set_host INTERFACE TCP_ECN: what any host needs before TCP is measured on it.
set_host() {
  set_offloads "$OFFLOADS" "$1"
  undo_sysctl net.ipv4.tcp_{ecn,no_metrics_save}
  # --8<-- [start:set_host]
  sysctl -qw net.ipv4.tcp_ecn="$2" net.ipv4.tcp_no_metrics_save=1
  # --8<-- [end:set_host]
}

# tcp_ecn asks|grants: what net.ipv4.tcp_ecn must be on a host that opens connections, and on one that only answers.
# 1 asks for ECN and grants it, 2 grants it if asked, which is Linux's default, and 0 does neither.
tcp_ecn() {
  # --8<-- [start:tcp_ecn]
  case $ECN in
    on) echo 1 ;;
    if-asked) echo 2 ;;
    off) echo 0 ;;
    laptop-only) if [[ $1 == asks ]]; then echo 1; else echo 0; fi ;;
    *) die "ECN is on, if-asked, off or laptop-only, not $ECN" ;;
  esac
  # --8<-- [end:tcp_ecn]
}

# measured_s: for how many seconds is measured, of those in which something is sent.
measured_s() {
  awk "BEGIN { left = $WATCH_S - $WARMUP_S; if (left < 1) exit 1; print left }" ||
    die "nothing is left to measure: WARMUP_S is $WARMUP_S of $WATCH_S seconds"
}

# bulk ADDRESS PORT FLOWS ALGORITHM: what fills the link; its connections' state is sampled once they are warm.
bulk() {
  local iperf_pid
  random_pause "$START_SPREAD_MS"
  # --8<-- [start:bulk]
  iperf3 -c "$1" -p "$2" -P "$3" -C "$4" -t "$DURATION_S" -i 0 -J >"$OUT/iperf3.json" &
  # --8<-- [end:bulk]
  iperf_pid=$!
  pause "$WARMUP_S"
  begin_samples "$1" "$SAMPLE_INTERVAL_S" "$OUT/ss.txt"
  wait "$iperf_pid" || iperf3_failed "$OUT/iperf3.json"
  end_samples
}

# pings ADDRESS: pings while the flows run, or when somebody thinks of it.
pings() {
  local seconds
  seconds=$(measured_s)
  case $PROBE_STARTS in
    with-load) ;;
    after-load) pause $((${DURATION_S%.*} + 1)) ;;
    *) die "PROBE_STARTS is with-load or after-load, not $PROBE_STARTS" ;;
  esac
  # A lost ping is no failure: a full queue loses pings too.
  # --8<-- [start:pings]
  ping -n -D -i "$PING_INTERVAL_S" -w "${seconds%.*}" "$1" >"$OUT/ping-busy.txt" || true
  # --8<-- [end:pings]
}

# call ADDRESS: this host's half of a call.
call() {
  # --8<-- [start:call]
  PYTHONHASHSEED=0 python3 -SIB "$here/call.py" "$1" "$CALL_PORT" "$CALL_BYTES" "$CALL_INTERVAL_MS" "$(measured_s)" \
    >"$OUT/call.txt"
  # --8<-- [end:call]
}
