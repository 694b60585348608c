/* Words for people: one JSON line each on standard error, as the agent's own log has them, whole even where many write. */
#include "init.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void say(const char *level, const char *format, ...)
{
	char text[512], line[2048], at[32];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);

	int64_t now = now_ms();
	time_t seconds = (time_t)(now / 1000);
	struct tm tm;
	if (!gmtime_r(&seconds, &tm) || strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &tm) == 0) at[0] = '\0';
	int used = snprintf(line, sizeof line, "{\"level\":\"%s\",\"time\":\"%s.%03dZ\",\"name\":\"shipmate-init\",\"msg\":\"", level, at,
	                    (int)(now % 1000));
	size_t length = (size_t)used;
	for (const char *c = text; *c && length < sizeof line - 16; c++) {
		if (*c == '"' || *c == '\\') line[length++] = '\\';
		if ((unsigned char)*c < 0x20) length += (size_t)snprintf(line + length, 8, "\\u%04x", (unsigned)*c);
		else line[length++] = *c;
	}
	memcpy(line + length, "\"}\n", 3);
	(void)write_all(2, line, length + 3);
}

struct name {
	int number;
	const char *text;
};
#define N(name) {name, #name}

static const struct name errors[] = {
	N(E2BIG),   N(EACCES),  N(EAGAIN), N(EBADF),        N(EBUSY),   N(ECONNREFUSED), N(ECONNRESET), N(EDQUOT),  N(EEXIST),
	N(EFAULT),  N(EFBIG),   N(EINVAL), N(EIO),          N(EISDIR),  N(ELIBBAD),      N(ELOOP),      N(EMFILE),  N(EMLINK),
	N(ENFILE),  N(ENODEV),  N(ENOENT), N(ENAMETOOLONG), N(ENOEXEC), N(ENOMEM),       N(ENOSPC),     N(ENOSYS),  N(ENOTDIR),
	N(ENOTSUP), N(ENXIO),   N(EPERM),  N(EPIPE),        N(EPROTO),  N(EROFS),        N(ESRCH),      N(ESTALE),  N(ETIMEDOUT),
	N(ETXTBSY),
};

static const struct name signals[] = {
	N(SIGHUP),  N(SIGINT),  N(SIGQUIT), N(SIGILL),  N(SIGTRAP), N(SIGABRT), N(SIGBUS),  N(SIGFPE),    N(SIGKILL), N(SIGUSR1),
	N(SIGSEGV), N(SIGUSR2), N(SIGPIPE), N(SIGALRM), N(SIGTERM), N(SIGCHLD), N(SIGCONT), N(SIGSTOP),   N(SIGTSTP), N(SIGTTIN),
	N(SIGTTOU), N(SIGURG),  N(SIGXCPU), N(SIGXFSZ), N(SIGPROF), N(SIGIO),   N(SIGPWR),  N(SIGVTALRM), N(SIGSYS),  N(SIGWINCH),
};

/* The name of a number; one that has none is written as the prefix and itself, and stands until the next such call. */
static const char *name_of(const struct name *names, size_t count, const char *prefix, int number)
{
	static char text[24];
	for (size_t i = 0; i < count; i++)
		if (names[i].number == number) return names[i].text;
	snprintf(text, sizeof text, "%s%d", prefix, number);
	return text;
}

const char *errno_name(int error)
{
	return name_of(errors, sizeof errors / sizeof *errors, "errno ", error);
}

const char *signal_name(int number)
{
	return name_of(signals, sizeof signals / sizeof *signals, "SIG", number);
}

int signal_number(const char *name)
{
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (strcmp(signals[i].text, name) == 0) return signals[i].number;
	return -1;
}
