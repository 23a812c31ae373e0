/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring's cells, and how the two that hold one ticket meet in its cell.
 *
 * Each ticket of a ring is held by two passes: one that parks (it took the ticket at the tail) and one that takes what
 * was parked (at the head). `balance` has paired them, so that neither ever needs the other to be first: each writes what
 * it brings and exchanges the cell's word. Who finds the cell empty has come first and leaves; who finds the other's
 * word has come second, and does what the two are there for. Nobody waits for anybody.
 *
 * A cell that is still being read is never written. PROTOCOL lets a depositor find that out at its cell and give its
 * ticket back; here nobody is given a ticket whose cell is in use. Second comers count the cells that they are done with,
 * by quarters of the ring. Before anything else a pass looks at the quarter that lies `ahead` cells before the tail: it
 * must have been given back whole by the lap before, or the pass gives up as long as nothing has been changed (TOKEN: a
 * PROBE's answer; SUBMIT: REJECT).
 *
 * Why that is enough, with P passes at once and ahead > 2 P: take any P + 1 arrivals in a row that decided to park. One CPU
 * made two of them, and at its second look at the tail all tickets up to its first were given out but for P - 1 at most.
 * So someone looked at each quarter before any ticket of it was given out, at either end, however long any pass is
 * held up between its look and its ticket; and what has been given back once stays so.
 */
#pragma once

#include "sources.h"

enum cell_state { CELL_EMPTY = 0, CELL_TASK = 1, CELL_TOKEN = 2, CELL_VOID = 3 };

enum {
	WORKER_SHIFT = 32,
	STATE_SHIFT = 48,
	LAP_SHIFT = 52,
	/* Of 2^32 tickets a quarter sees a fourth. */
	QUARTER_COUNT_MASK = (1u << 30) - 1,
};

/* A ring with what is the same for all of its kind. */
struct side {
	struct ring *ring;
	__u32 bits;
	/* Its first cell. */
	__u32 base;
};

static __always_inline struct queue *queue_of(__u32 slice)
{
	return bpf_map_lookup_elem(&queues, &slice);
}

static __always_inline struct side tasks_of(struct queue *queue, __u32 slice)
{
	struct side side = {
		.ring = &queue->tasks,
		.bits = shape.task_bits,
		.base = slice * ((1u << shape.task_bits) + (1u << shape.token_bits)),
	};

	return side;
}

static __always_inline struct side tokens_of(struct queue *queue, __u32 slice)
{
	struct side side = tasks_of(queue, slice);

	side.ring = &queue->tokens;
	side.bits = shape.token_bits;
	side.base += 1u << shape.task_bits;
	return side;
}

/* Whether the next tickets may meet cells of the lap before. */
static __always_inline int is_busy(struct side side)
{
	__u32 quarter_bits = side.bits - 2;
	__u32 run = (READ_ONCE(side.ring->tail) + shape.ahead) >> quarter_bits;
	__u32 before = run / QUARTERS << quarter_bits;
	__u32 past = READ_ONCE(side.ring->released[run % QUARTERS]) - before;

	return (past & QUARTER_COUNT_MASK) > 1u << quarter_bits;
}

static __always_inline struct cell *cell_of(struct side side, __u32 ticket)
{
	__u32 index = side.base + (ticket & ((1u << side.bits) - 1));

	return bpf_map_lookup_elem(&cells, &index);
}

static __always_inline __u64 cell_word(struct side side, __u32 ticket, enum cell_state state, __u16 worker,
				       __u32 generation)
{
	__u64 lap = (__u64)(ticket >> side.bits) << LAP_SHIFT;

	return lap | (__u64)state << STATE_SHIFT | (__u64)worker << WORKER_SHIFT | generation;
}

/* Leaves a word, and says what was there: 0, or the other's. All that was written before it can be seen with it. */
static __always_inline __u64 cell_exchange(struct cell *cell, __u64 word)
{
	return __sync_lock_test_and_set(&cell->word, word);
}

/* What the other left; void if it cannot be the other's. */
static __always_inline enum cell_state cell_found(struct side side, __u32 ticket, __u64 word, enum cell_state other,
						  struct counters *counters)
{
	enum cell_state state = word >> STATE_SHIFT & 0xf;

	if ((word ^ cell_word(side, ticket, 0, 0, 0)) >> LAP_SHIFT || (state != other && state != CELL_VOID)) {
		count(counters, COUNT_CELL_BROKEN);
		return CELL_VOID;
	}
	return state;
}

/* The cell may be used by the next lap: all reads of it come before. */
static __always_inline void cell_release(struct side side, __u32 ticket, struct cell *cell)
{
	__u32 quarter = ticket >> (side.bits - 2) & (QUARTERS - 1);
	__u32 was;

	cell->word = CELL_EMPTY;
	was = __sync_fetch_and_add(&side.ring->released[quarter], 1);
	/* Only an addition whose value is used orders memory. */
	asm volatile("" : : "r"(was));
}
