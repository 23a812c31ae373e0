// SPDX-License-Identifier: Apache-2.0
/*
 * The least that can stand where the switch stands: UDP from one link goes out of another, by native redirect. Tests and
 * measurements hold the switch against it.
 */
#include "udp.h"

/* Where what comes from a link goes: the link, and the Ethernet addresses there. */
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
