/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of the maps: what the loader writes for the controller, and the registers. Shared with the loader.
 *
 * Tables are rows in two copies and a word that says which holds. The loader writes the other copy, then the word, so
 * that a pass sees one row or the other and never half of each; before it writes the same row again, all passes that
 * had begun must have ended ("drain": an update of an array of maps waits for that). Everything is one value of an
 * array map, which the loader may map into its memory and then write by words.
 */
#pragma once

#include <linux/types.h>

#include "wire.h"

/* Raised with every change of what lies in the maps: a loader does not touch maps of another one. */
enum { LAYOUT_VERSION = 4 };

/*
 * The way to a host: out of which link, between which Ethernet addresses. Link 0: none known. It is two words, each
 * read and written at once.
 */
struct way {
	__u32 link;
	__u8 to[6];
	__u8 from[6];
} __attribute__((aligned(8)));

struct worker_row {
	__u32 there;
	__u32 key;
	__u32 generation;
	__u16 slice;
	__u16 open;
	struct endpoint at;
	__u8 unused[6];
	__u64 life;
};

struct client_row {
	__u32 there;
	__u32 key;
	struct endpoint at;
	__u8 unused[6];
	__u64 incarnation;
};

struct slice_row {
	__u32 open;
	__u32 limit;
	__u64 retry_after_ns;
};

/* In each, the word that says which copy holds; and of a worker, the generation that popped tokens must have. */
struct worker_rows {
	__u32 current;
	__u32 gen_out;
	struct worker_row copy[2];
};

struct client_rows {
	__u32 current;
	__u32 unused;
	struct client_row copy[2];
};

struct slice_rows {
	__u32 current;
	__u32 unused;
	struct slice_row copy[2];
};

/* Tokens granted to a worker, tasks sent to it, and the way that its packets came last. */
struct worker_counters {
	__u32 seen;
	/* `seen`, as it is told with a DISPATCH. */
	__u32 seen_out;
	__u32 sent;
	__u32 unused;
	struct way way;
};

/* Parts of a ring that are given back as a whole. */
enum { QUARTERS = 4 };

/*
 * A slice's queue: how many tokens and how many tasks came into it. The n-th token is for the n-th task, so that their
 * difference is the model's `balance`: so many tokens are parked if it is positive, so many tasks wait if negative.
 */
struct queue {
	__u32 tokens;
	__u32 unused;
	/*
	 * The tasks, and in the upper half, behind one bit that takes what a wrap of theirs carries, how many of them waited:
	 * one addition counts both. With servers only.
	 */
	union {
		__u32 tasks;
		__u64 arrivals;
	};
	/* How many cells of each quarter were used up. */
	__u32 released[QUARTERS];
	__u8 unused_too[32];
};

/* Where the n-th token and the n-th task meet, and what of the task its word does not hold. */
struct cell {
	__u64 word;
	/* When the task arrived and how old it was then: see clock.h. */
	__u64 times;
	struct task_part task;
	__be16 task_type;
	__u8 priority;
	__u8 constraints;
	__be16 client;
	/* Whether its bytes went ahead, and under which ticket it waits. */
	__u16 ahead;
	__u32 ticket;
	__u8 unused[12];
};

_Static_assert(sizeof(struct queue) == 64 && sizeof(struct cell) == 64, "a cache line each");

/* The life of these registers, and where the switch is. */
struct life {
	__u32 epoch;
	__be16 port;
	__u16 unused;
	/* The switch's addresses; zero: none of that family. */
	__be32 at4;
	__be32 at6[4];
	/* The controller that the switch obeys; only who loads the program looks at it. */
	__u32 term;
	/* In test mode, the time. */
	__u64 now_ns;
};

/* What the driver of the UDP switch counts too, and what only a program on a link sees. */
enum count {
	COUNT_RECEIVED,
	COUNT_SENT,
	COUNT_SUBMITS,
	COUNT_TOKENS,
	COUNT_DISPATCHED,
	COUNT_REJECTED,
	COUNT_RECIRCULATED,
	/* Frames that cannot hold a datagram of ours: see frame.h. */
	COUNT_TRUNCATED,
	COUNT_FRAGMENT,
	COUNT_IP_OPTIONS,
	/* Passes that found no room in a ring because a cell of its last lap is still being read. */
	COUNT_RING_BUSY,
	/* A frame that could not be made longer or shorter, or a host of a family in which the switch has no address. */
	COUNT_SEND_FAILED,
	/* A cell that was not as its ticket says: a bug. */
	COUNT_CELL_BROKEN,
	/* Copies of tasks that went to servers. */
	COUNT_WRITTEN_AHEAD,
	COUNTS,
};

/* Why bytes are no packet: `ParseError`, in its order. */
enum malformed {
	MALFORMED_SHORT,
	MALFORMED_LONG,
	MALFORMED_VERSION,
	MALFORMED_KIND,
	MALFORMED_HEADER_LENGTH,
	MALFORMED_PAYLOAD_LENGTH,
	MALFORMED_UNUSED,
	MALFORMED_CODE,
	MALFORMED_PADDING,
	MALFORMED_RANGE,
	MALFORMEDS,
};

/* Why a packet changed nothing: `Refusal`, in its order. */
enum refusal {
	REFUSAL_UNKNOWN_SOURCE,
	REFUSAL_WRONG_KEY,
	REFUSAL_WRONG_ADDRESS,
	REFUSAL_WRONG_EPOCH,
	REFUSAL_WRONG_GENERATION,
	REFUSAL_CLOSED,
	REFUSAL_REPLAYED,
	REFUSAL_REPEATED_TOKEN,
	REFUSAL_IMPOSSIBLE_COUNTER,
	REFUSAL_UNEXPECTED,
	REFUSAL_TOKEN_RING_FULL,
	REFUSAL_QUEUE_FULL,
	REFUSAL_SWEEP_DONE,
	REFUSAL_FIX_DONE,
	REFUSAL_OLD_NAK,
	REFUSAL_IMPOSSIBLE_LOAD,
	REFUSAL_SWEEP_UNDER_WAY,
	REFUSAL_ROUNDS_FULL,
	REFUSALS,
};

struct counters {
	__u64 own[COUNTS];
	__u64 malformed[MALFORMEDS];
	__u64 refused[REFUSALS];
};

/* How large this switch is: constants that the loader sets before it loads. All cell counts are powers of two. */
struct shape {
	__u32 workers;
	__u32 clients;
	__u32 slices;
	__u32 types;
	/* Tokens that may park in a slice; its ring has more cells. */
	__u32 tokens_per_slice;
	__u32 replay_cells;
	/* Two to this power: cells in a slice's ring. At least twice what it may hold of tasks or of tokens, and at least 8
	 * times `ahead`. */
	__u32 ring_bits;
	/* How far ahead a ring must be free: 2 * (CPUs + 1) or more. */
	__u32 ahead;
	/* Whether time comes from `struct life` instead of the kernel. */
	__u32 test_mode;
	/* None: nothing is written ahead. */
	__u32 servers;
	/* The first ticket of a task that waits. */
	__u32 tickets_start;
};

/* Which layout the maps have, and for which shape they were made. */
struct layout {
	__u32 version;
	struct shape shape;
};
