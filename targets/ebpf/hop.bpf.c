// SPDX-License-Identifier: Apache-2.0
/*
 * The least that can replace the switch: a UDP frame from one link leaves by another, by native redirect. Tests and
 * measurements compare the switch with it.
 */
#include "udp.h"

/* Where frames from a link go: the outgoing link, and the Ethernet addresses on it. */
struct hop {
	__u32 link;
	__u8 to[ETH_ALEN];
	__u8 from[ETH_ALEN];
	/* How many frames went so. */
	__u64 frames;
};

enum { LINKS_MAX = 1024 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LINKS_MAX);
	__type(key, __u32);
	__type(value, struct hop);
} hops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, LINKS_MAX);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} links SEC(".maps");

SEC("xdp")
int hop(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 came = ctx->ingress_ifindex;
	struct ethhdr *eth = data;
	struct hop *hop;

	if ((void *)(eth + 1) > end || !is_udp(eth, end))
		return XDP_PASS;
	hop = bpf_map_lookup_elem(&hops, &came);
	if (!hop)
		return XDP_PASS;
	__builtin_memcpy(eth->h_dest, hop->to, ETH_ALEN);
	__builtin_memcpy(eth->h_source, hop->from, ETH_ALEN);
	__sync_fetch_and_add(&hop->frames, 1);
	return bpf_redirect_map(&links, hop->link, 0);
}

char _license[] SEC("license") = "Apache-2.0";
