/*
 * The preStop hook of the sidecar's container: asks the agent, and waits for its answer as long as it takes; Kubernetes has the limit.
 * An agent that goes away meanwhile is asked again when it is back.
 */
#include "init.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/* The status of the agent's answer; 0 if there was none. */
static int ask(const char *state_dir, bool *was_there)
{
	char answer[12];
	size_t length = 0;
	int status = 0, fd = control_connect(state_dir, true);
	*was_there = fd >= 0;
	if (fd < 0) return 0;
	if (control_ask(fd, "POST", "/prestop") == 0) {
		while (status == 0) {
			ssize_t n = read_some(fd, answer + length, sizeof answer - length);
			if (n <= 0) break;
			length += (size_t)n;
			status = http_status(answer, length);
		}
	}
	(void)close(fd);
	return status;
}

int run_prestop(int argc, char **argv)
{
	const char *state_dir = NULL;
	int64_t patience = 10000; /* --retry-for is for the tests */
	const struct option_spec specs[] = {
		{.name = "--state-dir", .text = &state_dir},
		{.name = "--retry-for", .number = &patience, .most = INT32_MAX},
	};
	if (parse_options(argc, argv, specs, 2) != argc || !state_dir) {
		say("error", "prestop needs --state-dir DIR, and nothing else");
		return EXIT_USAGE;
	}
	for (int64_t seen = mono_ms();;) {
		bool was_there;
		int status = ask(state_dir, &was_there);
		if (status == 200) return EXIT_DONE;
		if (status != 0) {
			say("error", "the agent answered POST /prestop with %d", status);
			return EXIT_FAILED;
		}
		if (was_there) seen = mono_ms();
		if (mono_ms() - seen >= patience) {
			say("error", "no agent answers on %s/control.sock: %s", state_dir, errno_name(errno));
			return EXIT_FAILED;
		}
		(void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	}
}
