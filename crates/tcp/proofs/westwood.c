/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/westwood.h: bandwidth, pipe and window. */
#include "arithmetic.h"
#include "westwood.h"

#include "fixed.acsl.h"

/*@ predicate filter(struct westwood *w) =
      w->first <= 137438953472 && w->second <= 137438953472 && w->rtt_min_us <= 67108864 &&
      w->rtt_us <= 67108864 && 1 <= w->mss <= 65535;
    predicate window(struct westwood *w) =
      w->mss <= w->cwnd <= 536870912; */

/*@ requires valid: \valid(w) && filter(w);
    requires counted: w->acked <= 9223372036854775807;
    assigns w->first, w->second, w->has_bandwidth, w->since_us, w->acked;
    ensures bandwidth_bounded: filter(w);
    ensures clock_in_order: w->since_us == \old(w->since_us) || w->since_us == now_us;
    ensures nothing_forgotten: w->since_us == \old(w->since_us) && now_us != \old(w->since_us) ==>
              w->acked == \old(w->acked) + acked; */
static inline void westwood_measure(struct westwood *w, __u64 now_us, __u32 acked);

/*@ requires valid: \valid_read(w) && filter(w);
    assigns \nothing;
    ensures at_least_two_packets: \result >= 2 * w->mss;
    ensures bounded: \result <= 576460752304; */
static inline __u64 westwood_pipe(const struct westwood *w);

/*@ requires valid: \valid(w);
    assigns w->before_cwnd, w->before_ssthresh, w->has_before, w->ssthresh, w->credit;
    ensures remembers: w->before_cwnd == w->cwnd && w->before_ssthresh == \old(w->ssthresh) && w->has_before == 1;
    ensures threshold: w->ssthresh == ssthresh && w->credit == 0; */
static inline void westwood_reduce_to(struct westwood *w, __u64 ssthresh);

/*@ requires valid: \valid(w) && filter(w) && window(w);
    assigns w->before_cwnd, w->before_ssthresh, w->has_before, w->ssthresh, w->credit, w->cwnd;
    ensures never_grows: w->cwnd <= \old(w->cwnd);
    ensures at_least_a_packet: window(w);
    ensures within_threshold: w->cwnd <= w->ssthresh && w->ssthresh >= 2 * w->mss; */
static inline void westwood_on_loss(struct westwood *w);

/*@ requires valid: \valid(w) && filter(w) && window(w);
    assigns w->before_cwnd, w->before_ssthresh, w->has_before, w->ssthresh, w->credit, w->cwnd;
    ensures never_grows: w->cwnd <= \old(w->cwnd);
    ensures at_least_a_packet: window(w);
    ensures not_undone: w->has_before == 0; */
static inline void westwood_reduce(struct westwood *w);

/*@ requires valid: \valid(w) && filter(w) && window(w);
    assigns w->before_cwnd, w->before_ssthresh, w->has_before, w->ssthresh, w->credit, w->cwnd, w->reset_rtt_min;
    ensures one_packet: w->cwnd == w->mss;
    ensures repeated_keeps_threshold: repeated ==> w->ssthresh == \old(w->ssthresh); */
static inline void westwood_on_timeout(struct westwood *w, bool repeated);

/*@ requires valid: \valid(w) && window(w);
    requires before: w->before_cwnd <= 536870912;
    assigns w->cwnd, w->ssthresh, w->has_before;
    ensures never_shrinks: w->cwnd >= \old(w->cwnd);
    ensures at_least_a_packet: window(w); */
static inline void westwood_on_spurious_loss(struct westwood *w);

/*@ requires valid: \valid(w) && filter(w) && window(w);
    assigns w->cwnd, w->ssthresh, w->since_us, w->acked;
    ensures never_grows: w->cwnd <= \old(w->cwnd);
    ensures at_least_a_packet: window(w);
    ensures threshold_never_shrinks: w->ssthresh >= \old(w->ssthresh); */
static inline void westwood_on_idle_restart(struct westwood *w, __u64 now_us, __u64 initial, __u64 idle_us,
					    __u64 rto_us);

/*@ requires valid: \valid(w) && window(w);
    requires mss: 1 <= mss <= 65535;
    assigns w->mss, w->cwnd;
    ensures at_least_a_packet: window(w);
    ensures never_shrinks: w->cwnd >= \old(w->cwnd); */
static inline void westwood_on_mtu_change(struct westwood *w, __u32 mss);
