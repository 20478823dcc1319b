/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The contracts of ../bpf/cubic.h, which those of abc.h build on. */
#ifndef BRAKELIGHT_PROOFS_CUBIC_ACSL_H
#define BRAKELIGHT_PROOFS_CUBIC_ACSL_H

#include "cubic.h"

/*@ predicate model(struct cubic_model *m, integer mss) =
      mss * 4096 <= m->cwnd <= 2199023255552 && m->w_max <= 2199023255552 &&
      m->cwnd_prior <= 2199023255552 && m->origin <= 2199023255552 && m->w_est <= 2199023255552;
    predicate cubic(struct cubic *c) =
      1 <= c->mss <= 65535 && model(&c->model, c->mss); */

/*@ requires valid: \valid_read(c);
    assigns \nothing;
    ensures at_least_a_packet: \result >= \min(c->mss, 536870912) * 4096;
    ensures larger_of_both: \result == \max(c->model.cwnd, \min(c->mss, 536870912) * 4096); */
static inline __u64 cubic_cwnd(const struct cubic *c);

/*@ requires origin: origin <= 2199023255552;
    requires mss: mss <= 65535;
    assigns \nothing;
    ensures at_most_window_max: \result <= 2199023255552;
    ensures rises_above_origin: at >= k ==> \result >= origin;
    ensures stays_below_origin: at < k ==> \result <= origin; */
static inline __u64 cubic_curve(__u64 origin, __u64 k, __u64 at, __u32 mss);

/*@ requires below: below <= 2199023255552;
    requires mss: 1 <= mss <= 65535;
    assigns \nothing;
    ensures bounded: \result < 536870912; */
static inline __u64 cubic_k(__u64 below, __u32 mss);

/*@ requires valid: \valid(c) && cubic(c);
    assigns c->model.origin, c->model.k, c->model.w_est, c->model.epoch_start_ns;
    ensures within_bounds: cubic(c);
    ensures origin_not_below_window: c->model.origin >= c->model.cwnd;
    ensures epoch_goes_on: c->model.epoch_start_ns >= 1; */
static inline void cubic_begin_epoch(struct cubic *c, __u64 now_ns);

/*@ requires part: part <= whole <= 2199023255552;
    requires bytes: bytes <= 16777216;
    assigns \nothing;
    ensures at_most_bytes: \result <= bytes * 4096; */
static inline __u64 share_of(__u64 part, __u64 whole, __u64 bytes);

/*@ requires valid: \valid(c);
    requires clock: c->model.epoch_start_ns <= c->last_ack_ns;
    requires started: now_ns <= S63;
    assigns c->model.epoch_start_ns, c->last_ack_ns;
    ensures epoch_in_order: now_ns > \old(c->last_ack_ns) ==> c->model.epoch_start_ns <= now_ns;
    ensures none_stays_none: \old(c->model.epoch_start_ns) == 0 ==> c->model.epoch_start_ns == 0; */
static inline void cubic_pause(struct cubic *c, __u64 now_ns);

/*@ requires valid: \valid(c) && cubic(c);
    assigns c->before, c->has_before, c->model.w_max, c->model.cwnd_prior, c->model.ssthresh, c->model.epoch_start_ns;
    ensures within_bounds: cubic(c);
    ensures threshold_at_least_two_packets: c->model.ssthresh >= 8192 * c->mss;
    ensures threshold_bounded: c->model.ssthresh <= 2199023255552;
    ensures seven_tenths: c->model.ssthresh * 10 <= c->model.cwnd * 7 + 5 || c->model.ssthresh == 8192 * c->mss;
    ensures maximum_not_above_window: c->model.w_max <= c->model.cwnd; */
static inline void cubic_reduce(struct cubic *c);

/*@ requires valid: \valid(c) && cubic(c);
    assigns c->before, c->has_before, c->model;
    ensures within_bounds: cubic(c);
    ensures at_most_two_packets_or_less_than_before: c->model.cwnd <= \max(8192 * c->mss, \old(c->model.cwnd)); */
static inline void cubic_on_loss(struct cubic *c);

/*@ requires valid: \valid(c) && cubic(c);
    requires before: model(&c->before, 0);
    assigns c->model, c->has_before;
    ensures within_bounds: cubic(c);
    ensures never_shrinks: c->model.cwnd >= \old(c->model.cwnd); */
static inline void cubic_on_spurious_loss(struct cubic *c);

/*@ requires valid: \valid(c) && cubic(c);
    assigns c->model.cwnd, c->model.ssthresh;
    ensures within_bounds: cubic(c);
    ensures never_grows: c->model.cwnd <= \old(c->model.cwnd);
    ensures threshold_never_shrinks: c->model.ssthresh >= \old(c->model.ssthresh); */
static inline void cubic_on_idle_restart(struct cubic *c, __u64 initial, __u64 idle_ns, __u64 rto_ns);

/*@ requires valid: \valid(c) && cubic(c);
    assigns c->model.cwnd;
    ensures within_bounds: cubic(c);
    ensures never_grows: c->model.cwnd <= \old(c->model.cwnd);
    ensures capped: c->model.cwnd <= \max(most, c->mss * 4096); */
static inline void cubic_cap(struct cubic *c, __u64 most);

/*@ requires valid: \valid(c) && cubic(c);
    requires mss: 1 <= mss <= 65535;
    assigns c->mss, c->has_before, c->model.cwnd, c->model.ssthresh, c->model.epoch_start_ns;
    ensures within_bounds: cubic(c);
    ensures packet: c->mss == mss;
    ensures begins_anew: c->model.epoch_start_ns == 0 && c->has_before == 0; */
static inline void cubic_on_mtu_change(struct cubic *c, __u32 mss);

#endif
