/* For tcpdump in an ordinary user's namespaces, where root is the only user that there is (LD_PRELOAD, by scripts/host/emulated/tcpdump).
 *
 * As root, Debian's tcpdump becomes the user tcpdump before it captures, and gives up where that can't be done. In a user
 * namespace it can't: nobody but root is mapped, and setgroups(2) is denied (user_namespaces(7)). Nothing is lost by
 * staying root there, since this root has the rights of the ordinary user who started the run. So these three succeed
 * without doing anything. */
#include <grp.h>
#include <sys/types.h>
#include <unistd.h>

int initgroups(const char *user, gid_t group) {
    (void)user, (void)group;
    return 0;
}

int setgid(gid_t group) {
    (void)group;
    return 0;
}

int setuid(uid_t user) {
    (void)user;
    return 0;
}
