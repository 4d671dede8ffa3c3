// SPDX-License-Identifier: Apache-2.0
/* A path between two interfaces, in real time: a rate, a drop-tail buffer before it, a delay each way, losses at random.
 *
 *     emulator FROM TO RATE_BPS BURST_BYTES BUFFER_BYTES DELAY_NS BACK_NS LOSS_RATIO SEED HEAD COUNTERS LATENESS
 *
 * Frames that come in at the interface FROM leave at TO, and the other way round. All but BACK_NS is about the way from FROM to
 * TO; a rate of 0 has no queue. Sizes are Ethernet frames, as a qdisc counts them. Times are the kernel's own stamps of
 * arrival, so a frame that is looked at late still gets its place in the queue, and its departure, as if it had not been;
 * only the moment at which it is sent on may be late, and that is measured. Until SIGTERM, the file COUNTERS has what tc
 * would say of such a qdisc (HEAD, then counters); at the end LATENESS has how late frames were, both ways together.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { FRAME_BYTES = 2048, FRAMES = 16384, BATCH = 64, CLASSES = 64 * 32 };
static const int64_t SECOND_NS = 1000000000, COUNT_EVERY_NS = 10000000;

/* A frame on its way: leaves_ns is when the queue lets it go, due_ns when it arrives at the other side. */
struct frame {
  struct frame *next;
  int64_t leaves_ns, due_ns;
  uint32_t bytes;
  unsigned char data[];
};
/* An interface with its ring of received frames, and the frames that wait to be sent out of it. */
struct side {
  int socket;
  unsigned char *ring;
  unsigned at;
  struct frame *first, *last, *in_queue;
};

static struct side from, to;
static double rate_bps, loss_ratio, burst_bytes, buffer_bytes;
static uint64_t randomness, sent, sent_bytes, drops, lost_here, backlog_bytes, backlog_frames, late_class[CLASSES], late_count;
static int64_t delay_ns, back_ns, full_at_ns, late_sum_ns, late_max_ns; /* full_at_ns: when the bucket of tokens would be full again */
static volatile sig_atomic_t told;
static void end(int signal) { told = signal; }
static _Noreturn void fail(const char *what) { fprintf(stderr, "emulator: %s: %s\n", what, strerror(errno)), exit(1); }

static int64_t now_ns(void) {
  struct timespec now;
  return clock_gettime(CLOCK_REALTIME, &now), now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* A number from 0 to below 1: xorshift64* (Vigna 2016); its state is never 0. */
static double uniform(void) {
  randomness ^= randomness >> 12, randomness ^= randomness << 25, randomness ^= randomness >> 27;
  return (double)(randomness * 0x2545f4914f6cdd1du >> 11) / 9007199254740992.0;
}

static void open_side(struct side *side, const char *name) {
  int one = 1, version = TPACKET_V2;
  struct tpacket_req ring = {FRAME_BYTES * 32, FRAMES / 32, FRAME_BYTES, FRAMES};
  struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
  if (!(address.sll_ifindex = (int)if_nametoindex(name))) fail(name);
  if ((side->socket = socket(AF_PACKET, SOCK_RAW, 0)) < 0) fail("packet socket");
  if (setsockopt(side->socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
      setsockopt(side->socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) ||
      setsockopt(side->socket, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring))
    fail("packet ring");
  side->ring = mmap(NULL, (size_t)FRAMES * FRAME_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, side->socket, 0);
  if (side->ring == MAP_FAILED) fail("packet ring");
  if (bind(side->socket, (struct sockaddr *)&address, sizeof address)) fail(name);
}

/* Frames whose turn has come by this time leave the queue. */
static void drain(int64_t time_ns) {
  for (; to.in_queue && to.in_queue->leaves_ns <= time_ns; to.in_queue = to.in_queue->next) {
    backlog_bytes -= to.in_queue->bytes, backlog_frames--;
    sent_bytes += to.in_queue->bytes, sent++;
  }
}

/* Say whether the frame that came at this time goes on, and when it leaves the queue: a bucket of tokens, as tbf has it. */
static int admit(uint32_t bytes, int64_t came_ns, int64_t *leaves_ns) {
  drain(came_ns);
  if (uniform() < loss_ratio || (rate_bps > 0 && (double)backlog_bytes + bytes > buffer_bytes)) return drops++, 0;
  if (rate_bps <= 0) return 1;
  full_at_ns = (full_at_ns < came_ns ? came_ns : full_at_ns) + (int64_t)(8e9 * bytes / rate_bps);
  int64_t enough_at_ns = full_at_ns - (int64_t)(8e9 * burst_bytes / rate_bps);
  if (enough_at_ns > came_ns) *leaves_ns = enough_at_ns;
  return 1;
}

/* Take what has come in at one side and give it its time at the other. */
static void take(struct side *in, struct side *out) {
  for (int taken = 0; taken < BATCH; taken++) {
    struct tpacket2_hdr *head = (void *)(in->ring + (size_t)in->at * FRAME_BYTES);
    if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) return;
    int64_t now = now_ns(), came_ns = head->tp_sec * SECOND_NS + head->tp_nsec;
    int64_t leaves_ns = came_ns = came_ns > now || came_ns < now - SECOND_NS ? now : came_ns;
    if (head->tp_snaplen != head->tp_len) {
      lost_here++; /* larger than an MTU of 1500: an offload is still on */
    } else if (out == &from || admit(head->tp_len, came_ns, &leaves_ns)) {
      struct frame *frame = malloc(sizeof *frame + head->tp_len);
      if (!frame) fail("memory");
      *frame = (struct frame){NULL, leaves_ns, leaves_ns + (out == &to ? delay_ns : back_ns), head->tp_len};
      memcpy(frame->data, (unsigned char *)head + head->tp_mac, head->tp_len);
      if (out->last) out->last->next = frame;
      if (!out->first) out->first = frame;
      out->last = frame;
      if (out == &to) {
        if (!out->in_queue) out->in_queue = frame;
        backlog_bytes += frame->bytes, backlog_frames++;
      }
    }
    __atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    in->at = (in->at + 1) % FRAMES;
  }
}

/* Send what is due, and note how late that is. */
static void give(struct side *out) {
  for (int64_t now = now_ns(); out->first && out->first->due_ns <= now; now = now_ns()) {
    struct frame *frame = out->first;
    int64_t late_ns = now - frame->due_ns;
    int power = 63 - __builtin_clzll((uint64_t)late_ns | 32);
    late_class[power * 32 + (late_ns >> (power - 5) & 31)]++, late_count++, late_sum_ns += late_ns;
    if (late_ns > late_max_ns) late_max_ns = late_ns;
    if (out == &to) drain(frame->leaves_ns);
    if (send(out->socket, frame->data, frame->bytes, 0) < 0) lost_here++;
    if (!(out->first = frame->next)) out->last = NULL;
    free(frame);
  }
}

static void write_file(const char *path, const char *text) {
  char beside[4096];
  FILE *file = snprintf(beside, sizeof beside, "%s.part", path) ? fopen(beside, "w") : NULL;
  if (!file || fputs(text, file) < 0 || fclose(file) || rename(beside, path)) fail(path);
}

static void count(const char *path, const char *head) {
  char text[2048];
  drain(now_ns());
  snprintf(text, sizeof text,
           "{%s,\"bytes\":%lu,\"packets\":%lu,\"drops\":%lu,\"overlimits\":0,\"requeues\":0,\"backlog\":%lu,\"qlen\":%lu}\n",
           head, sent_bytes, sent, drops, backlog_bytes, backlog_frames);
  write_file(path, text);
}

static void sum_up(const char *path) {
  char text[512];
  uint64_t seen = 0, p99_ns = 0;
  for (int side = 0; side < 2; side++) {
    struct tpacket_stats missed = {0};
    getsockopt(side ? to.socket : from.socket, SOL_PACKET, PACKET_STATISTICS, &missed, &(socklen_t){sizeof missed});
    lost_here += missed.tp_drops;
  }
  for (int class = 0; class < CLASSES && seen * 100 < late_count * 99; class++)
    if ((seen += late_class[class]) && class >= 160) p99_ns = (uint64_t)(32 + class % 32 + 1) << (class / 32 - 5);
  snprintf(text, sizeof text,
           "{\"packets\":%lu,\"late_mean_us\":%.1f,\"late_p99_us\":%.1f,\"late_max_us\":%.1f,\"lost_packets\":%lu}\n",
           late_count, late_count ? late_sum_ns / 1e3 / (double)late_count : 0.0,
           (p99_ns > (uint64_t)late_max_ns ? (uint64_t)late_max_ns : p99_ns) / 1e3, late_max_ns / 1e3, lost_here);
  write_file(path, text);
}

int main(int argc, char **argv) {
  sigset_t none, ends;
  if (argc != 13) return fputs("emulator: 12 arguments, see emulator.c\n", stderr), 2;
  rate_bps = atof(argv[3]), burst_bytes = atof(argv[4]), buffer_bytes = atof(argv[5]), delay_ns = atoll(argv[6]);
  back_ns = atoll(argv[7]), loss_ratio = atof(argv[8]), randomness = strtoull(argv[9], NULL, 10) ^ 0x9e3779b97f4a7c15u;
  /* Blocked but while it waits, so that no signal comes between the look at `told` and the wait. */
  sigemptyset(&none), sigemptyset(&ends), sigaddset(&ends, SIGTERM), sigprocmask(SIG_BLOCK, &ends, NULL);
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = end}, NULL), prctl(PR_SET_TIMERSLACK, 1);
  sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}); /* only root may; others go without */
  open_side(&from, argv[1]), open_side(&to, argv[2]);
  for (int64_t count_at_ns = 0; !told;) {
    take(&from, &to), take(&to, &from), give(&to), give(&from);
    int64_t now = now_ns(), next_ns = count_at_ns;
    if (now >= count_at_ns || count_at_ns > now + SECOND_NS) count(argv[11], argv[10]), next_ns = count_at_ns = now + COUNT_EVERY_NS;
    for (int side = 0; side < 2; side++) {
      struct frame *first = side ? to.first : from.first;
      if (first && first->due_ns < next_ns) next_ns = first->due_ns;
    }
    next_ns -= now_ns();
    struct timespec wait = {0, next_ns > 0 ? next_ns : 0};
    struct pollfd sides[] = {{from.socket, POLLIN, 0}, {to.socket, POLLIN, 0}};
    ppoll(sides, 2, &wait, &none);
  }
  return count(argv[11], argv[10]), sum_up(argv[12]), 0;
}
