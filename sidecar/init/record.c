/* The claim of a run and the record of its end: each stands whole or not at all, and is on the disk before anybody acts on it. */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_BYTES = 512 };

/* exit.new, kept open: at the end nothing is needed that could be missing then, neither room on the disk nor a file to open. */
static int reserve = -1;

/* The file with this content, on the disk; -1 if that failed. */
static int create_synced(int dir, const char *name, int flags, const char *data, size_t length)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
	if (fd < 0) return -1;
	if (write_all(fd, data, length) == 0 && fsync(fd) == 0) return fd;
	int error = errno;
	(void)close(fd);
	errno = error;
	return -1;
}

/* Made under a name of its own and linked: who finds a claim finds all of it. */
static int make_claim(int dir)
{
	char line[256], boot[64], name[32];
	boot_id(boot, sizeof boot);
	int length = snprintf(line, sizeof line,
	                      "{\"by\":\"wrapper\",\"boot\":\"%s\",\"pidns\":%" PRIu64 ",\"pid\":%d,\"start\":%" PRIu64 ",\"at\":%" PRId64 "}\n",
	                      boot, pid_namespace(), (int)getpid(), start_time(0), now_ms());
	snprintf(name, sizeof name, "claim.%d", (int)getpid());
	(void)unlinkat(dir, name, 0);
	int fd = create_synced(dir, name, O_EXCL, line, (size_t)length);
	int failed = fd < 0 ? -1 : linkat(dir, name, dir, "claim", 0);
	int error = errno;
	if (fd >= 0) (void)close(fd);
	if (failed == 0) fault("claim.created");
	(void)unlinkat(dir, name, 0);
	errno = error;
	return failed == 0 ? fsync(dir) : -1;
}

int not_begun(const char *what)
{
	char line[512];
	const char *why = errno_name(errno);
	int length = snprintf(line, sizeof line, "%.400s: %s\n", what, why);
	(void)write_all(1, line, (size_t)length);
	say("error", "nothing was executed: %s: %s", what, why);
	return EXIT_UNCLAIMED;
}

int claim(int dir)
{
	char spaces[RECORD_BYTES];
	memset(spaces, ' ', sizeof spaces);
	fault("claim.before");
	if (faccessat(dir, "claim", F_OK, 0) == 0) return EXIT_CLAIMED;
	if (make_claim(dir) != 0) {
		if (errno == EEXIST) return EXIT_CLAIMED;
		return not_begun("claim");
	}
	fault("claim.synced");
	reserve = create_synced(dir, "exit.new", O_TRUNC, spaces, sizeof spaces);
	if (reserve < 0) return not_begun("exit.new");
	fault("exitnew.synced");
	return EXIT_DONE;
}

int record_child(int dir, pid_t pid)
{
	char line[96];
	int length = snprintf(line, sizeof line, "{\"pid\":%d,\"start\":%" PRIu64 "}\n", (int)pid, start_time(pid));
	return put_file(dir, "child", line, (size_t)length);
}

static int put_end(int dir, const char *text, bool *is_written)
{
	if (!*is_written) {
		if (lseek(reserve, 0, SEEK_SET) != 0 || write_all(reserve, text, RECORD_BYTES) != 0) return -1;
		fault("exit.written");
		if (fsync(reserve) != 0) return -1;
	}
	*is_written = true;
	fault("exit.synced");
	if (renameat(dir, "exit.new", dir, "exit") != 0) return -1;
	fault("exit.renamed");
	return fsync(dir);
}

int record_end(int dir, const struct end *end)
{
	char text[RECORD_BYTES], code[16] = "null", signal[32] = "null", error[96] = "null";
	if (end->code >= 0) snprintf(code, sizeof code, "%d", end->code);
	if (end->signal > 0) snprintf(signal, sizeof signal, "\"%s\"", signal_name(end->signal));
	if (end->failure.error != 0) snprintf(error, sizeof error, "\"%s: %s\"", end->failure.stage, errno_name(end->failure.error));
	memset(text, ' ', sizeof text);
	int length = snprintf(text, sizeof text,
	                      "{\"cause\":\"%s\",\"code\":%s,\"signal\":%s,\"error\":%s,\"at\":%" PRId64 ",\"log\":%" PRIu64 "}", end->cause,
	                      code, signal, error, now_ms(), end->log);
	text[length] = ' ';
	text[sizeof text - 1] = '\n';
	bool is_written = false, is_said = false;
	while (put_end(dir, text, &is_written) != 0) {
		if (errno != ENOSPC && errno != EDQUOT) {
			say("error", "the end of the command could not be written down: exit: %s: %.*s", errno_name(errno), length, text);
			return EXIT_UNRECORDED;
		}
		if (!is_said) say("warn", "the end of the command cannot be written down, trying again every second: exit: %s", errno_name(errno));
		is_said = true;
		(void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
	fault("exit.done");
	return EXIT_DONE;
}
