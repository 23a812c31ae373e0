/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are written ahead (Rain 3.2.2): a large task that has to wait goes to its slice's servers at once.
 *
 * The frame that brought it leaves as one RoCEv2 WRITE over all servers' links. In the place of what a server wants to
 * see stand slice and ticket; copies.h puts the rest in where a copy leaves. The ticket counts the tasks of a slice that
 * waited, as in the model, and is no cell's number: tasks that met a token take no slot.
 *
 * A WRITE has 48 bytes less before the task's bytes than a SUBMIT, and up to 7 more behind. A frame may have no room
 * behind it; so the bytes are moved, and the frame becomes shorter only.
 */
#pragma once

#include "frame.h"
#include "servers.h"

enum {
	ROCE_PORT = 4791,
	/* WRITE-Only over an unreliable connection. No packet of our own begins with it. */
	OPCODE_WRITE = 0x2a,
	/* The path is the one that the connection has moved to, as adapters at rest say. */
	MIGRATED = 0x40,
	PARTITION = 0xffff,
	ICRC_BYTES = 4,
};

/* What stands before a task's bytes: BTH, RETH, and what a slot begins with. */
struct write_head {
	__u8 opcode;
	__u8 flags;
	__be16 partition;
	__be32 qpn;
	__be32 psn;
	/* Until a copy leaves: slice and ticket. */
	__be64 address;
	__be32 rkey;
	__be32 length;
	__be64 incarnation;
	__be32 sequence;
} __attribute__((packed));

enum { WRITE_LESS = HEADER_BYTES - sizeof(struct write_head) };

/* Whether a task will wait, as it looks before it has a number; whether it is written ahead then, and its ticket. */
struct ahead {
	__u32 slice;
	__u32 waits;
	__u32 is;
	__u32 ticket;
};

/* Where the count of tasks that waited stands beside that of all. */
enum { WAITS_SHIFT = 33 };

/* Whether a slice has servers whose slots this task fits. A checksum that is needed has to be there already. */
static __always_inline void ask_ahead(struct ahead *ahead, __u32 slice, __s32 balance, const struct frame *frame)
{
	const struct udphdr *udp = (void *)frame->header - sizeof(*udp);
	__u32 length = bpf_ntohs(frame->header->task.length);
	struct group group;

	ahead->waits = balance <= 0;
	ahead->is = 0;
	if (!shape.servers || length <= INLINE_BYTES)
		return;
	ahead->slice = slice;
	group = group_of(slice);
	ahead->is = ahead->waits && length <= group.fits && (udp->check || !group.wants_check);
}

/*
 * The next task's number. It has a ticket if it looks as if it will wait: one that finds a token after all leaves a slot
 * unused, and the bytes of one that waits against all looks stay with its client.
 */
static __always_inline __u32 next_task(struct queue *queue, struct ahead *ahead)
{
	__u64 was;

	if (!shape.servers)
		return __sync_fetch_and_add(&queue->tasks, 1);
	was = __sync_fetch_and_add(&queue->arrivals, ahead->waits ? (1ull << WAITS_SHIFT) + 1 : 1);
	ahead->ticket = shape.tickets_start + (was >> WAITS_SHIFT);
	return was;
}

/* Before a task waits: its ticket, and whether its bytes go ahead. */
static __always_inline void keep_ahead(struct cell *cell, const struct ahead *ahead)
{
	if (!shape.servers)
		return;
	cell->ticket = ahead->ticket;
	cell->ahead = ahead->is;
}

/* Where the bytes of a task that waited are. */
static __always_inline enum place place_of(const struct cell *cell)
{
	if (bpf_ntohs(cell->task.length) <= INLINE_BYTES)
		return PLACE_HERE;
	return shape.servers && cell->ahead ? PLACE_AHEAD : PLACE_AT_CLIENT;
}
