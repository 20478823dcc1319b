/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ABC's router for L4S senders, in fixed point: the law of `brakelight-routers`'s `abc/l4s.rs`, whose head
 * has the formulas, the symbols and the reasons. The constants here are the defaults there.
 *
 *   mu = what the link could have carried in the last H, over H
 *   e += (|mu(t) - mu(t - H)| H - e) dt / A              mean error of mu as a forecast of the next H
 *   Q* = d_t mu + c e + two packets                      what may wait
 *   an ECT(1) packet that leaves and that stood in a queue is marked CE if more than Q* stays behind it
 *
 * Time is in bins of 1 ms. Amounts are bytes << L4S_AMOUNT_BITS. Zero is the start of all state. A bin is
 * closed in three steps, as in adaptive.h: `l4s_take` and `l4s_give` under the router's lock, `l4s_close`
 * between them without it. The other queue of abc/l4s.rs, for traffic that is not L4S, is none of this
 * file's.
 */
#ifndef BRAKELIGHT_L4S_H
#define BRAKELIGHT_L4S_H

#include "fixed.h"

#define L4S_BIN_NS 1000000ULL
#define L4S_BINS_PER_S 1000
#define L4S_AMOUNT_BITS 9
/* 10^9 >> L4S_AMOUNT_BITS, without a rest: bytes per second, times nanoseconds, over this are an amount. */
#define L4S_NS_PER_AMOUNT 1953125
/* d_t, in bins; c; H, in bins; A, in bins. */
#define L4S_TARGET 1
#define L4S_CUSHION 3
#define L4S_HORIZON 40
#define L4S_AVERAGING 1000
/* Bins of capacity that are remembered. */
#define L4S_HISTORY 512
/* What always may wait: so many packets of so many bytes, and what the link adds to each. */
#define L4S_FLOOR_PACKETS 2
#define L4S_FLOOR_BYTES 1500

/* What `l4s_take` leaves for `l4s_close`. */
struct l4s_closing {
	/* the bin that was open, the number of bins from it on, and the amount of each */
	__u64 from;
	__u64 bins;
	__u64 rate;
	/* there was none before, or too long ago: the link is taken to have had this rate always */
	__u32 anew;
	/* somebody is about it */
	__u32 busy;
};

struct l4s {
	/* the bin that is open, and whether there is one */
	__u64 bin;
	__u32 begun;
	/* bins since the first, up to those of A */
	__u32 seen;
	/* up to when the link's capacity has been counted */
	__u64 counted_ns;
	/* amount that the link could have carried in a bin, mean over H; mean error of this over H, as an amount */
	__u64 mu;
	__u64 error;
	/* the last two instants at which packets left */
	__u64 last_ns;
	__u64 before_ns;
	struct l4s_closing closing;
	/* amount that the link could have carried up to the end of each of the last bins, modulo 2^64 */
	__u64 carried[L4S_HISTORY];
};

/* Amount carried in one H up to the end of `last`. */
static __always_inline __u64 l4s_carried(const struct l4s *l, __u64 last)
{
	return l->carried[last & (L4S_HISTORY - 1)] - l->carried[(last - L4S_HORIZON) & (L4S_HISTORY - 1)];
}

/*
 * At `now_ns`, under the router's lock: begins to close what ended by then. Where it returns true,
 * `l4s_close` and then `l4s_give` must follow. mu in bytes per second.
 */
static __always_inline bool l4s_take(struct l4s *l, __u64 now_ns, __u64 mu)
{
	__u64 bin = divide_down(now_ns, L4S_BIN_NS), passed_ns = L4S_BIN_NS;
	struct l4s_closing *c = &l->closing;

	/* Clocks of processors may differ: there is no way back. */
	if (c->busy || (l->begun && bin <= l->bin))
		return false;
	c->from = bin;
	c->bins = 0;
	c->anew = !l->begun;
	if (l->begun) {
		c->from = l->bin;
		c->bins = bin - l->bin;
		c->anew = c->bins > L4S_HISTORY;
		/* Of each bin no more than two, so that the product fits. */
		passed_ns = divide(now_ns - min_u64(l->counted_ns, now_ns), c->bins);
	}
	c->rate = divide(mu * min_u64(passed_ns, 2 * L4S_BIN_NS), L4S_NS_PER_AMOUNT);
	c->busy = 1;
	l->begun = 1;
	l->bin = bin;
	l->counted_ns = now_ns;
	return true;
}

/* Under the router's lock. */
static __always_inline void l4s_give(struct l4s *l)
{
	l->closing.busy = 0;
}

/* As if the link had always carried as much in each bin; of a long pause only this mean is known. */
CHECKED_ALONE int l4s_assume(struct l4s *l)
{
	__u64 bin;

	if (!EXISTS(l))
		return 0;
	bin = l->closing.from + l->closing.bins;
	for (__u32 i = 0; i < L4S_HISTORY; i++)
		l->carried[(bin - 1 - i) & (L4S_HISTORY - 1)] = -(i * l->closing.rate);
	l->mu = l->closing.rate;
	return 0;
}

/*
 * Closes what `l4s_take` has noted. Needs no lock: nobody else has the estimates until `l4s_give`.
 */
CHECKED_ALONE int l4s_close(struct l4s *l)
{
	if (!EXISTS(l))
		return 0;
	if (l->closing.anew)
		return l4s_assume(l);
	for (__u32 i = 0; i < L4S_HISTORY; i++) {
		__u64 closed = l->closing.from + i, now, then, off;

		if (i >= l->closing.bins)
			break;
		l->carried[closed & (L4S_HISTORY - 1)] =
			l->carried[(closed - 1) & (L4S_HISTORY - 1)] + l->closing.rate;
		now = l4s_carried(l, closed);
		then = l4s_carried(l, closed - L4S_HORIZON);
		off = max_u64(now, then) - min_u64(now, then);
		/* A mean of what was seen so far, and later an exponential one. */
		if (l->seen < L4S_AVERAGING)
			l->seen++;
		l->error = divide(l->error * (l->seen - 1) + off, l->seen);
	}
	l->mu = divide(l4s_carried(l, l->closing.from + l->closing.bins - 1), L4S_HORIZON);
	return 0;
}

/* Q* in bytes, of a link that adds `overhead` bytes to a packet. */
static __always_inline __u64 l4s_may_wait(const struct l4s *l, __u32 overhead)
{
	__u64 amount = L4S_TARGET * l->mu + L4S_CUSHION * l->error;

	return (amount >> L4S_AMOUNT_BITS) + L4S_FLOOR_PACKETS * (L4S_FLOOR_BYTES + overhead);
}

/* A packet of either queue leaves. */
static __always_inline void l4s_serve(struct l4s *l, __u64 now_ns)
{
	if (now_ns > l->last_ns) {
		l->before_ns = l->last_ns;
		l->last_ns = now_ns;
	}
}

/*
 * Whether to mark the packet that leaves now, came at `arrived_ns`, and lets `waiting` bytes wait behind it.
 * The bins that ended by now have been closed, and it has been served.
 */
static __always_inline bool l4s_marks(const struct l4s *l, __u64 arrived_ns, __u64 waiting, __u32 overhead)
{
	/* One that came after the link's last service has waited for the link alone. */
	return l->before_ns > arrived_ns && waiting > l4s_may_wait(l, overhead);
}

/* What is shown: e. */
static __always_inline __u64 l4s_error_bytes(const struct l4s *l)
{
	return l->error >> L4S_AMOUNT_BITS;
}

#endif
