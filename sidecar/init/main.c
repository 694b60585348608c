/* Which of the four it is asked to be; and what all want: three open files, and no signal lost. */
#include "init.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void own_files(void)
{
	for (int fd; (fd = open("/dev/null", O_RDWR)) >= 0;) {
		if (fd < 3) continue; /* it was closed, and whatever is opened next would be taken for it */
		(void)close(fd);
		break;
	}
#ifdef SYS_close_range
	if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
#endif
	long most = sysconf(_SC_OPEN_MAX);
	for (int fd = 3; fd < (most > 0 && most < 65536 ? most : 65536); fd++) (void)close(fd);
}

#ifdef SHIPMATE_FAULTS
#include <signal.h>

static char *fatal;

void fault_init(void)
{
	const char *point = getenv("SHIPMATE_FAULT");
	fatal = point ? strdup(point) : NULL;
	(void)unsetenv("SHIPMATE_FAULT");
}

void fault(const char *point)
{
	if (fatal && strcmp(fatal, point) == 0) (void)kill(getpid(), SIGKILL);
}
#endif

/* By its last part: a link is what gives it another name. */
static bool is_called(const char *name, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return path && strcmp(slash ? slash + 1 : path, name) == 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	own_files();
	if (is_called("shipmate", argv[0])) return run_command(argc - 1, argv + 1);
	if (strcmp(what, "prestop") == 0) return run_prestop(argc - 2, argv + 2);
	own_signals();
	if (strcmp(what, "exec") == 0) return run_exec(argc - 2, argv + 2);
	if (strcmp(what, "supervise") == 0) return run_supervise(argc - 2, argv + 2);
	say("error", "\"%s\" is nothing that shipmate-init does: exec, supervise and prestop are", what);
	return EXIT_USAGE;
}
