#!/usr/bin/env bash
# What else decides a connection on a node, in the tools' own words, as it stands when all has been measured.
#
#     state.sh FOLDER NODE[=NAMESPACE]...      into FOLDER/NODE/state.txt, beside the node's snapshots
#
# A line '# ' before each part says what was asked. A tool or a file that isn't there is left out. What can't change
# a run's bytes stands apart from scripts/*.sh, whose digests plans have. Every program that is started costs, and a
# run may have over twenty nodes: so most of this is asked of one process a node.
set -uo pipefail

# questions_about QDISCS: for tc, what to ask of a node with these qdiscs (tc's JSON). Only where somebody has set
# a queue can there be classes and filters.
questions_about() {
  local rest=$1 kind handle device root
  questions=''
  while [[ $rest =~ \"kind\":\"([^\"]+)\",\"handle\":\"([^\"]+)\",\"dev\":\"([^\"]+)\",(\"root\")? ]]; do
    rest=${rest#*"${BASH_REMATCH[0]}"}
    kind=${BASH_REMATCH[1]} handle=${BASH_REMATCH[2]} device=${BASH_REMATCH[3]} root=${BASH_REMATCH[4]}
    case $kind in
      noqueue) ;;
      ingress | clsact) questions+="filter show dev $device ingress"$'\n'"filter show dev $device egress"$'\n' ;;
      *)
        questions+="filter show dev $device parent $handle"$'\n'
        [[ -z $root ]] || questions+="class show dev $device"$'\n'
        ;;
    esac
  done
}

# state_of FOLDER NAMESPACE: the state of one node; of this machine where no namespace is named.
state_of() {
  local folder=$1 inside=() enter=() qdiscs questions
  [[ -z $2 ]] || inside=(-n "$2") enter=(ip netns exec "$2")
  read -r qdiscs <"$folder/qdisc.after.json"
  questions_about "$qdiscs"
  {
    if [[ -n $questions ]]; then
      printf '# tc -d qdisc, class, filter\n'
      tc "${inside[@]}" -d -force -batch - <<<"qdisc show"$'\n'"$questions"
    fi
    printf '# ip -d link, route, rule\n'
    ip "${inside[@]}" -d -o -force -batch - <<<$'link show\nroute show table all\nrule show'
    printf '# settings\n%s\n' "$settings"
    if command -v nft >/dev/null; then
      printf '# nft list ruleset\n'
      "${enter[@]}" nft list ruleset
    fi
  } >"$folder/state.txt" 2>/dev/null
}

# Of the whole machine. Those of TCP itself are in each node's snapshot; a card's key is a secret.
settings=$(grep -s . /proc/sys/net/core/{[a-mo-z]*,netdev_{budget*,max_backlog}} \
  /sys/module/tcp_*/parameters/*)
out=$1
shift
for node in "$@"; do
  namespace=${node#"${node%%=*}"}
  state_of "$out/${node%%=*}" "${namespace#=}"
done
