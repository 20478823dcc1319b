/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Contracts of ../bpf/l4s.h: what may wait behind a packet that leaves. What `l4s_close` adds up is bounded
 * by the rates that `l4s_take` gives it: one bin has at most twice what a link of 68 GB/s carries in 1 ms.
 */
#include "arithmetic.h"
#include "l4s.h"

#include "fixed.acsl.h"

/*@ requires valid: \valid(l);
    requires mu: mu <= 68719476736;
    requires clock: now_ns <= S63;
    assigns l->closing.from, l->closing.bins, l->closing.anew, l->closing.rate, l->closing.busy, l->begun, l->bin,
            l->counted_ns;
    ensures one_at_a_time: \old(l->closing.busy) != 0 ==> !\result;
    ensures never_back: \result && \old(l->begun) != 0 ==> l->bin > \old(l->bin);
    ensures not_taken_is_as_before: !\result ==> l->bin == \old(l->bin) && l->counted_ns == \old(l->counted_ns);
    ensures taken_is_busy: \result ==> l->closing.busy == 1 && l->begun == 1;
    ensures up_to_the_open_bin: \result ==> l->closing.from + l->closing.bins == l->bin;
    ensures at_most_two_bins: \result ==> l->closing.rate <= 70368744178; */
static inline bool l4s_take(struct l4s *l, __u64 now_ns, __u64 mu);

/*@ requires valid: \valid(l);
    assigns l->closing.busy;
    ensures free: l->closing.busy == 0; */
static inline void l4s_give(struct l4s *l);

/*@ requires valid: \valid_read(l);
    requires amounts: l->mu <= 70368744178 && l->error <= 2814749767120;
    requires overhead: overhead <= 1048576;
    assigns \nothing;
    ensures two_packets_always: \result >= 3000 + 2 * overhead;
    ensures grows_with_the_error: \result * 512 + 511 >= 3 * l->error;
    ensures bounded: \result <= 16632400000; */
static inline __u64 l4s_may_wait(const struct l4s *l, __u32 overhead);

/*@ requires valid: \valid(l);
    requires in_order: l->before_ns <= l->last_ns;
    assigns l->last_ns, l->before_ns;
    ensures keeps_order: l->before_ns <= l->last_ns;
    ensures latest: l->last_ns == \max(\old(l->last_ns), now_ns);
    ensures one_instant_counts_once: now_ns == \old(l->last_ns) ==> l->before_ns == \old(l->before_ns); */
static inline void l4s_serve(struct l4s *l, __u64 now_ns);

/*@ requires valid: \valid_read(l);
    requires amounts: l->mu <= 70368744178 && l->error <= 2814749767120;
    requires overhead: overhead <= 1048576;
    assigns \nothing;
    ensures no_mark_for_two_packets: waiting <= 3000 + 2 * overhead ==> !\result;
    ensures no_mark_without_a_queue: arrived_ns >= l->before_ns ==> !\result; */
static inline bool l4s_marks(const struct l4s *l, __u64 arrived_ns, __u64 waiting, __u32 overhead);

/*@ requires valid: \valid_read(l);
    assigns \nothing;
    ensures rounded_down: \result * 512 <= l->error < \result * 512 + 512; */
static inline __u64 l4s_error_bytes(const struct l4s *l);
