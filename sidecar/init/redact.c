/*
 * Redaction of a stream: each occurrence of a secret becomes ***; occurrences that overlap become one.
 *
 * Guarantee: no byte of an occurrence is ever shown, wherever the reads were cut. Memory is one read and the longest secret.
 */
#include "init.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The next 32-bit big-endian number; false if it is not there. */
static bool take_number(const unsigned char *bytes, size_t length, size_t *at, size_t *number)
{
	const unsigned char *b = bytes + *at;
	if (length - *at < 4) return false;
	*number = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
	*at += 4;
	return true;
}

int parse_secrets(struct secrets *secrets, const unsigned char *bytes, size_t length)
{
	size_t at = 0, count = 0;
	memset(secrets, 0, sizeof *secrets);
	secrets->list = calloc(length / 5 + 1, sizeof *secrets->list);
	if (!secrets->list) return -1;
	/* Their number comes first: what ends before is cut off, be it with nothing said at all. */
	if (!take_number(bytes, length, &at, &count)) goto torn;
	for (; count > 0; count--) {
		size_t n = 0;
		if (!take_number(bytes, length, &at, &n) || n > length - at) goto torn;
		if (n > 0) {
			secrets->list[secrets->count++] = (struct secret){bytes + at, n};
			secrets->first[bytes[at]] = true;
			if (n > secrets->longest) secrets->longest = n;
		}
		at += n;
	}
	if (at == length) return 0;
torn:
	free(secrets->list);
	secrets->list = NULL;
	errno = EPROTO;
	return -1;
}

int redact_open(struct redactor *r, const struct secrets *secrets, sink_fn *sink, void *to)
{
	*r = (struct redactor){.secrets = secrets, .sink = sink, .to = to};
	r->buffer = malloc(secrets->longest + READ_BYTES);
	return r->buffer ? 0 : -1;
}

unsigned char *redact_room(struct redactor *r)
{
	return r->buffer + r->held;
}

/* Gathers small pieces, so that a text full of secrets is not written in many small writes. */
struct gather {
	const struct redactor *r;
	size_t length;
	unsigned char bytes[4096];
};

static void flush(struct gather *g)
{
	if (g->length > 0) g->r->sink(g->r->to, g->bytes, g->length);
	g->length = 0;
}

static void emit(struct gather *g, const void *data, size_t length)
{
	if (length > sizeof g->bytes - g->length) flush(g);
	if (length > sizeof g->bytes) {
		g->r->sink(g->r->to, data, length);
		return;
	}
	memcpy(g->bytes + g->length, data, length);
	g->length += length;
}

/* The longest secret at the beginning of a text, or 0. `more` is set if what follows may make it a longer one. */
static size_t match(const struct secrets *secrets, const unsigned char *text, size_t length, bool *more)
{
	size_t longest = 0;
	for (size_t i = 0; i < secrets->count; i++) {
		const struct secret *secret = &secrets->list[i];
		size_t n = secret->length < length ? secret->length : length;
		if (secret->length <= longest || memcmp(secret->bytes, text, n) != 0) continue;
		if (n == secret->length) longest = n;
		else *more = true;
	}
	return longest;
}

void redact_push(struct redactor *r, size_t length, bool end)
{
	const unsigned char *text = r->buffer;
	size_t size = r->held + length, shown = r->covered, at = 0;
	struct gather g;
	g.r = r;
	g.length = 0;
	for (; at < size; at++) {
		if (!r->secrets->first[text[at]]) continue;
		bool more = false;
		size_t found = match(r->secrets, text + at, size - at, &more);
		if (more && !end) break;
		if (found == 0) continue;
		if (at >= shown) {
			emit(&g, text + shown, at - shown);
			emit(&g, "***", 3);
		}
		if (at + found > shown) shown = at + found;
	}
	if (at > shown) emit(&g, text + shown, at - shown);
	flush(&g);
	r->covered = shown > at ? shown - at : 0;
	r->held = size - at;
	memmove(r->buffer, text + at, r->held);
}
