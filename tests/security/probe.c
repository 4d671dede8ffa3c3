// What somebody could do who has taken over the virtual kernel's own process: this program raises the kernel's wall
// (arch/um/os-Linux/wall.c, out of the patch) around itself, and then tries what a process of this machine may.
//
//     probe READ WRITE OUTSIDE PORT SOCKET_NAME VICTIM WALL    prints "NAME: held" or "NAME: OUT" for each
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <netinet/in.h>
#include <unistd.h>
#include <utime.h>

// The kernel's side of the patch.
extern int wall_takes_process(void);
extern int setup_wall(char *line, int *add);

static const char *outside;
static char path[4096];

static const char *in(const char *folder, const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void say(const char *name, int is_out)
{
	printf("%s: %s\n", name, is_out ? "OUT" : "held");
	fflush(stdout);
}

#define TRY(name, call) say(name, (long)(call) >= 0)
#define MAY(name, call) printf("%s: %s\n", name, (long)(call) >= 0 ? "may" : strerror(errno))

static int reads(const char *file)
{
	char c;
	int fd = open(file, O_RDONLY);

	return fd < 0 ? -1 : (int)read(fd, &c, 1);
}

static int connects(int kind, const char *name, int port)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(kind, kind == AF_INET && !port ? SOCK_DGRAM : SOCK_STREAM, 0);

	if (fd < 0)
		return -1;
	if (kind == AF_INET)
		return connect(fd, (void *)&address, sizeof(address));
	if (name[0] == '@')
		strcpy(un.sun_path + 1, name + 1);
	else
		strcpy(un.sun_path, name);
	return connect(fd, (void *)&un, name[0] == '@' ? offsetof(struct sockaddr_un, sun_path) + strlen(name) : sizeof(un));
}

static int in_child(void *unused)
{
	(void)unused;
	say("a child: read outside", reads(in(outside, "secret")) >= 0);
	say("a child: a socket", socket(AF_INET, SOCK_STREAM, 0) >= 0);
	return 0;
}

int main(int argc, char **argv)
{
	const char *read_folder = argv[1], *write_folder = argv[2];
	int port = atoi(argv[4]), victim = atoi(argv[6]), add = 1, status, pair[2], landlock = argc > 8;
	static char stack[65536], buffer[64], abstract[128];
	struct iovec here = {buffer, sizeof(buffer)}, there = {(void *)argv, sizeof(buffer)};
	int before = open(in(argv[3], ""), O_RDONLY | O_DIRECTORY);

	outside = argv[3];
	snprintf(abstract, sizeof(abstract), "@%s", argv[5]);
	setup_wall(argv[7], &add);
	wall_takes_process();

	// What it was given, it has.
	MAY("read", reads(in(read_folder, "file")));
	MAY("write", open(in(write_folder, "new"), O_CREAT | O_RDWR, 0600));
	MAY("stream pair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	MAY("thread", clone(in_child, stack + sizeof(stack), SIGCHLD, NULL));
	wait(&status);

	if (landlock) {
		// Landlock's part: files, and processes and sockets outside.
		TRY("read outside", reads(in(outside, "secret")));
		TRY("read /etc/passwd", reads("/etc/passwd"));
		TRY("read /proc", reads("/proc/version"));
		TRY("list outside", open(outside, O_RDONLY | O_DIRECTORY));
		TRY("read by a descriptor of before", openat(before, "secret", O_RDONLY));
		TRY("create outside", open(in(outside, "made"), O_CREAT | O_RDWR, 0600));
		TRY("write outside", open(in(outside, "secret"), O_WRONLY));
		TRY("truncate outside", truncate(in(outside, "secret"), 0));
		TRY("write what is to be read", open(in(read_folder, "file"), O_WRONLY));
		TRY("remove outside", unlink(in(outside, "secret")));
		TRY("mkdir outside", mkdir(in(outside, "folder"), 0700));
		char from[4096];
		strcpy(from, in(write_folder, "new"));
		TRY("move out", rename(from, in(outside, "new")));
		TRY("link out", link(from, in(outside, "new")));
		TRY("signal a process", kill(victim, SIGTERM));
		TRY("signal the parent", kill(getppid(), 0));
		TRY("run a program", syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, NULL, 0));
	}
	// The filter's part, with Landlock or without.
	TRY("a TCP connection", connects(AF_INET, NULL, port));
	TRY("UDP", connects(AF_INET, NULL, 0));
	TRY("an abstract socket", connects(AF_UNIX, abstract, 0));
	TRY("a path's socket", connects(AF_UNIX, in(outside, "socket"), 0));
	TRY("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
	TRY("a datagram pair", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	TRY("trace", ptrace(PTRACE_ATTACH, victim, 0, 0));
	TRY("another's memory", process_vm_readv(victim, &here, 1, &there, 1, 0));
	TRY("mount", mount("none", "/mnt", "tmpfs", 0, NULL));
	TRY("new namespaces", unshare(CLONE_NEWUSER));
	TRY("new namespaces by clone", clone(in_child, stack + sizeof(stack), CLONE_NEWUSER | SIGCHLD, NULL));
	TRY("new namespaces by clone3", syscall(SYS_clone3, NULL, 0));
	TRY("set namespaces", setns(before, 0));
	TRY("change root", chroot(outside));
	TRY("a symbolic link", symlink("/etc", in(write_folder, "link")));
	TRY("a device", mknod(in(write_folder, "device"), S_IFCHR | 0666, 0x103));
	TRY("a set-user-id program", open(in(write_folder, "as-you"), O_CREAT | O_RDWR, 06755));
	TRY("one by openat", openat(AT_FDCWD, in(write_folder, "as-you"), O_CREAT | O_RDWR, 04755));
	TRY("one by fchmod", fchmod(open(in(write_folder, "new"), O_RDWR), 06755));
	TRY("modes of what is to be read", fchmod(open(in(read_folder, "file"), O_RDONLY), 0777));
	TRY("its owner", fchown(open(in(read_folder, "file"), O_RDONLY), 65534, 65534));
	TRY("its attributes", ioctl(open(in(read_folder, "file"), O_RDONLY), 0x40086602UL /* FS_IOC_SETFLAGS */, buffer));
	TRY("freeze the file system", ioctl(open(write_folder, O_RDONLY), 0xc0045877UL /* FIFREEZE */, 0));
	TRY("truncate by path", truncate(in(outside, "secret"), 0));
	TRY("a session of its own", setsid());
	TRY("a group of its own", setpgid(0, 0));
	TRY("chmod by path", chmod(in(outside, "secret"), 0777));
	TRY("chmod at", fchmodat(AT_FDCWD, in(outside, "secret"), 0777, 0));
	TRY("chown by path", chown(in(outside, "secret"), 0, 0));
	TRY("times by path", utimensat(AT_FDCWD, in(outside, "secret"), NULL, 0));
	TRY("attributes by path", setxattr(in(outside, "secret"), "user.x", "x", 1, 0));
	TRY("execve", execve("/bin/true", argv, NULL));
	TRY("a program in memory", memfd_create("x", 0));
	TRY("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
	TRY("bpf", syscall(SYS_bpf, 0, NULL, 0));
	TRY("perf", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
	TRY("keys", syscall(SYS_add_key, "user", "x", "x", 1, -2));
	TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
	TRY("open by handle", syscall(SYS_open_by_handle_at, before, NULL, 0));
	TRY("another's descriptors", syscall(434 /* pidfd_open */, victim, 0));
	TRY("change user", setuid(getuid()));
	TRY("priorities", setpriority(PRIO_PROCESS, victim, 0));
	TRY("limits", syscall(SYS_prlimit64, victim, RLIMIT_NOFILE, NULL, NULL));
	TRY("a module", syscall(SYS_init_module, NULL, 0, ""));
	TRY("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
	TRY("the 32-bit door", ({ long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); r; }));
	puts("all tried");
	return 0;
}
