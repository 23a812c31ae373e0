/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks before the queue: sources, epochs, generations, tokens that are granted once, attempts that enter
 * once; and the verdict on the packet. The checks and their order are those of `front` in `sluice_switch`.
 */
#pragma once

#include "match.h"
#include "parse.h"

enum {
	/* How far a TOKEN's count may be ahead of the granted tokens. */
	TOKENS_AHEAD_MAX = 8,
	/* How often a counter is read again after another CPU changed it. */
	TRIES_MAX = 4,
};

/* The state of a pass. */
struct pass {
	const struct life *life;
	struct counters *counters;
	struct frame frame;
	__u64 now;
	struct out out;
	struct ahead ahead;
};

/*
 * What happens to the frame: it is dropped, or it leaves as the rewritten packet for `out`; or its task waits, and
 * the task's bytes go to the servers.
 */
enum verdict { VERDICT_DROP, VERDICT_SEND, VERDICT_WRITE };

/* ADMITTED, or why a worker's packet is answered with the worker's counters instead of being accepted. */
static __always_inline int out_of_date(const struct life *life, const struct worker_row *row,
				       const struct header *header)
{
	if (bpf_ntohl(header->epoch) != life->epoch)
		return REFUSAL_WRONG_EPOCH;
	if (bpf_ntohl(header->generation) != row->generation)
		return REFUSAL_WRONG_GENERATION;
	return row->open ? ADMITTED : REFUSAL_CLOSED;
}

/*
 * Grants one more token; ADMITTED if it did. A packet grants one token even if others were lost before it: the
 * worker repeats them.
 */
static __always_inline int grant(struct worker_counters *held, __u32 issued)
{
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		__u32 seen = READ_ONCE(held->seen);

		if (issued - seen - 1 >= TOKENS_AHEAD_MAX)
			return (__s32)(issued - seen) <= 0 ? REFUSAL_REPEATED_TOKEN : REFUSAL_IMPOSSIBLE_COUNTER;
		if (__sync_val_compare_and_swap(&held->seen, seen, seen + 1) == seen) {
			held->seen_out = seen + 1;
			return ADMITTED;
		}
	}
	return REFUSAL_REPEATED_TOKEN;
}

/* Whether the token finds room in its ring. Nothing has been changed yet. */
static __always_inline int token_room(const struct queue *queue, struct counters *counters)
{
	if (balance_of(queue) >= (__s32)shape.tokens_per_slice) {
		refuse(counters, REFUSAL_TOKEN_RING_FULL);
		return 0;
	}
	if (is_busy(queue, READ_ONCE(queue->tokens))) {
		count(counters, COUNT_RING_BUSY);
		return 0;
	}
	return 1;
}

static __always_inline enum verdict answer(struct pass *pass, const struct worker_row *row,
					   const struct worker_counters *held)
{
	write_answer(pass->frame.header, pass->life, row, held);
	return VERDICT_SEND;
}

/* A granted token enters the queue, and may leave with a task. */
static __always_inline enum verdict token_enters(struct pass *pass, struct queue *queue, __u32 slice,
						 struct granted granted, struct worker_counters *held)
{
	struct met met;

	for (int round = 0; round <= ROUNDS_MAX; round++) {
		enum entered entered;

		/* Each new number needs a check: see ring.h. */
		if (round && is_busy(queue, READ_ONCE(queue->tokens))) {
			count(pass->counters, COUNT_RING_BUSY);
			break;
		}
		entered = token_try(queue, slice, granted, pass->counters, &met);

		if (entered == ENTERED_PARKED) {
			token_parked(queue, pass->now);
			return VERDICT_DROP;
		}
		if (entered == ENTERED_VOID) {
			count(pass->counters, COUNT_RECIRCULATED);
			continue;
		}
		token_took(queue);
		dispatch_waiting(pass->frame.header, pass->life, slice, met.task, granted, held, pass->now, met.occupancy);
		cell_release(met.queue, met.number, met.cell);
		count(pass->counters, COUNT_DISPATCHED);
		return VERDICT_SEND;
	}
	/* Reached only with more SWEEPs than a controller sends. The token is spent, and its worker is told. */
	write_empty(pass->frame.header, pass->life, held);
	return VERDICT_SEND;
}

/* The row of the worker that sent a packet, if its key and address are right. */
static __always_inline const struct worker_row *admit_worker(struct pass *pass, struct worker_counters **held)
{
	const struct header *header = pass->frame.header;
	__u32 worker = bpf_ntohs(header->worker);
	const struct worker_row *row = worker_row(worker);
	int why = REFUSAL_UNKNOWN_SOURCE;

	*held = bpf_map_lookup_elem(&worker_counters, &worker);
	if (row && *held)
		why = check_source(row->key, header->key, &row->at, &pass->frame.from);
	if (why != ADMITTED) {
		refuse(pass->counters, why);
		return 0;
	}
	return row;
}

static __always_inline enum verdict token(struct pass *pass)
{
	struct header *header = pass->frame.header;
	struct worker_counters *held;
	const struct worker_row *row;
	struct granted granted;
	struct queue *queue;
	int why;

	count(pass->counters, COUNT_TOKENS);
	row = admit_worker(pass, &held);
	if (!row)
		return VERDICT_DROP;
	queue = queue_of(row->slice);
	if (!queue)
		return VERDICT_DROP;
	why = out_of_date(pass->life, row, header);
	if (why == ADMITTED) {
		if (!token_room(queue, pass->counters))
			return answer(pass, row, held);
		why = grant(held, bpf_ntohl(header->words[TOKEN_ISSUED]));
	}
	if (why != ADMITTED) {
		refuse(pass->counters, why);
		return answer(pass, row, held);
	}
	/*
	 * Learns the worker's path only from accepted packets: a copy of an earlier TOKEN may come by a path that
	 * the worker has left.
	 */
	learn_way(&held->way, &pass->frame.back);
	granted.worker = bpf_ntohs(header->worker);
	granted.generation = row->generation;
	return token_enters(pass, queue, row->slice, granted, held);
}

static __always_inline enum verdict probe(struct pass *pass)
{
	struct worker_counters *held;
	const struct worker_row *row = admit_worker(pass, &held);
	int why;

	if (!row)
		return VERDICT_DROP;
	why = out_of_date(pass->life, row, pass->frame.header);
	if (why != ADMITTED)
		refuse(pass->counters, why);
	else
		learn_way(&held->way, &pass->frame.back);
	return answer(pass, row, held);
}

/* Whether this attempt is newer than the newest one that its replay cell accepted. If so, it becomes the newest. */
static __always_inline int is_first(const struct header *header)
{
	__u32 sequence = bpf_ntohl(header->task.sequence);
	__u32 index = bpf_ntohs(header->client) * shape.replay_cells + (sequence & (shape.replay_cells - 1));
	__u64 word = (__u64)sequence << 32 | (__u64)bpf_ntohs(header->task.attempt) << 16;
	__u64 *cell = bpf_map_lookup_elem(&replay, &index);

	for (int tries = 0; cell && tries < TRIES_MAX; tries++) {
		__u64 held = READ_ONCE(*cell);

		if ((__s64)(word - held) <= 0)
			return 0;
		if (__sync_val_compare_and_swap(cell, held, word) == held)
			return 1;
	}
	return 0;
}

static __always_inline enum verdict reject(struct pass *pass, enum reject why)
{
	write_reject(pass->frame.header, pass->life, why);
	count(pass->counters, COUNT_REJECTED);
	return VERDICT_SEND;
}

/* Tells the client that its task would wait for longer than the slice's target, and what clients share. */
static __always_inline enum verdict reject_busy(struct pass *pass, const struct slice_row *row, __u32 room)
{
	struct header *header = pass->frame.header;
	enum verdict verdict = reject(pass, REJECT_BUSY);

	header->words[REJECT_RETRY_AFTER] = bpf_htonl(saturated(row->target_ns));
	header->words[REJECT_ROOM] = bpf_htonl(room);
	header->words[REJECT_CLIENTS] = bpf_htonl(pass->life->clients);
	return verdict;
}

/* Forwards the task to the worker whose token it met. */
static __always_inline enum verdict dispatch(struct pass *pass, const struct worker_row *row,
					     struct granted granted, struct worker_counters *held)
{
	struct header *header = pass->frame.header;
	struct out *out = &pass->out;
	enum place place = PLACE_HERE;

	out->to = row->at;
	find_way(&out->way, &held->way, &pass->frame.back);
	out->body = pass->frame.length - HEADER_BYTES - trailer_bytes(bpf_ntohs(header->task.length));
	if (out->body && !is_v4(&out->to) && !carry_check(&pass->frame)) {
		out->body = 0;
		place = PLACE_AT_CLIENT;
	}
	write_dispatch(header, pass->life, place, granted, held, 0, 0, bpf_ntohl(header->words[TASK_AGE]),
		       bpf_ntohl(header->words[TASK_BUDGET]) >> 16);
	count(pass->counters, COUNT_DISPATCHED);
	return VERDICT_SEND;
}

/* An accepted task meets a parked token that is valid, or enters the queue, or goes back with a reason. */
static __always_inline enum verdict task_enters(struct pass *pass)
{
	struct header *header = pass->frame.header;
	struct granted granted;

	for (int round = 0; round <= ROUNDS_MAX; round++) {
		__u32 slice = slice_of(bpf_ntohs(header->task_type)), worker;
		const struct slice_row *row = slice ? slice_row(slice - 1) : 0;
		struct queue *queue = slice ? queue_of(slice - 1) : 0;
		const struct worker_row *to;
		struct worker_counters *held;
		__u32 allowed, most;
		enum entered entered;
		__s32 balance;

		if (!row || !queue)
			return reject(pass, REJECT_UNKNOWN_TYPE);
		if (!row->open)
			return reject(pass, REJECT_NO_WORKERS);
		balance = balance_of(queue);
		allowed = allowed_by(queue);
		most = allowed < row->limit ? allowed : row->limit;
		if (balance <= -(__s32)most) {
			if (allowed >= row->limit)
				return reject(pass, REJECT_QUEUE_FULL);
			__sync_fetch_and_add(&queue->refused_busy, 1);
			return reject_busy(pass, row, allowed);
		}
		if (is_busy(queue, READ_ONCE(queue->tasks))) {
			count(pass->counters, COUNT_RING_BUSY);
			return reject(pass, REJECT_QUEUE_FULL);
		}
		ask_ahead(&pass->ahead, slice - 1, balance, &pass->frame);
		if (balance <= 0 && window_ends(queue, pass->now)) {
			refuse(pass->counters, REFUSAL_LIMIT_MEASURED);
			pass->ahead.is = 0;
		}
		entered = task_try(queue, slice - 1, header, pass->now, pass->counters, &pass->ahead, &granted);
		if (entered == ENTERED_PARKED)
			return pass->ahead.is ? VERDICT_WRITE : VERDICT_DROP;
		if (entered == ENTERED_MET) {
			worker = granted.worker;
			to = live_row(worker, granted.generation);
			held = bpf_map_lookup_elem(&worker_counters, &worker);
			if (to && held)
				return dispatch(pass, to, granted, held);
		}
		count(pass->counters, COUNT_RECIRCULATED);
	}
	return reject(pass, REJECT_STALE_TOKENS);
}

static __always_inline enum verdict submit(struct pass *pass)
{
	struct header *header = pass->frame.header;
	const struct client_row *row = client_row(bpf_ntohs(header->client));
	int why;

	count(pass->counters, COUNT_SUBMITS);
	if (!row) {
		refuse(pass->counters, REFUSAL_UNKNOWN_SOURCE);
		return VERDICT_DROP;
	}
	why = check_source(row->key, header->key, &row->at, &pass->frame.from);
	if (why != ADMITTED) {
		refuse(pass->counters, why);
		return VERDICT_DROP;
	}
	if (bpf_ntohl(header->epoch) != pass->life->epoch) {
		refuse(pass->counters, REFUSAL_WRONG_EPOCH);
		write_notice(header, pass->life);
		return VERDICT_SEND;
	}
	if (!is_first(header)) {
		refuse(pass->counters, REFUSAL_REPLAYED);
		return VERDICT_DROP;
	}
	return task_enters(pass);
}
