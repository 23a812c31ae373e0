/* SPDX-License-Identifier: Apache-2.0 */
/* The packets that leave the switch: the incoming packet is rewritten in place. send.h sends the frame. */
#pragma once

#include "clock.h"
#include "frame.h"
#include "sources.h"

/* A packet's destination, and how many bytes follow its header. */
struct out {
	struct endpoint to;
	struct way way;
	__u32 body;
};

static __always_inline int is_v4(const struct endpoint *at)
{
	return at->ip[2] == bpf_htonl(0xffff) && !at->ip[0] && !at->ip[1];
}

static __always_inline __u32 ip_bytes_to(const struct endpoint *at)
{
	return is_v4(at) ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

/* Writes a header of this kind. Its caller clears the fields that the kind does not use. */
static __always_inline void write_kind(struct header *header, const struct life *life, enum kind kind, __u8 code)
{
	header->kind = kind;
	header->code = code;
	header->epoch = bpf_htonl(life->epoch);
	header->key = 0;
}

/* Answers a TOKEN or a PROBE with the switch's counters for its sender; without counters, the answer is CLOSED. */
static __always_inline void write_answer(struct header *header, const struct life *life, const struct worker_row *row,
					 const struct worker_counters *held)
{
	__be32 nonce = header->words[TOKEN_NONCE];

	write_kind(header, life, KIND_ANSWER, row->open);
	header->generation = bpf_htonl(row->generation);
	header->words[ANSWER_SEEN] = row->open ? bpf_htonl(READ_ONCE(held->seen)) : 0;
	header->words[ANSWER_SENT] = row->open ? bpf_htonl(READ_ONCE(held->sent)) : 0;
	header->words[ANSWER_NONCE] = nonce;
}

/* Clears the task fields that only a SUBMIT and a DISPATCH use. */
static __always_inline void clear_task(struct header *header)
{
	header->priority = 0;
	header->constraints = 0;
	header->task.length = 0;
	__builtin_memset(header->task.bytes, 0, INLINE_BYTES);
	header->words[TASK_AGE] = 0;
}

/* Turns a SUBMIT, or a task that a SWEEP took, into a REJECT. */
static __always_inline void write_reject(struct header *header, const struct life *life, enum reject why)
{
	__u32 slice = slice_of(bpf_ntohs(header->task_type));
	const struct slice_row *row = slice ? slice_row(slice - 1) : 0;

	write_kind(header, life, KIND_REJECT, why);
	clear_task(header);
	header->words[REJECT_RETRY_AFTER] = row ? bpf_htonl(saturated(row->retry_after_ns)) : 0;
}

/* Turns a SUBMIT of another epoch into a NOTICE. */
static __always_inline void write_notice(struct header *header, const struct life *life)
{
	write_kind(header, life, KIND_NOTICE, 0);
	header->task_type = 0;
	clear_task(header);
}

/* A token that the switch granted. */
struct granted {
	__u16 worker;
	__u32 generation;
};

/* Turns a TOKEN into an EMPTY: the token was granted, and is spent without a task. */
static __always_inline void write_empty(struct header *header, const struct life *life, struct worker_counters *held)
{
	__u32 sent = __sync_fetch_and_add(&held->sent, 1) + 1;

	write_kind(header, life, KIND_EMPTY, 0);
	header->words[ANSWER_SEEN] = bpf_htonl(READ_ONCE(held->seen_out));
	header->words[ANSWER_SENT] = bpf_htonl(sent);
	header->words[ANSWER_NONCE] = 0;
}

/*
 * Turns a task's header into a DISPATCH: adds the token that the task met, the DISPATCH's number, and the state of
 * the queue (INT).
 */
static __always_inline void write_dispatch(struct header *header, const struct life *life, enum place place,
					   struct granted granted, struct worker_counters *held, __u64 wait_ns,
					   __u32 occupancy, __u32 age, __u32 budget)
{
	const struct client_row *client = client_row(bpf_ntohs(header->client));
	__u32 sent = __sync_fetch_and_add(&held->sent, 1) + 1;

	write_kind(header, life, KIND_DISPATCH, place);
	header->worker = bpf_htons(granted.worker);
	header->generation = bpf_htonl(granted.generation);
	if (client)
		header->at = client->at;
	else
		__builtin_memset(&header->at, 0, sizeof(header->at));
	header->slice = 0;
	header->words[DISPATCH_SEEN] = bpf_htonl(READ_ONCE(held->seen_out));
	header->words[DISPATCH_SENT] = bpf_htonl(sent);
	header->words[DISPATCH_WAIT] = bpf_htonl(saturated(wait_ns));
	if (occupancy > 0xffff)
		occupancy = 0xffff;
	header->words[DISPATCH_OCCUPANCY] = bpf_htonl(budget_left(budget, wait_ns) << 16 | occupancy);
	header->words[TASK_AGE] = bpf_htonl(aged(age, wait_ns));
}
