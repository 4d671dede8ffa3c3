// SPDX-License-Identifier: Apache-2.0
/*
 * ss-sampler: what `ss` would see of TCP sockets, again and again, at the price of a few system
 * calls a sample. Starting ss anew costs more than the experiment it watches.
 *
 * FILE.diag takes the kernel's netlink messages as they come; `TCPDIAG_FILE=FILE.diag ss -tin`
 * prints them, so that the text is ss's own. FILE.times gets a line a sample: the Unix time and
 * how many sockets (messages in FILE.diag) belong to it. Samples stand in both in the order in
 * which they were taken, and each is written at once: what a killed sampler leaves is usable.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ADDRESSES = 64 };
#define NS_PER_S 1000000000LL

/* The states that ss shows unless told otherwise: no listeners, no TIME-WAIT, no half-open ones. */
static const uint32_t connected_states =
	~((1U << TCP_LISTEN) | (1U << TCP_CLOSE) | (1U << TCP_TIME_WAIT) | (1U << TCP_SYN_RECV)) &
	((1U << (TCP_CLOSING + 1)) - 1);

struct address {
	uint32_t word[4]; /* network byte order; an IPv4 address is word 0 alone */
	bool is_ipv6;
};

struct options {
	int64_t interval_ns;
	const char *out_path, *times_path;
	struct address dst[MAX_ADDRESSES];
	unsigned int dst_count;
	uint16_t dport; /* 0: any */
	pid_t until_pid;
	uint8_t extensions;
};

/* Samples of one instant, collected before anything is written. */
struct sample {
	char *bytes;
	size_t length, room;
	unsigned int sockets;
};

static volatile sig_atomic_t stopped;

static void on_stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
}

__attribute__((noreturn, format(printf, 2, 3))) static void fail(int code, const char *format, ...)
{
	va_list arguments;

	fputs("ss-sampler: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(code);
}

static const char usage[] =
	"usage: ss-sampler --interval SECONDS --out FILE.diag --times FILE.times\n"
	"                  [--dst ADDRESS]... [--dport PORT] [--memory] [--tos] [--until-pid PID]\n"
	"Samples this network namespace's TCP connections until SIGTERM, SIGINT or the end of PID.\n"
	"Afterwards: TCPDIAG_FILE=FILE.diag ss -tin\n"
	"  --dst, --dport  only connections to one of these addresses, to this port\n"
	"  --memory        with skmem:(...), as ss -m asks for it\n"
	"  --tos           with the type of service, as ss --tos asks for it\n";

static int64_t parse_seconds(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 1e-6 && seconds <= 86400))
		fail(2, "--interval %s: not a number of seconds from 0.000001 to 86400", text);
	return (int64_t)(seconds * NS_PER_S + 0.5);
}

static long parse_integer(const char *option, const char *text, long least, long most)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < least || value > most)
		fail(2, "%s %s: not a whole number from %ld to %ld", option, text, least, most);
	return value;
}

static struct address parse_address(const char *text)
{
	struct address address = { .is_ipv6 = strchr(text, ':') != NULL };

	if (inet_pton(address.is_ipv6 ? AF_INET6 : AF_INET, text, address.word) != 1)
		fail(2, "--dst %s: not an IP address", text);
	return address;
}

static struct options parse_options(int argc, char **argv)
{
	enum { INTERVAL = 1, OUT, TIMES, DST, DPORT, MEMORY, TOS, UNTIL_PID, HELP };
	static const struct option known[] = {
		{ "interval", required_argument, NULL, INTERVAL },
		{ "out", required_argument, NULL, OUT },
		{ "times", required_argument, NULL, TIMES },
		{ "dst", required_argument, NULL, DST },
		{ "dport", required_argument, NULL, DPORT },
		{ "memory", no_argument, NULL, MEMORY },
		{ "tos", no_argument, NULL, TOS },
		{ "until-pid", required_argument, NULL, UNTIL_PID },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct options options = {
		.extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1) |
			      1 << (INET_DIAG_CONG - 1),
	};
	int which;

	while ((which = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (which) {
		case INTERVAL:
			options.interval_ns = parse_seconds(optarg);
			break;
		case OUT:
			options.out_path = optarg;
			break;
		case TIMES:
			options.times_path = optarg;
			break;
		case DST:
			if (options.dst_count == MAX_ADDRESSES)
				fail(2, "more than %d --dst", MAX_ADDRESSES);
			options.dst[options.dst_count++] = parse_address(optarg);
			break;
		case DPORT:
			options.dport = htons((uint16_t)parse_integer("--dport", optarg, 1, 65535));
			break;
		case MEMORY:
			options.extensions |= 1 << (INET_DIAG_SKMEMINFO - 1);
			options.extensions |= 1 << (INET_DIAG_MEMINFO - 1);
			break;
		case TOS:
			options.extensions |= 1 << (INET_DIAG_TOS - 1);
			options.extensions |= 1 << (INET_DIAG_TCLASS - 1);
			break;
		case UNTIL_PID:
			options.until_pid = (pid_t)parse_integer("--until-pid", optarg, 1, 1 << 30);
			break;
		case HELP:
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (optind < argc || !options.interval_ns || !options.out_path || !options.times_path) {
		fputs(usage, stderr);
		exit(2);
	}
	return options;
}

static bool is_wanted(const struct options *options, const struct inet_diag_msg *socket_seen)
{
	static const uint32_t mapped_prefix[3] = { 0, 0, 0 };
	unsigned int i;

	if (options->dport && socket_seen->id.idiag_dport != options->dport)
		return false;
	if (!options->dst_count)
		return true;
	for (i = 0; i < options->dst_count; i++) {
		const struct address *dst = &options->dst[i];
		const uint32_t *seen = socket_seen->id.idiag_dst;

		if (socket_seen->idiag_family == AF_INET) {
			if (!dst->is_ipv6 && seen[0] == dst->word[0])
				return true;
		} else if (dst->is_ipv6) {
			if (!memcmp(seen, dst->word, sizeof(dst->word)))
				return true;
		} else if (!memcmp(seen, mapped_prefix, 8) && seen[2] == htonl(0xffff) &&
			   seen[3] == dst->word[0]) {
			/* a server that listens on IPv6 sees an IPv4 peer so */
			return true;
		}
	}
	return false;
}

static void append(struct sample *sample, const void *bytes, size_t length)
{
	if (sample->length + length > sample->room) {
		sample->room = 2 * (sample->length + length) + 65536;
		sample->bytes = realloc(sample->bytes, sample->room);
		if (!sample->bytes)
			fail(1, "out of memory");
	}
	memcpy(sample->bytes + sample->length, bytes, length);
	sample->length += length;
}

/* Ask for all connections of a family. False: this kernel doesn't know the family. */
static bool dump_family(int netlink_fd, int family, const struct options *options,
			struct sample *sample)
{
	static char buffer[1 << 16] __attribute__((aligned(8)));
	static uint32_t sequence;
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {
		.header = {
			.nlmsg_len = sizeof(message),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = ++sequence,
		},
		.request = {
			.sdiag_family = (uint8_t)family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = options->extensions,
			.idiag_states = connected_states,
		},
	};

	if (send(netlink_fd, &message, sizeof(message), 0) != sizeof(message))
		fail(1, "can't ask the kernel for its sockets: %s", strerror(errno));

	for (;;) {
		struct nlmsghdr *header = (struct nlmsghdr *)buffer;
		ssize_t received = recv(netlink_fd, buffer, sizeof(buffer), 0);
		int left;

		if (received < 0 && errno == EINTR)
			continue;
		if (received <= 0)
			fail(1, "no answer about sockets: %s", strerror(errno));
		for (left = (int)received; NLMSG_OK(header, (unsigned int)left);
		     header = NLMSG_NEXT(header, left)) {
			if (header->nlmsg_seq != sequence)
				continue;
			if (header->nlmsg_type == NLMSG_DONE)
				return true;
			if (header->nlmsg_type == NLMSG_ERROR) {
				const struct nlmsgerr *error = NLMSG_DATA(header);

				if (error->error == -ENOENT)
					return false;
				fail(1, "the kernel doesn't list its sockets: %s",
				     strerror(-error->error));
			}
			if (!is_wanted(options, NLMSG_DATA(header)))
				continue;
			append(sample, header, NLMSG_ALIGN(header->nlmsg_len));
			sample->sockets++;
		}
	}
}

static void write_all(int fd, const char *path, const char *bytes, size_t length)
{
	while (length) {
		ssize_t written = write(fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			fail(1, "can't write %s: %s", path, strerror(errno));
		bytes += written;
		length -= (size_t)written;
	}
}

static int open_output(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		fail(1, "can't create %s: %s", path, strerror(errno));
	return fd;
}

int main(int argc, char **argv)
{
	const struct options options = parse_options(argc, argv);
	const struct nlmsghdr done = { .nlmsg_len = sizeof(done), .nlmsg_type = NLMSG_DONE };
	const struct sigaction stop = { .sa_handler = on_stop };
	struct sample sample = { 0 };
	/* Without IPv6 there are no such sockets, and no need to ask. */
	bool ask_ipv4 = true, ask_ipv6 = access("/proc/net/if_inet6", F_OK) == 0;
	int netlink_fd, out_fd, times_fd;
	struct timespec now;
	int64_t next_ns;

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);

	netlink_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (netlink_fd < 0)
		fail(1, "this kernel has no sock_diag: %s", strerror(errno));
	out_fd = open_output(options.out_path);
	times_fd = open_output(options.times_path);

	/* The kernel wakes ordinary programs up to 50 us late, to wake several at once. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	next_ns = now.tv_sec * NS_PER_S + now.tv_nsec;

	while (!stopped && !(options.until_pid && kill(options.until_pid, 0) && errno == ESRCH)) {
		char line[64];
		int line_length;
		struct timespec wake;

		sample.length = 0;
		sample.sockets = 0;
		clock_gettime(CLOCK_REALTIME, &now);
		if (ask_ipv4)
			ask_ipv4 = dump_family(netlink_fd, AF_INET, &options, &sample);
		if (ask_ipv6)
			ask_ipv6 = dump_family(netlink_fd, AF_INET6, &options, &sample);
		if (!ask_ipv4 && !ask_ipv6)
			fail(1, "this kernel doesn't list TCP sockets (CONFIG_INET_TCP_DIAG)");

		/* Messages first: a time without its messages would shift all that follow. */
		write_all(out_fd, options.out_path, sample.bytes, sample.length);
		line_length = snprintf(line, sizeof(line), "%lld.%09ld %u\n", (long long)now.tv_sec,
				       now.tv_nsec, sample.sockets);
		write_all(times_fd, options.times_path, line, (size_t)line_length);

		/* A sampler that was held up takes up its rhythm again; it doesn't catch up. */
		clock_gettime(CLOCK_MONOTONIC, &now);
		do {
			next_ns += options.interval_ns;
		} while (next_ns <= now.tv_sec * NS_PER_S + now.tv_nsec);
		wake = (struct timespec){ .tv_sec = next_ns / NS_PER_S, .tv_nsec = next_ns % NS_PER_S };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
	}

	write_all(out_fd, options.out_path, (const char *)&done, sizeof(done));
	return 0;
}
