/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are written ahead (Rain 3.2.2): a large task that has to wait goes to its slice's servers at once.
 *
 * The frame that brought the task leaves as one RoCEv2 WRITE over all servers' links. The fields that differ
 * between servers hold slice and ticket at first; copies.h fills them in when a copy leaves. The ticket counts the
 * tasks of a slice that waited, as in the model. It is not a cell's number: a task that meets a token takes no
 * slot.
 *
 * A WRITE has 48 bytes less before the task's bytes than a SUBMIT, and up to 7 more behind them. The frame may have
 * no room behind it, so the bytes are moved, and the frame only becomes shorter.
 */
#pragma once

#include "frame.h"
#include "servers.h"

enum {
	ROCE_PORT = 4791,
	/* WRITE-Only over an unreliable connection. No packet of our own begins with this byte. */
	OPCODE_WRITE = 0x2a,
	/* The path is the one that the connection migrated to; idle adapters set this bit. */
	MIGRATED = 0x40,
	PARTITION = 0xffff,
	ICRC_BYTES = 4,
};

/* The headers before a task's bytes: BTH, RETH, and the head of a slot. */
struct write_head {
	__u8 opcode;
	__u8 flags;
	__be16 partition;
	__be32 qpn;
	__be32 psn;
	/* Slice and ticket, until a copy leaves. */
	__be64 address;
	__be32 rkey;
	__be32 length;
	__be32 incarnation_high;
	__be32 incarnation_low;
	__be32 sequence;
} __attribute__((packed));

enum { WRITE_LESS = HEADER_BYTES - sizeof(struct write_head) };

/* Whether a task will probably wait (before it has a number), whether it is then written ahead, and its ticket. */
struct ahead {
	__u32 slice;
	__u32 waits;
	__u32 is;
	__u32 ticket;
};

/* The shift at which a queue's count of waiting tasks begins, above its count of all tasks. */
enum { WAITS_SHIFT = 33 };

/* Whether a slice has servers whose slots this task fits. If a server needs a checksum, the frame must have one. */
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
 * Takes the next task's number, and a ticket if the task will probably wait. If it meets a token after all, its
 * slot stays unused; if a task without a ticket has to wait after all, its bytes stay with its client.
 */
static __always_inline __u32 next_task(struct queue *queue, struct ahead *ahead)
{
	__u64 was;

	if (!shape.servers)
		return __sync_fetch_and_add(&queue->tasks, 1);
	was = __sync_fetch_and_add(&queue->arrivals, ahead->waits ? (1ull << WAITS_SHIFT) + 1 : 1);
	ahead->ticket = (shape.tickets_start + (was >> WAITS_SHIFT)) & TICKET_MASK;
	return was;
}

/* Stores the ticket of a task that waits, and whether its bytes go ahead. */
static __always_inline void keep_ahead(struct cell *cell, const struct ahead *ahead)
{
	if (!shape.servers)
		return;
	cell->ticket = ahead->ticket;
	cell->ahead = ahead->is;
}

/* Where the bytes of a task are that waited. */
static __always_inline enum place place_of(const struct cell *cell)
{
	if (bpf_ntohs(cell->task.length) <= INLINE_BYTES)
		return PLACE_HERE;
	return shape.servers && cell->ahead ? PLACE_AHEAD : PLACE_AT_CLIENT;
}
