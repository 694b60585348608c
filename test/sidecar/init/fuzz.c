/*
 * What stands between the wrapper and the bytes that a command writes, fed with anything. Standard input has frames, each a 32-bit big-endian
 * length and that many bytes.
 *   json: of each frame, what json_keys says of it, a line each.
 *   redact: a frame of secrets, as the wrapper gets them, then the chunks, then an empty frame; and so on. The redacted text as one frame.
 */
#include "../../../sidecar/init/init.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy of its own, of exactly that size: a byte read beyond it is found out. NULL at the end. */
static unsigned char *frame(size_t *length)
{
	unsigned char head[4];
	if (fread(head, 1, 4, stdin) != 4) return NULL;
	*length = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	unsigned char *bytes = malloc(*length);
	if (*length > 0 && (!bytes || fread(bytes, 1, *length, stdin) != *length)) abort();
	return bytes ? bytes : malloc(1);
}

static unsigned char out[1 << 20];
static size_t used;

static void keep(void *to, const unsigned char *data, size_t length)
{
	(void)to;
	if (length > sizeof out - used) abort();
	memcpy(out + used, data, length);
	used += length;
}

static void redact(unsigned char *bytes, size_t length)
{
	struct secrets secrets;
	struct redactor r;
	if (parse_secrets(&secrets, bytes, length) != 0 || redact_open(&r, &secrets, keep, NULL) != 0) abort();
	used = 0;
	for (bool end = false; !end;) {
		size_t n;
		unsigned char *chunk = frame(&n);
		if (!chunk || n > READ_BYTES) abort();
		end = n == 0;
		memcpy(redact_room(&r), chunk, n);
		redact_push(&r, n, end);
		free(chunk);
	}
	const unsigned char head[4] = {(unsigned char)(used >> 24), (unsigned char)(used >> 16), (unsigned char)(used >> 8), (unsigned char)used};
	if (fwrite(head, 1, 4, stdout) != 4 || fwrite(out, 1, used, stdout) != used) abort();
	free(r.buffer);
	free(secrets.list);
}

int main(int argc, char **argv)
{
	bool is_json = argc > 1 && strcmp(argv[1], "json") == 0;
	size_t length;
	for (unsigned char *bytes; (bytes = frame(&length)); free(bytes)) {
		if (is_json) printf("%d\n", json_keys(bytes, length));
		else redact(bytes, length);
	}
	return 0;
}
