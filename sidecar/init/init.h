/*
 * shipmate-init: PID 1 of the sidecar's container (supervise), the wrapper of each run (exec), and its preStop hook (prestop). Under the name `shipmate`, by a
 * link, it is the command line of the sidecar's image, which has no shell to write one in.
 * What each promises stands in docs/sidecar.md. Linux, C11, nothing but libc.
 *
 * Every signal is blocked from the first instruction on and read from a signalfd: there are no handlers.
 */
#ifndef SHIPMATE_INIT_H
#define SHIPMATE_INIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_CLAIMED = 3, EXIT_UNCLAIMED = 4, EXIT_UNRECORDED = 5 };

/* The longest line of output that is looked at, and the most that one read takes. */
enum { LINE_BYTES = 64 * 1024, READ_BYTES = 64 * 1024 };

int run_exec(int argc, char **argv);
int run_supervise(int argc, char **argv);
int run_prestop(int argc, char **argv);
int run_command(int argc, char **argv);

/* say.c: words for people, one JSON line each on standard error, and the names of errors and signals. */
void say(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *errno_name(int error);
const char *signal_name(int number);
int signal_number(const char *name); /* -1: there is none of that name */

/* options.c: `--name value` pairs up to `--`. */
struct option_spec {
	const char *name;
	const char **text; /* one of the two is set */
	int64_t *number;
	int64_t least, most;
};
/* Index of the first argument after `--` (argc where there is no `--`), or -1 having said what is wrong. */
int parse_options(int argc, char **argv, const struct option_spec *specs, size_t count);

/* files.c: time, small files, and what /proc says. */
int64_t now_ms(void);
int64_t mono_ms(void);
ssize_t read_some(int fd, void *data, size_t length); /* read, over interruptions */
int write_all(int fd, const void *data, size_t length);
int put_file(int dir, const char *name, const void *data, size_t length); /* replaced by rename, not synced */
int empty_folder(int dir, const char *name);
void boot_id(char *text, size_t size);
uint64_t pid_namespace(void);
uint64_t start_time(pid_t pid); /* 0 is the caller itself */
bool kill_children(int signal); /* every child of the caller; false where /proc cannot tell */

/* redact.c: a stream in which no byte of a secret is shown. */
struct secrets {
	struct secret {
		const unsigned char *bytes;
		size_t length;
	} * list;
	size_t count;
	size_t longest;
	bool first[256]; /* a secret begins with this byte */
};
typedef void sink_fn(void *to, const unsigned char *data, size_t length);
struct redactor {
	const struct secrets *secrets;
	unsigned char *buffer;
	size_t held;    /* bytes at its front that are not decided yet */
	size_t covered; /* of these, how many belong to an occurrence whose *** is out */
	sink_fn *sink;
	void *to;
};
int parse_secrets(struct secrets *secrets, const unsigned char *bytes, size_t length); /* `bytes` must stay */
int redact_open(struct redactor *r, const struct secrets *secrets, sink_fn *sink, void *to);
unsigned char *redact_room(struct redactor *r); /* where the next READ_BYTES go */
void redact_push(struct redactor *r, size_t length, bool end);

/* json.c */
enum { JSON_PROGRESS = 1, JSON_RESULT = 2 };
int json_keys(const unsigned char *text, size_t length); /* -1: not a JSON object of at most LINE_BYTES */

/* lines.c: what the lines of the output mean. */
struct lines {
	unsigned char bytes[LINE_BYTES];
	size_t length;
	bool too_long;
	bool is_output; /* standard output: may speak of progress and result */
};
void lines_push(struct lines *lines, const unsigned char *data, size_t length);
void lines_end(struct lines *lines);
int64_t notes_due(void); /* when notes_write has something to do; INT64_MAX: not before the next line */
void notes_write(int dir, int64_t now, bool at_the_end);

/* log.c: the log in segments. */
struct log {
	int dir;
	int fd; /* the open segment, or -1 */
	uint64_t offset, start;
	uint64_t head, tail, segment;
	int64_t retry_at;
};
void log_open(struct log *log, const char *path, uint64_t offset, uint64_t head, uint64_t tail);
void log_write(struct log *log, const unsigned char *data, size_t length);
void log_close(struct log *log);

/* spawn.c: a child in a process group of its own that dies with its parent. */
struct command {
	char **argv;
	const char *cwd;  /* NULL: as it is */
	int64_t uid, gid; /* -1: as it is */
	int64_t nice;     /* INT64_MIN: as it is */
	int in, out, err; /* -1: inherited */
};
struct failure {
	const char *stage; /* a literal, at the same address on both sides of a fork */
	int error;
};
struct child {
	pid_t pid;
	int gate;    /* it waits until a byte comes here, and ends if none ever will */
	int failure; /* a struct failure if it could not execute, else nothing */
};
void own_signals(void);
int signal_fd(const int *signals, size_t count);
int spawn(struct child *child, const struct command *command); /* -1 with errno */
void let_go(struct child *child);

/* http.c: just enough of a client for control.sock. */
int control_connect(const char *state_dir, bool wait); /* -1 with errno */
int control_ask(int fd, const char *method, const char *path);
int http_status(const char *answer, size_t length); /* 0: not there yet; -1: no HTTP */

/* Points at which the crash tests kill this process. */
#ifdef SHIPMATE_FAULTS
void fault_init(void);
void fault(const char *point);
#else
#define fault_init() ((void)0)
#define fault(point) ((void)0)
#endif

#endif
