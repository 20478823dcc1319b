/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../kmod/marking.h: a packet's delay, and the readings of its ECN field. */
#include "arithmetic.h"
#include "marking.h"

#include "fixed.acsl.h"

/*@ requires valid: \valid_read(s) && \valid_read(d) && \separated(s, d);
    requires settings: s->mu <= 68719476736;
    requires departure: d->backlog <= U32 && d->sojourn_ns <= S63;
    assigns \nothing;
    ensures waited: sojourn ==> \result * 1000 <= d->sojourn_ns + 500 < \result * 1000 + 1000;
    ensures bounded: \result <= 9223372036854776; */
static inline __u64 abc_delay_us(const struct router_settings *s, bool sojourn, const struct departure *d);

/*@ assigns \nothing;
    ensures never_not_ect: ecn == 0 ==> !\result;
    ensures never_ce: ecn == 3 ==> !\result; */
static inline bool abc_is_accelerate(bool proxied, __u8 ecn);

/*@ assigns \nothing;
    ensures never_not_ect: ecn == 0 ==> !\result;
    ensures one_codepoint: \result <==> ecn == (proxied ? 3 : 2); */
static inline bool abc_is_brake(bool proxied, __u8 ecn);

/*@ assigns \nothing;
    ensures reads_as_brake: \result == (proxied ? 3 : 2); */
static inline __u8 abc_turned_ecn(bool proxied);
