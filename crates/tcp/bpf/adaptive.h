/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ABC's target rate without constants of one link and one round trip, in fixed point: the rule of
 * `brakelight-routers`'s `abc/adaptive.rs`, whose head has the formulas, the symbols and the reasons. The
 * constants here are those there, under the same names.
 *
 *   O   = q + P                                    outstanding: what waits, and what is on its way
 *   m   = a mean of O over the last tau / 4        m' = (O - m) / (tau / 4)
 *   O*  = mu tau + c e g(tau)                      what the link is expected to serve in tau, and a cushion
 *   g   = max(tau / 100 ms, 0.7) up to 110 ms, then max(1.1 - 1.5 (tau / 100 ms - 1.1), -0.2)
 *   tr  = eta mu - (m - O*) / delta                in place of abc20 eq.1; delta = 0.7 tau
 *   tr <= eta mu + (B - q) / tau                   what the buffer has room for
 *   f   = min(max(tr / (2 cr), 1/16), 1)                      abc20 eq.2
 *   w   = min(max(w - mu dt, 0), P), and two packets more with each accelerate: what will wait in tau
 *   an accelerate only if w is 0, or with its two packets at most 7/8 B
 *
 * Time is in bins. A bin is closed in three steps, so that the long one needs no lock: `adaptive_take` notes
 * what the bin had and `adaptive_give` ends it, both under the router's lock; between them `adaptive_close`
 * has the estimates to itself, and whoever comes meanwhile goes by those that were. Zero is the start of all
 * state.
 *
 *   amounts    bytes << AMOUNT_BITS, at most 2^46 (2^36 bytes per second for 400 ms, and the errors of those)
 *   rates      amounts per bin
 */
#ifndef BRAKELIGHT_ADAPTIVE_H
#define BRAKELIGHT_ADAPTIVE_H

#include "router.h"

/* Nanoseconds in a bin: 2 ms. */
#define BIN_NS 2000000ULL
#define BINS_PER_S 500
#define AMOUNT_BITS 9
/* 10^9 >> AMOUNT_BITS, without a rest: bytes per second, times nanoseconds, over this are an amount. */
#define NS_PER_AMOUNT 1953125

/* Loop delays that can be told apart, in bins, and places for them: a power of two. */
#define LAGS 200
#define LAG_PLACES 256
/* Bins of orders that are remembered. */
#define ORDERS 256
/* The loop delay before one is known, in bins: 100 ms, that of abc20. */
#define FIRST_LAG 50
/* For how long the least lag that was chosen is taken for tau, in bins: twice five seconds. */
#define LEAST_FOR 2500
/* 1 / the share of one bin in the means of the lags: about one second. */
#define LAG_MEAN 500
/* By how much a lag must be better than the present one: 4/5. */
#define BETTER_OVER 5
#define BETTER_THAN 4
/* Windows of the forecast, in bins, each twice the one before. */
#define WINDOWS 9
#define SHORTEST_WINDOW 2
/* The longest window, in loop delays, and the loop delay that counts at least for this, in bins. */
#define LONGEST_WINDOW 4
#define LEAST_FOR_WINDOW 10
/* 1 / the share of one bin in the mean errors of the windows: about half a second. */
#define ERROR_MEAN 250
/* What is added to the errors, as an amount, so that none is zero: a byte. */
#define LEAST_ERROR (1ULL << AMOUNT_BITS)
/* Bins of capacity that are remembered: the longest window and one loop delay. */
#define HISTORY 1024
/*
 * c e in per cent of e: what each bin of the loop's delay adds, and the least; from the bins of 110 ms on
 * what each takes away, and the least below zero.
 */
#define CUSHION_RISE_PERCENT 2
#define LEAST_CUSHION_PERCENT 70
#define MOST_CUSHION_PERCENT 110
#define MOST_CUSHION_TAU 55
#define CUSHION_FALL_PERCENT 3
#define LONG_CUSHION_PERCENT 20
/* tau over the time over which what is outstanding is smoothed. */
#define TAU_OVER_SMOOTHED 4
/* 1 / the least share of accelerates. */
#define LEAST_SHARE 16
/* The share of the buffer that may be ordered, in eighths. */
#define ORDERED_EIGHTHS 7
/* delta over tau, in tenths. */
#define DELTA_OVER_TAU_TENTHS 7

/* The most bytes of a bin that lags are compared by: so many arrive in 2 ms at the largest mu. */
#define MOST_PER_BIN ((1ULL << 27) - 1)
/* The largest buffer, as an amount: 2^36 bytes. */
#define ROOM_MAX (1ULL << 45)
/* Bits behind the point of shares that become weights, and of those of time. */
#define RATIO_BITS 18
#define PASSED_BITS 24

/* What `adaptive_take` leaves for `adaptive_close`. */
struct closing {
	/* the bin that was open, the number of bins from it on, and the rate of each */
	__u64 from;
	__u64 bins;
	__u64 rate;
	/* bytes that arrived and that were ordered in the first of them */
	__u64 arrived;
	__u64 ordered;
	/* there was none before: the link is taken to have had this rate always */
	__u32 first;
	/* somebody is about it */
	__u32 busy;
};

struct adaptive {
	/* the bin that is open, and whether there is one */
	__u64 bin;
	__u32 begun;
	/* the loop's delay, in bins; 0 before the first packet */
	__u32 tau;
	/* the lag at which arrivals and orders agree best, and the best of those that were looked at */
	__u32 lag;
	__u32 best;
	/* the least lag of the last half of ten seconds, and of the present one */
	__u32 least[2];
	/* the number of the present half */
	__u64 half;
	/* up to when the link's capacity has been counted, and the amount of it that is the open bin's */
	__u64 counted_ns;
	__u64 part;
	/* bytes that arrived and that were ordered in the open bin */
	__u64 arrived;
	__u64 ordered_now;
	/* bytes ordered in the last tau, up to the end of the last closed bin, and in the first bin of it */
	__u64 on_its_way;
	__u64 oldest;
	/* mu as a rate, and the mean error of its forecast over one tau as an amount */
	__u64 mu;
	__u64 error;
	/* m as an amount, and its time; 0 before the first */
	__u64 outstanding;
	__u64 smoothed_ns;
	/* w as an amount, and its time */
	__u64 to_wait;
	__u64 foreseen_ns;
	/* bins since the start, up to the number of lags */
	__u32 seen;
	/* so that what follows lies alike on 32 bits */
	__u32 unused;
	struct closing closing;
	__u64 errors[WINDOWS];
	/* bytes ordered in the last bins */
	__u64 ordered[ORDERS];
	/* mean squared difference of what arrives and what was ordered, by lag less one, in bytes^2 */
	__u64 mismatch[LAG_PLACES];
	/* amount that the link could have carried up to the end of each of the last bins, modulo 2^64 */
	__u64 carried[HISTORY];
};

/* value * share >> PASSED_BITS, of shares up to 1: the product alone might not fit. */
static __always_inline __u64 adaptive_scale(__u64 value, __u64 share)
{
	__u64 below = value & ((1ULL << PASSED_BITS) - 1);

	return (value >> PASSED_BITS) * share + ((below * share) >> PASSED_BITS);
}

/*
 * At `now_ns`, under the router's lock: begins to close what ended by then. Where it returns true,
 * `adaptive_close` and then `adaptive_give` must follow. mu in bytes per second.
 */
static __always_inline bool adaptive_take(struct adaptive *a, __u64 now_ns, __u64 mu)
{
	__u64 bin = divide_down(now_ns, BIN_NS), begin_ns = bin * BIN_NS;
	struct closing *c = &a->closing;

	/* Clocks of processors may differ: there is no way back. */
	if (c->busy || (a->begun && bin <= a->bin))
		return false;
	c->first = !a->begun;
	c->from = a->bin;
	if (c->first) {
		c->from = bin;
		c->rate = divide(mu * BIN_NS, NS_PER_AMOUNT);
	} else {
		/* Up to the end of the last closed bin, and not to what came after it. */
		__u64 passed_ns = begin_ns - min_u64(a->counted_ns, begin_ns);

		c->bins = bin - a->bin;
		/* Of each no more than a bin, so that the product fits. */
		c->rate = divide(mu * min_u64(divide(passed_ns, c->bins), BIN_NS), NS_PER_AMOUNT) +
			  divide(a->part, c->bins);
	}
	a->part = divide(mu * (now_ns - begin_ns), NS_PER_AMOUNT);
	c->arrived = a->arrived;
	c->ordered = a->ordered_now;
	c->busy = 1;
	a->begun = 1;
	a->bin = bin;
	a->counted_ns = now_ns;
	a->arrived = 0;
	a->ordered_now = 0;
	return true;
}

/* Under the router's lock. */
static __always_inline void adaptive_give(struct adaptive *a)
{
	a->closing.busy = 0;
}

/* Holds what arrived in the bin `closed` against what was ordered in each of those before it. */
CHECKED_ALONE int adaptive_compare(struct adaptive *a, __u64 closed, __u64 arrived, __u64 ordered)
{
	if (!EXISTS(a))
		return 0;
	for (__u32 i = 0; i < LAGS; i++) {
		__u64 before = a->ordered[(closed - 1 - i) & (ORDERS - 1)];
		__u64 off = min_u64(max_u64(arrived, before) - min_u64(arrived, before), MOST_PER_BIN);

		a->mismatch[i] = divide_small(a->mismatch[i] * (LAG_MEAN - 1) + off * off, LAG_MEAN);
	}
	a->ordered[closed & (ORDERS - 1)] = ordered;
	if (a->seen < LAGS)
		a->seen++;
	return 0;
}

/* Amount that the link could have carried in so many bins up to the end of `last`. */
static __always_inline __u64 adaptive_carried(const struct adaptive *a, __u64 last, __u64 bins)
{
	return a->carried[last & (HISTORY - 1)] - a->carried[(last - bins) & (HISTORY - 1)];
}

static __always_inline __u32 adaptive_longest_window(__u32 tau)
{
	return LONGEST_WINDOW * (__u32)max_u64(tau, LEAST_FOR_WINDOW);
}

/* Holds what each window said one tau ago against what the link could carry since. */
CHECKED_ALONE int adaptive_judge_windows(struct adaptive *a, __u64 last)
{
	__u64 tau, actual, then;

	if (!EXISTS(a))
		return 0;
	tau = a->tau;
	actual = adaptive_carried(a, last, tau);
	then = last - tau;
	for (__u32 i = 0; i < WINDOWS; i++) {
		__u32 window = (__u32)SHORTEST_WINDOW << i;
		__u64 said, off;

		if (window > adaptive_longest_window(tau))
			break;
		said = divide(adaptive_carried(a, then, window) * tau, window);
		off = max_u64(actual, said) - min_u64(actual, said);
		a->errors[i] = divide_small(a->errors[i] * (ERROR_MEAN - 1) + off, ERROR_MEAN);
	}
	return 0;
}

/* mu is the mean over the windows, each by how well it has forecast. */
CHECKED_ALONE int adaptive_forecast(struct adaptive *a, __u64 last)
{
	__u64 least = ~0ULL, sum = 0, weights = 0;
	__u32 longest;

	if (!EXISTS(a))
		return 0;
	longest = adaptive_longest_window(a->tau);
	for (__u32 i = 0; i < WINDOWS; i++) {
		if ((__u32)SHORTEST_WINDOW << i > longest)
			break;
		least = min_u64(least, a->errors[i]);
	}
	for (__u32 i = 0; i < WINDOWS; i++) {
		__u32 window = (__u32)SHORTEST_WINDOW << i;
		__u64 ratio, weight;

		if (window > longest)
			break;
		ratio = divide((least + LEAST_ERROR) << RATIO_BITS, a->errors[i] + LEAST_ERROR);
		weight = (ratio * ratio) >> RATIO_BITS;
		weight = (weight * weight) >> RATIO_BITS;
		sum += weight * divide(adaptive_carried(a, last, window), window);
		weights += weight;
	}
	a->mu = divide(sum, weights);
	a->error = least;
	return 0;
}

/*
 * Another lag takes the present one's place where it is clearly better; tau is the least of ten seconds, and
 * the lag itself, or FIRST_LAG where that is less, until bins of all lags have been seen: one that was wrong
 * so early must not stay the least.
 */
CHECKED_ALONE int adaptive_choose_lag(struct adaptive *a, __u64 bin)
{
	__u64 least, half;

	if (!EXISTS(a))
		return 0;
	a->best = a->lag;
	least = a->mismatch[(a->lag - 1) & (LAG_PLACES - 1)];
	for (__u32 i = 0; i < LAGS; i++) {
		if (a->mismatch[i] < least) {
			least = a->mismatch[i];
			/* Kept in memory: the verifier would follow every index that it might be. */
			a->best = i + 1;
		}
	}
	if (least * BETTER_OVER < a->mismatch[(a->lag - 1) & (LAG_PLACES - 1)] * BETTER_THAN)
		a->lag = a->best;
	if (a->seen < LAGS) {
		a->tau = (__u32)min_u64(a->lag, FIRST_LAG);
		return 0;
	}
	half = divide_down(bin, LEAST_FOR);
	if (half != a->half) {
		a->least[0] = a->least[1];
		a->least[1] = LAGS;
		a->half = half;
	}
	a->least[1] = (__u32)min_u64(a->least[1], a->lag);
	a->tau = (__u32)min_u64(a->least[0], a->least[1]);
	return 0;
}

/* Sums what was ordered in the tau that ends with the bin `last`. */
CHECKED_ALONE int adaptive_sum_orders(struct adaptive *a, __u64 last)
{
	__u64 sum = 0;

	if (!EXISTS(a))
		return 0;
	for (__u32 i = 0; i < LAGS; i++) {
		if (i >= a->tau)
			break;
		sum += a->ordered[(last - i) & (ORDERS - 1)];
	}
	a->on_its_way = sum;
	a->oldest = a->ordered[(last - (a->tau - 1)) & (ORDERS - 1)];
	return 0;
}

/* Before the first bin: as if the link had always had the rate that it has. */
CHECKED_ALONE int adaptive_begin(struct adaptive *a)
{
	if (!EXISTS(a))
		return 0;
	a->tau = FIRST_LAG;
	a->lag = a->tau;
	a->least[0] = LAGS;
	a->least[1] = LAGS;
	a->half = 0;
	for (__u32 i = 0; i < HISTORY; i++)
		a->carried[(a->closing.from - 1 - i) & (HISTORY - 1)] = -(i * a->closing.rate);
	a->mu = a->closing.rate;
	return 0;
}

/* Nothing came for longer than any loop: what was ordered is not on its way any more. */
CHECKED_ALONE int adaptive_forget(struct adaptive *a)
{
	__u64 last, up_to;

	if (!EXISTS(a))
		return 0;
	for (__u32 i = 0; i < ORDERS; i++) {
		/* No memset, which the BPF target has not. */
		asm volatile("" : "+r"(i));
		a->ordered[i & (ORDERS - 1)] = 0;
	}
	last = a->closing.from + a->closing.bins - 1;
	up_to = a->carried[(a->closing.from - 1) & (HISTORY - 1)] + a->closing.bins * a->closing.rate;
	for (__u32 i = 0; i < HISTORY; i++) {
		if (i >= a->closing.bins)
			break;
		a->carried[(last - i) & (HISTORY - 1)] = up_to - i * a->closing.rate;
	}
	return 0;
}

/*
 * Closes what `adaptive_take` has noted. Needs no lock: nobody else has the estimates until `adaptive_give`.
 */
CHECKED_ALONE int adaptive_close(struct adaptive *a)
{
	struct closing *c;
	__u64 bin;

	if (!EXISTS(a))
		return 0;
	c = &a->closing;
	if (c->first)
		return adaptive_begin(a);
	if (c->bins > LAGS) {
		adaptive_forget(a);
	} else {
		for (__u32 i = 0; i < LAGS; i++) {
			__u64 closed = c->from + i;

			if (i >= c->bins)
				break;
			adaptive_compare(a, closed, i ? 0 : c->arrived, i ? 0 : c->ordered);
			a->carried[closed & (HISTORY - 1)] = a->carried[(closed - 1) & (HISTORY - 1)] + c->rate;
			adaptive_judge_windows(a, closed);
		}
		adaptive_choose_lag(a, c->from + c->bins);
	}
	bin = c->from + c->bins - 1;
	adaptive_sum_orders(a, bin);
	adaptive_forecast(a, bin);
	return 0;
}

/* A packet of a flow that answers marks has been let in. */
static __always_inline void adaptive_arrive(struct adaptive *a, __u32 bytes)
{
	a->arrived += bytes;
}

/* A packet leaves as accelerate: it brings two. */
static __always_inline void adaptive_order(struct adaptive *a, __u32 bytes)
{
	a->ordered_now += 2 * bytes;
	a->to_wait += (2ULL * bytes) << AMOUNT_BITS;
}

/* Takes off w what the link serves up to `now_ns`, and what of it was not `ordered` in the last tau. */
static __always_inline void adaptive_foresee(struct adaptive *a, __u64 now_ns, __u64 ordered)
{
	__u64 passed_ns = now_ns - min_u64(a->foreseen_ns, now_ns);
	/* After half an hour nothing is left of any buffer, and the product fits. */
	__u64 bins = min_u64(divide_down(passed_ns, BIN_NS), 1 << 20);
	__u64 served = a->mu * bins + divide(a->mu * min_u64(passed_ns - bins * BIN_NS, BIN_NS), BIN_NS);

	a->to_wait = min_u64(a->to_wait - min_u64(served, a->to_wait), ordered);
	a->foreseen_ns = max_u64(a->foreseen_ns, now_ns);
}

/*
 * Whether the two packets that an accelerate of `bytes` brings will find room in the buffer. They do where
 * nothing will wait: a small buffer, or a merged packet, would have no accelerates else.
 */
static __always_inline bool adaptive_has_room(const struct adaptive *a, __u64 buffer, __u32 bytes)
{
	__u64 brings = bytes * (2ULL << AMOUNT_BITS);
	__u64 holds = min_u64(buffer, ROOM_MAX >> AMOUNT_BITS) * (1ULL << AMOUNT_BITS);

	return !buffer || !a->to_wait || 8 * (a->to_wait + brings) <= ORDERED_EIGHTHS * holds;
}

/*
 * P as an amount: ordered in (now - tau, now]. Of the oldest bin as large a part has arrived as has passed of
 * the open one.
 */
static __always_inline __u64 adaptive_ordered(const struct adaptive *a, __u64 now_ns)
{
	__u64 begin_ns = a->bin * BIN_NS;
	__u64 passed_ns = min_u64(now_ns - min_u64(begin_ns, now_ns), BIN_NS);
	/* a product of at most 2^29 and 2^21 */
	__u64 gone = divide((a->oldest * passed_ns) << 4, BIN_NS >> (AMOUNT_BITS - 4));
	__u64 ordered = (a->on_its_way + a->ordered_now) << AMOUNT_BITS;

	return ordered - min_u64(gone, ordered);
}

/* Takes what is outstanding at `now_ns` into its mean. */
static __always_inline void adaptive_smooth(struct adaptive *a, __u64 now_ns, __u64 outstanding)
{
	__u64 over_ns = a->tau * (BIN_NS / TAU_OVER_SMOOTHED);
	__u64 passed_ns = now_ns - min_u64(a->smoothed_ns, now_ns);
	__u64 share;

	if (!a->smoothed_ns || passed_ns >= over_ns) {
		a->outstanding = outstanding;
	} else {
		share = divide(passed_ns << PASSED_BITS, over_ns);
		if (outstanding >= a->outstanding)
			a->outstanding += adaptive_scale(outstanding - a->outstanding, share);
		else
			a->outstanding -= adaptive_scale(a->outstanding - outstanding, share);
	}
	a->smoothed_ns = max_u64(a->smoothed_ns, now_ns);
}

/* O* as an amount. */
static __always_inline __u64 adaptive_wanted(const struct adaptive *a)
{
	__u64 served = a->mu * a->tau, percent, fall;

	if (a->tau <= MOST_CUSHION_TAU) {
		percent = max_u64(CUSHION_RISE_PERCENT * a->tau, LEAST_CUSHION_PERCENT);
		return served + divide_small(a->error * percent, 100);
	}
	fall = CUSHION_FALL_PERCENT * (a->tau - MOST_CUSHION_TAU);
	if (fall <= MOST_CUSHION_PERCENT)
		return served + divide_small(a->error * (MOST_CUSHION_PERCENT - fall), 100);
	percent = min_u64(fall - MOST_CUSHION_PERCENT, LONG_CUSHION_PERCENT);
	return served - min_u64(divide_small(a->error * percent, 100), served);
}

/* What the buffer has room for behind a packet, as an amount; as much as matters where no buffer is known. */
static __always_inline __u64 adaptive_room(__u64 buffer, __u64 waiting)
{
	if (!buffer)
		return ROOM_MAX;
	buffer = min_u64(buffer, ROOM_MAX >> AMOUNT_BITS);
	return (buffer - min_u64(waiting, buffer)) << AMOUNT_BITS;
}

/*
 * The rule's target rate, in bytes per second; 0 for what is below. `eta` is a share, `room` an amount.
 */
static __always_inline __u64 adaptive_target(const struct adaptive *a, __u64 eta, __u64 room)
{
	__u64 tau = a->tau;
	__u64 aim = (a->mu * eta) >> SHARE_BITS;
	__u64 wanted = adaptive_wanted(a);
	bool above = a->outstanding > wanted;
	__u64 off = above ? a->outstanding - wanted : wanted - a->outstanding;
	__u64 drain = divide(off * 10, DELTA_OVER_TAU_TENTHS * tau);
	__u64 rate = above ? aim - min_u64(drain, aim) : aim + min_u64(drain, divide(room, tau));

	return (rate * BINS_PER_S) >> AMOUNT_BITS;
}

/* abc20 eq.2, with a least share; cr in bytes per second. */
static __always_inline __u64 adaptive_share(__u64 target, __u64 cr)
{
	/* open-questions#X-8: nothing measured, nothing held back, unless more is outstanding than is to be */
	if (target >= 2 * cr && target)
		return SHARE_ONE;
	return max_u64(divide(target << SHARE_BITS, 2 * cr), SHARE_ONE / LEAST_SHARE);
}

/* What is shown: tau and e. */
static __always_inline __u64 adaptive_loop_delay_us(const struct adaptive *a)
{
	return a->tau * (BIN_NS / 1000);
}

static __always_inline __u64 adaptive_error_bytes(const struct adaptive *a)
{
	return a->error >> AMOUNT_BITS;
}

/*
 * A packet of `bytes` leaves at `now_ns` and lets `waiting` bytes wait behind it: measures it and computes f.
 * The bins that ended by then have been closed.
 */
static __always_inline void adaptive_depart(struct router *r, struct adaptive *a, const struct router_settings *s,
					    __u64 now_ns, __u64 waiting, __u32 bytes)
{
	__u64 ordered = adaptive_ordered(a, now_ns);

	router_measure(r, s, now_ns, bytes);
	adaptive_smooth(a, now_ns, (waiting << AMOUNT_BITS) + ordered);
	adaptive_foresee(a, now_ns, ordered);
	r->f = adaptive_share(adaptive_target(a, s->eta, adaptive_room(s->buffer, waiting)), r->cr);
}

#endif
