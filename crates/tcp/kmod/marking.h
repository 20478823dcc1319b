/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What ABC's router does to the packet that leaves, in both encodings of abc20 4.2: the readings of
 * `brakelight-routers`'s `abc.rs`, with the arithmetic of ../bpf/router.h. And what its router for L4S
 * senders does, by ../bpf/l4s.h. No kernel in here: the tests compile it too.
 */
#ifndef BRAKELIGHT_MARKING_H
#define BRAKELIGHT_MARKING_H

#include "adaptive.h"
#include "l4s.h"
#include "router.h"

/* rfc3168 5 */
#define ABC_NOT_ECT 0
#define ABC_ECT_1 1
#define ABC_ECT_0 2
#define ABC_CE 3

/* The largest mu, in bytes per second, that the products of router.h have room for. */
#define ABC_RATE_MAX (1ULL << 36)

/* What a packet is by the time it has left. */
enum abc_mark {
	ABC_LEAVES_ACCELERATE,
	ABC_LEAVES_TURNED,
	ABC_LEAVES_BRAKE,
	ABC_LEAVES_CE,
	ABC_LEAVES_OTHER,
};

/* A packet on its way out. */
struct departure {
	__u64 now_ns;
	__u64 sojourn_ns;
	/* what waits behind it */
	__u64 backlog;
	__u32 bytes;
	/* its ECN field; 0 for what has none */
	__u8 ecn;
};

/*
 * x in microseconds: with `sojourn` what this packet waited, else what waits behind it over mu (D2 in
 * abc.rs).
 */
static __always_inline __u64 abc_delay_us(const struct router_settings *s, bool sojourn, const struct departure *d)
{
	return sojourn ? divide(d->sojourn_ns, 1000) : divide(d->backlog * 1000000, s->mu);
}

static __always_inline bool abc_is_accelerate(bool proxied, __u8 ecn)
{
	return ecn == ABC_ECT_1 || (proxied && ecn == ABC_ECT_0);
}

static __always_inline bool abc_is_brake(bool proxied, __u8 ecn)
{
	return ecn == (proxied ? ABC_CE : ABC_ECT_0);
}

/* Closes the bins that ended by `now_ns`. */
static inline void abc_advance(struct adaptive *a, __u64 now_ns, __u64 mu)
{
	if (!adaptive_take(a, now_ns, mu))
		return;
	adaptive_close(a);
	adaptive_give(a);
}

/* A packet has been let in; of the adaptive rule alone. */
static inline void abc_enter(struct adaptive *a, __u64 mu, bool proxied, __u64 now_ns, __u32 bytes, __u8 ecn)
{
	if (!abc_is_accelerate(proxied, ecn) && !abc_is_brake(proxied, ecn))
		return;
	abc_advance(a, now_ns, mu);
	adaptive_arrive(a, bytes);
}

/*
 * Measures the packet, computes f and says what it leaves as; abc20 Algorithm 1. By the adaptive rule where
 * there is state for it.
 */
static inline enum abc_mark abc_leave(struct router *r, struct adaptive *a, const struct router_settings *s,
				      bool proxied, bool sojourn, const struct departure *d)
{
	/* All packets use the link, whatever they speak (D4). */
	if (a) {
		abc_advance(a, d->now_ns, s->mu);
		adaptive_depart(r, a, s, d->now_ns, d->backlog, d->bytes);
	} else {
		router_depart(r, s, d->now_ns, abc_delay_us(s, sojourn, d), d->bytes);
	}
	if (abc_is_accelerate(proxied, d->ecn)) {
		if (!router_take_token(r, s, !a || adaptive_has_room(a, s->buffer, d->bytes)))
			return ABC_LEAVES_TURNED;
		if (a)
			adaptive_order(a, d->bytes);
		return ABC_LEAVES_ACCELERATE;
	}
	if (abc_is_brake(proxied, d->ecn)) {
		router_take_token(r, s, false);
		return ABC_LEAVES_BRAKE;
	}
	return d->ecn == ABC_CE ? ABC_LEAVES_CE : ABC_LEAVES_OTHER;
}

/* Closes the bins of l4s.h that ended by `now_ns`: whatever arrives or leaves does. */
static inline void abc_advance_l4s(struct l4s *l, __u64 now_ns, __u64 mu)
{
	if (!l4s_take(l, now_ns, mu))
		return;
	l4s_close(l);
	l4s_give(l);
}

/*
 * By the law of l4s.h, on a link that adds `overhead` bytes to a packet: an ECT(1) that stays one leaves as
 * accelerate does, and one that is marked CE is turned. Without state, where mu is unknown, none is.
 */
static inline enum abc_mark abc_leave_l4s(struct router *r, struct l4s *l, const struct router_settings *s,
					  __u32 overhead, const struct departure *d)
{
	router_measure(r, s, d->now_ns, d->bytes);
	if (l) {
		abc_advance_l4s(l, d->now_ns, s->mu);
		l4s_serve(l, d->now_ns);
	}
	if (d->ecn == ABC_ECT_1) {
		__u64 arrived_ns = d->now_ns - d->sojourn_ns;

		return l && l4s_marks(l, arrived_ns, d->backlog, overhead) ? ABC_LEAVES_TURNED : ABC_LEAVES_ACCELERATE;
	}
	return d->ecn == ABC_CE ? ABC_LEAVES_CE : ABC_LEAVES_OTHER;
}

/* The codepoint of an accelerate that became a brake. */
static __always_inline __u8 abc_turned_ecn(bool proxied)
{
	return proxied ? ABC_CE : ABC_ECT_0;
}

#endif
