/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/backlog.h: what waits behind a packet, never negative. */
#include "arithmetic.h"
#include "backlog.h"

#include "fixed.acsl.h"

/*@ requires valid: \valid(b);
    requires counted: b->bytes <= S63;
    assigns b->bytes, b->slots[number & 8191];
    ensures counts: b->bytes == \old(b->bytes) + bytes;
    ensures slot_not_ahead: \old(b->slots[number & 8191].before) <= \old(b->bytes) ==>
              b->slots[number & 8191].before <= b->bytes; */
static inline void backlog_arrive(struct backlog *b, __u32 number, __u32 bytes);

/*@ requires valid: \valid(b);
    requires slot_not_ahead: b->slots[number & 8191].before <= b->bytes;
    requires left: b->slots[number & 8191].left + bytes <= U32;
    assigns b->slots[number & 8191].left;
    ensures unknown_if_gone: b->slots[number & 8191].number != number ==> \result == U64;
    ensures never_more_than_arrived: b->slots[number & 8191].number == number ==> \result <= b->bytes;
    ensures never_more_than_since: b->slots[number & 8191].number == number ==>
              \result <= b->bytes - b->slots[number & 8191].before; */
static inline __u64 backlog_depart(struct backlog *b, __u32 number, __u32 bytes);
