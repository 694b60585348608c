/*
 * A child in a process group of its own, with the signals as a program expects to find them and no open files but the three. It dies
 * with its parent, and waits at a gate before it executes anything.
 */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Blocked, not ignored: a child of ours must not lose one between its fork and its execve. */
void own_signals(void)
{
	sigset_t all;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) != 0) abort();
	for (int number = 1; number < NSIG; number++) (void)signal(number, SIG_DFL);
}

int signal_fd(const int *signals, size_t count)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < count; i++) sigaddset(&set, signals[i]);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static _Noreturn void fail(int to, const char *stage)
{
	struct failure failure = {.stage = stage, .error = errno};
	(void)write_all(to, &failure, sizeof failure);
	_exit(127);
}

/* Returns only if it failed, with errno. */
static void execute(char **argv)
{
	extern char **environ;
	const char *name = argv[0], *path = getenv("PATH");
	char file[4096];
	bool denied = false;
	if (strchr(name, '/')) {
		execve(name, argv, environ);
		return;
	}
	errno = ENOENT;
	if (*name == '\0') return;
	if (!path) path = "/usr/local/bin:/usr/bin:/bin";
	for (const char *at = path;; at++) {
		size_t length = strcspn(at, ":");
		int used = snprintf(file, sizeof file, "%.*s%s%s", (int)length, at, length > 0 ? "/" : "", name);
		at += length;
		if (used > 0 && (size_t)used < sizeof file) {
			execve(file, argv, environ);
			if (errno == EACCES) denied = true;
			else if (errno != ENOENT && errno != ENOTDIR && errno != ENODEV && errno != ESTALE) return;
		}
		if (*at == '\0') break;
	}
	errno = denied ? EACCES : ENOENT;
}

static void become(const struct command *command, int failure)
{
	if (command->uid < 0 && command->gid < 0) return;
	bool same = (command->uid < 0 || command->uid == (int64_t)geteuid()) && (command->gid < 0 || command->gid == (int64_t)getegid());
	/* Who already is that user need not be allowed to change. */
	if (setgroups(0, NULL) != 0 && !(errno == EPERM && same)) fail(failure, "setgroups");
	if (command->gid >= 0 && setgid((gid_t)command->gid) != 0) fail(failure, "setgid");
	if (command->uid >= 0 && setuid((uid_t)command->uid) != 0) fail(failure, "setuid");
}

static void die_with(pid_t parent, int failure)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(failure, "prctl");
	if (getppid() != parent) _exit(127);
}

static _Noreturn void run_child(const struct command *command, pid_t parent, int gate, int failure)
{
	char byte;
	sigset_t none;
	sigemptyset(&none);
	if (setpgid(0, 0) != 0) fail(failure, "setpgid");
	if (sigprocmask(SIG_SETMASK, &none, NULL) != 0) fail(failure, "sigprocmask");
	/* Nothing comes, and never will, if the parent is dead. */
	if (read_some(gate, &byte, 1) != 1) _exit(127);
	if (command->in >= 0 && dup2(command->in, 0) < 0) fail(failure, "dup2");
	if (command->out >= 0 && dup2(command->out, 1) < 0) fail(failure, "dup2");
	if (command->err >= 0 && dup2(command->err, 2) < 0) fail(failure, "dup2");
	if (command->nice != INT64_MIN && setpriority(PRIO_PROCESS, 0, (int)command->nice) != 0) fail(failure, "nice");
	become(command, failure);
	/* After that: a change of user clears it. */
	die_with(parent, failure);
	if (command->cwd && chdir(command->cwd) != 0) fail(failure, "chdir");
	execute(command->argv);
	fail(failure, "exec");
}

int spawn(struct child *child, const struct command *command)
{
	int gate[2], failure[2], error;
	if (pipe2(gate, O_CLOEXEC) != 0) return -1;
	if (pipe2(failure, O_CLOEXEC) != 0) goto no_failure;
	pid_t parent = getpid(), pid = fork();
	if (pid < 0) goto no_fork;
	if (pid == 0) {
		(void)close(gate[1]);
		(void)close(failure[0]);
		run_child(command, parent, gate[0], failure[1]);
	}
	(void)setpgid(pid, pid); /* the child does it too: whoever is first */
	(void)close(gate[0]);
	(void)close(failure[1]);
	(void)fcntl(failure[0], F_SETFL, O_NONBLOCK);
	*child = (struct child){pid, gate[1], failure[0]};
	return 0;
no_fork:
	error = errno;
	(void)close(failure[0]);
	(void)close(failure[1]);
	errno = error;
no_failure:
	error = errno;
	(void)close(gate[0]);
	(void)close(gate[1]);
	errno = error;
	return -1;
}

void let_go(struct child *child)
{
	(void)write_all(child->gate, "", 1); /* fails only if the child is dead */
	(void)close(child->gate);
	child->gate = -1;
}
