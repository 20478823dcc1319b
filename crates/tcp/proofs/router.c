/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contracts of ../bpf/router.h: ABC's share and its bucket of tokens. */
#include "arithmetic.h"
#include "router.h"

#include "fixed.acsl.h"

/*@ predicate settings(struct router_settings *s) =
      \valid_read(s) && s->mu <= 68719476736 && s->eta <= 1048576 && 1 <= s->delta_us <= 100000000; */

/*@ requires settings: settings(s);
    requires cr: cr <= 4611686018427387903;
    assigns \nothing;
    ensures at_most_one: \result <= 1048576;
    ensures nothing_measured_all_accelerate: cr == 0 && x_us <= s->target_us && s->mu * s->eta >= 1048576 ==>
              \result == 1048576; */
static inline __u64 router_share(const struct router_settings *s, __u64 cr, __u64 x_us);

/*@ requires valid: \valid(r) && \valid_read(s) && \separated(r, s);
    requires share: r->f <= 1048576;
    requires limit: r->token <= s->token_limit <= U32;
    assigns r->token;
    ensures within_limit: r->token <= s->token_limit;
    ensures one_token_an_accelerate: \result ==> r->token == \min(\old(r->token) + r->f, s->token_limit) - 1048576;
    ensures else_only_grows: !\result ==> r->token == \min(\old(r->token) + r->f, s->token_limit);
    ensures stays_if_above_one: \result <==>
              accelerates && \min(\old(r->token) + r->f, s->token_limit) > 1048576; */
static inline bool router_take_token(struct router *r, const struct router_settings *s, bool accelerates);
