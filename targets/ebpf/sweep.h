/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's sweep. On the chip a SWEEP recirculates; here one run of the program performs the whole walk.
 * The loader builds the frame, runs the program `sweep` with it (BPF_PROG_TEST_RUN), and sends the resulting packet
 * by its own socket. The program is not attached to any link: a SWEEP from the wire is refused. A walk visits at
 * most the 65,535 entries that a SWEEP can name, and ends early when it has something to send, as on the chip.
 */
#pragma once

#include "front.h"

enum swept { SWEPT_NOTHING, SWEPT_DISPATCH, SWEPT_REJECT };

/* Passes of the longest walk: two for each entry, and a few for entries that another CPU took first. */
enum { PASSES_MAX = 3 * 65536 };

struct walk {
	__u32 slice;
	__u32 of_tasks;
	__u32 left;
	__u32 carries;
	struct granted token;
	enum swept swept;
	__u32 occupancy;
	/* What was taken. */
	struct cell task;
};

enum takes { TAKES_NONE, TAKES_ONE, TAKES_LATE };

/*
 * Takes the next number of one kind if the other kind is ahead. If another CPU took it, the result is late. The
 * ring needs no check.
 */
static __always_inline enum takes walk_takes(__u32 *own, const __u32 *other, __u32 *number)
{
	*number = READ_ONCE(*own);
	if ((__s32)(READ_ONCE(*other) - *number) <= 0)
		return TAKES_NONE;
	return __sync_val_compare_and_swap(own, *number, *number + 1) == *number ? TAKES_ONE : TAKES_LATE;
}

/* The word in that number's cell; 0 if the other has not come yet, and will find the cell void. */
static __always_inline __u64 walk_pops(struct walk *walk, struct queue *queue, __u32 number, enum cell_state other,
				       struct counters *counters)
{
	struct cell *cell = cell_of(walk->slice, number);
	__u64 found;

	if (!cell)
		return 0;
	found = cell_exchange(cell, cell_word(number, CELL_VOID, 0, 0));
	if (!found)
		return 0;
	if (cell_found(number, found, other, counters) != other)
		found = 0;
	else if (other == CELL_TASK)
		walk->task = *cell;
	cell_release(queue, number, cell);
	return found;
}

static __always_inline int walk_task(struct walk *walk, struct queue *queue, struct counters *counters)
{
	const struct slice_row *row = slice_row(walk->slice);
	enum takes takes;
	__u32 number;

	/* The tasks of an open slice have workers to wait for. */
	if (!row || row->open)
		return 1;
	takes = walk_takes(&queue->tokens, &queue->tasks, &number);
	if (takes != TAKES_ONE)
		return takes == TAKES_NONE;
	if (!walk_pops(walk, queue, number, CELL_TASK, counters))
		return 0;
	walk->swept = SWEPT_REJECT;
	return 1;
}

static __always_inline int walk_token(struct walk *walk, struct queue *queue, struct counters *counters)
{
	__u32 number;
	enum takes takes = walk_takes(&queue->tasks, &queue->tokens, &number);
	__u64 found;

	walk->carries = 0;
	if (takes != TAKES_ONE)
		return takes == TAKES_NONE;
	walk->left--;
	found = walk_pops(walk, queue, number, CELL_TOKEN, counters);
	if (!found)
		return 0;
	walk->token.worker = found >> WORKER_SHIFT;
	walk->token.generation = found;
	walk->carries = !!live_row(walk->token.worker, walk->token.generation);
	return 0;
}

/* Parks the carried valid token again, or matches it with a task that came meanwhile. */
static __always_inline int walk_parks(struct walk *walk, struct queue *queue, struct counters *counters)
{
	struct met met;
	enum entered entered;

	/* A busy ring becomes free by itself: the CPU that uses a cell finishes. */
	if (is_busy(queue, READ_ONCE(queue->tokens)))
		return 0;
	entered = token_try(queue, walk->slice, walk->token, counters, &met);
	if (entered == ENTERED_VOID)
		return 0;
	walk->carries = 0;
	if (entered == ENTERED_PARKED)
		return 0;
	walk->task = *met.task;
	walk->occupancy = met.occupancy;
	cell_release(met.queue, met.number, met.cell);
	walk->swept = SWEPT_DISPATCH;
	return 1;
}

/* Whether tokens of this generation are still accepted. */
static __always_inline int is_admitted(struct granted token)
{
	const struct worker_row *row = worker_row(token.worker);

	return row && row->open && row->generation == token.generation;
}

/* One pass of the sweep; returns 1 at the end of the walk. */
static long walk_on(__u32 index, void *context)
{
	struct walk *walk = context;
	struct counters *counters = own_counters();
	struct queue *queue = queue_of(walk->slice);

	if (!counters || !queue)
		return 1;
	if (walk->carries && is_admitted(walk->token))
		return walk_parks(walk, queue, counters);
	if (!walk->left)
		return 1;
	return walk->of_tasks ? walk_task(walk, queue, counters) : walk_token(walk, queue, counters);
}

/* A task of a slice without workers is rejected; it is dropped if its client is gone. */
static __always_inline enum verdict sweep_out(struct pass *pass, const struct walk *walk)
{
	struct header *header = pass->frame.header;
	const struct client_row *row = client_row(bpf_ntohs(walk->task.client));

	if (!row)
		return VERDICT_DROP;
	pass->out.to = row->at;
	take_task(header, &walk->task);
	write_reject(header, pass->life, REJECT_NO_WORKERS);
	count(pass->counters, COUNT_REJECTED);
	return VERDICT_SEND;
}

/* The counters of the worker whose token is carried, and the frame's destination; 0 if the worker is gone. */
static __always_inline struct worker_counters *sweep_to(struct pass *pass, __u32 worker)
{
	const struct worker_row *row = worker_row(worker);

	if (!row)
		return 0;
	pass->out.to = row->at;
	return bpf_map_lookup_elem(&worker_counters, &worker);
}

static __always_inline enum verdict sweep_dispatch(struct pass *pass, const struct walk *walk)
{
	struct worker_counters *held = sweep_to(pass, walk->token.worker);

	if (!held)
		return VERDICT_DROP;
	dispatch_waiting(pass->frame.header, pass->life, walk->slice, &walk->task, walk->token, held, pass->now,
			 walk->occupancy);
	count(pass->counters, COUNT_DISPATCHED);
	return VERDICT_SEND;
}

/* The ring stayed busy for the whole walk: the carried token is spent, and its worker is told. */
static __always_inline enum verdict sweep_spends(struct pass *pass, const struct walk *walk)
{
	struct worker_counters *held = sweep_to(pass, walk->token.worker);
	struct header *header = pass->frame.header;

	if (!held)
		return VERDICT_DROP;
	header->worker = bpf_htons(walk->token.worker);
	header->generation = bpf_htonl(walk->token.generation);
	write_empty(header, pass->life, held);
	return VERDICT_SEND;
}

static __always_inline enum verdict sweep_walks(struct pass *pass)
{
	struct header *header = pass->frame.header;
	struct walk walk = {
		.slice = bpf_ntohs(header->slice),
		.of_tasks = header->code & SWEEP_TASKS,
		.left = bpf_ntohl(header->words[SWEEP_LEFT]),
		.carries = header->code & SWEEP_CARRIES,
		.token = { .worker = bpf_ntohs(header->worker), .generation = bpf_ntohl(header->generation) },
	};

	if (bpf_ntohl(header->epoch) != pass->life->epoch || walk.slice >= shape.slices) {
		refuse(pass->counters, REFUSAL_WRONG_EPOCH);
		return VERDICT_DROP;
	}
	__builtin_memset(header, 0, HEADER_BYTES);
	header->version = WIRE_VERSION;
	header->own_length = HEADER_BYTES;
	bpf_loop(PASSES_MAX, walk_on, &walk, 0);
	if (walk.swept == SWEPT_REJECT)
		return sweep_out(pass, &walk);
	if (walk.swept == SWEPT_DISPATCH)
		return sweep_dispatch(pass, &walk);
	if (walk.carries && is_admitted(walk.token))
		return sweep_spends(pass, &walk);
	refuse(pass->counters, REFUSAL_SWEEP_DONE);
	return VERDICT_DROP;
}
