/*
 * Whether a line is a JSON object, and which of the keys that matter it has at its top. Strict (RFC 8259) but for the encoding of
 * characters beyond ASCII, which is not looked at; a key counts if it is written without escapes.
 */
#include "init.h"

#include <string.h>

struct cursor {
	const unsigned char *at, *end;
};

static bool is_digit(const struct cursor *c)
{
	return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static bool skip_one_of(struct cursor *c, const char *any)
{
	if (c->at == c->end || *c->at == '\0' || !strchr(any, *c->at)) return false;
	c->at++;
	return true;
}

static bool skip_digits(struct cursor *c)
{
	if (!is_digit(c)) return false;
	while (is_digit(c)) c->at++;
	return true;
}

static bool skip_number(struct cursor *c)
{
	skip_one_of(c, "-");
	if (!skip_one_of(c, "0") && !skip_digits(c)) return false;
	if (skip_one_of(c, ".") && !skip_digits(c)) return false;
	if (!skip_one_of(c, "eE")) return true;
	skip_one_of(c, "+-");
	return skip_digits(c);
}

static bool skip_string(struct cursor *c)
{
	if (!skip_one_of(c, "\"")) return false;
	while (c->at < c->end && *c->at >= 0x20) {
		unsigned char byte = *c->at++;
		if (byte == '"') return true;
		if (byte != '\\') continue;
		if (skip_one_of(c, "u")) {
			for (int i = 0; i < 4; i++)
				if (!skip_one_of(c, "0123456789abcdefABCDEF")) return false;
		} else if (!skip_one_of(c, "\"\\/bfnrt")) return false;
	}
	return false;
}

static bool skip_word(struct cursor *c, const char *word)
{
	size_t length = strlen(word);
	if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
	c->at += length;
	return true;
}

static bool skip_scalar(struct cursor *c)
{
	if (c->at == c->end) return false;
	if (*c->at == '"') return skip_string(c);
	return skip_word(c, "true") || skip_word(c, "false") || skip_word(c, "null") || skip_number(c);
}

static void skip_space(struct cursor *c)
{
	while (skip_one_of(c, " \t\r\n"));
}

int json_keys(const unsigned char *text, size_t length)
{
	static unsigned char is_array[LINE_BYTES / 8 + 1]; /* a bit for each container that is open */
	struct cursor c = {text, text + length};
	size_t depth = 0;
	int keys = 0;
	enum { VALUE, FIRST_VALUE, KEY, FIRST_KEY, AFTER } expect = VALUE;
	if (length > LINE_BYTES) return -1;
	skip_space(&c);
	if (c.at == c.end || *c.at != '{') return -1;
	for (;; skip_space(&c)) {
		bool in_array = depth > 0 && (is_array[depth / 8] >> depth % 8 & 1);
		if (expect == AFTER && depth == 0) return c.at == c.end ? keys : -1;
		if ((expect == FIRST_KEY && skip_one_of(&c, "}")) || (expect == FIRST_VALUE && skip_one_of(&c, "]")) ||
		    (expect == AFTER && skip_one_of(&c, in_array ? "]" : "}"))) {
			depth--;
			expect = AFTER;
		} else if (expect == AFTER) {
			if (!skip_one_of(&c, ",")) return -1;
			expect = in_array ? VALUE : KEY;
		} else if (expect == KEY || expect == FIRST_KEY) {
			const unsigned char *key = c.at;
			if (!skip_string(&c)) return -1;
			if (depth == 1 && c.at - key == 10 && memcmp(key, "\"progress\"", 10) == 0) keys |= JSON_PROGRESS;
			if (depth == 1 && c.at - key == 8 && memcmp(key, "\"result\"", 8) == 0) keys |= JSON_RESULT;
			skip_space(&c);
			if (!skip_one_of(&c, ":")) return -1;
			expect = VALUE;
		} else if (c.at < c.end && (*c.at == '{' || *c.at == '[')) {
			bool array = *c.at++ == '[';
			depth++;
			is_array[depth / 8] = (unsigned char)((is_array[depth / 8] & ~(1 << depth % 8)) | array << depth % 8);
			expect = array ? FIRST_VALUE : FIRST_KEY;
		} else {
			if (!skip_scalar(&c)) return -1;
			expect = AFTER;
		}
	}
}
