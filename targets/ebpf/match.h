/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rain's queue: a token meets a waiting task or parks; a task meets a parked token or waits (Rain 3.2.1).
 *
 * Whether there is room is a plain read before the number is taken, so arrivals may exceed the limit by the number
 * of CPUs; the rings have cells for them. On the chip a task that met a stale token recirculates. Here it tries
 * again in the same pass, up to the same number of times; so does an arrival whose counterpart a SWEEP took.
 */
#pragma once

#include "ahead.h"
#include "emit.h"
#include "ring.h"
#include "target.h"

enum { ROUNDS_MAX = 16 };

enum entered {
	/* It came first. */
	ENTERED_PARKED,
	/* It came second. */
	ENTERED_MET,
	/* A SWEEP has taken the entry with this number. */
	ENTERED_VOID,
};

/* Stores a waiting task in a cell. If its bytes are many, they stay with its client. */
static __always_inline void keep_task(struct cell *cell, const struct header *header, __u64 now)
{
	cell->times = times_of(now, bpf_ntohl(header->words[TASK_AGE]));
	cell->task = header->task;
	cell->task_type = header->task_type;
	cell->priority = header->priority;
	cell->constraints = header->constraints;
	cell->client = header->client;
	cell->budget = bpf_ntohl(header->words[TASK_BUDGET]) >> 16;
}

/*
 * Copies a task from a cell into a header. The upper half of its incarnation is that of its client's row, and zero
 * without a row, as on the chip: `Front::whole` in `sluice_switch` says why.
 */
static __always_inline void take_task(struct header *header, const struct cell *cell)
{
	const struct client_row *client = client_row(bpf_ntohs(cell->client));

	header->task = cell->task;
	header->task.incarnation_high = client ? bpf_htonl(client->incarnation >> 32) : 0;
	header->task_type = cell->task_type;
	header->priority = cell->priority;
	header->constraints = cell->constraints;
	header->client = cell->client;
}

/* Dispatches a waiting task with the token that is being granted, in the token's frame. */
static __always_inline void dispatch_waiting(struct header *header, const struct life *life, __u32 slice,
					     const struct cell *cell, struct granted granted, struct worker_counters *held, __u64 now,
					     __u32 occupancy)
{
	__u64 times = cell->times;
	enum place place = place_of(cell);

	take_task(header, cell);
	write_dispatch(header, life, place, granted, held, waited_ns(times, now), occupancy, age_of(times),
		       cell->budget);
	if (place == PLACE_AHEAD) {
		header->key = bpf_htonl(cell->ticket);
		header->slice = bpf_htons(slice);
	}
}

/* The task that a token met: its cell must be released once the task was read. */
struct met {
	struct queue *queue;
	struct cell *cell;
	const struct cell *task;
	__u32 number;
	/* How many tasks still wait behind it. */
	__u32 occupancy;
};

/* One attempt to match a granted token. */
static __always_inline enum entered token_try(struct queue *queue, __u32 slice, struct granted granted,
					      struct counters *counters, struct met *met)
{
	__u32 number = __sync_fetch_and_add(&queue->tokens, 1);
	struct cell *cell = cell_of(slice, number);
	__s32 behind = READ_ONCE(queue->tasks) - number - 1;
	__u64 found;

	if (!cell)
		return ENTERED_VOID;
	found = READ_ONCE(cell->word);
	if (!found)
		found = cell_exchange(cell, cell_word(number, CELL_TOKEN, granted.worker, granted.generation));
	if (!found)
		return ENTERED_PARKED;
	if (cell_found(number, found, CELL_TASK, counters) != CELL_TASK) {
		cell_release(queue, number, cell);
		return ENTERED_VOID;
	}
	met->queue = queue;
	met->cell = cell;
	met->task = cell_behind(cell, found);
	met->number = number;
	met->occupancy = behind > 0 ? behind : 0;
	return ENTERED_MET;
}

/* One attempt to match a task; `granted` is the token that it met. */
static __always_inline enum entered task_try(struct queue *queue, __u32 slice, const struct header *header, __u64 now,
					     struct counters *counters, struct ahead *ahead, struct granted *granted)
{
	__u32 number = next_task(queue, ahead);
	struct cell *cell = cell_of(slice, number);
	__u64 found;

	if (!cell)
		return ENTERED_VOID;
	found = READ_ONCE(cell->word);
	if (!found) {
		keep_task(cell, header, now);
		keep_ahead(cell, ahead);
		found = cell_exchange(cell, cell_word(number, CELL_TASK, 0, 0));
	}
	if (!found)
		return ENTERED_PARKED;
	/* A token is entirely in the word: nothing else has to be read. */
	cell_release(queue, number, cell);
	if (cell_found(number, found, CELL_TOKEN, counters) != CELL_TOKEN)
		return ENTERED_VOID;
	granted->worker = found >> WORKER_SHIFT;
	granted->generation = found;
	return ENTERED_MET;
}
