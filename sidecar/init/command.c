/* The command line of the sidecar's image: Node, found by the path, with agent.cjs that stands beside this program, and the arguments as they are. */
#include "init.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int run_command(int argc, char **argv)
{
	static const char bundle[] = "agent.cjs";
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof bundle);
	while (length > 0 && path[length - 1] != '/') length--;
	if (length <= 0) {
		say("error", "where this program is cannot be told: /proc is not mounted");
		return EXIT_FAILED;
	}
	memcpy(path + length, bundle, sizeof bundle);
	char **command = calloc((size_t)argc + 3, sizeof *command);
	if (!command) return EXIT_FAILED;
	command[0] = "node";
	command[1] = path;
	memcpy(command + 2, argv, (size_t)argc * sizeof *argv);
	(void)execvp(command[0], command);
	say("error", "node cannot be started: %s", errno_name(errno));
	free(command);
	return EXIT_FAILED;
}
