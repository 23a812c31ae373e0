/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire format: one header for all kinds (docs/manual/wire.md), in the packet's byte order.
 *
 * A TOKEN and a SUBMIT become a DISPATCH in place. The fields that each kind leaves zero are in unused.h. A test of
 * `sluice-wire` writes that file from the tables of its own parser.
 */
#pragma once

#include <linux/types.h>

enum {
	WIRE_VERSION = 1,
	HEADER_BYTES = 88,
	INLINE_BYTES = 8,
	/* The largest UDP datagram over IPv4, minus the header. */
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
	/* From a rack's switch to the one above it: never accepted here. */
	KIND_UPDATE = 13,
	/* Several tasks in one submission: never accepted here. */
	KIND_JOB = 14,
	KINDS = 14,
};

/* The codes of a REJECT. */
enum reject {
	REJECT_QUEUE_FULL = 0,
	REJECT_NO_ROOM = 1,
	REJECT_NO_WORKERS = 2,
	REJECT_UNKNOWN_TYPE = 3,
	REJECT_STALE_TOKENS = 4,
	/* No kind of worker has the labels that the task needs: never sent here. */
	REJECT_UNSERVED = 5,
	/* The task would wait for longer than its slice's target. */
	REJECT_BUSY = 6,
	/* Nothing is left of the task's budget: never sent here. */
	REJECT_LATE = 7,
};

/* The largest code of a REPLY: the task's budget was spent, and it did not run. */
enum { REPLY_LATE = 4 };

/* Where the bytes of a DISPATCH are. */
enum place {
	PLACE_HERE = 0,
	PLACE_AHEAD = 1,
	PLACE_AT_CLIENT = 2,
};

/* The code of a SWEEP: what it looks for, and whether it carries a token. */
enum sweep {
	SWEEP_TASKS = 1,
	SWEEP_CARRIES = 2,
};

/* The code of an UPDATE: there are idle workers, there are none any more, or the workers' mean queue. */
enum update {
	UPDATE_LOAD = 2,
	UPDATE_MEAN = 0,
};

/* The code of a JOB: its number of tasks, at least two. Their bytes follow the header, eight for each task. */
enum { JOB_TASKS_MAX = 5 };

/* The code of a TOKEN: its rank, at most this. Here tasks meet tokens of any rank. */
enum { RANK_MAX = 7 };

/* The bits of a ticket that a packet tells: see `TICKET_MASK` in `sluice_wire`. */
enum { TICKET_MASK = (1 << 28) - 1 };

/* An address and port; IPv4 is carried as IPv4-mapped IPv6. */
struct endpoint {
	__be32 ip[4];
	__be16 port;
} __attribute__((packed));

/* 24 consecutive bytes of a task. Its entry in the switch keeps all but the incarnation's upper half. */
struct task_part {
	__be32 incarnation_high;
	__be32 incarnation_low;
	__be32 sequence;
	__be16 attempt;
	__be16 length;
	__u8 bytes[INLINE_BYTES];
} __attribute__((packed));

/*
 * The fields are words with aligned offsets, but in a frame the header may be at any address. The supported
 * machines allow unaligned access; otherwise the compiler would have to read every word byte by byte.
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
	/* The names of these words depend on the kind: see the readers below. */
	__be32 words[5];
} __attribute__((packed, aligned(4)));

_Static_assert(sizeof(struct header) == HEADER_BYTES, "the header has no gaps");

/* The five words, for the kinds that the switch reads or writes. */
enum word {
	TOKEN_ISSUED = 0,
	TOKEN_NONCE = 2,
	ANSWER_SEEN = 0,
	ANSWER_SENT = 1,
	ANSWER_NONCE = 2,
	REJECT_BEHIND = 0,
	REJECT_ROOM = 1,
	REJECT_RETRY_AFTER = 2,
	REJECT_CLIENTS = 3,
	/* Four bits for each task. */
	JOB_LENGTHS = 0,
	SWEEP_LEFT = 3,
	TASK_AGE = 4,
	DISPATCH_SEEN = 0,
	DISPATCH_SENT = 1,
	DISPATCH_WAIT = 2,
	/* The upper half is the task's budget, in a SUBMIT too. */
	DISPATCH_OCCUPANCY = 3,
	TASK_BUDGET = 3,
};
