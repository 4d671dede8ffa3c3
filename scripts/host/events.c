// SPDX-License-Identifier: Apache-2.0
/* The congestion states of this network namespace's TCP connections, as the kernel's tracing would print them, for whoever
 * isn't allowed to have that.
 *
 *     events FILE
 *
 * Every few milliseconds the kernel is asked for all connections, as ss asks it (sock_diag(7)), and a state that isn't the
 * one before is a line of tcp_cong_state_set. A state that lasts for less than that may be missed; recovery lasts for a
 * round trip at least. Until it is ended.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_NS = 5000000, ESTABLISHED = 1 };
static uint8_t state_of_port[65536];

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + now.tv_nsec / 1e9;
}

static void look(FILE *trace, double now_s, const struct nlmsghdr *message) {
  const struct inet_diag_msg *connection = NLMSG_DATA(message);
  const char *end = (const char *)message + message->nlmsg_len;
  unsigned port = ntohs(connection->id.idiag_sport);
  char from[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];
  for (const struct nlattr *part = (const void *)(connection + 1); (const char *)(part + 1) <= end && part->nla_len >= sizeof *part;
       part = (const void *)((const char *)part + NLMSG_ALIGN(part->nla_len))) {
    if (part->nla_type != INET_DIAG_INFO) continue;
    uint8_t state = ((const struct tcp_info *)(part + 1))->tcpi_ca_state;
    if (state == state_of_port[port]) continue;
    state_of_port[port] = state;
    inet_ntop(AF_INET, connection->id.idiag_src, from, sizeof from);
    inet_ntop(AF_INET, connection->id.idiag_dst, to, sizeof to);
    fprintf(trace, " events-1 [000] ..... %.6f: tcp_cong_state_set: family=AF_INET sport=%u dport=%u saddr=%s daddr=%s cong_state=%u\n",
            now_s, port, ntohs(connection->id.idiag_dport), from, to, state);
  }
}

int main(int argc, char **argv) {
  struct {
    struct nlmsghdr head;
    struct inet_diag_req_v2 asked;
  } request = {
      .head = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
      .asked = {AF_INET, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, 1 << ESTABLISHED, {0}},
  };
  static char answer[1 << 16];
  FILE *trace = argc == 2 ? fopen(argv[1], "w") : NULL;
  int diag = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (!trace || diag < 0) return perror("events"), 1;
  fprintf(trace, " events-1 [000] ..... %.6f: tracing_mark_write: now=%.6f\n", seconds(CLOCK_MONOTONIC), seconds(CLOCK_REALTIME));
  for (;; fflush(trace), nanosleep(&(struct timespec){0, EVERY_NS}, NULL)) {
    double now_s = seconds(CLOCK_MONOTONIC);
    if (send(diag, &request, sizeof request, 0) < 0) return perror("events"), 1;
    for (int more = 1; more;) {
      ssize_t length = recv(diag, answer, sizeof answer, 0);
      if (length < 0) return perror("events"), 1;
      for (struct nlmsghdr *one = (void *)answer; NLMSG_OK(one, length); one = NLMSG_NEXT(one, length)) {
        if (one->nlmsg_type == SOCK_DIAG_BY_FAMILY) look(trace, now_s, one);
        if (one->nlmsg_type == NLMSG_DONE || one->nlmsg_type == NLMSG_ERROR) more = 0;
      }
    }
  }
}
