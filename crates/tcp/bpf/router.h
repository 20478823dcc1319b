/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ABC's router (abc20) in fixed point: the same readings as `brakelight-routers`'s `abc.rs`, whose head
 * has the formulas and the table of symbols, with x = sojourn (D2 there).
 *
 *   tr = eta mu - (mu / delta) max(x - d_t, 0)          abc20 eq.1
 *   f  = min(tr / (2 cr), 1), and 0 where tr <= 0       abc20 eq.2
 *   token = min(token + f, limit); accelerate and token > 1: token -= 1, else brake      abc20 Algorithm 1
 */
#ifndef BRAKELIGHT_ROUTER_H
#define BRAKELIGHT_ROUTER_H

#include "fixed.h"

/* Bits behind the point of f, tokens and eta. */
#define SHARE_BITS 20
#define SHARE_ONE (1ULL << SHARE_BITS)

/* Steps in the window of cr, and places for them: twice as many, so that there is always one left. */
#define PASSED_STEPS 2048
#define PASSED_MAX (2 * PASSED_STEPS)
/*
 * Places forgotten at one packet; more only wait after a pause in the middle of a window of over 150 Mbit/s.
 */
#define EXPIRED_MAX 256

struct router_settings {
	/* bytes per second */
	__u64 mu;
	/* shares */
	__u64 eta;
	__u64 token_limit;
	__u64 delta_us;
	__u64 target_us;
	__u64 window_ns;
	/* bytes that may wait; 0: not known. Of adaptive.h alone. */
	__u64 buffer;
};

struct passed {
	__u64 at_ns;
	__u64 bytes;
};

/* What passed in (t - T, t]; the places between `head` and `tail`, modulo their number. */
struct sliding_rate {
	__u64 bytes;
	__u32 head;
	__u32 tail;
	struct passed passed[PASSED_MAX];
};

struct router {
	__u64 token;
	__u64 f;
	__u64 cr;
	struct sliding_rate measured;
};

/* Forgets what passed a window ago or longer. Inlined: it runs under a lock, where nothing may be called. */
static __always_inline void sliding_rate_expire(struct sliding_rate *rate, __u64 now_ns, __u64 window_ns)
{
	__u64 bytes = rate->bytes;
	__u32 head = rate->head;

	if (head != rate->tail && now_ns - rate->passed[(rate->tail - 1) & (PASSED_MAX - 1)].at_ns >= window_ns) {
		head = rate->tail;
		bytes = 0;
	}
	for (int i = 0; i < EXPIRED_MAX; i++) {
		const struct passed *first = &rate->passed[head & (PASSED_MAX - 1)];

		if (head == rate->tail || now_ns - first->at_ns < window_ns)
			break;
		bytes -= first->bytes;
		head++;
	}
	rate->bytes = bytes;
	rate->head = head;
}

static __always_inline void sliding_rate_add(struct sliding_rate *rate, __u64 now_ns, __u64 window_ns, __u32 bytes)
{
	struct passed *place = &rate->passed[(rate->tail - 1) & (PASSED_MAX - 1)];

	/* Who came before on another processor may have read the clock after. */
	if (rate->head != rate->tail)
		now_ns = max_u64(now_ns, place->at_ns);
	sliding_rate_expire(rate, now_ns, window_ns);
	/*
	 * Less than a step after the newest place it counts as of that one: cr lacks what leaves in one step,
	 * at most.
	 */
	if (rate->head == rate->tail || now_ns - place->at_ns >= window_ns / PASSED_STEPS) {
		place = &rate->passed[rate->tail & (PASSED_MAX - 1)];
		place->at_ns = now_ns;
		place->bytes = 0;
		rate->tail++;
	}
	place->bytes += bytes;
	rate->bytes += bytes;
}

/* abc20 eq.1 and eq.2; cr in bytes per second, the delay in microseconds. */
static __always_inline __u64 router_share(const struct router_settings *s, __u64 cr, __u64 x_us)
{
	__u64 aim = (s->mu * s->eta) >> SHARE_BITS;
	__u64 above_us = x_us > s->target_us ? x_us - s->target_us : 0;
	__u64 drain = divide(s->mu * min_u64(above_us, 1 << 27), s->delta_us);

	if (drain >= aim)
		return 0;
	/* open-questions#X-8: nothing measured, nothing held back */
	if (aim - drain >= 2 * cr)
		return SHARE_ONE;
	return divide((aim - drain) << SHARE_BITS, 2 * cr);
}

/* abc20 Algorithm 1: whether an accelerate stays one. */
static __always_inline bool router_take_token(struct router *r, const struct router_settings *s, bool accelerates)
{
	r->token = min_u64(r->token + r->f, s->token_limit);
	if (!accelerates || r->token <= SHARE_ONE)
		return false;
	r->token -= SHARE_ONE;
	return true;
}

/* A packet of `bytes` leaves at `now_ns`: measures cr. */
static __always_inline void router_measure(struct router *r, const struct router_settings *s, __u64 now_ns, __u32 bytes)
{
	sliding_rate_add(&r->measured, now_ns, s->window_ns, bytes);
	r->cr = divide(r->measured.bytes * 1000000, divide(s->window_ns, 1000));
}

/* A packet of `bytes` leaves at `now_ns` after `x_us` in the queue: measures it and computes f. */
static __always_inline void router_depart(struct router *r, const struct router_settings *s, __u64 now_ns, __u64 x_us,
					  __u32 bytes)
{
	router_measure(r, s, now_ns, bytes);
	r->f = router_share(s, r->cr, x_us);
}

#endif
