/*
 * PID 1 of the sidecar's container: starts the agent, starts it again when it ends or no longer answers, reaps every orphan, and passes
 * signals on. The wrappers of runs are left alone: they go on while agents come and go.
 */
#include "init.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_DELAY_MS = 100, LONGEST_DELAY_MS = 10000, FAILURES = 3 };

static struct {
	struct command command;
	const char *state_dir;
	int64_t every, within, from, steady;
} options = {
	.command = {.uid = -1, .gid = -1, .nice = INT64_MIN, .in = -1, .out = -1, .err = -1},
	.every = 5000,
	.within = 3000,
	.from = 60000,
	.steady = 10000,
};

static struct {
	struct child child; /* pid 0: none */
	int64_t started_at, start_at, delay;
	bool was_executed; /* at least once */
	bool has_failed;   /* this one could not be */
	bool is_replaced;  /* it was sent SIGHUP */
	bool is_ending;    /* it was sent SIGTERM or SIGINT */
	bool is_last;      /* it was started only to drain */
} agent = {.child = {.failure = -1, .gate = -1}, .delay = FIRST_DELAY_MS};

static struct {
	int fd; /* -1: none under way */
	int64_t at, until;
	char answer[12];
	size_t length;
	int failures;
	bool has_answered;
} check = {.fd = -1};

static const char *state_dir_of(char **argv)
{
	const char *found = NULL;
	for (; *argv; argv++) {
		if (strncmp(*argv, "--state-dir=", 12) == 0) found = *argv + 12;
		else if (strcmp(*argv, "--state-dir") == 0 && argv[1]) found = *++argv;
	}
	return found;
}

static int parse(int argc, char **argv)
{
	/* The defaults are the contract; the options are for the tests. */
	const struct option_spec specs[] = {
		{.name = "--livez-every", .number = &options.every, .least = 1, .most = INT32_MAX},
		{.name = "--livez-within", .number = &options.within, .least = 1, .most = INT32_MAX},
		{.name = "--livez-from", .number = &options.from, .most = INT32_MAX},
		{.name = "--steady", .number = &options.steady, .most = INT32_MAX},
	};
	int used = parse_options(argc, argv, specs, sizeof specs / sizeof *specs);
	if (used < 0) return -1;
	if (used == argc) {
		say("error", "supervise needs, after --, the agent's command line");
		return -1;
	}
	options.command.argv = argv + used;
	options.state_dir = state_dir_of(argv + used);
	if (!options.state_dir) say("warn", "the agent has no --state-dir: it is not asked whether it lives");
	return 0;
}

static void start_agent(int64_t now)
{
	if (agent.is_ending) {
		agent.is_last = true;
		(void)setenv("SHIPMATE_DRAIN", "1", 1);
	}
	agent.started_at = now;
	agent.is_replaced = agent.has_failed = false;
	check.at = now + options.every;
	check.failures = 0;
	check.has_answered = false;
	if (spawn(&agent.child, &options.command) == 0) {
		let_go(&agent.child);
		return;
	}
	agent.child.pid = 0;
	agent.start_at = now + LONGEST_DELAY_MS;
	say("error", "the agent cannot be started, trying again in 10 s: fork: %s", errno_name(errno));
}

static void hear_failure(void)
{
	struct failure failure;
	ssize_t n = read_some(agent.child.failure, &failure, sizeof failure);
	if (n < 0 && errno == EAGAIN) return;
	agent.has_failed = n == (ssize_t)sizeof failure;
	if (agent.has_failed) say("error", "%s: %s: %s", options.command.argv[0], failure.stage, errno_name(failure.error));
	else agent.was_executed = true;
	(void)close(agent.child.failure);
	agent.child.failure = -1;
}

static void close_check(void)
{
	if (check.fd >= 0) (void)close(check.fd);
	check.fd = -1;
}

/* What supervise exits with now, or -1: it goes on. */
static int agent_ended(int status, int64_t now)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	int64_t lived = now - agent.started_at;
	if (agent.child.failure >= 0) hear_failure();
	agent.child.pid = 0;
	close_check();
	if (agent.has_failed && !agent.was_executed) return EXIT_USAGE;
	if (agent.is_ending && (WIFEXITED(status) || agent.is_last)) return code;
	if (!agent.is_ending && !agent.has_failed && WIFEXITED(status) && code == EXIT_USAGE) {
		say("error", "the agent was called the wrong way (exit 2)");
		return EXIT_USAGE;
	}
	agent.start_at = now;
	if (lived >= options.steady) agent.delay = FIRST_DELAY_MS;
	else if (!agent.is_replaced && !agent.is_ending) {
		agent.start_at = now + agent.delay;
		agent.delay = agent.delay * 2 < LONGEST_DELAY_MS ? agent.delay * 2 : LONGEST_DELAY_MS;
	}
	say(agent.is_replaced ? "info" : "warn", "the agent ended (%s %d) after %lld ms; it is started again in %lld ms%s",
	    WIFEXITED(status) ? "exit" : "signal", WIFEXITED(status) ? code : WTERMSIG(status), (long long)lived,
	    (long long)(agent.start_at - now), agent.is_ending ? ", to drain" : "");
	return -1;
}

static int reap(int64_t now)
{
	int status, code = -1;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
		if (pid > 0 && pid == agent.child.pid) code = agent_ended(status, now);
	return code;
}

static void hear_signals(int fd, int64_t now)
{
	struct signalfd_siginfo info;
	while (read_some(fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGCHLD) continue;
		if (info.ssi_signo != SIGHUP) agent.is_ending = true;
		else if (agent.is_ending) continue;
		else agent.is_replaced = true;
		if (agent.child.pid > 0) (void)kill(agent.child.pid, (int)info.ssi_signo);
		else agent.start_at = now;
	}
}

static void check_done(bool is_alive, int64_t now)
{
	close_check();
	if (is_alive) {
		check.has_answered = true;
		check.failures = 0;
		return;
	}
	if (!check.has_answered && now - agent.started_at < options.from) return;
	if (++check.failures < FAILURES) return;
	check.failures = 0;
	say("warn", "the agent did not answer GET /livez %d times in a row: it is killed and started again", FAILURES);
	(void)kill(agent.child.pid, SIGKILL);
}

static void check_begin(int64_t now)
{
	check.at = now + options.every;
	check.until = now + options.within;
	check.length = 0;
	check.fd = control_connect(options.state_dir, false);
	if (check.fd < 0 || control_ask(check.fd, "GET", "/livez") != 0) check_done(false, now);
}

static void check_hear(int64_t now)
{
	ssize_t n = read_some(check.fd, check.answer + check.length, sizeof check.answer - check.length);
	if (n < 0 && errno == EAGAIN) return;
	if (n > 0) check.length += (size_t)n;
	int status = http_status(check.answer, check.length);
	if (n <= 0 || status != 0) check_done(status == 200, now);
}

/* What is due now; when the next thing is. */
static int64_t act(int64_t now)
{
	if (agent.child.pid == 0 && now >= agent.start_at) start_agent(now);
	if (agent.child.pid == 0) return agent.start_at;
	if (!options.state_dir) return INT64_MAX;
	if (check.fd >= 0 && now >= check.until) check_done(false, now);
	if (check.fd < 0 && now >= check.at) check_begin(now);
	return check.fd >= 0 ? check.until : check.at;
}

int run_supervise(int argc, char **argv)
{
	const int signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
	if (parse(argc, argv) != 0) return EXIT_USAGE;
	int fd = signal_fd(signals, 4);
	if (fd < 0 || (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)) {
		say("error", "supervise cannot begin: %s", errno_name(errno));
		return EXIT_FAILED;
	}
	for (;;) {
		int64_t now = mono_ms();
		int code = reap(now);
		if (code >= 0) return code;
		int64_t wait = act(now) - now;
		struct pollfd fds[] = {
			{.fd = fd, .events = POLLIN},
			{.fd = agent.child.failure, .events = POLLIN},
			{.fd = check.fd, .events = POLLIN},
		};
		if (poll(fds, 3, wait < 0 ? 0 : wait > INT_MAX ? INT_MAX : (int)wait) <= 0) continue;
		now = mono_ms();
		if (fds[0].revents) hear_signals(fd, now);
		if (fds[1].revents) hear_failure();
		if (fds[2].revents && check.fd >= 0) check_hear(now);
	}
}
