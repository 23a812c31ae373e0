/* SPDX-License-Identifier: Apache-2.0 */
/* The maps. The loader sets how many values those have that say 1 here, and may pin all of them. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "tables.h"

const volatile struct shape shape = {};

/*
 * Whether what goes back to the link that it came from is redirected there like all else. The veth driver does not wake
 * the other end for a frame of XDP_TX unless that carries a program too.
 */
const volatile __u32 redirects_back = 0;

#define ARRAY(name, held)                                 \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_ARRAY);         \
		__uint(map_flags, BPF_F_MMAPABLE);        \
		__uint(max_entries, 1);                   \
		__type(key, __u32);                       \
		__type(value, held);                      \
	} name SEC(".maps")

/* Only the loader looks at it. */
ARRAY(layout, struct layout);
ARRAY(lives, struct life);
/* The slice of each task type, plus one; zero: none. */
ARRAY(types, __u32);
ARRAY(slices, struct slice_rows);
ARRAY(workers, struct worker_rows);
ARRAY(clients, struct client_rows);
ARRAY(worker_counters, struct worker_counters);
/* The newest try that each of a client's residues has let in. */
ARRAY(replay, __u64);
ARRAY(queues, struct queue);
/* Each slice's ring. */
ARRAY(cells, struct cell);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

/*
 * No program reads it. The kernel answers a change of an array of maps once every program that ran meanwhile has ended,
 * which is how the loader waits for all passes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 1);
		__type(key, __u32);
		__type(value, __u32);
	});
} drains SEC(".maps");

/* The links by their index, for frames that leave another way than they came. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} links SEC(".maps");
