/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: which hosts may send which packets, and where packets go. */
#pragma once

#include <bpf/bpf_endian.h>

#include "counters.h"

#define READ_ONCE(what) (*(const volatile typeof(what) *)&(what))
#define WRITE_ONCE(what, value) (*(volatile typeof(what) *)&(what) = (value))

enum { ADMITTED = -1 };

/* The valid copy, if it contains a worker. */
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

/* The valid copy, if a popped token of this generation belongs to the worker's present registration. */
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

/* The slice of a task type, plus one; zero for none. */
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

/* ADMITTED, or why the sender is not the host that it claims to be. */
static __always_inline int check_source(__u32 held, __be32 shown, const struct endpoint *at,
					const struct endpoint *from)
{
	if (held != bpf_ntohl(shown))
		return REFUSAL_WRONG_KEY;
	return is_same(at, from) ? ADMITTED : REFUSAL_WRONG_ADDRESS;
}

/*
 * Learns the path to a worker from an accepted packet; the worker's tasks go there. The path is written only if it
 * changed, so that other CPUs keep the cache line. While a host moves, a pass may read half of each path; its
 * DISPATCH is lost, and the worker notices by a PROBE.
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

/* The path to a worker; as long as the worker has sent nothing, the path back to the sender of the packet. */
static __always_inline void find_way(struct way *way, const struct way *held, const struct way *back)
{
	const volatile __u64 *words = (const void *)held;
	__u64 found[2] = { words[0], words[1] };

	__builtin_memcpy(way, found, sizeof(*way));
	if (!way->link)
		*way = *back;
}
