#!/usr/bin/env bash
# Prepares one node of a testbed (Ubuntu or Debian) for a lab, and says whether it is ready.
#
#     sudo bash node-setup.sh [forward] [SUBNET,GATEWAY]...
#
# 'forward' makes it a router; each SUBNET,GATEWAY is a route. The node's addresses are set already.
# It may be run again, and must be after a reboot. The last line is 'ready: ...', or 'not ready: ...'
# and exit 1.
set -euo pipefail

# What the labs' scripts call, each with the package that has it.
commands=(iperf3:iperf3 ip:iproute2 tc:iproute2 ss:iproute2 nstat:iproute2 ethtool:ethtool
  tcpdump:tcpdump ping:iputils-ping python3:python3 awk:mawk modprobe:kmod)
# Queue disciplines and congestion controls that kernels have as modules. Those that every kernel
# has are not here: pfifo_fast, pfifo, bfifo, reno. Nor is one that few have yet, dualpi2: ./lab run asks for it itself.
modules=(sch_netem sch_htb sch_tbf sch_red sch_codel sch_fq_codel sch_pie sch_fq_pie sch_fq sch_cake sch_ingress
  tcp_cubic tcp_highspeed tcp_vegas tcp_bbr tcp_dctcp)
ROUTE_TRIES=60

install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" </dev/null
}

# absent_packages: those whose command isn't here.
absent_packages() {
  local pair
  for pair in "${commands[@]}"; do
    type -P "${pair%:*}" >/dev/null || echo "${pair#*:}"
  done | sort -u
}

absent_modules() {
  local module
  for module in "${modules[@]}"; do
    modprobe -q "$module" || echo "$module"
  done
}

# add_route SUBNET GATEWAY: waits, since a testbed may set the addresses while this runs.
add_route() {
  local -i tries=$ROUTE_TRIES
  until ip route replace "$1" via "$2"; do
    ((--tries > 0)) || return 1
    sleep 1
  done
}

# version COMMAND...: the first number with a dot in what it prints.
version() {
  local said
  said=$("$@" 2>&1) || true
  if [[ $said =~ [0-9]+(\.[0-9]+)+ ]]; then echo "${BASH_REMATCH[0]}"; else echo '?'; fi
}

problems=()
if [[ $(id -u) != 0 ]]; then
  echo "not ready: run this as root: sudo bash $0 $*"
  exit 1
fi

mapfile -t packages < <(absent_packages)
mapfile -t missing < <(absent_modules)
if ((${#packages[@]} + ${#missing[@]} > 0)); then
  apt-get update </dev/null || problems+=("apt-get can't update its lists of packages")
fi
if ((${#packages[@]} > 0)); then
  install "${packages[@]}" || problems+=("can't install ${packages[*]}")
fi
if ((${#missing[@]} > 0)); then
  # Ubuntu keeps the rarer modules in a package of their own.
  install "linux-modules-extra-$(uname -r)" || true
  mapfile -t missing < <(absent_modules)
  ((${#missing[@]} == 0)) ||
    problems+=("this kernel, $(uname -r), has no ${missing[*]}: labs that use these can't run")
fi

for argument in "$@"; do
  if [[ $argument == forward ]]; then
    sysctl -qw net.ipv4.ip_forward=1 || problems+=("can't forward packets")
  else
    add_route "${argument%,*}" "${argument#*,}" ||
      problems+=("no route to ${argument%,*} via ${argument#*,}: are this node's addresses set?")
  fi
done
# Whoever isn't root may otherwise choose only reno and the system's own.
sysctl -qw net.ipv4.tcp_allowed_congestion_control="$(sysctl -n net.ipv4.tcp_available_congestion_control)" ||
  problems+=("can't allow all congestion controls")

if ((${#problems[@]} > 0)); then
  said=$(printf '; %s' "${problems[@]}")
  echo "not ready: ${said:2}"
  exit 1
fi
echo "ready: Linux $(uname -r), iperf3 $(version iperf3 --version), iproute2 $(version tc -V)"
