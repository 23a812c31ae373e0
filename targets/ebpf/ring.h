/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slice's ring of cells, and how a token and a task meet in a cell.
 *
 * The n-th token is for the n-th task. So an arrival needs no decision: it takes the next number of its kind,
 * writes its data into the cell of that number, and exchanges the cell's word. If the cell was empty, the arrival
 * is the first of the two: it parks, and its pass ends. If the cell held the other's word, the arrival is the
 * second, and sends the DISPATCH. No pass waits for another, and both kinds are served in order.
 *
 * A cell that is still being read is never written. The protocol allows a depositor to notice this at its cell and
 * give its number back; here no pass takes a number whose cell is in use. Second arrivals count the cells that they
 * have finished with, by quarters of the ring. Before anything else, a pass checks the quarter that lies `ahead`
 * cells before its number. The previous lap must have released that quarter completely. If not, the pass gives up
 * before it has changed anything (TOKEN: answered like a PROBE; SUBMIT: REJECT).
 *
 * Why this check is enough, with P passes at once and ahead > P: take any P + 1 consecutive numbers of one kind.
 * One CPU took two of them, and when it made the check for its second, all numbers up to its first had been given
 * out. So each quarter was checked before its first number was given out, however long a pass is delayed between
 * its check and its number. A released quarter stays released until it is used. The second arrival at a cell needs
 * no check, since the first one made it. A pass that tries again takes another number, and so checks again.
 */
#pragma once

#include "sources.h"

enum cell_state { CELL_EMPTY = 0, CELL_TASK = 1, CELL_TOKEN = 2, CELL_VOID = 3 };

/* A cell's word: lap (12 bits), state (4), worker (16), generation (32). */
enum {
	WORKER_SHIFT = 32,
	STATE_SHIFT = 48,
	LAP_SHIFT = 52,
	/* A quarter sees a fourth of 2^32 numbers. */
	QUARTER_COUNT_MASK = (1u << 30) - 1,
};

static __always_inline struct queue *queue_of(__u32 slice)
{
	return bpf_map_lookup_elem(&queues, &slice);
}

/* Parked tokens if positive, waiting tasks if negative. */
static __always_inline __s32 balance_of(const struct queue *queue)
{
	return READ_ONCE(queue->tokens) - READ_ONCE(queue->tasks);
}

/* Whether the next numbers of a kind could reach cells that the previous lap still uses. */
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

/*
 * Stores a word and returns the old one: 0, or the other's word. Everything written before is visible to the pass
 * that sees the word.
 */
static __always_inline __u64 cell_exchange(struct cell *cell, __u64 word)
{
	return __sync_lock_test_and_set(&cell->word, word);
}

/* The state that the other pass left; void if the word cannot be from the expected pass. */
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

/* The task in a cell whose word was found. The reads depend on that word, so they come after it on any machine. */
static __always_inline const struct cell *cell_behind(const struct cell *cell, __u64 word)
{
	asm volatile("%0 &= 0" : "+r"(word));
	return (const void *)cell + word;
}

/* Releases a cell for the next lap, after all reads of it. */
static __always_inline void cell_release(struct queue *queue, __u32 number, struct cell *cell)
{
	__u32 quarter = number >> (shape.ring_bits - 2) & (QUARTERS - 1);
	__u32 was;

	cell->word = CELL_EMPTY;
	was = __sync_fetch_and_add(&queue->released[quarter], 1);
	/* An addition orders memory only if its value is used. */
	asm volatile("" : : "r"(was));
}
