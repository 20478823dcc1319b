// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The qdisc `abc`: the router of Accel-Brake Control (Goyal et al., NSDI 2020) for kernels that cannot load
 * it as eBPF.
 *
 * A drop-tail FIFO that marks what leaves. router.h has f and the bucket, adaptive.h a target rate that tunes
 * itself, l4s.h a law for senders of L4S, marking.h what becomes of a packet, capacity.h where mu comes from
 * when nobody gives it; here are the queue, the clock and rtnetlink.
 *
 *   rate and shape      the qdisc is the link, and packets leave by its clock
 *   rate alone          the parent class or the device is the link, of a known rate
 *   neither             the parent class or the device is the link, of a rate that is measured
 *
 * Everything runs under the qdisc's root lock, except for parsing, which runs under RTNL.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/init.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

#include "capacity.h"
#include "marking.h"
#include "pkt_sched_abc.h"

/* A shaper's timer may be this late without a loss of rate: what it is late is made up for. */
#define LATE_NS (10 * NSEC_PER_MSEC)
#define MAX_TIME_US (100 * USEC_PER_SEC)
#define MAX_WINDOW_US (10 * USEC_PER_SEC)
#define MIN_WINDOW_US USEC_PER_MSEC
#define MIN_RATE 1000
#define TARGET_US 50000
#define DELTA_US 133000

/*
 * What a qdisc gets that was added without options, as `tc qdisc add dev eth0 root abc` does: tc cannot parse
 * ours. They are read when a qdisc is added.
 */
static unsigned int rate_kbit;
module_param(rate_kbit, uint, 0644);
MODULE_PARM_DESC(rate_kbit, "mu, in kbit/s; 0: measured (default 0)");
static bool shape = true;
module_param(shape, bool, 0644);
MODULE_PARM_DESC(shape, "whether the qdisc shapes to rate_kbit (default Y)");
static unsigned int limit = 250;
module_param(limit, uint, 0644);
MODULE_PARM_DESC(limit, "buffer, in packets (default 250)");
static bool adaptive;
module_param(adaptive, bool, 0644);
MODULE_PARM_DESC(adaptive, "the target rate tunes itself, without target_us, delta_us and sojourn (default N)");
static bool l4s;
module_param(l4s, bool, 0644);
MODULE_PARM_DESC(l4s, "CE for senders of L4S, without target_us, delta_us, sojourn, eta_permille and proxied (default N)");
static unsigned int target_us = TARGET_US;
module_param(target_us, uint, 0644);
MODULE_PARM_DESC(target_us, "d_t: delay below which nothing is drained (default 50000)");
static unsigned int delta_us = DELTA_US;
module_param(delta_us, uint, 0644);
MODULE_PARM_DESC(delta_us, "delta: time in which a queue above the target is drained (default 133000)");
static unsigned int window_us = 20000;
module_param(window_us, uint, 0644);
MODULE_PARM_DESC(window_us, "T: window over which rates are measured (default 20000)");
static unsigned int eta_permille;
module_param(eta_permille, uint, 0644);
MODULE_PARM_DESC(eta_permille, "eta: share of mu to aim at; 0: 980, and 1000 with adaptive and l4s (default 0)");
static unsigned int token_limit = 5;
module_param(token_limit, uint, 0644);
MODULE_PARM_DESC(token_limit, "the most tokens the bucket holds (default 5)");
static bool proxied;
module_param(proxied, bool, 0644);
MODULE_PARM_DESC(proxied, "brake is CE, for senders behind a proxy (default N)");
static bool sojourn;
module_param(sojourn, bool, 0644);
MODULE_PARM_DESC(sojourn, "x is the packet's time in the queue instead of what waits over mu (default N)");

struct abc_settings {
	/* mu as given; 0: measured */
	u64 rate;
	u64 eta;
	u64 token_limit;
	u32 limit;
	u32 limit_bytes;
	u32 target_us;
	u32 delta_us;
	u32 window_us;
	bool shape;
	bool proxied;
	bool sojourn;
	enum abc_variant variant;
};

/* 64 kB for the window's departures, 13 kB for the rule that tunes itself, and 4 kB for the law for L4S. */
struct abc_state {
	struct router router;
	struct adaptive adaptive;
	struct l4s l4s;
};

struct abc_sched_data {
	struct abc_settings settings;
	/* the same as the arithmetic wants it; `mu` is kept up to date where it is measured */
	struct router_settings law;
	struct abc_state *state;
	struct capacity capacity;
	/* when the link is free again */
	u64 free_ns;
	struct tc_abc_xstats stats;
	struct qdisc_watchdog watchdog;
};

struct abc_skb_cb {
	u64 arrived_ns;
};

static struct abc_skb_cb *abc_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct abc_skb_cb));
	return (struct abc_skb_cb *)qdisc_skb_cb(skb)->data;
}

static bool abc_shapes(const struct abc_sched_data *q)
{
	return q->settings.shape && q->settings.rate;
}

/* The ECN field; Not-ECT for what is not IP. */
static u8 abc_ecn(struct sk_buff *skb)
{
	switch (skb_protocol(skb, true)) {
	case htons(ETH_P_IP):
		if (pskb_network_may_pull(skb, sizeof(struct iphdr)) && ip_hdr(skb)->version == 4)
			return ipv4_get_dsfield(ip_hdr(skb)) & INET_ECN_MASK;
		break;
	case htons(ETH_P_IPV6):
		if (pskb_network_may_pull(skb, sizeof(struct ipv6hdr)) && ipv6_hdr(skb)->version == 6)
			return ipv6_get_dsfield(ipv6_hdr(skb)) & INET_ECN_MASK;
		break;
	}
	return ABC_NOT_ECT;
}

/* Writes the field of a packet that abc_ecn has read. */
static bool abc_write_ecn(struct sk_buff *skb, u8 ecn)
{
	if (skb_protocol(skb, true) == htons(ETH_P_IP)) {
		if (skb_try_make_writable(skb, skb_network_offset(skb) + sizeof(struct iphdr)))
			return false;
		/* The header's checksum follows, so a sum over the whole packet stays what it is. */
		ipv4_change_dsfield(ip_hdr(skb), (u8)~INET_ECN_MASK, ecn);
	} else {
		__be32 *head, before, after;

		if (skb_try_make_writable(skb, skb_network_offset(skb) + sizeof(struct ipv6hdr)))
			return false;
		/* rfc8200 3: version, traffic class with the field at its end, flow label */
		head = (__be32 *)ipv6_hdr(skb);
		before = *head;
		after = (before & ~htonl(INET_ECN_MASK << 20)) | htonl((u32)ecn << 20);
		*head = after;
		if (skb->ip_summed == CHECKSUM_COMPLETE)
			skb->csum = csum_add(csum_sub(skb->csum, (__force __wsum)before), (__force __wsum)after);
	}
	return true;
}

static bool abc_admits(const struct Qdisc *sch, const struct abc_settings *s, unsigned int bytes)
{
	return (!s->limit || sch->q.qlen < s->limit) &&
	       (!s->limit_bytes || sch->qstats.backlog + bytes <= s->limit_bytes);
}

/* Whether a rule that remembers the link's rate is in force: not while that is unknown. */
static bool abc_follows(const struct abc_sched_data *q, enum abc_variant variant)
{
	return q->settings.variant == variant && (q->settings.rate || q->capacity.mu);
}

/* The state of the rule that tunes itself, where that is in force. */
static struct adaptive *abc_adaptive(struct abc_sched_data *q)
{
	return abc_follows(q, ABC_ADAPTIVE) ? &q->state->adaptive : NULL;
}

/* The state of the law for L4S, likewise. */
static struct l4s *abc_l4s(struct abc_sched_data *q)
{
	return abc_follows(q, ABC_L4S) ? &q->state->l4s : NULL;
}

/* By the variant's rule. */
static enum abc_mark abc_decide(struct abc_sched_data *q, const struct departure *departure)
{
	const struct abc_settings *s = &q->settings;

	if (s->variant != ABC_L4S)
		return abc_leave(&q->state->router, abc_adaptive(q), &q->law, s->proxied, s->sojourn, departure);
	return abc_leave_l4s(&q->state->router, abc_l4s(q), &q->law, ETH_HLEN, departure);
}

static int abc_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct abc_sched_data *q = qdisc_priv(sch);
	struct adaptive *a = abc_adaptive(q);
	struct l4s *l = abc_l4s(q);
	u64 now_ns;

	if (!abc_admits(sch, &q->settings, qdisc_pkt_len(skb)))
		return qdisc_drop(skb, sch, to_free);
	now_ns = ktime_get_ns();
	abc_skb_cb(skb)->arrived_ns = now_ns;
	if (a)
		abc_enter(a, q->law.mu, q->settings.proxied, now_ns, qdisc_pkt_len(skb), abc_ecn(skb));
	else if (l)
		abc_advance_l4s(l, now_ns, q->law.mu);
	return qdisc_enqueue_tail(skb, sch);
}

/* Each packet has a mark of its own, so what is to be segmented is segmented before it waits. */
static int abc_enqueue_segments(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	unsigned int whole = qdisc_pkt_len(skb), bytes = 0;
	struct sk_buff *segment, *next;
	int queued = 0;

	segment = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segment))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segment, segment, next) {
		unsigned int size = segment->len;

		skb_mark_not_on_list(segment);
		/* What a size table (tc-stab) says of a length is not for modules to ask. */
		qdisc_skb_cb(segment)->pkt_len = size;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
		/* That of the whole came with its copy. */
		qdisc_skb_cb(segment)->pkt_segs = 1;
#endif
		if (abc_enqueue_one(segment, sch, to_free) == NET_XMIT_SUCCESS) {
			queued++;
			bytes += size;
		}
	}
	consume_skb(skb);
	if (!queued)
		return NET_XMIT_DROP;
	/* The parents are about to count one packet of the whole length. */
	qdisc_tree_reduce_backlog(sch, 1 - queued, whole - bytes);
	return NET_XMIT_SUCCESS;
}

static int abc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (skb_is_gso(skb))
		return abc_enqueue_segments(skb, sch, to_free);
	return abc_enqueue_one(skb, sch, to_free);
}

/*
 * When the packet at the head leaves, or would have if the timer were never late; its marks must not depend
 * on that. A time to come if it is not due.
 */
static u64 abc_due_ns(const struct abc_sched_data *q, const struct sk_buff *head, u64 now_ns)
{
	u64 due_ns = max(q->free_ns, abc_skb_cb(head)->arrived_ns);

	return max(due_ns, now_ns - LATE_NS);
}

static void abc_mark(struct Qdisc *sch, struct sk_buff *skb, u64 now_ns)
{
	struct abc_sched_data *q = qdisc_priv(sch);
	struct tc_abc_xstats *stats = &q->stats;
	struct departure departure = {
		.now_ns = now_ns,
		.sojourn_ns = now_ns - abc_skb_cb(skb)->arrived_ns,
		.backlog = sch->qstats.backlog,
		.bytes = qdisc_pkt_len(skb),
		.ecn = abc_ecn(skb),
	};
	u32 sojourn_us = min_t(u64, divide(departure.sojourn_ns, NSEC_PER_USEC), U32_MAX);

	if (!q->settings.rate) {
		capacity_depart(&q->capacity, now_ns, departure.bytes, sch->q.qlen, q->law.window_ns,
				q->state->router.cr, q->law.eta);
		/* Nothing known, nothing held back: then something will wait, and be measured. */
		q->law.mu = q->capacity.mu ?: ABC_RATE_MAX;
	}
	stats->sojourn_us = sojourn_us;
	stats->sojourn_max_us = max(stats->sojourn_max_us, sojourn_us);
	stats->sojourn_sum_us += sojourn_us;
	switch (abc_decide(q, &departure)) {
	case ABC_LEAVES_ACCELERATE:
		stats->accelerates++;
		break;
	case ABC_LEAVES_TURNED:
		stats->turned++;
		if (!abc_write_ecn(skb, abc_turned_ecn(q->settings.proxied || q->settings.variant == ABC_L4S)))
			stats->unwritten++;
		break;
	case ABC_LEAVES_BRAKE:
		stats->brakes++;
		break;
	case ABC_LEAVES_CE:
		stats->ce++;
		return;
	case ABC_LEAVES_OTHER:
		stats->others++;
		return;
	}
	stats->shares += q->state->router.f;
}

static struct sk_buff *abc_dequeue(struct Qdisc *sch)
{
	struct abc_sched_data *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();
	struct sk_buff *skb;

	if (abc_shapes(q)) {
		u64 due_ns;

		skb = qdisc_peek_head(sch);
		if (!skb)
			return NULL;
		due_ns = abc_due_ns(q, skb, now_ns);
		if (due_ns > now_ns) {
			qdisc_qstats_overlimit(sch);
			qdisc_watchdog_schedule_ns(&q->watchdog, due_ns);
			return NULL;
		}
		now_ns = due_ns;
		q->free_ns = due_ns + div64_u64((u64)qdisc_pkt_len(skb) * NSEC_PER_SEC, q->settings.rate);
	}
	skb = qdisc_dequeue_head(sch);
	if (skb)
		abc_mark(sch, skb, now_ns);
	return skb;
}

static struct sk_buff *abc_peek(struct Qdisc *sch)
{
	/*
	 * A shaper must not show what is not due; what it shows has left. Else a packet is marked as it
	 * really leaves.
	 */
	if (abc_shapes(qdisc_priv(sch)) || skb_peek(&sch->gso_skb))
		return qdisc_peek_dequeued(sch);
	return qdisc_peek_head(sch);
}

static const struct nla_policy abc_policy[TCA_ABC_MAX + 1] = {
	[TCA_ABC_RATE64] = { .type = NLA_U64 },
	[TCA_ABC_SHAPE] = { .type = NLA_U8 },
	[TCA_ABC_LIMIT] = { .type = NLA_U32 },
	[TCA_ABC_LIMIT_BYTES] = { .type = NLA_U32 },
	[TCA_ABC_TARGET] = { .type = NLA_U32 },
	[TCA_ABC_DELTA] = { .type = NLA_U32 },
	[TCA_ABC_WINDOW] = { .type = NLA_U32 },
	[TCA_ABC_ETA] = { .type = NLA_U32 },
	[TCA_ABC_TOKEN_LIMIT] = { .type = NLA_U32 },
	[TCA_ABC_ENCODING] = { .type = NLA_U8 },
	[TCA_ABC_DELAY] = { .type = NLA_U8 },
	[TCA_ABC_VARIANT] = { .type = NLA_U8 },
};

/* abc20 7.2; 1 where a cushion follows the errors. */
static u64 abc_eta(enum abc_variant variant)
{
	return variant == ABC_PAPER ? divide(980ULL << SHARE_BITS, 1000) : SHARE_ONE;
}

static void abc_defaults(struct abc_settings *s)
{
	enum abc_variant variant = READ_ONCE(l4s) ? ABC_L4S : READ_ONCE(adaptive) ? ABC_ADAPTIVE : ABC_PAPER;

	*s = (struct abc_settings) {
		.rate = (u64)READ_ONCE(rate_kbit) * 125,
		.eta = divide((u64)READ_ONCE(eta_permille) << SHARE_BITS, 1000) ?: abc_eta(variant),
		.token_limit = (u64)READ_ONCE(token_limit) << SHARE_BITS,
		.limit = READ_ONCE(limit),
		.target_us = READ_ONCE(target_us),
		.delta_us = READ_ONCE(delta_us),
		.window_us = READ_ONCE(window_us),
		.shape = READ_ONCE(shape),
		.proxied = READ_ONCE(proxied),
		.sojourn = READ_ONCE(sojourn),
		.variant = variant,
	};
}

/* Parameters of the module that contradict each other. */
static int abc_check_parameters(struct netlink_ext_ack *extack)
{
	bool paper = READ_ONCE(target_us) != TARGET_US || READ_ONCE(delta_us) != DELTA_US || READ_ONCE(sojourn);

	if (READ_ONCE(adaptive) && READ_ONCE(l4s)) {
		NL_SET_ERR_MSG(extack, "abc: of the parameters adaptive and l4s one may be set");
		return -EINVAL;
	}
	if (READ_ONCE(adaptive) && paper) {
		NL_SET_ERR_MSG(extack,
			       "abc: the parameter adaptive goes without target_us, delta_us and sojourn: it measures what they set");
		return -EINVAL;
	}
	if (READ_ONCE(l4s) && (paper || READ_ONCE(eta_permille) || READ_ONCE(proxied))) {
		NL_SET_ERR_MSG(extack,
			       "abc: the parameter l4s goes without target_us, delta_us, sojourn, eta_permille and proxied");
		return -EINVAL;
	}
	return 0;
}

static int abc_check(const struct abc_settings *s, struct netlink_ext_ack *extack)
{
	const char *wrong = NULL;

	if (s->rate && (s->rate < MIN_RATE || s->rate > ABC_RATE_MAX))
		wrong = "abc: the rate must be 0 (measured) or from 8 kbit/s to 549 Gbit/s";
	else if (!s->limit && !s->limit_bytes)
		wrong = "abc: a limit must be given, in packets or in bytes";
	else if (s->target_us > MAX_TIME_US)
		wrong = "abc: the target must be at most 100 s";
	else if (!s->delta_us || s->delta_us > MAX_TIME_US)
		wrong = "abc: delta must be above 0 and at most 100 s";
	else if (s->window_us < MIN_WINDOW_US || s->window_us > MAX_WINDOW_US)
		wrong = "abc: the window must be from 1 ms to 10 s";
	else if (s->eta < SHARE_ONE / 10 || s->eta > SHARE_ONE)
		wrong = "abc: eta must be from 0.1 to 1";
	else if (s->token_limit <= SHARE_ONE || s->token_limit > U32_MAX)
		wrong = "abc: the token limit must be above 1, or no packet would accelerate, and below 4096";
	if (!wrong)
		return 0;
	if (extack)
		extack->_msg = wrong;
	return -EINVAL;
}

static int abc_parse(struct abc_settings *s, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_ABC_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_ABC_MAX, opt, abc_policy, extack);
	if (err < 0)
		return err;
	if (tb[TCA_ABC_VARIANT]) {
		u8 variant = nla_get_u8(tb[TCA_ABC_VARIANT]);

		if (variant > ABC_L4S) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_ABC_VARIANT],
					    "abc: the variant must be 0 (paper), 1 (adaptive) or 2 (l4s)");
			return -EINVAL;
		}
		if (s->variant != variant) {
			s->variant = variant;
			s->eta = abc_eta(s->variant);
			/* The law for L4S has one encoding. */
			s->proxied = s->proxied && variant != ABC_L4S;
		}
	}
	if (s->variant == ABC_L4S && (tb[TCA_ABC_TARGET] || tb[TCA_ABC_DELTA] || tb[TCA_ABC_DELAY] || tb[TCA_ABC_ETA] ||
				      tb[TCA_ABC_TOKEN_LIMIT] || tb[TCA_ABC_ENCODING])) {
		NL_SET_ERR_MSG(extack, "abc: the l4s variant goes without target, delta, x, eta, token limit and encoding");
		return -EINVAL;
	}
	if (s->variant == ABC_ADAPTIVE && (tb[TCA_ABC_TARGET] || tb[TCA_ABC_DELTA] || tb[TCA_ABC_DELAY])) {
		NL_SET_ERR_MSG(extack,
			       "abc: the adaptive variant goes without target, delta and x: it measures what they set");
		return -EINVAL;
	}
	if (tb[TCA_ABC_RATE64])
		s->rate = nla_get_u64(tb[TCA_ABC_RATE64]);
	if (tb[TCA_ABC_SHAPE])
		s->shape = nla_get_u8(tb[TCA_ABC_SHAPE]);
	if (tb[TCA_ABC_LIMIT])
		s->limit = nla_get_u32(tb[TCA_ABC_LIMIT]);
	if (tb[TCA_ABC_LIMIT_BYTES])
		s->limit_bytes = nla_get_u32(tb[TCA_ABC_LIMIT_BYTES]);
	if (tb[TCA_ABC_TARGET])
		s->target_us = nla_get_u32(tb[TCA_ABC_TARGET]);
	if (tb[TCA_ABC_DELTA])
		s->delta_us = nla_get_u32(tb[TCA_ABC_DELTA]);
	if (tb[TCA_ABC_WINDOW])
		s->window_us = nla_get_u32(tb[TCA_ABC_WINDOW]);
	if (tb[TCA_ABC_ETA])
		s->eta = nla_get_u32(tb[TCA_ABC_ETA]);
	if (tb[TCA_ABC_TOKEN_LIMIT])
		s->token_limit = nla_get_u32(tb[TCA_ABC_TOKEN_LIMIT]);
	if (tb[TCA_ABC_ENCODING]) {
		if (nla_get_u8(tb[TCA_ABC_ENCODING]) > ABC_PROXIED) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_ABC_ENCODING],
					    "abc: the encoding must be 0 (legacy) or 1 (proxied)");
			return -EINVAL;
		}
		s->proxied = nla_get_u8(tb[TCA_ABC_ENCODING]) == ABC_PROXIED;
	}
	if (tb[TCA_ABC_DELAY]) {
		if (nla_get_u8(tb[TCA_ABC_DELAY]) > ABC_SOJOURN) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_ABC_DELAY],
					    "abc: the delay must be 0 (backlog) or 1 (sojourn)");
			return -EINVAL;
		}
		s->sojourn = nla_get_u8(tb[TCA_ABC_DELAY]) == ABC_SOJOURN;
	}
	return 0;
}

/* Bytes that may wait: a packet is one of the largest size. */
static u64 abc_buffer(const struct abc_settings *s)
{
	u64 packets = (u64)s->limit * ETH_FRAME_LEN;

	if (!s->limit || !s->limit_bytes)
		return packets + s->limit_bytes;
	return min_t(u64, packets, s->limit_bytes);
}

/* Takes settings over, under the root lock where packets may come. */
static void abc_apply(struct abc_sched_data *q, const struct abc_settings *s)
{
	if (q->settings.window_us != s->window_us)
		memset(&q->state->router.measured, 0, sizeof(q->state->router.measured));
	/* What it knows is of the time before. */
	if (s->variant != q->settings.variant) {
		memset(&q->state->adaptive, 0, sizeof(q->state->adaptive));
		memset(&q->state->l4s, 0, sizeof(q->state->l4s));
	}
	q->settings = *s;
	q->law = (struct router_settings) {
		.mu = s->rate,
		.eta = s->eta,
		.token_limit = s->token_limit,
		.delta_us = s->delta_us,
		.target_us = s->target_us,
		.window_ns = (u64)s->window_us * NSEC_PER_USEC,
		.buffer = abc_buffer(s),
	};
	/* What leaves while the rate is told says nothing of the busy time around it. */
	if (s->rate)
		q->capacity.backlogged = false;
	/*
	 * A packet that an old rate holds back does not bind a new one; the time before now is not to be made
	 * up for.
	 */
	q->free_ns = ktime_get_ns();
}

static int abc_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct abc_sched_data *q = qdisc_priv(sch);
	struct abc_settings settings = q->settings;
	unsigned int packets = 0, bytes = 0;
	int err;

	if (!opt) {
		NL_SET_ERR_MSG(extack, "abc: options must be given");
		return -EINVAL;
	}
	err = abc_parse(&settings, opt, extack);
	if (!err)
		err = abc_check(&settings, extack);
	if (err)
		return err;

	sch_tree_lock(sch);
	abc_apply(q, &settings);
	while ((settings.limit && sch->q.qlen > settings.limit) ||
	       (settings.limit_bytes && sch->qstats.backlog > settings.limit_bytes)) {
		struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);

		if (!skb)
			break;
		packets++;
		bytes += qdisc_pkt_len(skb);
		qdisc_qstats_backlog_dec(sch, skb);
		rtnl_qdisc_drop(skb, sch);
	}
	qdisc_tree_reduce_backlog(sch, packets, bytes);
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns());
	sch_tree_unlock(sch);
	return 0;
}

static int abc_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct abc_sched_data *q = qdisc_priv(sch);
	struct abc_settings settings;
	int err;

	/* First of all: abc_destroy is called whatever this returns. */
	qdisc_watchdog_init(&q->watchdog, sch);
	err = abc_check_parameters(extack);
	if (err)
		return err;
	abc_defaults(&settings);
	if (opt) {
		err = abc_parse(&settings, opt, extack);
		if (err)
			return err;
	}
	err = abc_check(&settings, extack);
	if (err)
		return err;
	/* 81 kB, which kmalloc would make 128 of. */
	q->state = vzalloc(sizeof(*q->state));
	if (!q->state)
		return -ENOMEM;
	abc_apply(q, &settings);
	return 0;
}

static void abc_reset(struct Qdisc *sch)
{
	struct abc_sched_data *q = qdisc_priv(sch);

	qdisc_reset_queue(sch);
	qdisc_watchdog_cancel(&q->watchdog);
	if (q->state)
		memset(q->state, 0, sizeof(*q->state));
	memset(&q->capacity, 0, sizeof(q->capacity));
	q->free_ns = 0;
}

static void abc_destroy(struct Qdisc *sch)
{
	struct abc_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	vfree(q->state);
}

static int abc_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct abc_sched_data *q = qdisc_priv(sch);
	const struct abc_settings *s = &q->settings;
	struct nlattr *opts = nla_nest_start(skb, TCA_OPTIONS);

	if (!opts)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, TCA_ABC_RATE64, s->rate, TCA_ABC_PAD) ||
	    nla_put_u8(skb, TCA_ABC_SHAPE, abc_shapes(q)) ||
	    nla_put_u32(skb, TCA_ABC_LIMIT, s->limit) ||
	    nla_put_u32(skb, TCA_ABC_LIMIT_BYTES, s->limit_bytes) ||
	    nla_put_u32(skb, TCA_ABC_TARGET, s->target_us) ||
	    nla_put_u32(skb, TCA_ABC_DELTA, s->delta_us) ||
	    nla_put_u32(skb, TCA_ABC_WINDOW, s->window_us) ||
	    nla_put_u32(skb, TCA_ABC_ETA, s->eta) ||
	    nla_put_u32(skb, TCA_ABC_TOKEN_LIMIT, s->token_limit) ||
	    nla_put_u8(skb, TCA_ABC_ENCODING, s->proxied ? ABC_PROXIED : ABC_LEGACY) ||
	    nla_put_u8(skb, TCA_ABC_DELAY, s->sojourn ? ABC_SOJOURN : ABC_BACKLOG) ||
	    nla_put_u8(skb, TCA_ABC_VARIANT, s->variant)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static int abc_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct abc_sched_data *q = qdisc_priv(sch);
	struct tc_abc_xstats stats;

	sch_tree_lock(sch);
	stats = q->stats;
	stats.capacity = q->settings.rate ?: q->capacity.mu;
	stats.measured = q->state->router.cr;
	stats.share = q->state->router.f;
	stats.tokens = q->state->router.token;
	if (q->settings.variant == ABC_ADAPTIVE) {
		stats.loop_delay_us = adaptive_loop_delay_us(&q->state->adaptive);
		stats.forecast_error = min_t(u64, adaptive_error_bytes(&q->state->adaptive), U32_MAX);
	} else if (q->settings.variant == ABC_L4S) {
		stats.forecast_error = min_t(u64, l4s_error_bytes(&q->state->l4s), U32_MAX);
	}
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

static struct Qdisc_ops abc_qdisc_ops __read_mostly = {
	.id = "abc",
	.priv_size = sizeof(struct abc_sched_data),
	.enqueue = abc_enqueue,
	.dequeue = abc_dequeue,
	.peek = abc_peek,
	.init = abc_init,
	.reset = abc_reset,
	.destroy = abc_destroy,
	.change = abc_change,
	.dump = abc_dump,
	.dump_stats = abc_dump_stats,
	.owner = THIS_MODULE,
};

#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id) MODULE_ALIAS("net-sch-" id)
#endif
MODULE_ALIAS_NET_SCH("abc");

static int __init abc_module_init(void)
{
	return register_qdisc(&abc_qdisc_ops);
}

static void __exit abc_module_exit(void)
{
	unregister_qdisc(&abc_qdisc_ops);
}

module_init(abc_module_init);
module_exit(abc_module_exit);
MODULE_AUTHOR("The Brakelight authors");
MODULE_DESCRIPTION("Accel-Brake Control: the router as a qdisc");
MODULE_VERSION("0.1.0");
/* Of our two licences, MIT is the one that goes with the kernel's. */
MODULE_LICENSE("Dual MIT/GPL");
