/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether a header and the bytes behind it are a packet, and if not, why. The checks and their order are
 * those of `sluice_wire::View`, so that the same bytes are counted under the same reason. The three kinds that a
 * switch accepts come first; the others are checked only to count them correctly.
 */
#pragma once

#include "frame.h"
#include "unused.h"

enum {
	PARSED = -1,
	/* More bytes than any frame of one piece has. */
	FRAME_MAX = 1 << 15,
};

/*
 * Whether every field that a kind does not use is zero. With a constant kind the compiler folds the masks into the
 * code.
 */
static __always_inline int unused_is_zero(const struct header *header, __u32 kind)
{
	const __u64 *words = (const void *)header;
	__u64 found = 0;

#pragma unroll
	for (int at = 0; at < HEADER_BYTES / 8; at++)
		found |= words[at] & unused[kind - 1][at];
	return !found;
}

/* Whether the bytes behind a short payload's end are zero. A large payload fills the inline bytes. */
static __always_inline int has_clean_padding(const struct header *header)
{
	__u32 length = bpf_ntohs(header->task.length);
	__u64 bytes;

	__builtin_memcpy(&bytes, header->task.bytes, sizeof(bytes));
	return length >= INLINE_BYTES || !(bpf_be64_to_cpu(bytes) << (8 * length));
}

/* How many zeros follow a task of so many bytes in a SUBMIT: the end of a WRITE. */
static __always_inline __u32 trailer_bytes(__u32 length)
{
	return length > INLINE_BYTES ? (-length & 3) + ICRC_BYTES : 0;
}

/* Whether as many bytes follow the header as it states, and as its kind has behind them. */
static __always_inline int parse_length(const struct frame *frame, const struct header *header, __u32 kind)
{
	int elsewhere = kind == KIND_DISPATCH && header->code;

	__u32 stated = bpf_ntohs(header->task.length), beside, behind = frame->length - HEADER_BYTES;

	if (stated > PAYLOAD_MAX)
		return MALFORMED_PAYLOAD_LENGTH;
	beside = stated > INLINE_BYTES && !elsewhere ? stated : 0;
	if (kind == KIND_SUBMIT)
		beside += trailer_bytes(stated);
	if (behind < beside)
		return MALFORMED_SHORT;
	return behind > beside ? MALFORMED_LONG : PARSED;
}

/*
 * Whether the bytes behind a large task are zero: the last word, and the end of the word before it, in which the
 * task ends.
 */
static __always_inline int has_clean_trailer(const struct frame *frame, const struct header *header)
{
	__u32 length = bpf_ntohs(header->task.length), before = (length - 1) & ~3u;
	const __be32 *words;

	if (length <= INLINE_BYTES)
		return 1;
	/* No frame is that long. The compiler must not find another way to the same offset: the verifier follows one. */
	asm volatile("" : "+r"(before));
	if (before > FRAME_MAX)
		return 0;
	words = (const void *)(header + 1) + before;
	if ((const void *)(words + 2) > frame->end)
		return 0;
	return !words[1] && !(bpf_ntohl(words[0]) << 8 * ((length - 1) & 3) << 8);
}

static __always_inline int parse_submit(const struct frame *frame, const struct header *header)
{
	return has_clean_padding(header) && has_clean_trailer(frame, header) ? PARSED : MALFORMED_PADDING;
}

static __always_inline int parse_dispatch(const struct header *header)
{
	int is_nowhere = !header->key && !header->slice;

	if (header->code == PLACE_HERE) {
		if (!is_nowhere)
			return MALFORMED_UNUSED;
	} else {
		if (header->code > PLACE_AT_CLIENT)
			return MALFORMED_CODE;
		if (bpf_ntohs(header->task.length) <= INLINE_BYTES)
			return MALFORMED_PAYLOAD_LENGTH;
		if (header->code == PLACE_AT_CLIENT && !is_nowhere)
			return MALFORMED_UNUSED;
	}
	return has_clean_padding(header) ? PARSED : MALFORMED_PADDING;
}

static __always_inline int parse_sweep(const struct header *header)
{
	if (header->code > (SWEEP_TASKS | SWEEP_CARRIES))
		return MALFORMED_CODE;
	if (!(header->code & SWEEP_CARRIES) && (header->worker || header->generation))
		return MALFORMED_UNUSED;
	return bpf_ntohl(header->words[SWEEP_LEFT]) > 0xffff ? MALFORMED_RANGE : PARSED;
}

static __always_inline int parse_answer(const struct header *header)
{
	if (!header->code && (header->words[ANSWER_SEEN] || header->words[ANSWER_SENT]))
		return MALFORMED_UNUSED;
	return header->code > 1 ? MALFORMED_CODE : PARSED;
}

static __always_inline int parse_update(const struct header *header)
{
	if (header->code < UPDATE_LOAD && header->words[UPDATE_MEAN])
		return MALFORMED_UNUSED;
	return header->code > UPDATE_LOAD ? MALFORMED_CODE : PARSED;
}

static __always_inline int parse_reject(const struct header *header)
{
	if (header->code > REJECT_LATE)
		return MALFORMED_CODE;
	return bpf_ntohl(header->words[REJECT_BEHIND]) >= JOB_TASKS_MAX ? MALFORMED_RANGE : PARSED;
}

/* Whether the bytes behind the end of each task's bytes are zero. */
static __always_inline int parse_job_bytes(const struct frame *frame, const struct header *header, __u32 lengths)
{
	const __be64 *bytes = (const void *)(header + 1);

#pragma unroll
	for (__u32 at = 0; at < JOB_TASKS_MAX; at++) {
		__u32 length = lengths >> (4 * at) & 0xf;

		if (at >= header->code)
			break;
		if ((const void *)(bytes + at + 1) > frame->end)
			return MALFORMED_SHORT;
		if (length < INLINE_BYTES && bpf_be64_to_cpu(bytes[at]) << (8 * length))
			return MALFORMED_PADDING;
	}
	return PARSED;
}

static __always_inline int parse_job(const struct frame *frame, const struct header *header)
{
	__u32 tasks = header->code, lengths = bpf_ntohl(header->words[JOB_LENGTHS]);

	if (tasks < 2 || tasks > JOB_TASKS_MAX)
		return MALFORMED_CODE;
	if (bpf_ntohs(header->task.length) != tasks * INLINE_BYTES)
		return MALFORMED_PAYLOAD_LENGTH;
	if (lengths >> (4 * tasks))
		return MALFORMED_RANGE;
#pragma unroll
	for (__u32 at = 0; at < JOB_TASKS_MAX; at++)
		if ((lengths >> (4 * at) & 0xf) > INLINE_BYTES)
			return MALFORMED_RANGE;
	return parse_job_bytes(frame, header, lengths);
}

/* Checks the values of kinds that no switch accepts. */
static __always_inline int parse_values(const struct frame *frame, const struct header *header)
{
	switch (header->kind) {
	case KIND_DISPATCH:
		return parse_dispatch(header);
	case KIND_REPLY:
		if (header->code > REPLY_LATE)
			return MALFORMED_CODE;
		break;
	case KIND_ANSWER:
		return parse_answer(header);
	case KIND_REJECT:
		return parse_reject(header);
	case KIND_NEED:
	case KIND_PART:
		if (header->code > 1)
			return MALFORMED_CODE;
		break;
	case KIND_SWEEP:
		return parse_sweep(header);
	case KIND_UPDATE:
		return parse_update(header);
	case KIND_JOB:
		return parse_job(frame, header);
	}
	return has_clean_padding(header) ? PARSED : MALFORMED_PADDING;
}

static __always_inline int parse_as(const struct frame *frame, const struct header *header, __u32 kind)
{
	int length;

	if (header->own_length != HEADER_BYTES)
		return MALFORMED_HEADER_LENGTH;
	if (!unused_is_zero(header, kind))
		return MALFORMED_UNUSED;
	length = parse_length(frame, header, kind);
	if (length != PARSED)
		return length;
	if (kind == KIND_TOKEN)
		return header->code > RANK_MAX ? MALFORMED_CODE : PARSED;
	if (kind == KIND_PROBE)
		return PARSED;
	if (kind == KIND_SUBMIT)
		return parse_submit(frame, header);
	return parse_values(frame, header);
}

/* PARSED, or what is wrong with the packet. */
static __always_inline int parse(const struct frame *frame, const struct header *header)
{
	__u32 kind = header->kind;

	if (header->version != WIRE_VERSION)
		return MALFORMED_VERSION;
	if (kind == KIND_TOKEN)
		return parse_as(frame, header, KIND_TOKEN);
	if (kind == KIND_SUBMIT)
		return parse_as(frame, header, KIND_SUBMIT);
	if (kind == KIND_PROBE)
		return parse_as(frame, header, KIND_PROBE);
	if (kind < 1 || kind > KINDS)
		return MALFORMED_KIND;
	return parse_as(frame, header, kind);
}
