/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: who may send what, and where it goes. */
#pragma once

#include <bpf/bpf_endian.h>

#include "counters.h"

#define READ_ONCE(what) (*(const volatile typeof(what) *)&(what))

enum { ADMITTED = -1 };

static __always_inline const struct worker_row *worker_row(__u32 worker)
{
	const struct worker_rows *rows = bpf_map_lookup_elem(&workers, &worker);
	const struct worker_row *row;

	if (!rows)
		return 0;
	row = &rows->copy[READ_ONCE(rows->current) & 1];
	return row->there ? row : 0;
}

/* As above, if a token of this generation that was popped is of the worker's present one. */
static __always_inline const struct worker_row *live_row(__u32 worker, __u32 generation)
{
	const struct worker_rows *rows = bpf_map_lookup_elem(&workers, &worker);
	const struct worker_row *row;

	if (!rows || READ_ONCE(rows->gen_out) != generation)
		return 0;
	row = &rows->copy[READ_ONCE(rows->current) & 1];
	return row->there ? row : 0;
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
