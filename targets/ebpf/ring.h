/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slice's ring of cells, and how a token and a task meet in one.
 *
 * The n-th token is for the n-th task. So nothing has to be decided about an arrival: it takes the next number of its
 * kind, writes what it brings into the cell of that number, and exchanges the cell's word. Who finds the cell empty has
 * come first: it is parked, and leaves. Who finds the other's word has come second, and sends the DISPATCH. Nobody waits
 * for anybody, and both kinds are served in their order.
 *
 * A cell that is still being read is never written. PROTOCOL lets a depositor find that out at its cell, and give its
 * number back; here nobody takes a number whose cell is in use. Second comers count the cells that they are done with, by
 * quarters of the ring. Before anything else a pass looks at the quarter that lies `ahead` cells before its number: it
 * must have been given back whole by the lap before, or the pass gives up as long as nothing has been changed (TOKEN: a
 * PROBE's answer; SUBMIT: REJECT).
 *
 * Why that is enough, with P passes at once and ahead > P: take any P + 1 numbers of one kind in a row. One CPU took two
 * of them, and when it looked for its second, all up to its first had been given out. So somebody looked at each quarter
 * before the first number of it was given out, however long a pass is held up between its look and its number; and
 * what has been given back stays so until it is used. What comes second needs no look: the first had one. Who goes round
 * takes another number, and so looks again.
 */
#pragma once

#include "sources.h"

enum cell_state { CELL_EMPTY = 0, CELL_TASK = 1, CELL_TOKEN = 2, CELL_VOID = 3 };

/* A cell's word: lap (12 bits), state (4), worker (16), generation (32). */
enum {
	WORKER_SHIFT = 32,
	STATE_SHIFT = 48,
	LAP_SHIFT = 52,
	/* Of 2^32 numbers a quarter sees a fourth. */
	QUARTER_COUNT_MASK = (1u << 30) - 1,
};

static __always_inline struct queue *queue_of(__u32 slice)
{
	return bpf_map_lookup_elem(&queues, &slice);
}

/* Tokens parked if positive, tasks waiting if negative. */
static __always_inline __s32 balance_of(const struct queue *queue)
{
	return READ_ONCE(queue->tokens) - READ_ONCE(queue->tasks);
}

/* Whether the next numbers of a kind may meet cells of the lap before. */
static __always_inline int is_busy(const struct queue *queue, __u32 next)
{
	__u32 quarter_bits = shape.ring_bits - 2;
	__u32 run = (next + shape.ahead) >> quarter_bits;
	__u32 before = run / QUARTERS << quarter_bits;
	__u32 past = READ_ONCE(queue->released[run % QUARTERS]) - before;

	return (past & QUARTER_COUNT_MASK) > 1u << quarter_bits;
}

static __always_inline struct cell *cell_of(__u32 slice, __u32 number)
{
	__u32 index = (slice << shape.ring_bits) + (number & ((1u << shape.ring_bits) - 1));

	return bpf_map_lookup_elem(&cells, &index);
}

static __always_inline __u64 cell_word(__u32 number, enum cell_state state, __u16 worker, __u32 generation)
{
	__u64 lap = (__u64)(number >> shape.ring_bits) << LAP_SHIFT;

	return lap | (__u64)state << STATE_SHIFT | (__u64)worker << WORKER_SHIFT | generation;
}

/* Leaves a word, and says what was there: 0, or the other's. All that was written before it can be seen with it. */
static __always_inline __u64 cell_exchange(struct cell *cell, __u64 word)
{
	return __sync_lock_test_and_set(&cell->word, word);
}

/* What the other left; void if it cannot be the other's. */
static __always_inline enum cell_state cell_found(__u32 number, __u64 word, enum cell_state other,
						  struct counters *counters)
{
	enum cell_state state = word >> STATE_SHIFT & 0xf;

	if ((word ^ cell_word(number, 0, 0, 0)) >> LAP_SHIFT || (state != other && state != CELL_VOID)) {
		count(counters, COUNT_CELL_BROKEN);
		return CELL_VOID;
	}
	return state;
}

/* The task in a cell whose word was found: its reads depend on that word, and so come after it on any machine. */
static __always_inline const struct cell *cell_behind(const struct cell *cell, __u64 word)
{
	asm volatile("%0 &= 0" : "+r"(word));
	return (const void *)cell + word;
}

/* The cell may be used by the next lap: all reads of it come before. */
static __always_inline void cell_release(struct queue *queue, __u32 number, struct cell *cell)
{
	__u32 quarter = number >> (shape.ring_bits - 2) & (QUARTERS - 1);
	__u32 was;

	cell->word = CELL_EMPTY;
	was = __sync_fetch_and_add(&queue->released[quarter], 1);
	/* Only an addition whose value is used orders memory. */
	asm volatile("" : : "r"(was));
}
