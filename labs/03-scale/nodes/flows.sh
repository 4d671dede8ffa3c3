#!/usr/bin/env bash
# Lab 03: who runs which flows, for senders and their receivers alike.

# --8<-- [start:settings]
FLOWS="${FLOWS:-10}"
CONGESTION_CONTROL="${CONGESTION_CONTROL:-reno}"
RIVAL="${RIVAL:-none}"
RIVAL_FLOWS="${RIVAL_FLOWS:-0}"
# --8<-- [end:settings]
STREAMS_COUNT="${STREAMS_COUNT:-100}"
PORTS="${PORTS:-each}"
PAIRS=10

# number: which pair is this host of? The last of its address, less ten.
number() {
  local route
  route=$(ip -o route get 10.10.3.1)
  [[ $route =~ src\ 10\.10\.[0-9]+\.([0-9]+) ]] || die "no address of this lab here: is this a sender or a receiver?"
  echo $((BASH_REMATCH[1] - 10))
}

# share TOTAL NUMBER: how many of TOTAL flows the pair with this number has.
share() {
  echo $(($1 / PAIRS + ($2 < $1 % PAIRS)))
}

# processes NUMBER: this pair's iperf3 processes, a line each: port, algorithm, streams. The rivals
# come first; no process has more than STREAMS_COUNT streams (iperf3 itself allows 128).
processes() {
  local all rivals algorithm left streams port=5201
  all=$(share "$FLOWS" "$1")
  rivals=0
  [[ $RIVAL == none ]] || rivals=$(share "$RIVAL_FLOWS" "$1")
  # --8<-- [start:processes]
  while read -r algorithm left; do
    while ((left > 0)); do
      streams=$((left < STREAMS_COUNT ? left : STREAMS_COUNT))
      echo "$port $algorithm $streams"
      left=$((left - streams))
      [[ $PORTS == one ]] || port=$((port + 1))
    done
  done <<<"$RIVAL $rivals
$CONGESTION_CONTROL $((all - rivals))"
  # --8<-- [end:processes]
}
