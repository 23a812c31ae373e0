// SPDX-License-Identifier: Apache-2.0
/*
 * Load for a switch on links, generated and consumed in the kernel, so that a measurement contains little but the
 * switch. The loader runs `load` with live frames: it writes tokens and tasks in turn, in long spells, and puts
 * them on their hosts' links. `sink` consumes frames that arrive at a host; if a task's bytes state its scheduled
 * departure, it counts the time since. `door` drops frames that arrive at the switch's end of a link, and `pass`
 * hands them to the kernel's network stack: they measure the cost of everything without a switch, and with a switch
 * in user space.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "wire.h"

enum { FRAME_BYTES = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr) + HEADER_BYTES };

struct template {
	__u64 words[17];
};

/* The frames to generate, how many were generated, and how many of one kind make a spell. */
struct load {
	struct template token;
	struct template task;
	__u32 made;
	__u32 spell;
	/* Frames consumed at hosts, and at the switch's end of links. */
	__u64 sunk;
	__u64 at_door;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct load);
} loads SEC(".maps");

/* The hosts' ends of their links: 0 the worker's, 1 the client's. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} ends SEC(".maps");

/* Buckets of delays: one for each ns up to 64 ns, then 32 for each doubling. */
enum { DELAY_EXACT = 64, DELAY_STEPS = 32, DELAY_DOUBLINGS = 32, DELAYS = DELAY_EXACT + DELAY_STEPS * DELAY_DOUBLINGS };

struct delays {
	__u64 counts[DELAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct delays);
} delays SEC(".maps");

#define HEADER_OF(template) ((struct header *)((void *)(template) + FRAME_BYTES - HEADER_BYTES))

static __always_inline struct load *own_load(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&loads, &only);
}

/* Tokens, tasks, tasks, tokens: each kind comes first equally often. */
static __always_inline int is_task(const struct load *load)
{
	return (load->made / load->spell + 1) / 2 & 1;
}

SEC("xdp")
int load(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct load *load = own_load();
	struct header *header;

	if (!load || !load->spell || data + FRAME_BYTES > end)
		return XDP_ABORTED;
	if (is_task(load)) {
		header = HEADER_OF(&load->task);
		header->task.sequence = bpf_htonl(bpf_ntohl(header->task.sequence) + 1);
		__builtin_memcpy(data, &load->task, FRAME_BYTES);
		load->made++;
		return bpf_redirect_map(&ends, 1, 0);
	}
	header = HEADER_OF(&load->token);
	header->words[TOKEN_ISSUED] = bpf_htonl(bpf_ntohl(header->words[TOKEN_ISSUED]) + 1);
	__builtin_memcpy(data, &load->token, FRAME_BYTES);
	load->made++;
	return bpf_redirect_map(&ends, 0, 0);
}

static __always_inline int is_udp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct iphdr *ip = (const void *)(eth + 1);

	return (void *)(ip + 1) <= end && eth->h_proto == bpf_htons(ETH_P_IP) && ip->protocol == IPPROTO_UDP;
}

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 doublings = 0;

#pragma unroll
	for (int i = 0; i < DELAY_DOUBLINGS; i++) {
		if (ns >= DELAY_EXACT) {
			ns >>= 1;
			doublings++;
		}
	}
	return doublings * DELAY_STEPS + (__u32)ns;
}

/* A task's bytes are the monotonic time of its scheduled departure, in native byte order; zero states none. */
static __always_inline void count_delay(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct header *header = data + FRAME_BYTES - HEADER_BYTES;
	struct delays *all;
	__u32 only = 0, bucket;
	__u64 due;

	if (data + FRAME_BYTES > end || header->kind != KIND_DISPATCH)
		return;
	__builtin_memcpy(&due, header->task.bytes, sizeof(due));
	all = bpf_map_lookup_elem(&delays, &only);
	if (!due || !all)
		return;
	bucket = bucket_of(bpf_ktime_get_ns() - due);
	if (bucket < DELAYS)
		__sync_fetch_and_add(&all->counts[bucket], 1);
}

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	struct load *load = own_load();

	if (!load || !is_udp(ctx))
		return XDP_PASS;
	count_delay(ctx);
	__sync_fetch_and_add(&load->sunk, 1);
	return XDP_DROP;
}

SEC("xdp")
int door(struct xdp_md *ctx)
{
	struct load *load = own_load();

	if (!load || !is_udp(ctx))
		return XDP_PASS;
	__sync_fetch_and_add(&load->at_door, 1);
	return XDP_DROP;
}

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";
