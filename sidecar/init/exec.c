/*
 * The wrapper of a run: claims it, executes the command, keeps its output and writes down how it ended, in the order of docs/sidecar.md.
 *
 * Guarantees: of all who are asked to execute a run, one does. The command does not outlive its wrapper. Memory is bounded.
 */
#include "init.h"
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* The most bytes of secrets; how often leftovers are killed, and for how long, as one may be stuck in the kernel. */
enum { SECRETS_BYTES = 1 << 20, KILL_EVERY_MS = 20, KILL_FOR_MS = 10000 };

struct output {
	int fd; /* -1: over */
	struct redactor redactor;
	struct lines lines;
};

static struct {
	const char *dir_path, *log_path, *signal_name;
	int64_t log_offset, log_head, log_tail, timeout, grace;
	struct command command;
	int cancel_signal;
} options = {
	.signal_name = "SIGTERM",
	.log_head = 1 << 20,
	.log_tail = 4 << 20,
	.timeout = -1,
	.grace = 30000,
	.command = {.uid = -1, .gid = -1, .nice = INT64_MIN, .in = -1, .out = -1, .err = -1},
};

static struct {
	int dir, signals;
	struct secrets secrets;
	struct log log;
	struct output outputs[2];
	struct child child;
	struct end end;
	bool is_over, is_alone; /* the command has ended; no descendant is left */
	bool is_cancelled;      /* somebody asked for it */
	int64_t timeout_at, kill_at, give_up_at;
	bool is_killed;
} run;

static int parse(int argc, char **argv)
{
	const int64_t most = INT64_MAX / 4, ids = UINT32_MAX - 1;
	const struct option_spec specs[] = {
		{.name = "--dir", .text = &options.dir_path},
		{.name = "--log", .text = &options.log_path},
		{.name = "--log-offset", .number = &options.log_offset, .most = most},
		{.name = "--log-head", .number = &options.log_head, .most = most},
		{.name = "--log-tail", .number = &options.log_tail, .most = most},
		{.name = "--timeout", .number = &options.timeout, .most = most},
		{.name = "--cancel-signal", .text = &options.signal_name},
		{.name = "--grace", .number = &options.grace, .most = most},
		{.name = "--cwd", .text = &options.command.cwd},
		{.name = "--uid", .number = &options.command.uid, .most = ids},
		{.name = "--gid", .number = &options.command.gid, .most = ids},
		{.name = "--nice", .number = &options.command.nice, .least = -20, .most = 19},
	};
	int used = parse_options(argc, argv, specs, sizeof specs / sizeof *specs);
	if (used < 0) return -1;
	options.cancel_signal = signal_number(options.signal_name);
	if (options.cancel_signal < 0) {
		say("error", "--cancel-signal is %s: the name of a signal, such as SIGTERM, is accepted", options.signal_name);
		return -1;
	}
	if (!options.dir_path || !options.log_path || used == argc) {
		say("error", "exec needs --dir DIR, --log DIR and, after --, a command");
		return -1;
	}
	options.command.argv = argv + used;
	return 0;
}

static int read_secrets(void)
{
	static unsigned char bytes[SECRETS_BYTES];
	size_t length = 0;
	for (;;) {
		ssize_t n = read_some(0, bytes + length, SECRETS_BYTES - length);
		if (n < 0) return -1;
		if (n == 0) return parse_secrets(&run.secrets, bytes, length);
		length += (size_t)n;
		if (length < SECRETS_BYTES) continue;
		errno = E2BIG;
		return -1;
	}
}

static void keep(void *to, const unsigned char *data, size_t length)
{
	struct output *output = to;
	log_write(&run.log, data, length);
	lines_push(&output->lines, data, length);
}

/* The write end, or -1. */
static int open_output(struct output *output, bool is_output)
{
	int ends[2];
	output->lines.is_output = is_output;
	if (redact_open(&output->redactor, &run.secrets, keep, output) != 0 || pipe2(ends, O_CLOEXEC) != 0) return -1;
	output->fd = ends[0];
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) return ends[1];
	(void)close(ends[1]);
	return -1;
}

static void close_output(struct output *output)
{
	if (output->fd < 0) return;
	redact_push(&output->redactor, 0, true);
	lines_end(&output->lines);
	(void)close(output->fd);
	output->fd = -1;
}

/* Reads once, `most` bytes at most; how many, 0 if there is nothing now. */
static size_t read_output(struct output *output, size_t most)
{
	ssize_t n = read_some(output->fd, redact_room(&output->redactor), most < READ_BYTES ? most : READ_BYTES);
	if (n > 0) redact_push(&output->redactor, (size_t)n, false);
	else if (n == 0 || errno != EAGAIN) close_output(output);
	return n > 0 ? (size_t)n : 0;
}

/* What is in the pipe now, and not what somebody who still has it writes meanwhile. */
static void drain(struct output *output)
{
	int waiting = 0;
	if (output->fd < 0) return;
	if (ioctl(output->fd, FIONREAD, &waiting) != 0) waiting = 0;
	for (size_t left = (size_t)waiting; left > 0 && output->fd >= 0;) {
		size_t n = read_output(output, left);
		if (n == 0) break;
		left -= n;
	}
	close_output(output);
}

static void not_executed(const char *stage, int error)
{
	run.end.cause = "notExecuted";
	run.end.failure = (struct failure){stage, error};
}

static void hear_signals(void)
{
	struct signalfd_siginfo info;
	while (read_some(run.signals, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo == SIGUSR1) run.is_cancelled = true;
}

static void begin_contract(const char *cause, int64_t now)
{
	if (run.end.failure.error == 0) run.end.cause = cause;
	run.kill_at = now + options.grace;
	(void)kill(-run.child.pid, options.cancel_signal);
}

static void start(void)
{
	int out = open_output(&run.outputs[0], true), err = out < 0 ? -1 : open_output(&run.outputs[1], false);
	int null = err < 0 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
	options.command.in = null;
	options.command.out = out;
	options.command.err = err;
	run.child.pid = -1;
	if (null < 0) not_executed("pipe", errno);
	else if (spawn(&run.child, &options.command) != 0) not_executed("fork", errno);
	if (out >= 0) (void)close(out);
	if (err >= 0) (void)close(err);
	if (null >= 0) (void)close(null);
	if (run.child.pid < 0) return;
	fault("forked");
	if (record_child(run.dir, run.child.pid) != 0) {
		not_executed("child", errno);
		(void)close(run.child.gate); /* so it ends without having executed anything */
	} else {
		fault("child.written");
		/* Cancelled before it began: it gets its signal at the gate, and has done nothing. */
		hear_signals();
		if (run.is_cancelled) begin_contract("cancelled", mono_ms());
		let_go(&run.child);
		fault("released");
	}
	if (options.timeout >= 0) run.timeout_at = mono_ms() + options.timeout;
}

static void reap(void)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR)) {
		if (pid != run.child.pid) continue;
		run.is_over = true;
		if (WIFEXITED(status)) run.end.code = WEXITSTATUS(status);
		else run.end.signal = WTERMSIG(status);
	}
	run.is_alone = pid < 0;
}

/* Whether it could be executed: told once, by the child. */
static void hear_failure(void)
{
	struct failure failure;
	ssize_t n = read_some(run.child.failure, &failure, sizeof failure);
	if (n < 0 && errno == EAGAIN) return;
	if (n == (ssize_t)sizeof failure && run.end.failure.error == 0) not_executed(failure.stage, failure.error);
	(void)close(run.child.failure);
	run.child.failure = -1;
}

/* One look at what is due. True when there is nothing more to wait for. */
static bool act(int64_t now)
{
	if (!run.is_over && run.kill_at == INT64_MAX) {
		if (run.is_cancelled) begin_contract("cancelled", now);
		else if (now >= run.timeout_at) begin_contract("timedOut", now);
	}
	if (!run.is_over && !run.is_killed && now >= run.kill_at) {
		(void)kill(-run.child.pid, SIGKILL);
		run.is_killed = true;
	}
	if (!run.is_over) return false;
	if (run.kill_at == INT64_MAX || run.is_alone) return true;
	if (now < run.kill_at) return false;
	if (run.give_up_at == INT64_MAX) run.give_up_at = now + KILL_FOR_MS;
	if (now < run.give_up_at && kill_children(SIGKILL)) return false;
	say("warn", "processes that the command left behind could not be killed");
	return true;
}

static int64_t next_due(int64_t now)
{
	int64_t due = notes_due();
	if (run.is_over) {
		int64_t kill_at = now < run.kill_at ? run.kill_at : now + KILL_EVERY_MS;
		return kill_at < due ? kill_at : due;
	}
	if (run.kill_at == INT64_MAX && run.timeout_at < due) due = run.timeout_at;
	if (!run.is_killed && run.kill_at < due) due = run.kill_at;
	return due;
}

static void follow(void)
{
	for (;;) {
		int64_t now = mono_ms();
		reap();
		if (act(now)) break;
		notes_write(run.dir, now, false);
		int64_t wait = next_due(now) - now;
		struct pollfd fds[] = {
			{.fd = run.signals, .events = POLLIN},
			{.fd = run.child.failure, .events = POLLIN},
			{.fd = run.outputs[0].fd, .events = POLLIN},
			{.fd = run.outputs[1].fd, .events = POLLIN},
		};
		if (poll(fds, 4, wait < 0 ? 0 : wait > INT_MAX ? INT_MAX : (int)wait) <= 0) continue;
		if (fds[0].revents) hear_signals();
		if (fds[1].revents) hear_failure();
		for (int i = 0; i < 2; i++)
			if (fds[2 + i].revents) (void)read_output(&run.outputs[i], READ_BYTES);
	}
	if (run.child.failure >= 0) hear_failure();
}

int run_exec(int argc, char **argv)
{
	const int signals[] = {SIGCHLD, SIGUSR1};
	if (parse(argc, argv) != 0) return EXIT_USAGE;
	fault_init();
	(void)setsid(); /* fails where it leads a group already, which will do */
	run.end = (struct end){.cause = "exited", .code = -1};
	run.timeout_at = run.kill_at = run.give_up_at = INT64_MAX;
	run.outputs[0].fd = run.outputs[1].fd = -1;
	if (read_secrets() != 0) return not_begun("secrets");
	run.dir = open(options.dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	run.signals = signal_fd(signals, 2);
	if (run.dir < 0 || run.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return not_begun(options.dir_path);
	int claimed = claim(run.dir);
	if (claimed != EXIT_DONE) return claimed;
	log_open(&run.log, options.log_path, (uint64_t)options.log_offset, (uint64_t)options.log_head, (uint64_t)options.log_tail);
	start();
	if (run.child.pid > 0) follow();
	fault("ended");
	for (int i = 0; i < 2; i++) drain(&run.outputs[i]);
	log_close(&run.log);
	run.end.log = run.log.offset;
	if (run.end.failure.error != 0) {
		run.end.code = -1;
		run.end.signal = 0;
	}
	if (empty_folder(run.dir, "params") != 0) say("warn", "secret parameters could not be removed: params: %s", errno_name(errno));
	notes_write(run.dir, mono_ms(), true);
	return record_end(run.dir, &run.end);
}
