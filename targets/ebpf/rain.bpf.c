// SPDX-License-Identifier: Apache-2.0
/*
 * Rain on a link: the switch as an XDP program. README.md says what it does and what it leaves out.
 *
 * A frame that is not for the switch goes to the kernel's network stack. A frame for the switch ends here: it
 * leaves as another packet, or its task waits, or it is dropped and counted. Each frame produces at most one frame;
 * only a task that is written ahead leaves in several copies.
 */
#include "copies.h"
#include "sweep.h"

static __always_inline const struct life *own_life(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&lives, &only);
}

/* Not an XDP verdict: the frame is a packet, which is in `pass`. */
enum { IS_PACKET = -1 };

/* The XDP verdict on a frame that is no packet for the switch, or IS_PACKET. */
static __always_inline int begin(struct xdp_md *ctx, struct pass *pass)
{
	enum frame_is is;
	int why;

	pass->life = own_life();
	pass->counters = own_counters();
	if (!pass->life || !pass->counters)
		return XDP_PASS;
	is = frame_take(ctx, pass->life, pass->counters, &pass->frame);
	if (is != FRAME_OURS)
		return is == FRAME_PASS ? XDP_PASS : XDP_DROP;
	why = parse(&pass->frame, pass->frame.header);
	if (why != PARSED) {
		malform(pass->counters, why);
		return XDP_DROP;
	}
	pass->now = now_ns(pass->life);
	pass->out.to = pass->frame.from;
	pass->out.way = pass->frame.back;
	return IS_PACKET;
}

static __always_inline enum verdict decide(struct pass *pass)
{
	switch (pass->frame.header->kind) {
	case KIND_TOKEN:
		return token(pass);
	case KIND_SUBMIT:
		return submit(pass);
	case KIND_PROBE:
		return probe(pass);
	}
	refuse(pass->counters, REFUSAL_UNEXPECTED);
	return VERDICT_DROP;
}

static __always_inline int arrives(struct xdp_md *ctx)
{
	struct pass pass = {};
	int done = begin(ctx, &pass);

	if (done != XDP_PASS)
		count(pass.counters, COUNT_RECEIVED);
	if (done != IS_PACKET)
		return done;
	switch (decide(&pass)) {
	case VERDICT_SEND:
		return send(ctx, &pass);
	case VERDICT_WRITE:
		return send_write(ctx, &pass);
	default:
		return XDP_DROP;
	}
}

SEC("xdp")
int rain(struct xdp_md *ctx)
{
	return arrives(ctx);
}

/* In every entry of every map of links. */
SEC("xdp/devmap")
int copies(struct xdp_md *ctx)
{
	return copy_leaves(ctx, ctx->egress_ifindex);
}

/* The same for test runs, in which frames have no outgoing link: the frame begins with the link's index. */
SEC("xdp")
int copy(struct xdp_md *ctx)
{
	__u32 *link = (void *)(long)ctx->data;

	if ((void *)(link + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	return copy_leaves(ctx, *link) == XDP_PASS ? XDP_TX : XDP_DROP;
}

/* Run by the loader only. */
SEC("xdp")
int sweep(struct xdp_md *ctx)
{
	struct pass pass = {};
	int done = begin(ctx, &pass);

	if (done != IS_PACKET)
		return done;
	if (pass.frame.header->kind != KIND_SWEEP)
		return XDP_DROP;
	/* The loader sends the packet, whatever link the frame would leave by. */
	return sweep_walks(&pass) == VERDICT_SEND && send(ctx, &pass) != XDP_DROP ? XDP_TX : XDP_DROP;
}

char _license[] SEC("license") = "Apache-2.0";
