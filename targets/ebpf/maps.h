/* SPDX-License-Identifier: Apache-2.0 */
/* The maps. For maps of size 1 here, the loader sets the real size. It may pin all maps. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "tables.h"

const volatile struct shape shape = {};

/*
 * Whether frames that go back to the link they came from are redirected there too. The veth driver wakes the other
 * end for a frame of XDP_TX only if the other end has a program as well.
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

/* Only the loader reads it. */
ARRAY(layout, struct layout);
ARRAY(lives, struct life);
/* The slice of each task type, plus one; zero for none. */
ARRAY(types, __u32);
ARRAY(slices, struct slice_rows);
ARRAY(workers, struct worker_rows);
ARRAY(clients, struct client_rows);
ARRAY(worker_counters, struct worker_counters);
/* The newest attempt that each of a client's replay cells accepted. */
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
 * No program reads this map. The kernel completes a change of an array of maps only when every program that was
 * running has ended; this is how the loader waits for all passes.
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

/* The links by index, for frames that leave by another link than they came from. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} links SEC(".maps");
