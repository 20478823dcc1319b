/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../kmod/capacity.h: mu of a link that nobody told the rate of. */
#include "arithmetic.h"
#include "capacity.h"

#include "fixed.acsl.h"

/*@ requires valid: \valid(c);
    requires rate: c->mu <= 68719476736 && eta <= 1048576 && cr <= 4611686018427387903;
    requires clock: c->at_ns <= now_ns && c->sampled_ns <= now_ns <= 4611686018427387903;
    requires window: 1000000 <= window_ns <= 10000000000 && c->busy_ns <= 4611686018427387903;
    requires counted: c->bytes + bytes <= 17592186044416;
    assigns *c;
    ensures within_rate_max: c->mu <= 68719476736;
    ensures clock_in_order: c->at_ns == now_ns && c->sampled_ns <= now_ns;
    ensures waits: c->backlogged == waits;
    ensures bytes_never_lost: c->bytes == 0 || c->bytes >= \old(c->bytes); */
static inline void capacity_depart(struct capacity *c, __u64 now_ns, __u32 bytes, bool waits, __u64 window_ns, __u64 cr,
				   __u64 eta);
