// The first process inside the virtual kernel: mounts what programs need, runs one script,
// switches the machine off. The kernel passes two folders of the host: MT_FOLDER, the run's own
// (the only one that can be written to), and MT_ROOT, the checkout.
// They appear under /run, wherever they are on the host. All programs are those of the kernel's own
// root file system: nothing of the machine around it is seen.
//
// A program rather than a shell script: it is the same on every distribution (containers often
// lack poweroff), and each mount command saved is some milliseconds of every trial.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSIDE "/run/measuretwice"

static void off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void make_mount(const char *where, const char *type, const char *options, unsigned long flags)
{
	if (mount("none", where, type, flags, options) == 0)
		return;
	printf("guest-init: can't mount %s on %s: %s\n", type, where, strerror(errno));
	off();
}

static void mount_host(const char *variable, const char *where, unsigned long flags)
{
	const char *folder = getenv(variable);

	if (folder == NULL) {
		printf("guest-init: %s is not set\n", variable);
		off();
	}
	mkdir(where, 0755);
	make_mount(where, "hostfs", folder, flags);
}

int main(void)
{
	const char *script = getenv("MT_SCRIPT");
	pid_t child, ended;
	int status = 0;

	make_mount("/proc", "proc", NULL, 0);
	make_mount("/sys", "sysfs", NULL, 0);
	make_mount("/dev", "devtmpfs", "mode=755", 0);
	(void)!symlink("/proc/self/fd", "/dev/fd");
	(void)!symlink("/proc/self/fd/0", "/dev/stdin");
	(void)!symlink("/proc/self/fd/1", "/dev/stdout");
	(void)!symlink("/proc/self/fd/2", "/dev/stderr");
	mkdir("/dev/shm", 01777);
	mkdir("/dev/pts", 0755);
	make_mount("/run", "tmpfs", "mode=755", 0);
	make_mount("/tmp", "tmpfs", "mode=1777", 0);
	make_mount("/dev/shm", "tmpfs", "mode=1777", 0);
	make_mount("/dev/pts", "devpts", "mode=620,ptmxmode=666", 0);
	mkdir("/run/netns", 0755);
	mount_host("MT_FOLDER", INSIDE, 0);
	mount_host("MT_ROOT", "/run/lab", MS_RDONLY);

	child = fork();
	if (child == 0) {
		char *const argv[] = {"bash", (char *)(script ? script : INSIDE "/experiment.sh"), NULL};
		char *const envp[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				      "HOME=/tmp", "LC_ALL=C", "TERM=linux", NULL};
		int log = open(INSIDE "/experiment.log", O_WRONLY | O_CREAT | O_TRUNC, 0644);

		if (log >= 0) {
			dup2(log, 1);
			dup2(log, 2);
		}
		setsid();
		execve("/bin/bash", argv, envp);
		printf("guest-init: can't start bash: %s\n", strerror(errno));
		_exit(127);
	}
	while ((ended = wait(&status)) != child && ended != -1)
		;
	off();
}
