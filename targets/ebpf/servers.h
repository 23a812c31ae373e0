/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers, into whose memory large waiting tasks are written. The values are shared with the loader.
 *
 * Rows have two copies, as in tables.h. From all rows of a slice the loader computes one word, the slice's group.
 */
#pragma once

#include "sources.h"

struct server_row {
	__u32 there;
	/* 24 bits. */
	__u32 qpn;
	struct way way;
	struct endpoint at;
	__u8 unused[6];
};

/* The ring that a server keeps for a slice. */
struct ring_row {
	__u32 there;
	__u32 rkey;
	__u64 address;
	/* A power of two. */
	__u32 slots;
	__u32 slot_bytes;
	/* How many servers of the slice have a lower index. */
	__u32 rank;
	__u32 unused;
};

struct server_rows {
	__u32 current;
	__u32 unused;
	struct server_row copy[2];
};

struct ring_rows {
	__u32 current;
	__u32 unused;
	struct ring_row copy[2];
};

/* The servers to which a slice's tasks are written: one word, read and written at once. */
struct group {
	__u16 members;
	/* The largest number of copies of a task; zero for no limit. */
	__u16 copies;
	/* The longest payload that fits into a slot of every member; zero without members. */
	__u16 fits;
	/* Whether a member has an IPv6 address, which requires a checksum. */
	__u16 wants_check;
} __attribute__((aligned(8)));

/* The number of the next WRITE to a server; 24 bits of it are sent. */
struct psn {
	__u32 next;
	__u8 unused[60];
};

/* A slot begins with its task's id. */
enum { SLOT_HEAD_BYTES = 12 };

_Static_assert(sizeof(struct server_rows) == 104 && sizeof(struct ring_rows) == 72, "as the loader has them");

ARRAY(servers, struct server_rows);
/* A row of servers for each slice. */
ARRAY(rings, struct ring_rows);
ARRAY(groups, struct group);
ARRAY(psns, struct psn);

/* The servers' links by index: a WRITE is broadcast over these. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} server_links SEC(".maps");

/* The server behind each link. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} link_servers SEC(".maps");

static __always_inline const struct server_row *server_row(__u32 server)
{
	const struct server_rows *rows = bpf_map_lookup_elem(&servers, &server);
	const struct server_row *row;

	if (!rows)
		return 0;
	row = &rows->copy[READ_ONCE(rows->current) & 1];
	return row->there ? row : 0;
}

static __always_inline const struct ring_row *ring_row(__u32 slice, __u32 server)
{
	__u32 index = slice * shape.servers + server;
	const struct ring_rows *rows = bpf_map_lookup_elem(&rings, &index);
	const struct ring_row *row;

	if (!rows)
		return 0;
	row = &rows->copy[READ_ONCE(rows->current) & 1];
	return row->there ? row : 0;
}

static __always_inline struct group group_of(__u32 slice)
{
	const volatile __u64 *held = bpf_map_lookup_elem(&groups, &slice);
	__u64 word = held ? *held : 0;
	struct group group;

	__builtin_memcpy(&group, &word, sizeof(group));
	return group;
}
