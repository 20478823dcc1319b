/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/prr.h: what may be in flight while losses are repaired. */
#include "arithmetic.h"
#include "prr.h"

#include "fixed.acsl.h"

/*@ requires valid: \valid(p);
    assigns *p;
    ensures governs: p->prior >= 1;
    ensures nothing_delivered: p->delivered == 0; */
static inline void prr_begin(struct prr *p, __u32 prior);

/*@ requires valid: \valid(p);
    assigns p->prior;
    ensures over: p->prior == 0; */
static inline void prr_end(struct prr *p);

/*@ requires prior: 1 <= prior <= 1073741824;
    requires reduced: target <= prior;
    requires delivered: delivered <= 1073741824;
    assigns \nothing;
    ensures at_most_delivered: \result <= delivered;
    ensures rounded_up: \result * prior >= delivered * target; */
static inline __u64 prr_proportion(__u32 delivered, __u32 target, __u32 prior);

/*@ requires valid: \valid(p);
    requires episode: p->delivered + newly <= 1073741824 && pipe <= 1073741824;
    requires governs: p->prior >= 1;
    requires reduced: target <= p->prior <= 1073741824;
    assigns p->delivered;
    ensures counts: p->delivered == \old(p->delivered) + newly;
    ensures never_below_pipe: \result >= pipe;
    ensures at_most_target_or_one_more: pipe <= target ==> \result <= \max(target, pipe + 1);
    ensures at_most_delivered: pipe > target ==> \result <= pipe + \max(p->delivered, 1);
    ensures first_packet_leaves: out == 0 ==> \result > pipe; */
static inline __u32 prr_window(struct prr *p, __u32 newly, __u32 out, __u32 pipe, __u32 target, bool safe);
