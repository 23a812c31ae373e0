/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame: whether it contains a datagram for the switch, and how one is sent.
 *
 * A frame without a UDP datagram for the switch's address and port goes to the kernel's network stack unchanged
 * (FRAME_PASS). These are other protocols, other addresses, VLAN tags, IPv6 extension headers, and later fragments
 * of an IPv4 datagram, which name no port. A datagram for the switch that it cannot accept is dropped and counted:
 * one with IPv4 options, a first fragment, or one whose lengths exceed the frame (truncated). Bytes behind the
 * datagram's end are cut off. Incoming checksums are not verified: the link's own checksum covers the frame, and a
 * large payload has a checksum of its own.
 *
 * Frames leave with TTL 64, DF and identification 0. Over IPv4 the UDP checksum is 0. Over IPv6 it is right:
 * computed anew if nothing follows the header, otherwise derived from the incoming checksum, so that damage shows
 * at the receiver. If the datagram came without a checksum, as is possible over IPv4, its bytes are left out and
 * the worker asks for them.
 */
#pragma once

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>

#include "counters.h"

enum frame_is { FRAME_OURS, FRAME_PASS, FRAME_DROP };

enum {
	HOPS = 64,
	FRAGMENT_MORE = 0x2000,
	FRAGMENT_OFFSET = 0x1fff,
	DONT_FRAGMENT = 0x4000,
};

/* The incoming datagram; valid until the frame is resized. */
struct frame {
	struct header *header;
	/* The end of the frame. */
	void *end;
	/* The length of the datagram, in bytes. */
	__u32 length;
	/* The length of the IP header, in bytes. */
	__u32 ip_bytes;
	struct endpoint from;
	/* The path back to the sender. */
	struct way back;
	/* The incoming checksum, and the part of it that covers addresses, ports and header: see carry_check. */
	__u32 check;
	__u32 covered;
};

static __always_inline int is_ours4(const struct iphdr *ip, const struct life *life)
{
	return ip->daddr == life->at4 && life->at4;
}

static __always_inline int is_ours6(const struct ipv6hdr *ip, const struct life *life)
{
	const __be32 *at = ip->daddr.in6_u.u6_addr32;

	return at[0] == life->at6[0] && at[1] == life->at6[1] && at[2] == life->at6[2] && at[3] == life->at6[3] &&
	       (at[0] | at[1] | at[2] | at[3]);
}

/* IPv4 options: no host sends them to the switch on purpose. */
static __always_inline enum frame_is options4(struct iphdr *ip, void *end, const struct life *life,
					      struct counters *counters)
{
	struct udphdr *udp = (void *)ip + ip->ihl * 4;

	if (ip->ihl < 5 || (void *)(udp + 1) > end || udp->dest != life->port)
		return FRAME_PASS;
	count(counters, COUNT_IP_OPTIONS);
	return FRAME_DROP;
}

/* Finds the UDP header of an IPv4 packet to the switch, and the number of bytes that the IP packet has for it. */
static __always_inline enum frame_is ours4(void *data, void *end, const struct life *life, struct counters *counters,
					   struct frame *frame, struct udphdr **udp, __u32 *room)
{
	struct iphdr *ip = data + ETH_HLEN;
	__u16 fragment;

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->protocol != IPPROTO_UDP || !is_ours4(ip, life))
		return FRAME_PASS;
	fragment = bpf_ntohs(ip->frag_off);
	if (fragment & FRAGMENT_OFFSET)
		return FRAME_PASS;
	if (ip->ihl != 5)
		return options4(ip, end, life, counters);
	*udp = (void *)(ip + 1);
	if ((void *)(*udp + 1) > end || (*udp)->dest != life->port)
		return FRAME_PASS;
	if (fragment & FRAGMENT_MORE) {
		count(counters, COUNT_FRAGMENT);
		return FRAME_DROP;
	}
	*room = bpf_ntohs(ip->tot_len) - sizeof(*ip);
	frame->ip_bytes = sizeof(*ip);
	frame->from.ip[0] = 0;
	frame->from.ip[1] = 0;
	frame->from.ip[2] = bpf_htonl(0xffff);
	frame->from.ip[3] = ip->saddr;
	return FRAME_OURS;
}

static __always_inline enum frame_is ours6(void *data, void *end, const struct life *life, struct frame *frame,
					   struct udphdr **udp, __u32 *room)
{
	struct ipv6hdr *ip = data + ETH_HLEN;

	if ((void *)(ip + 1) > end || ip->version != 6 || ip->nexthdr != IPPROTO_UDP || !is_ours6(ip, life))
		return FRAME_PASS;
	*udp = (void *)(ip + 1);
	if ((void *)(*udp + 1) > end || (*udp)->dest != life->port)
		return FRAME_PASS;
	*room = bpf_ntohs(ip->payload_len);
	frame->ip_bytes = sizeof(*ip);
	__builtin_memcpy(frame->from.ip, &ip->saddr, sizeof(frame->from.ip));
	return FRAME_OURS;
}

/*
 * The sum of a datagram's addresses, ports and header: the parts that differ between an incoming packet and the one
 * made from it.
 */
static __always_inline __u32 covered(struct header *header, __u32 ip_bytes)
{
	void *udp = (void *)header - sizeof(struct udphdr);
	__u32 sum;

	/* In both families the two addresses stand right before the ports. */
	if (ip_bytes == sizeof(struct iphdr))
		sum = bpf_csum_diff(0, 0, udp - 8, 8 + 4, 0);
	else
		sum = bpf_csum_diff(0, 0, udp - 32, 32 + 4, 0);
	return bpf_csum_diff(0, 0, (__be32 *)header, HEADER_BYTES, sum);
}

/* Saves what a new checksum is derived from, before the header changes. Returns 0 if no checksum came. */
static __always_inline int carry_check(struct frame *frame)
{
	struct udphdr *udp = (void *)frame->header - sizeof(*udp);

	frame->check = udp->check;
	frame->covered = covered(frame->header, frame->ip_bytes);
	return frame->check;
}

static __always_inline enum frame_is frame_take(struct xdp_md *ctx, const struct life *life, struct counters *counters,
						struct frame *frame)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct udphdr *udp;
	enum frame_is is;
	__u32 room, length;

	if ((void *)(eth + 1) > end)
		return FRAME_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		is = ours4(data, end, life, counters, frame, &udp, &room);
	else if (eth->h_proto == bpf_htons(ETH_P_IPV6))
		is = ours6(data, end, life, frame, &udp, &room);
	else
		return FRAME_PASS;
	if (is != FRAME_OURS)
		return is;
	length = bpf_ntohs(udp->len);
	if (length < sizeof(*udp) || length > room || (void *)udp + length > end) {
		count(counters, COUNT_TRUNCATED);
		return FRAME_DROP;
	}
	frame->length = length - sizeof(*udp);
	frame->from.port = udp->source;
	frame->header = (void *)(udp + 1);
	frame->end = end;
	frame->back.link = ctx->ingress_ifindex;
	__builtin_memcpy(frame->back.to, eth->h_source, ETH_ALEN);
	__builtin_memcpy(frame->back.from, eth->h_dest, ETH_ALEN);
	if ((void *)(frame->header + 1) > end || frame->length < HEADER_BYTES) {
		malform(counters, MALFORMED_SHORT);
		return FRAME_DROP;
	}
	return FRAME_OURS;
}
