/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rain's queue: a token meets a waiting task or parks, a task meets a parked token or waits (Rain 3.2.1).
 *
 * `balance` decides each arrival in one addition. Whether there is room is a plain read before it, so that as many
 * arrivals as there are CPUs may overshoot; the rings have cells for them. On the chip a task that met a stale token goes
 * round; here it tries again in the same pass, as often as it may, and so does who finds that a SWEEP took its ticket.
 */
#pragma once

#include "emit.h"
#include "ring.h"

enum { ROUNDS_MAX = 16 };

enum entered {
	/* It waits, or whom it was paired with will do the rest. */
	ENTERED_PARKED,
	/* It met whom it looked for. */
	ENTERED_MET,
	/* SWEEPs took all its tickets. */
	ENTERED_VOID,
};

/* Puts a task where it waits. Its bytes, if they are many, stay with its client. */
static __always_inline void keep_task(struct cell *cell, const struct header *header, __u64 now)
{
	cell->times = times_of(now, bpf_ntohl(header->words[TASK_AGE]));
	cell->task = header->task;
	cell->task_type = header->task_type;
	cell->priority = header->priority;
	cell->constraints = header->constraints;
	cell->client = header->client;
}

/* Takes a task into a header. */
static __always_inline void take_task(struct header *header, const struct cell *cell)
{
	header->task = cell->task;
	header->task_type = cell->task_type;
	header->priority = cell->priority;
	header->constraints = cell->constraints;
	header->client = cell->client;
}

static __always_inline enum place place_of(const struct header *header)
{
	return bpf_ntohs(header->task.length) > INLINE_BYTES ? PLACE_AT_CLIENT : PLACE_HERE;
}

/* A task that waited goes with the token that is being granted, in whose frame. */
static __always_inline void dispatch_waiting(struct header *header, const struct life *life, const struct cell *cell,
					     struct granted granted, struct worker_counters *held, __u64 now,
					     __u32 occupancy)
{
	__u64 times = cell->times;

	take_task(header, cell);
	write_dispatch(header, life, place_of(header), granted, held, waited_ns(times, now), occupancy,
		       age_of(times));
}

/* One try of a granted token; what it meets is in `met`, whose cell has to be released then. */
struct met {
	struct side side;
	struct cell *cell;
	__u32 ticket;
	__u32 occupancy;
};

static __always_inline enum entered token_try(struct queue *queue, __u32 slice, struct granted granted,
					      struct counters *counters, struct met *met)
{
	__s32 balance = __sync_fetch_and_add(&queue->balance, 1);
	__u64 found;

	if (balance >= 0) {
		met->side = tokens_of(queue, slice);
		met->ticket = __sync_fetch_and_add(&met->side.ring->tail, 1);
		met->occupancy = 0;
	} else {
		met->side = tasks_of(queue, slice);
		met->ticket = __sync_fetch_and_add(&met->side.ring->head, 1);
		met->occupancy = -balance - 1;
	}
	met->cell = cell_of(met->side, met->ticket);
	if (!met->cell)
		return ENTERED_VOID;
	found = cell_exchange(met->cell,
			      cell_word(met->side, met->ticket, CELL_TOKEN, granted.worker, granted.generation));
	if (!found)
		return ENTERED_PARKED;
	if (cell_found(met->side, met->ticket, found, CELL_TASK, counters) == CELL_TASK)
		return ENTERED_MET;
	cell_release(met->side, met->ticket, met->cell);
	return ENTERED_VOID;
}

/* One try of a task; `granted` is the token that it met. */
static __always_inline enum entered task_try(struct queue *queue, __u32 slice, const struct header *header, __u64 now,
					     struct counters *counters, struct granted *granted)
{
	__s32 balance = __sync_fetch_and_add(&queue->balance, -1);
	struct side side;
	struct cell *cell;
	__u32 ticket;
	__u64 found = 0;

	if (balance <= 0) {
		side = tasks_of(queue, slice);
		ticket = __sync_fetch_and_add(&side.ring->tail, 1);
	} else {
		side = tokens_of(queue, slice);
		ticket = __sync_fetch_and_add(&side.ring->head, 1);
	}
	cell = cell_of(side, ticket);
	if (!cell)
		return ENTERED_VOID;
	/* A token's cell is its word: one that is there needs no exchange. */
	if (balance > 0)
		found = READ_ONCE(cell->word);
	if (!found) {
		keep_task(cell, header, now);
		found = cell_exchange(cell, cell_word(side, ticket, CELL_TASK, 0, 0));
		if (!found)
			return ENTERED_PARKED;
	}
	cell_release(side, ticket, cell);
	if (cell_found(side, ticket, found, CELL_TOKEN, counters) != CELL_TOKEN)
		return ENTERED_VOID;
	granted->worker = found >> WORKER_SHIFT;
	granted->generation = found;
	return ENTERED_MET;
}
