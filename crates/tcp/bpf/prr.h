/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Proportional rate reduction (RFC 9937): what may be in flight while losses are repaired, in packets. Linux
 * 6.12 tcp_input.c, tcp_cong_control, does it for controllers without cong_control; those with one do it
 * themselves.
 *
 *   pipe >  target:  sndcnt = ceil(delivered * target / prior) - out                       rfc9937 6.2
 *   pipe <= target:  sndcnt = max(delivered - out, newly delivered) + 1 where the ACK is safe,
 *                    at most target - pipe                                             rfc9937 6.2
 *   cwnd = pipe + sndcnt, where sndcnt >= 1 until the first packet of the episode is out
 *
 * `prior` is the window before the episode, as in Linux 6.12 tcp_input.c, not RFC 9937's RecoverFS: they
 * agree for a flow whose window was the limit. A safe ACK advances snd_una and reports no new loss.
 */
#ifndef BRAKELIGHT_PRR_H
#define BRAKELIGHT_PRR_H

#include "fixed.h"

struct prr {
	/* 0: no episode that it governs */
	__u32 prior;
	__u32 delivered;
};

static __always_inline void prr_begin(struct prr *p, __u32 prior)
{
	p->prior = prior ? prior : 1;
	p->delivered = 0;
}

static __always_inline void prr_end(struct prr *p)
{
	p->prior = 0;
}

/* ceil(delivered * target / prior). The assertions are steps of the proof in ../proofs/prr.c. */
static __always_inline __u64 prr_proportion(__u32 delivered, __u32 target, __u32 prior)
{
	__u64 raised = (__u64)delivered * target;

	/*@ assert product: raised == delivered * target; */
	/*@ assert target_is_at_most_prior: raised <= delivered * prior; */
	/*@ assert fits: raised <= 1152921504606846976; */
	raised += prior - 1;
	/*@ assert below_one_more: raised < prior * (delivered + 1); */
	return raised / prior;
}

/* An ACK delivered `newly` packets, `out` have left since the episode began, `pipe` are in flight. */
static __always_inline __u32 prr_window(struct prr *p, __u32 newly, __u32 out, __u32 pipe, __u32 target, bool safe)
{
	__u32 quota = 0;

	p->delivered += newly;
	if (pipe > target) {
		/* rfc9937 6.2, first branch */
		__u64 share = prr_proportion(p->delivered, target, p->prior ? p->prior : 1);

		quota = share > out ? share - out : 0;
	} else {
		/* rfc9937 6.2, second branch: slow start reduction bound */
		quota = p->delivered > out ? p->delivered - out : 0;
		quota = (quota > newly ? quota : newly) + (safe ? 1 : 0);
		quota = quota < target - pipe ? quota : target - pipe;
	}
	/* The fast retransmit goes out whatever the proportion says. */
	if (!out && !quota)
		quota = 1;
	return pipe + quota;
}

#endif
