/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * mu of a link that only its departures tell of: the rate at which packets leave while others wait behind
 * them.
 *
 *   busy time   between two departures, where the first one left something behind
 *   sample      bytes that left over busy time, once that has summed up to T
 *   mu          the first sample; then (mu + sample) / 2        as rfc8033 5.2's average of departure rates
 *
 * ABC aims below mu, so a link that has become faster never shows it: nothing waits any more. After ten T
 * without a sample mu therefore grows by a sixteenth, as often as that, until something waits or every packet
 * accelerates anyway. This is our own addition; abc20 supposes that a link knows its rate. No kernel in here:
 * the tests compile it too.
 */
#ifndef BRAKELIGHT_CAPACITY_H
#define BRAKELIGHT_CAPACITY_H

#include "marking.h"

/* Windows without a sample after which mu grows, and 1 / the growth. */
#define CAPACITY_PATIENCE 10
#define CAPACITY_GROWTH 16

struct capacity {
	/* bytes per second; 0: nothing has waited long enough yet */
	__u64 mu;
	/* the last departure */
	__u64 at_ns;
	/* the last sample or growth */
	__u64 sampled_ns;
	__u64 busy_ns;
	__u64 bytes;
	bool backlogged;
};

/*
 * A packet of `bytes` leaves; `waits` says whether another waits behind it. cr and eta are those of the
 * router.
 */
static inline void capacity_depart(struct capacity *c, __u64 now_ns, __u32 bytes, bool waits, __u64 window_ns, __u64 cr,
				   __u64 eta)
{
	if (!c->at_ns)
		c->sampled_ns = now_ns;
	if (c->backlogged) {
		c->busy_ns += now_ns - c->at_ns;
		c->bytes += bytes;
	}
	c->at_ns = now_ns;
	c->backlogged = waits;
	if (c->busy_ns >= window_ns) {
		/* In microseconds, so that the product has room. */
		__u64 sample = divide(c->bytes * 1000000, divide(c->busy_ns, 1000));

		sample = min_u64(sample, ABC_RATE_MAX);
		c->mu = c->mu ? (c->mu + sample) / 2 : sample;
	} else if (now_ns - c->sampled_ns >= CAPACITY_PATIENCE * window_ns) {
		/* f is 1 from eta mu = 2 cr on. */
		if (((c->mu * eta) >> SHARE_BITS) < 2 * cr)
			c->mu = min_u64(c->mu + c->mu / CAPACITY_GROWTH, ABC_RATE_MAX);
	} else {
		return;
	}
	c->sampled_ns = now_ns;
	c->busy_ns = 0;
	c->bytes = 0;
}

#endif
