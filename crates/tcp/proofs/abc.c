/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/abc.h: ABC's window. */
#include "arithmetic.h"
#include "abc.h"

#include "fixed.acsl.h"

#include "cubic.acsl.h"

/*@ predicate abc(struct abc *a) =
      1 <= a->mss <= 65535 && a->mss * 4096 <= a->w_abc <= 2199023255552 &&
      a->second.mss == a->mss && cubic(&a->second); */

/*@ requires valid: \valid_read(a) && a->mss <= 65535 && count <= 64;
    assigns \nothing;
    ensures packets: \result == a->mss * count * 4096; */
static inline __u64 abc_packets(const struct abc *a, __u32 count);

/*@ requires valid: \valid(a) && \valid_read(ack) && \separated(a, ack) && a->mss <= 65535;
    requires packets: ack->acked_packets <= 16777216;
    requires counted: a->unmarked <= 16777226 && a->braked <= 16777280;
    assigns a->unmarked, a->braked;
    ensures counted: a->unmarked <= 16777226 && a->braked <= 16777280;
    ensures a_mark_is_heard: ack->accelerate > 0 || ack->brake > 0 || ack->ce > 0 ==> a->unmarked == 0;
    ensures accelerate_ends_doubt: ack->accelerate > 0 ==> a->braked == 0; */
static inline void abc_doubt_marks(struct abc *a, const struct ack *ack);

/*@ requires mss: 1 <= mss <= 65535;
    requires window: mss * 4096 <= w_abc <= 2199023255552;
    assigns \nothing;
    ensures at_most_window_max: \result <= 2199023255552;
    ensures never_below_floor: \result >= \min(mss * 8192, w_abc);
    ensures accelerates_never_shrink: accelerate >= 0 && accelerate >= brake && brake >= 0 ==> \result >= w_abc;
    ensures without_marks_unchanged: accelerate == 0 && brake == 0 ==> \result == w_abc; */
static inline __u64 abc_window_after(__u64 w_abc, __u32 mss, __s32 accelerate, __s32 brake);

/*@ requires valid: \valid(a) && abc(a);
    assigns a->w_abc, a->second.model.cwnd;
    ensures within_bounds: abc(a);
    ensures capped: a->w_abc <= \max(most, a->mss * 4096) && a->second.model.cwnd <= \max(most, a->mss * 4096); */
static inline void abc_cap(struct abc *a, __u64 most);

/*@ requires valid: \valid_read(a) && abc(a);
    assigns \nothing;
    ensures at_least_a_packet: \result >= a->mss;
    ensures smaller_of_both: \result * 4096 <= a->w_abc && \result * 4096 <= \max(a->second.model.cwnd, a->mss * 4096); */
static inline __u32 abc_cwnd(const struct abc *a);

/*@ requires valid: \valid(a) && abc(a);
    assigns a->w_abc, a->second.model.cwnd, a->second.model.ssthresh;
    ensures within_bounds: abc(a);
    ensures never_grows: a->w_abc <= \old(a->w_abc) && a->second.model.cwnd <= \old(a->second.model.cwnd); */
static inline void abc_on_idle_restart(struct abc *a, __u64 idle_ns, __u64 rto_ns);

/*@ requires valid: \valid(a) && abc(a);
    requires mss: 1 <= mss <= 65535;
    assigns a->mss, a->w_abc, a->second.mss, a->second.has_before, a->second.model.cwnd, a->second.model.ssthresh,
      a->second.model.epoch_start_ns;
    ensures within_bounds: abc(a); */
static inline void abc_on_mtu_change(struct abc *a, __u32 mss);
