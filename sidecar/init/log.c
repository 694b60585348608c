/*
 * The log in segments, each a file named by the offset of its first byte. What begins before `head` stays; of what follows, the last
 * `tail` bytes at least. What cannot be written is lost and leaves a gap between two segments; nobody waits for a disk to have room.
 */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 1 << 20, LEAST = 4096, RETRY_MS = 200 };

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void log_open(struct log *log, const char *path, uint64_t offset, uint64_t head, uint64_t tail)
{
	*log = (struct log){.fd = -1, .offset = offset, .head = head, .tail = tail, .segment = min(MOST, tail / 8)};
	if (log->segment < LEAST) log->segment = LEAST;
	if (mkdir(path, 0700) != 0 && errno != EEXIST) say("warn", "the log is lost: mkdir %s: %s", path, errno_name(errno));
	log->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Removes what is no longer needed, oldest first. */
static void prune(const struct log *log)
{
	for (;;) {
		uint64_t first = UINT64_MAX, bytes = 0, first_bytes = 0;
		int fd = openat(log->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *folder = fd < 0 ? NULL : fdopendir(fd);
		if (!folder) {
			if (fd >= 0) (void)close(fd);
			return;
		}
		for (struct dirent *entry; (entry = readdir(folder));) {
			struct stat st;
			if (strlen(entry->d_name) != 20 || strspn(entry->d_name, "0123456789") != 20) continue;
			uint64_t start = strtoull(entry->d_name, NULL, 10);
			if (start < log->head || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
			bytes += (uint64_t)st.st_size;
			if (start >= first) continue;
			first = start;
			first_bytes = (uint64_t)st.st_size;
		}
		(void)closedir(folder);
		if (first == UINT64_MAX || bytes - first_bytes < log->tail) return;
		char name[24];
		snprintf(name, sizeof name, "%020" PRIu64, first);
		if (unlinkat(log->dir, name, 0) != 0) return;
	}
}

static bool open_segment(struct log *log)
{
	char name[24];
	snprintf(name, sizeof name, "%020" PRIu64, log->offset);
	log->start = log->offset;
	log->fd = openat(log->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return log->fd >= 0;
}

void log_close(struct log *log)
{
	if (log->fd < 0) return;
	(void)close(log->fd);
	log->fd = -1;
	if (log->offset != log->start) return;
	char name[24];
	snprintf(name, sizeof name, "%020" PRIu64, log->start);
	(void)unlinkat(log->dir, name, 0);
}

void log_write(struct log *log, const unsigned char *data, size_t length)
{
	while (length > 0) {
		if (log->fd < 0 && (mono_ms() < log->retry_at || !open_segment(log))) break;
		uint64_t end = log->start < log->head ? min(log->head, log->start + MOST) : log->start + log->segment;
		ssize_t n = write(log->fd, data, min(length, end - log->offset));
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) break;
		data += n;
		length -= (size_t)n;
		log->offset += (uint64_t)n;
		if (log->offset < end) continue;
		log_close(log);
		prune(log);
	}
	if (length == 0) return;
	if (mono_ms() >= log->retry_at) log->retry_at = mono_ms() + RETRY_MS;
	log_close(log);
	log->offset += length;
}
