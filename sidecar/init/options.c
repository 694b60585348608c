/* The command line: `--name value` pairs, each known and each value of its kind, up to `--`. */
#include "init.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool parse_number(const char *text, const struct option_spec *spec)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < spec->least || value > spec->most) return false;
	*spec->number = value;
	return true;
}

int parse_options(int argc, char **argv, const struct option_spec *specs, size_t count)
{
	for (int i = 0; i < argc; i += 2) {
		if (strcmp(argv[i], "--") == 0) return i + 1;
		const struct option_spec *spec = NULL;
		for (size_t k = 0; k < count && !spec; k++)
			if (strcmp(argv[i], specs[k].name) == 0) spec = &specs[k];
		if (!spec) {
			say("error", "%s is no option here", argv[i]);
			return -1;
		}
		if (i + 1 == argc || strcmp(argv[i + 1], "--") == 0) {
			say("error", "%s needs a value", argv[i]);
			return -1;
		}
		if (spec->text) *spec->text = argv[i + 1];
		else if (!parse_number(argv[i + 1], spec)) {
			say("error", "%s is %s: a whole number from %lld to %lld is accepted", argv[i], argv[i + 1], (long long)spec->least,
			    (long long)spec->most);
			return -1;
		}
	}
	return argc;
}
