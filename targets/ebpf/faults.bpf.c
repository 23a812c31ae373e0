// SPDX-License-Identifier: Apache-2.0
/*
 * Fault injection on a host's link, in both directions, for tests: UDP frames are lost, duplicated and reordered at
 * given rates. A frame's fate depends only on the seed, its lane (direction and family) and its number in the lane.
 *
 * A frame that is to be overtaken is held until the next frame of its lane has passed, and then leaves in that
 * frame's place. So neighbours are swapped, and no timer is needed: classifiers can neither hold a frame for a time
 * nor send one later. Other protocols pass.
 */
#include <stddef.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum {
	LANES = 4,
	/* Native XDP frames fit into a page, so none is longer. */
	FRAME_MAX = 4096,
	/* Marks a frame whose fate is decided, so that it meets no second one. The mark ends with the link. */
	DECIDED = 0x51a1ce,
};

/* Rates are shares of 2^32. */
struct rates {
	__u64 seed;
	__u32 loss;
	__u32 doubling;
	__u32 reordering;
	__u32 unused;
};

const volatile struct rates rates = {};

enum kept { KEPT_NONE, KEPT_CHANGING, KEPT };

/* The frames of one direction and family. */
struct lane {
	__u64 frames;
	__u64 lost;
	__u64 doubled;
	__u64 reordered;
	__u32 kept;
	__u32 kept_bytes;
	__u8 frame[FRAME_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LANES);
	__type(key, __u32);
	__type(value, struct lane);
} lanes SEC(".maps");

/* A hash that turns consecutive numbers into random-looking ones. */
static __always_inline __u64 mixed(__u64 word)
{
	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
	word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
	return word ^ (word >> 31);
}

/* The lane's family: 0 or 1; -1 for a frame without UDP. */
static __always_inline int family(struct __sk_buff *skb)
{
	__u8 protocol = 0;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct iphdr, protocol), &protocol, sizeof(protocol));
		return protocol == IPPROTO_UDP ? 0 : -1;
	}
	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return -1;
	bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, nexthdr), &protocol, sizeof(protocol));
	return protocol == IPPROTO_UDP ? 1 : -1;
}

/* Sends a copy past this program. */
static __always_inline int send_copy(struct __sk_buff *skb, __u64 flags)
{
	skb->mark = DECIDED;
	return bpf_clone_redirect(skb, skb->ifindex, flags);
}

/* Holds the frame, if it is short enough and no other is held. */
static __always_inline int keep(struct __sk_buff *skb, struct lane *lane)
{
	__u32 bytes = skb->len;

	if (bytes == 0 || bytes > FRAME_MAX)
		return 0;
	if (__sync_val_compare_and_swap(&lane->kept, KEPT_NONE, KEPT_CHANGING) != KEPT_NONE)
		return 0;
	if (bpf_skb_load_bytes(skb, 0, lane->frame, bytes)) {
		__sync_lock_test_and_set(&lane->kept, KEPT_NONE);
		return 0;
	}
	lane->kept_bytes = bytes;
	__sync_lock_test_and_set(&lane->kept, KEPT);
	__sync_fetch_and_add(&lane->reordered, 1);
	return 1;
}

/* If a frame is held, the present frame leaves first, and then takes over the held frame's contents. */
static __always_inline int let_go(struct __sk_buff *skb, struct lane *lane, __u64 flags)
{
	__u32 bytes;
	int failed;

	if (__sync_val_compare_and_swap(&lane->kept, KEPT, KEPT_CHANGING) != KEPT)
		return TC_ACT_OK;
	bytes = lane->kept_bytes;
	failed = send_copy(skb, flags);
	if (!failed && bytes > 0 && bytes <= FRAME_MAX)
		failed = bpf_skb_change_tail(skb, bytes, 0) || bpf_skb_store_bytes(skb, 0, lane->frame, bytes, 0);
	__sync_lock_test_and_set(&lane->kept, KEPT_NONE);
	if (failed)
		return TC_ACT_SHOT;
	/* An incoming copy goes to the end of a queue, so a frame that must come after it has to go there too. */
	return flags & BPF_F_INGRESS ? bpf_redirect(skb->ifindex, flags) : TC_ACT_OK;
}

static __always_inline int pass(struct __sk_buff *skb, __u32 direction, __u64 flags)
{
	int family_of = family(skb);
	__u64 number, draw;
	struct lane *lane;
	__u32 which;

	if (skb->mark == DECIDED || family_of < 0)
		return TC_ACT_OK;
	which = 2 * direction + family_of;
	lane = bpf_map_lookup_elem(&lanes, &which);
	if (!lane)
		return TC_ACT_OK;
	number = __sync_fetch_and_add(&lane->frames, 1);
	draw = mixed(rates.seed ^ mixed(4 * number + which));
	if ((__u32)draw < rates.loss) {
		__sync_fetch_and_add(&lane->lost, 1);
		return TC_ACT_SHOT;
	}
	if ((draw >> 32) < rates.doubling && !send_copy(skb, flags))
		__sync_fetch_and_add(&lane->doubled, 1);
	if ((__u32)mixed(draw) < rates.reordering && keep(skb, lane))
		return TC_ACT_SHOT;
	return let_go(skb, lane, flags);
}

SEC("classifier")
int leaves(struct __sk_buff *skb)
{
	return pass(skb, 0, 0);
}

SEC("classifier")
int comes(struct __sk_buff *skb)
{
	return pass(skb, 1, BPF_F_INGRESS);
}

char _license[] SEC("license") = "Apache-2.0";
