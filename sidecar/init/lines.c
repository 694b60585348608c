/*
 * What the lines of the output mean: the last that speaks of progress, the last that has a result, and the last of all. They are files
 * beside the claim, replaced at most five times a second while the command runs, and at its end. A disk that is full is tried again.
 */
#include "init.h"

#include <string.h>

enum { LAST_BYTES = 4096, EVERY_MS = 200 };

struct note {
	const char *name;
	unsigned char bytes[LINE_BYTES];
	size_t length;
	bool is_new;
	int64_t not_before;
};
static struct note progress = {.name = "progress"}, result = {.name = "result"}, last = {.name = "last"};

static void take(struct note *note, const unsigned char *line, size_t length)
{
	memcpy(note->bytes, line, length);
	note->length = length;
	note->is_new = true;
}

static void line_done(struct lines *lines)
{
	const unsigned char *line = lines->bytes;
	size_t length = lines->length;
	while (length > 0 && strchr(" \t\r", line[length - 1]) && line[length - 1] != '\0') length--;
	if (length > 0 && lines->is_output && !lines->too_long) {
		int keys = json_keys(line, length);
		if (keys > 0 && keys & JSON_PROGRESS) take(&progress, line, length);
		if (keys > 0 && keys & JSON_RESULT) take(&result, line, length);
	}
	if (length > LAST_BYTES) {
		length = LAST_BYTES;
		/* Not within a character. */
		while (length > LAST_BYTES - 4 && (line[length] & 0xC0) == 0x80) length--;
	}
	if (length > 0) take(&last, line, length);
	lines->length = 0;
	lines->too_long = false;
}

void lines_push(struct lines *lines, const unsigned char *data, size_t length)
{
	while (length > 0) {
		const unsigned char *end = memchr(data, '\n', length);
		size_t piece = end ? (size_t)(end - data) : length, room = LINE_BYTES - lines->length;
		if (piece > room) lines->too_long = true;
		memcpy(lines->bytes + lines->length, data, piece < room ? piece : room);
		lines->length += piece < room ? piece : room;
		if (!end) return;
		line_done(lines);
		data += piece + 1;
		length -= piece + 1;
	}
}

void lines_end(struct lines *lines)
{
	line_done(lines);
}

int64_t notes_due(void)
{
	int64_t due = INT64_MAX;
	if (progress.is_new) due = progress.not_before;
	if (result.is_new && result.not_before < due) due = result.not_before;
	return due;
}

static void write_note(struct note *note, int dir, int64_t now, bool at_the_end)
{
	if (!note->is_new || (!at_the_end && now < note->not_before)) return;
	note->not_before = now + EVERY_MS;
	note->is_new = put_file(dir, note->name, note->bytes, note->length) != 0;
}

void notes_write(int dir, int64_t now, bool at_the_end)
{
	write_note(&progress, dir, now, at_the_end);
	write_note(&result, dir, now, at_the_end);
	if (at_the_end) write_note(&last, dir, now, true);
}
