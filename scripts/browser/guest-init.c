// The first process of the browser's machine. It mounts what programs need, says that it is ready, and
// waits for the page: a header of 512 bytes ("run SEED READER_US" or "live SEED READER_US NODE..."), then a tar
// file, unpacked at the root. READER_US is how often a receiving program gets its data. It runs /run/measuretwice/experiment.sh and hands back that folder as a tar file; or, live,
// runs the same script, which only prepares, and opens a shell on a serial line for each node.
//
// The machine is saved while it waits, so that all before that is paid once, by who builds it.
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSIDE "/run/measuretwice"
#define HEADER_BYTES 512
#define MAX_NODES 3
// What the kernel keeps for itself while all other memory is written over.
#define SPARED_BYTES (6 << 20)

static char *const environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				    "HOME=/tmp", "LC_ALL=C", "TERM=linux", NULL};

static void tell(const char *text)
{
	int host = open("/dev/hostevent", O_WRONLY);

	(void)!write(host, text, strlen(text));
	close(host);
}

static void __attribute__((noreturn)) fail(const char *what)
{
	char text[200];

	snprintf(text, sizeof(text), "failed: %s: %s", what, strerror(errno));
	tell(text);
	for (;;)
		pause();
}

static void make_mount(const char *where, const char *type, const char *options)
{
	if (mount("none", where, type, 0, options))
		fail(where);
}

static void prepare(void)
{
	if (mount("none", "/dev", "devtmpfs", 0, "mode=755"))
		for (;;)
			pause();
	make_mount("/proc", "proc", NULL);
	make_mount("/sys", "sysfs", NULL);
	(void)!symlink("/proc/self/fd", "/dev/fd");
	(void)!symlink("/proc/self/fd/0", "/dev/stdin");
	(void)!symlink("/proc/self/fd/1", "/dev/stdout");
	(void)!symlink("/proc/self/fd/2", "/dev/stderr");
	mkdir("/dev/shm", 01777);
	mkdir("/dev/pts", 0755);
	make_mount("/run", "tmpfs", "mode=755");
	make_mount("/tmp", "tmpfs", "mode=1777");
	make_mount("/dev/shm", "tmpfs", "mode=1777");
	make_mount("/dev/pts", "devpts", "mode=620,ptmxmode=666");
	mkdir("/run/netns", 0755);
	mkdir(INSIDE, 0755);
	mkdir("/run/lab", 0755);
}

// Free memory still holds what the start left there, which nobody would want to download.
static void clear_free_memory(void)
{
	struct sysinfo info;
	size_t length;
	void *memory;

	if (sysinfo(&info) || info.freeram <= SPARED_BYTES)
		return;
	length = info.freeram - SPARED_BYTES;
	memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return;
	memset(memory, 0, length);
	munmap(memory, length);
}

// Standard input, and where else output goes: NULL leaves it.
static pid_t start(char *const argv[], const char *in, const char *out, const char *terminal)
{
	pid_t child = fork();
	int file;

	if (child)
		return child;
	setsid();
	if (terminal) {
		file = open(terminal, O_RDWR);
		ioctl(file, TIOCSCTTY, 1);
		dup2(file, 0);
		dup2(file, 1);
		dup2(file, 2);
	} else {
		file = open(in, O_RDONLY);
		dup2(file, 0);
		file = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		dup2(file, 1);
		dup2(file, 2);
	}
	execve(argv[0], argv, environment);
	_exit(127);
}

static int run(char *const argv[], const char *in, const char *out)
{
	pid_t child = start(argv, in, out, NULL), ended;
	int status = 0;

	while ((ended = wait(&status)) != child && ended != -1)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void set_parameter(const char *place, const char *value)
{
	int file = open(place, O_WRONLY);

	if (file < 0 || write(file, value, strlen(value)) < 0)
		fail(place);
	close(file);
}

static void set_seed(const char *seed)
{
	int file;

	set_parameter("/sys/module/vtime/parameters/random_seed", seed);
	file = open("/dev/urandom", O_RDWR);
	if (file < 0 || ioctl(file, RNDRESEEDCRNG))
		fail("reseed");
	close(file);
}

static void __attribute__((noreturn)) serve_terminals(char *const nodes[], int count)
{
	pid_t shells[MAX_NODES] = {0}, ended = 0;
	char terminal[20];
	int node;

	set_parameter("/sys/module/kernel/parameters/vtime_live", "1");
	tell("live");
	// Whoever types "exit" gets a new shell.
	for (;; ended = wait(NULL)) {
		for (node = 0; node < count; node++) {
			if (shells[node] != ended)
				continue;
			snprintf(terminal, sizeof(terminal), "/dev/ttyS%d", node);
			shells[node] = start((char *[]){"/usr/bin/ip", "netns", "exec", nodes[node], "/bin/bash", "-i",
							NULL}, NULL, NULL, terminal);
		}
	}
}

int main(void)
{
	char header[HEADER_BYTES + 1] = "", mode[8] = "", seed[24] = "", reader_us[12] = "", names[MAX_NODES][24] = {""}, text[40];
	char *nodes[MAX_NODES];
	int host, got, count, filled = 0, status;

	prepare();
	clear_free_memory();
	tell("ready");
	host = open("/dev/host", O_RDONLY);
	while (filled < HEADER_BYTES && (got = read(host, header + filled, HEADER_BYTES - filled)) > 0)
		filled += got;
	close(host);
	count = sscanf(header, "%7s %23s %11s %23s %23s %23s", mode, seed, reader_us, names[0], names[1], names[2]) - 3;
	set_seed(seed);
	set_parameter("/sys/module/kernel/parameters/tcp_reader_interval_us", reader_us);
	if (run((char *[]){"/bin/busybox", "tar", "-xf", "-", "-C", "/", NULL}, "/dev/host", "/dev/null"))
		fail("unpack");
	tell("started");
	status = run((char *[]){"/bin/bash", INSIDE "/experiment.sh", NULL}, "/dev/null", INSIDE "/experiment.log");
	if (!strcmp(mode, "live") && !status) {
		for (got = 0; got < count; got++)
			nodes[got] = names[got];
		serve_terminals(nodes, count);
	}
	run((char *[]){"/bin/busybox", "tar", "-cf", "/dev/host", "-C", INSIDE, ".", NULL}, "/dev/null", "/dev/null");
	snprintf(text, sizeof(text), "done %d", status);
	tell(text);
	for (;;)
		pause();
}
