/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/adaptive.h: the target rate that tunes itself. */
#include "arithmetic.h"
#include "adaptive.h"

#include "fixed.acsl.h"

/*@ requires value: value <= 9007199254740992;
    requires share: share <= 16777216;
    assigns \nothing;
    ensures at_most_the_value: \result <= value; */
static inline __u64 adaptive_scale(__u64 value, __u64 share);

/*@ requires tau: tau <= 256;
    assigns \nothing;
    ensures at_least: \result >= 40 && \result >= 4 * tau;
    ensures remembered: \result + tau <= 1280; */
static inline __u32 adaptive_longest_window(__u32 tau);

/*@ requires valid: \valid(a);
    requires counted: a->arrived <= S63;
    assigns a->arrived;
    ensures counts: a->arrived == \old(a->arrived) + bytes; */
static inline void adaptive_arrive(struct adaptive *a, __u32 bytes);

/*@ requires valid: \valid(a);
    requires counted: a->ordered_now <= S63;
    requires packet: bytes <= 1073741824;
    requires amounts: a->to_wait <= 9007199254740992;
    assigns a->ordered_now, a->to_wait;
    ensures brings_two: a->ordered_now == \old(a->ordered_now) + 2 * bytes;
    ensures foreseen: a->to_wait == \old(a->to_wait) + 1024 * bytes; */
static inline void adaptive_order(struct adaptive *a, __u32 bytes);

/*@ requires valid: \valid(a);
    requires amounts: a->mu <= 70368744177;
    assigns a->to_wait, a->foreseen_ns;
    ensures never_more: a->to_wait <= \old(a->to_wait) && a->to_wait <= ordered;
    ensures clock_in_order: a->foreseen_ns >= \old(a->foreseen_ns) && a->foreseen_ns >= now_ns; */
static inline void adaptive_foresee(struct adaptive *a, __u64 now_ns, __u64 ordered);

/*@ requires valid: \valid_read(a);
    requires amounts: a->to_wait <= 9007199254740992;
    assigns \nothing;
    ensures nothing_known_nothing_held_back: buffer == 0 ==> \result;
    ensures nothing_waits_nothing_held_back: a->to_wait == 0 ==> \result;
    ensures seven_eighths: buffer > 0 && a->to_wait > 0 && \result ==> 8 * (a->to_wait + 1024 * bytes) <= 3584 * buffer; */
static inline bool adaptive_has_room(const struct adaptive *a, __u64 buffer, __u32 bytes);

/*@ requires valid: \valid_read(a);
    requires clock: a->bin <= 4611686018427;
    requires ordered: a->oldest <= 536870912 && a->on_its_way + a->ordered_now <= 137438953472;
    assigns \nothing;
    ensures never_negative_nor_more: \result <= (a->on_its_way + a->ordered_now) * 512; */
static inline __u64 adaptive_ordered(const struct adaptive *a, __u64 now_ns);

/*@ requires valid: \valid(a);
    requires tau: 1 <= a->tau <= 200;
    requires amounts: a->outstanding <= 9007199254740992 && outstanding <= 9007199254740992;
    assigns a->outstanding, a->smoothed_ns;
    ensures between: \min(\old(a->outstanding), outstanding) <= a->outstanding <= \max(\old(a->outstanding), outstanding);
    ensures clock_in_order: a->smoothed_ns >= \old(a->smoothed_ns) && a->smoothed_ns >= now_ns; */
static inline void adaptive_smooth(struct adaptive *a, __u64 now_ns, __u64 outstanding);

/*@ requires valid: \valid_read(a);
    requires tau: 1 <= a->tau <= 200;
    requires amounts: a->mu <= 70368744177 && a->error <= 70368744177664;
    assigns \nothing;
    ensures at_most_served_and_cushion: \result <= 91479367430832; */
static inline __u64 adaptive_wanted(const struct adaptive *a);

/*@ requires valid: \valid_read(a);
    requires tau: 1 <= a->tau <= 200;
    requires amounts: a->mu <= 70368744177 && a->error <= 70368744177664 && a->outstanding <= 9007199254740992;
    requires eta: eta <= 1048576;
    requires room: room <= 35184372088832;
    assigns \nothing;
    ensures bounded: \result < 1099511627776000; */
static inline __u64 adaptive_target(const struct adaptive *a, __u64 eta, __u64 room);

/*@ requires target: target <= 8796093022207;
    requires cr: cr <= 4611686018427387903;
    assigns \nothing;
    ensures at_most_one: \result <= 1048576;
    ensures at_least_a_sixteenth: \result >= 65536; */
static inline __u64 adaptive_share(__u64 target, __u64 cr);

/*@ requires valid: \valid_read(a);
    requires tau: a->tau <= 200;
    assigns \nothing;
    ensures at_most_400_ms: \result <= 400000; */
static inline __u64 adaptive_loop_delay_us(const struct adaptive *a);
