/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is on the wire: one header for all kinds (docs/manual/wire.md), in the packet's byte order.
 *
 * A TOKEN and a SUBMIT become a DISPATCH in place. Which fields a kind leaves zero stands in unused.h, which is
 * written by a test of `sluice-wire` from the tables that its own parser uses.
 */
#pragma once

#include <linux/types.h>

enum {
	WIRE_VERSION = 1,
	HEADER_BYTES = 88,
	INLINE_BYTES = 8,
	/* The largest UDP datagram over IPv4 less the header. */
	PAYLOAD_MAX = 65507 - HEADER_BYTES,
};

enum kind {
	KIND_SUBMIT = 1,
	KIND_DISPATCH = 2,
	KIND_REPLY = 3,
	KIND_TOKEN = 4,
	KIND_PROBE = 5,
	KIND_ANSWER = 6,
	KIND_REJECT = 7,
	KIND_NOTICE = 8,
	KIND_NEED = 9,
	KIND_PART = 10,
	KIND_SWEEP = 11,
	KIND_EMPTY = 12,
	/* From a rack's switch to the one above it: never taken here. */
	KIND_UPDATE = 13,
	/* Several tasks in one submission: never taken here. */
	KIND_JOB = 14,
	KINDS = 14,
};

/* What a REJECT's code says. */
enum reject {
	REJECT_QUEUE_FULL = 0,
	REJECT_NO_ROOM = 1,
	REJECT_NO_WORKERS = 2,
	REJECT_UNKNOWN_TYPE = 3,
	REJECT_STALE_TOKENS = 4,
	/* No kind of workers has the labels that the task needs: never said here. */
	REJECT_UNSERVED = 5,
};

/* Where a DISPATCH's bytes are. */
enum place {
	PLACE_HERE = 0,
	PLACE_AHEAD = 1,
	PLACE_AT_CLIENT = 2,
};

/* A SWEEP's code: what it looks for, and whether it carries a token. */
enum sweep {
	SWEEP_TASKS = 1,
	SWEEP_CARRIES = 2,
};

/* An UPDATE's code: idle workers, none any more, or their mean queue. */
enum update {
	UPDATE_LOAD = 2,
	UPDATE_MEAN = 0,
};

/* A JOB's code is how many tasks it has, at least two; their bytes stand behind the header, eight for each. */
enum { JOB_TASKS_MAX = 5 };

/* A TOKEN's code is its rank, at most this; tasks meet tokens here whatever their ranks. */
enum { RANK_MAX = 7 };

/* An address and port; IPv4 is carried as IPv4-mapped IPv6. */
struct endpoint {
	__be32 ip[4];
	__be16 port;
} __attribute__((packed));

/* What of a task its entry in the switch keeps as it came: 24 bytes in one piece. */
struct task_part {
	__be64 incarnation;
	__be32 sequence;
	__be16 attempt;
	__be16 length;
	__u8 bytes[INLINE_BYTES];
} __attribute__((packed));

/*
 * Its fields are words where they lie, but in a frame it lies at any address. The machines that this runs on do not mind;
 * a compiler that had to would take every word byte by byte.
 */
struct header {
	__u8 version;
	__u8 kind;
	__u8 own_length;
	__u8 code;
	__be32 epoch;
	__be32 key;
	__be16 task_type;
	__u8 priority;
	__u8 constraints;
	__be16 client;
	__be16 worker;
	__be32 generation;
	struct task_part task;
	struct endpoint at;
	__be16 slice;
	/* Their names depend on the kind: see the readers below. */
	__be32 words[5];
} __attribute__((packed, aligned(4)));

_Static_assert(sizeof(struct header) == HEADER_BYTES, "the header has no gaps");

/* The five words of the kinds that the switch reads or writes. */
enum word {
	TOKEN_ISSUED = 0,
	TOKEN_NONCE = 2,
	ANSWER_SEEN = 0,
	ANSWER_SENT = 1,
	ANSWER_NONCE = 2,
	REJECT_BEHIND = 0,
	REJECT_RETRY_AFTER = 2,
	/* Four bits for each task. */
	JOB_LENGTHS = 0,
	SWEEP_LEFT = 3,
	TASK_AGE = 4,
	DISPATCH_SEEN = 0,
	DISPATCH_SENT = 1,
	DISPATCH_WAIT = 2,
	DISPATCH_OCCUPANCY = 3,
};
