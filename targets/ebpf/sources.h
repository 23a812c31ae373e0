/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: who may send what, and where it goes. */
#pragma once

#include <bpf/bpf_endian.h>

#include "counters.h"

#define READ_ONCE(what) (*(const volatile typeof(what) *)&(what))

enum { ADMITTED = -1 };

/* The copy that holds, if there is a worker in it. */
static __always_inline const struct worker_row *row_there(const struct worker_rows *rows)
{
	const struct worker_row *row = &rows->copy[READ_ONCE(rows->current) & 1];

	return row->there ? row : 0;
}

static __always_inline const struct worker_row *worker_row(__u32 worker)
{
	const struct worker_rows *rows = bpf_map_lookup_elem(&workers, &worker);

	return rows ? row_there(rows) : 0;
}

/* As above, if a token of this generation that was popped is of the worker's present one. */
static __always_inline const struct worker_row *live_row(__u32 worker, __u32 generation)
{
	const struct worker_rows *rows = bpf_map_lookup_elem(&workers, &worker);

	return rows && READ_ONCE(rows->gen_out) == generation ? row_there(rows) : 0;
}

static __always_inline const struct client_row *client_row(__u32 client)
{
	const struct client_rows *rows = bpf_map_lookup_elem(&clients, &client);
	const struct client_row *row;

	if (!rows)
		return 0;
	row = &rows->copy[READ_ONCE(rows->current) & 1];
	return row->there ? row : 0;
}

static __always_inline const struct slice_row *slice_row(__u32 slice)
{
	const struct slice_rows *rows = bpf_map_lookup_elem(&slices, &slice);

	return rows ? &rows->copy[READ_ONCE(rows->current) & 1] : 0;
}

/* The slice of a task type plus one; zero: none. */
static __always_inline __u32 slice_of(__u32 type)
{
	const __u32 *slice = bpf_map_lookup_elem(&types, &type);

	return slice ? READ_ONCE(*slice) : 0;
}

static __always_inline int is_same(const struct endpoint *a, const struct endpoint *b)
{
	return a->ip[3] == b->ip[3] && a->port == b->port && a->ip[2] == b->ip[2] && a->ip[1] == b->ip[1] &&
	       a->ip[0] == b->ip[0];
}

/* ADMITTED, or why the sender is not who it says. */
static __always_inline int check_source(__u32 held, __be32 shown, const struct endpoint *at,
					const struct endpoint *from)
{
	if (held != bpf_ntohl(shown))
		return REFUSAL_WRONG_KEY;
	return is_same(at, from) ? ADMITTED : REFUSAL_WRONG_ADDRESS;
}

/*
 * Where a worker's packet that was let in came from, its tasks go to. That is written only if it is new, so that the line
 * stays with whoever reads it. While a host moves, a pass may read half of each way; its DISPATCH is lost, and the
 * worker asks.
 */
static __always_inline void learn_way(struct way *held, const struct way *back)
{
	volatile __u64 *words = (void *)held;
	__u64 found[2];

	__builtin_memcpy(found, back, sizeof(found));
	if (words[0] != found[0])
		words[0] = found[0];
	if (words[1] != found[1])
		words[1] = found[1];
}

/* The way to a worker; back to who is being answered as long as it has sent nothing. */
static __always_inline void find_way(struct way *way, const struct way *held, const struct way *back)
{
	const volatile __u64 *words = (const void *)held;
	__u64 found[2] = { words[0], words[1] };

	__builtin_memcpy(way, found, sizeof(*way));
	if (!way->link)
		*way = *back;
}
