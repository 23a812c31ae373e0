/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of the maps: the tables that the loader writes for the controller, and the registers. Shared with the
 * loader.
 *
 * A table's row has two copies and a word that says which is valid. The loader writes the invalid copy, then the
 * word, so a pass sees the old row or the new one, never a mixture. Before the loader writes the same row again,
 * all passes that had begun must have ended ("drain": an update of an array of maps waits for them). Everything is
 * a value of an array map, which the loader may map into its memory and write by words.
 */
#pragma once

#include <linux/types.h>

#include "wire.h"

/* Raised with every change of the layout: a loader does not use maps of another version. */
enum { LAYOUT_VERSION = 6 };

/*
 * The path to a host: the outgoing link and the Ethernet addresses. Link 0 means that none is known. Two words,
 * each read and written at once.
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
	/* The program goes by what the loader makes of these in `struct queue`. */
	__u64 target_ns;
	__u32 expected;
	__u32 unused;
};

/*
 * Each row's first word says which copy is valid. A worker's row also has the generation that popped tokens must
 * have.
 */
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

/* Tokens granted to a worker, tasks sent to it, and the path by which its last packet came. */
struct worker_counters {
	__u32 seen;
	/* `seen`, as the next DISPATCH reports it. */
	__u32 seen_out;
	__u32 sent;
	__u32 unused;
	struct way way;
};

/* The parts of a ring that are released as a whole. */
enum { QUARTERS = 4 };

/*
 * A slice's queue: how many tokens and how many tasks have entered it. The n-th token is for the n-th task, so
 * their difference is the model's `balance`: the number of parked tokens if positive, of waiting tasks if negative.
 */
struct queue {
	__u32 tokens;
	__u32 unused;
	/*
	 * The tasks; and in the upper half, above a bit that absorbs the carry of the lower half, how many of them
	 * waited. One addition counts both. The upper half is used with servers only.
	 */
	union {
		__u32 tasks;
		__u64 arrivals;
	};
	/* How many cells of each quarter were used up. */
	__u32 released[QUARTERS];
	/* For a slice with a target: see target.h. The start of its window in ticks, above the tokens counted in it. */
	__u64 window;
	/* How many tasks may wait, with a fraction. */
	__u32 limit;
	/* The target in ticks; zero for none. */
	__u32 span;
	/* Tasks refused because they would have waited for longer. */
	__u64 refused_busy;
	__u8 unused_too[8];
};

/* Where the n-th token and the n-th task meet, with the task's fields that do not fit into the word. */
struct cell {
	__u64 word;
	/* The task's arrival time, and its age at that time: see clock.h. */
	__u64 times;
	struct task_part task;
	__be16 task_type;
	__u8 priority;
	__u8 constraints;
	__be16 client;
	/* Whether the task's bytes were written ahead, and its ticket. */
	__u16 ahead;
	__u32 ticket;
	/* What was left of the task's budget when it came; 0 without one. */
	__u16 budget;
	__u8 unused[10];
};

_Static_assert(sizeof(struct queue) == 64 && sizeof(struct cell) == 64, "a cache line each");

/* The epoch of these registers, and the switch's addresses. */
struct life {
	__u32 epoch;
	__be16 port;
	__u16 unused;
	/* The switch's addresses; zero for a family without one. */
	__be32 at4;
	__be32 at6[4];
	/* The term of the controller that the switch obeys; only the loader reads it. */
	__u32 term;
	/* The time, in test mode. */
	__u64 now_ns;
	/* How many clients are registered. */
	__u32 clients;
	__u32 unused_too;
};

/* Counters of the UDP switch's driver that this program has too, and counters of a program on a link. */
enum count {
	COUNT_RECEIVED,
	COUNT_SENT,
	COUNT_SUBMITS,
	COUNT_TOKENS,
	COUNT_DISPATCHED,
	COUNT_REJECTED,
	COUNT_RECIRCULATED,
	/* Frames that cannot contain a datagram of ours: see frame.h. */
	COUNT_TRUNCATED,
	COUNT_FRAGMENT,
	COUNT_IP_OPTIONS,
	/* Passes that found no room in a ring because a cell of the previous lap is still being read. */
	COUNT_RING_BUSY,
	/* A frame that could not be resized, or a host of a family for which the switch has no address. */
	COUNT_SEND_FAILED,
	/* A cell whose contents do not match its number: a bug. */
	COUNT_CELL_BROKEN,
	/* Copies of tasks sent to servers. */
	COUNT_WRITTEN_AHEAD,
	COUNTS,
};

/* Why bytes are not a packet: `ParseError`, in its order. */
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
	REFUSAL_LIMIT_MEASURED,
	REFUSALS,
};

struct counters {
	__u64 own[COUNTS];
	__u64 malformed[MALFORMEDS];
	__u64 refused[REFUSALS];
};

/* The sizes of this switch: constants that the loader sets before loading. All cell counts are powers of two. */
struct shape {
	__u32 workers;
	__u32 clients;
	__u32 slices;
	__u32 types;
	/* How many tokens may park in a slice; its ring has more cells. */
	__u32 tokens_per_slice;
	__u32 replay_cells;
	/*
	 * The binary logarithm of the number of cells in a slice's ring: at least twice the tasks or tokens that it
	 * may hold, and at least 8 times `ahead`.
	 */
	__u32 ring_bits;
	/* How many cells ahead must be free in a ring: 2 * (CPUs + 1) or more. */
	__u32 ahead;
	/* Whether the time comes from `struct life` instead of the kernel's clock. */
	__u32 test_mode;
	/* The number of servers; if zero, nothing is written ahead. */
	__u32 servers;
	/* The first ticket of a waiting task. */
	__u32 tickets_start;
};

/* The version of the maps' layout, and the shape for which they were made. */
struct layout {
	__u32 version;
	struct shape shape;
};
