/* Time, small files, and what /proc says of processes. */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t ms_of(clockid_t clock)
{
	struct timespec t = {0, 0};
	(void)clock_gettime(clock, &t); /* cannot fail for these two */
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t now_ms(void)
{
	return ms_of(CLOCK_REALTIME);
}

int64_t mono_ms(void)
{
	return ms_of(CLOCK_MONOTONIC);
}

ssize_t read_some(int fd, void *data, size_t length)
{
	ssize_t n;
	do n = read(fd, data, length);
	while (n < 0 && errno == EINTR);
	return n;
}

int write_all(int fd, const void *data, size_t length)
{
	const char *at = data;
	while (length > 0) {
		ssize_t n = write(fd, at, length);
		if (n < 0 && errno == EINTR) continue;
		if (n < 0) return -1;
		at += n;
		length -= (size_t)n;
	}
	return 0;
}

int put_file(int dir, const char *name, const void *data, size_t length)
{
	char next[32];
	snprintf(next, sizeof next, "%s.new", name);
	int fd = openat(dir, next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) return -1;
	int failed = write_all(fd, data, length);
	if (failed == 0) failed = renameat(dir, next, dir, name);
	int error = errno;
	if (failed != 0) (void)unlinkat(dir, next, 0);
	(void)close(fd);
	errno = error;
	return failed;
}

int empty_folder(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) return errno == ENOENT ? 0 : -1;
	DIR *folder = fdopendir(fd);
	if (!folder) {
		(void)close(fd);
		return -1;
	}
	int failed = 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
		if (unlinkat(fd, entry->d_name, 0) != 0 && errno != ENOENT) failed = -1;
	}
	(void)closedir(folder);
	return failed;
}

/* The text of a file in /proc, or nothing. */
static size_t read_proc(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read_some(fd, text, size - 1);
	if (fd >= 0) (void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

void boot_id(char *text, size_t size)
{
	read_proc("/proc/sys/kernel/random/boot_id", text, size);
	text[strspn(text, "0123456789abcdefABCDEF-")] = '\0';
}

uint64_t pid_namespace(void)
{
	struct stat st;
	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* A field of /proc/PID/stat by its number in proc(5), from 3 on: the second, a name in parentheses, may hold anything. */
static uint64_t stat_field(const char *pid, int number)
{
	char path[48], text[1024];
	snprintf(path, sizeof path, "/proc/%.32s/stat", pid);
	if (read_proc(path, text, sizeof text) == 0) return 0;
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < number; field++) at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t start_time(pid_t pid)
{
	char name[16] = "self";
	if (pid != 0) snprintf(name, sizeof name, "%d", (int)pid);
	return stat_field(name, 22);
}

bool kill_children(int signal)
{
	DIR *proc = opendir("/proc");
	if (!proc) return false;
	pid_t self = getpid();
	for (struct dirent *entry; (entry = readdir(proc));) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
		/* A child's number is its own until it is waited for, which only this process does. */
		if (stat_field(entry->d_name, 4) == (uint64_t)self) (void)kill((pid_t)atoi(entry->d_name), signal);
	}
	(void)closedir(proc);
	return true;
}
