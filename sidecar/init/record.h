/* record.c: the claim of a run and the record of its end. */
#ifndef SHIPMATE_RECORD_H
#define SHIPMATE_RECORD_H

#include "init.h"

struct end {
	const char *cause;
	int code;   /* -1: none */
	int signal; /* 0: none */
	struct failure failure;
	uint64_t log;
};

int claim(int dir); /* EXIT_DONE: the command is ours to execute */
int not_begun(const char *what); /* says by errno why nothing was executed, to the log and on standard output, for the agent */
int record_child(int dir, pid_t pid);
int record_end(int dir, const struct end *end);

#endif
