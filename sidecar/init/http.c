/* Just enough of an HTTP client to ask the agent something over STATE-DIR/control.sock. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int control_connect(const char *state_dir, bool wait)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int folder = -1, failed = -1;
	int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/control.sock", state_dir);
	if (length < 0 || (size_t)length >= sizeof address.sun_path) {
		/* Too long for an address: the same folder has a shorter name here. */
		folder = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (folder < 0) return -1;
		snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control.sock", folder);
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
	if (fd >= 0) failed = connect(fd, (struct sockaddr *)&address, sizeof address);
	int error = errno;
	if (folder >= 0) (void)close(folder);
	if (failed != 0 && fd >= 0) (void)close(fd);
	errno = error;
	return failed == 0 ? fd : -1;
}

int control_ask(int fd, const char *method, const char *path)
{
	char text[160];
	int length = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: shipmate\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", method, path);
	/* It fits into an empty socket: there are no short writes. */
	return send(fd, text, (size_t)length, MSG_NOSIGNAL) == length ? 0 : -1;
}

int http_status(const char *answer, size_t length)
{
	static const char pattern[] = "HTTP/1.1 000";
	for (size_t i = 0; i < length && i < 12; i++)
		if (pattern[i] == '0' ? answer[i] < '0' || answer[i] > '9' : answer[i] != pattern[i]) return -1;
	return length < 12 ? 0 : (answer[9] - '0') * 100 + (answer[10] - '0') * 10 + (answer[11] - '0');
}
