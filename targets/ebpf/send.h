/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a frame: sets its length and the headers below ours. */
#pragma once

#include "front.h"

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static __always_inline void write_ethernet(struct ethhdr *eth, const struct way *way, __u32 ip_bytes)
{
	__builtin_memcpy(eth->h_dest, way->to, ETH_ALEN);
	__builtin_memcpy(eth->h_source, way->from, ETH_ALEN);
	eth->h_proto = ip_bytes == sizeof(struct iphdr) ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
}

static __always_inline void write_ip4(struct iphdr *ip, const struct life *life, const struct endpoint *to,
				      __u32 udp_bytes)
{
	__u64 sum;

	ip->version = 4;
	ip->ihl = 5;
	ip->tos = 0;
	ip->tot_len = bpf_htons(sizeof(*ip) + udp_bytes);
	ip->id = 0;
	ip->frag_off = bpf_htons(DONT_FRAGMENT);
	ip->ttl = HOPS;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = life->at4;
	ip->daddr = to->ip[3];
	sum = (__u64)bpf_htons(0x4500) + ip->tot_len + bpf_htons(DONT_FRAGMENT) + bpf_htons(HOPS << 8 | IPPROTO_UDP);
	ip->check = ~folded(sum + ip->saddr + ip->daddr);
}

static __always_inline void write_ip6(struct ipv6hdr *ip, const struct life *life, const struct endpoint *to,
				      __u32 udp_bytes)
{
	*(__be32 *)ip = bpf_htonl(6 << 28);
	ip->payload_len = bpf_htons(udp_bytes);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = HOPS;
	__builtin_memcpy(&ip->saddr, life->at6, sizeof(ip->saddr));
	__builtin_memcpy(&ip->daddr, to->ip, sizeof(ip->daddr));
}

/*
 * The checksum over IPv6. The bytes behind the header did not change, but for zeros that were cut, so their part of
 * the sum is kept.
 */
static __always_inline __be16 check6(struct udphdr *udp, struct header *header, const struct frame *frame, __u32 body)
{
	__u64 sum = covered(header, sizeof(struct ipv6hdr)) + (__u64)udp->len + udp->len;
	__u16 before = ~bpf_htons(sizeof(*udp) + frame->length), check;

	if (body)
		sum += (__u16)~frame->check + (__u64)(__u32)~frame->covered + before + before;
	else
		sum += bpf_htons(IPPROTO_UDP);
	check = ~folded(sum);
	return check ? check : 0xffff;
}

/* Resizes the frame to its contents and its new IP header. */
static __always_inline int resize(struct xdp_md *ctx, const struct frame *frame, __u32 ip_bytes, __u32 want)
{
	int more = (int)ip_bytes - (int)frame->ip_bytes;
	int tail;

	if (more && bpf_xdp_adjust_head(ctx, -more))
		return -1;
	tail = (int)want - (int)(ctx->data_end - ctx->data);
	return tail ? bpf_xdp_adjust_tail(ctx, tail) : 0;
}

/*
 * To replace an entry of a map of links, the kernel first removes the old one. So each link has two entries, which
 * the loader replaces one after the other. Their keys differ in every bit, so they lie in different hash lists. A
 * pass that is delayed between two look-ups can still miss both, so it looks several times.
 */
enum { LINK_LOOKS = 8 };

static __always_inline int redirect(struct counters *counters, __u32 link)
{
	for (int look = 0; look < LINK_LOOKS; look++) {
		int action = bpf_redirect_map(&links, look & 1 ? ~link : link, 0);

		if (action == XDP_REDIRECT)
			return action;
	}
	count(counters, COUNT_SEND_FAILED);
	return XDP_DROP;
}

static __always_inline int leave(struct xdp_md *ctx, struct counters *counters, const struct way *way)
{
	count(counters, COUNT_SENT);
	if (way->link == ctx->ingress_ifindex && !redirects_back)
		return XDP_TX;
	return redirect(counters, way->link);
}

/* Sends the rewritten packet. Invalidates all pointers into the frame. */
static __always_inline int send(struct xdp_md *ctx, const struct pass *pass)
{
	const struct life *life = pass->life;
	struct counters *counters = pass->counters;
	const struct frame *frame = &pass->frame;
	const struct out *out = &pass->out;
	__u32 ip_bytes = ip_bytes_to(&out->to), udp_bytes = sizeof(struct udphdr) + HEADER_BYTES + out->body;
	void *data, *end;
	struct udphdr *udp;
	struct header *header;

	if (ip_bytes == sizeof(struct iphdr) ? !life->at4 : !(life->at6[0] | life->at6[1] | life->at6[2] | life->at6[3]))
		goto failed;
	if (resize(ctx, frame, ip_bytes, ETH_HLEN + ip_bytes + udp_bytes))
		goto failed;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (ip_bytes == sizeof(struct iphdr)) {
		udp = data + ETH_HLEN + sizeof(struct iphdr);
		header = (void *)(udp + 1);
		if ((void *)(header + 1) > end)
			goto failed;
		write_ip4(data + ETH_HLEN, life, &out->to, udp_bytes);
	} else {
		udp = data + ETH_HLEN + sizeof(struct ipv6hdr);
		header = (void *)(udp + 1);
		if ((void *)(header + 1) > end)
			goto failed;
		write_ip6(data + ETH_HLEN, life, &out->to, udp_bytes);
	}
	write_ethernet(data, &out->way, ip_bytes);
	udp->source = life->port;
	udp->dest = out->to.port;
	udp->len = bpf_htons(udp_bytes);
	udp->check = 0;
	if (ip_bytes == sizeof(struct ipv6hdr))
		udp->check = check6(udp, header, frame, out->body);
	return leave(ctx, counters, &out->way);
failed:
	count(counters, COUNT_SEND_FAILED);
	return XDP_DROP;
}

