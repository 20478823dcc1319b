/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the controllers have alike: how they read a socket, and how they write its window and its rate. */
#ifndef BRAKELIGHT_SOCKET_H
#define BRAKELIGHT_SOCKET_H

#include "kernel.h"

#include "connection.h"

static __always_inline struct connection *connection_of(struct sock *sk)
{
	return bpf_sk_storage_get(&bl_connections, sk, 0, 0);
}

static __always_inline __u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* Linux 6.12 tcp.h, tcp_is_cwnd_limited */
static __always_inline bool is_cwnd_limited(struct tcp_sock *tp, bool slow_start)
{
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) || (slow_start && tp->snd_cwnd < 2 * tp->max_packets_out);
}

static __always_inline bool is_repairing(const struct connection *c)
{
	return c->state == CA_STATE_RECOVERY || c->state == CA_STATE_CWR;
}

/* What PRR allows; kernels with a cong_control leave it to that. */
static __always_inline __u32 repaired_window(struct tcp_sock *tp, struct connection *c, const struct rate_sample *rs, int flag,
					     __u32 target)
{
	bool safe = (flag & ACK_ADVANCES_SND_UNA) && rs->losses <= 0;

	return prr_window(&c->prr, rs->acked_sacked, tp->prr_out, tcp_packets_in_flight(tp), target, safe);
}

static __always_inline void write_window(struct tcp_sock *tp, __u64 packets)
{
	__u32 most = tp->snd_cwnd_clamp;

	packets = max_u64(packets, 1);
	tp->snd_cwnd = packets < most ? packets : most;
}

/*
 * The rate at which the kernel paces; where nothing paces, it sizes GSO bursts and the queue below.
 * `enforced` asks TCP to pace by itself, unless a queue (fq) does.
 */
static __always_inline void pace(struct sock *sk, __u32 srtt_us, __u64 window_bytes, __u32 percent, bool enforced)
{
	__u64 rate;

	if (!srtt_us)
		return;
	rate = window_bytes * 10000 * percent / srtt_us;
	/* SO_MAX_PACING_RATE */
	rate = min_u64(max_u64(rate, 1), sk->sk_max_pacing_rate);
	sk->sk_pacing_rate = rate;
	if (enforced && sk->sk_pacing_status == PACING_NONE)
		sk->sk_pacing_status = PACING_NEEDED;
}

static __always_inline void note_ack(struct tcp_sock *tp, struct connection *c, __u64 now_ns, __u32 newly_acked)
{
	c->acked_bytes += newly_acked;
	c->last_ack_ns = now_ns;
	c->srtt_us = tp->srtt_us >> 3;
	c->min_rtt_us = tp->rtt_min.s[0].v;
}

static __always_inline void note_state(struct connection *c, __u8 state)
{
	if (state == CA_STATE_LOSS)
		c->timeouts++;
	else if (state == CA_STATE_RECOVERY)
		c->losses++;
	else if (state == CA_STATE_CWR)
		c->ce_episodes++;
	if (state != CA_STATE_RECOVERY && state != CA_STATE_CWR)
		prr_end(&c->prr);
	c->state = state;
}

/* For how long nothing came back, and the retransmission timeout to measure it by. */
static __always_inline __u64 idle_ns(const struct tcp_sock *tp, const struct connection *c, __u64 now_ns, __u64 *rto_ns)
{
	/* rfc6298 2.3; Linux 6.12 tcp.h, __tcp_set_rto: rttvar_us is four mean deviations, at least 200 ms */
	*rto_ns = ((__u64)(tp->srtt_us >> 3) + tp->rttvar_us) * NS_PER_US;
	return c->last_ack_ns && now_ns > c->last_ack_ns ? now_ns - c->last_ack_ns : 0;
}

#endif
