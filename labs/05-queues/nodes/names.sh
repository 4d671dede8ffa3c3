#!/usr/bin/env bash
# Lab 05: every node's address, and who is on which side. Read by host.sh and router.sh.

# --8<-- [start:names]
# address_of NODE: a host's own address.
address_of() {
  case $1 in
    host-1) echo 10.1.1.1 ;;
    host-2) echo 10.1.1.2 ;;
    host-3) echo 10.1.3.1 ;;
    host-4) echo 10.1.3.2 ;;
    *) die "$1 is no host: choose host-1 to host-4" ;;
  esac
}

# same_side A B: do these two nodes stand on the same side of the link between the routers?
same_side() {
  [[ $(side_of "$1") == "$(side_of "$2")" ]]
}
# --8<-- [end:names]

side_of() {
  case $1 in
    host-1 | host-2 | router-1) echo left ;;
    host-3 | host-4 | router-2) echo right ;;
    *) die "$1 is no node of this lab" ;;
  esac
}
