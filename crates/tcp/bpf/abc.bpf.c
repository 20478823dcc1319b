// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * ABC's sender as a congestion control of Linux TCP, and the program that writes accelerate on what it sends.
 *
 * The arithmetic is in abc.h. Here is what the kernel says, in its words: an ACK is cong_control, the start of an
 * episode is ssthresh, its mistake undo_cwnd. Having cong_control means that the kernel leaves the window alone, PRR
 * included, except after a timeout, where it sets what is in flight plus one.
 *
 * Deviations from the modelled host:
 * K1 bytes ACKed are packets times the MSS, for that is what rate_sample tells.
 * K2 while losses are repaired and the second window governs, no more leaves than arrives, plus one packet (rfc6937 3.1,
 *    slow start reduction bound); the modelled host does PRR.
 * K3 counts of marks are followed both ways: an ACK that lost its AccECN option to SACK blocks makes the kernel guess, and
 *    the next option corrects the guess. What one ACK may change is bounded by a window.
 */
#include "kernel.h"

#include "connection.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading; `src/bpf/endpoint.rs` writes it. */
const volatile struct {
	__u32 feedback;
	/* Percent of a window per RTT at which packets are paced; 0 for none. */
	__u32 pacing_percent;
} settings = { .feedback = FEEDBACK_ACCECN };

static __always_inline struct connection *connection_of(struct sock *sk)
{
	return bpf_sk_storage_get(&bl_connections, sk, 0, 0);
}

static __always_inline void set_window(struct tcp_sock *tp, struct connection *c)
{
	__u32 mss = c->abc.mss ? c->abc.mss : 1;
	__u32 packets = abc_cwnd(&c->abc) / mss;

	if ((c->state == CA_STATE_RECOVERY || c->state == CA_STATE_CWR) && !abc_marks_govern(&c->abc)) {
		/* K2 */
		__u32 most = tcp_packets_in_flight(tp) + 1;

		packets = packets < most ? packets : most;
	}
	if (packets < 1)
		packets = 1;
	if (packets > tp->snd_cwnd_clamp)
		packets = tp->snd_cwnd_clamp;
	tp->snd_cwnd = packets;
}

/* The counters as they stand: bytes of each kind that arrived at the receiver, modulo 2^32. */
static __always_inline void read_counters(struct sock *sk, struct tcp_sock *tp, struct connection *c, __u32 *now)
{
	now[0] = c->seen[0];
	now[1] = c->seen[1];
	now[2] = c->seen[2];
	if (settings.feedback == FEEDBACK_OPTION) {
		struct reported *r = bpf_sk_storage_get(&bl_reported, sk, 0, 0);

		if (r && r->peer_speaks) {
			c->feedback = FEEDBACK_OPTION;
			now[0] = r->by_peer[0];
			now[1] = r->by_peer[1];
			now[2] = r->by_peer[2];
		}
	} else if (bpf_core_field_exists(tp->delivered_ecn_bytes)) {
		if (tp->ecn_flags & TCP_ECN_MODE_ACCECN) {
			c->feedback = FEEDBACK_ACCECN;
			now[0] = tp->delivered_ecn_bytes[0];
			now[1] = tp->delivered_ecn_bytes[1];
			now[2] = tp->delivered_ecn_bytes[2];
		}
	}
}

static __always_inline __s32 bounded(__s32 change, __u32 most)
{
	__s32 bound = most < (1u << 30) ? (__s32)most : (1 << 30);

	if (change > bound)
		return bound;
	return change < -bound ? -bound : change;
}

SEC("struct_ops")
void BPF_PROG(abc_init_connection, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = bpf_sk_storage_get(&bl_connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	__u32 now[KINDS];

	if (!c)
		return;
	__builtin_memset(c, 0, sizeof(*c));
	abc_init(&c->abc, tp->mss_cache ? tp->mss_cache : 536, tp->snd_cwnd * tp->mss_cache, bpf_ktime_get_ns());
	read_counters(sk, tp, c, now);
	c->seen[0] = now[0];
	c->seen[1] = now[1];
	c->seen[2] = now[2];
}

SEC("struct_ops")
void BPF_PROG(abc_release, struct sock *sk)
{
	bpf_sk_storage_delete(&bl_connections, sk);
}

SEC("struct_ops")
void BPF_PROG(abc_cong_control, struct sock *sk, __u32 ack_seq, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	/* Before init there is none: the ACK that completes the handshake. */
	struct connection *c = connection_of(sk);
	__u32 now[KINDS], mss, most;
	struct ack ack = {};

	if (!c)
		return;
	mss = tp->mss_cache;
	if (mss && mss != c->abc.mss)
		abc_on_mtu_change(&c->abc, mss);
	mss = c->abc.mss;

	ack.now_ns = bpf_ktime_get_ns();
	ack.acked_packets = rs->acked_sacked;
	ack.newly_acked = rs->acked_sacked * mss;
	ack.inflight_before = rs->prior_in_flight * mss;
	ack.srtt_us = tp->srtt_us >> 3;
	ack.min_rtt_us = tp->rtt_min.s[0].v;
	/* linux tcp_is_cwnd_limited */
	ack.cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ||
		(c->abc.second.model.cwnd < c->abc.second.model.ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out);
	ack.in_recovery = c->state == CA_STATE_RECOVERY || c->state == CA_STATE_CWR;

	read_counters(sk, tp, c, now);
	/* K3 */
	most = ack.newly_acked + ack.inflight_before;
	ack.accelerate = bounded((__s32)(now[ACCELERATE] - c->seen[ACCELERATE]), most);
	ack.brake = bounded((__s32)(now[BRAKE] - c->seen[BRAKE]), most);
	ack.ce = bounded((__s32)(now[CE_MARK] - c->seen[CE_MARK]), most);
	for (int kind = 0; kind < KINDS; kind++) {
		c->marked[kind] += (__s64)(__s32)(now[kind] - c->seen[kind]);
		c->seen[kind] = now[kind];
	}

	abc_on_ack(&c->abc, &ack);

	c->acked_bytes += ack.newly_acked;
	c->last_ack_ns = ack.now_ns;
	c->srtt_us = ack.srtt_us;
	c->min_rtt_us = ack.min_rtt_us;
	set_window(tp, c);
	if (ack.srtt_us) {
		__u64 rate = (__u64)tp->snd_cwnd * mss * 1000000 / ack.srtt_us;

		/* Without pacing it only sizes GSO bursts and the queue below: two windows per RTT, as in slow start. */
		sk->sk_pacing_rate = rate * (settings.pacing_percent ? settings.pacing_percent : 200) / 100;
	}
}

/* The start of an episode: a loss, a CE mark, a timeout; the kernel asks once. */
SEC("struct_ops")
__u32 BPF_PROG(abc_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	__u32 packets;

	if (!c)
		return tp->snd_ssthresh;
	cubic_on_loss(&c->abc.second);
	packets = bytes_of(c->abc.second.model.ssthresh) / (c->abc.mss ? c->abc.mss : 1);
	return packets > 2 ? packets : 2;
}

SEC("struct_ops")
void BPF_PROG(abc_set_state, struct sock *sk, __u8 state)
{
	struct connection *c = connection_of(sk);

	if (!c)
		return;
	if (state == CA_STATE_LOSS) {
		/* ssthresh has been asked if this is the first timeout of its episode. */
		cubic_on_timeout(&c->abc.second, true);
		c->timeouts++;
	} else if (state == CA_STATE_RECOVERY) {
		c->losses++;
	} else if (state == CA_STATE_CWR) {
		c->ce_episodes++;
	} else if (state == CA_STATE_OPEN && c->state != CA_STATE_OPEN) {
		cubic_on_recovery_exit(&c->abc.second);
	}
	c->state = state;
}

/* The flow sends again after nothing was in flight. */
SEC("struct_ops")
void BPF_PROG(abc_cwnd_event, struct sock *sk, int event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c;
	__u64 now, rto, idle;

	if (event != EVENT_TX_START)
		return;
	c = connection_of(sk);
	if (!c || !c->last_ack_ns)
		return;
	now = bpf_ktime_get_ns();
	idle = now > c->last_ack_ns ? now - c->last_ack_ns : 0;
	cubic_pause(&c->abc.second, now);
	/* rfc6298 2.3; linux __tcp_set_rto: rttvar_us is four mean deviations, at least 200 ms */
	rto = ((__u64)(tp->srtt_us >> 3) + tp->rttvar_us) * NS_PER_US;
	if (idle > rto) {
		abc_on_idle_restart(&c->abc, idle, rto);
		set_window(tp, c);
	}
}

SEC("struct_ops")
__u32 BPF_PROG(abc_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	__u32 packets;

	if (!c)
		return tp->snd_cwnd;
	cubic_on_spurious_loss(&c->abc.second);
	packets = abc_cwnd(&c->abc) / (c->abc.mss ? c->abc.mss : 1);
	return packets > tp->snd_cwnd ? packets : tp->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops abc = {
	.init = (void *)abc_init_connection,
	.release = (void *)abc_release,
	.cong_control = (void *)abc_cong_control,
	.ssthresh = (void *)abc_ssthresh,
	.set_state = (void *)abc_set_state,
	.cwnd_event = (void *)abc_cwnd_event,
	.undo_cwnd = (void *)abc_undo_cwnd,
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN,
	.name = "abc",
};

/* The receiver shim: Reno, whose flags make a kernel accept Accurate ECN whatever its sysctl says. */
SEC("struct_ops")
__u32 BPF_PROG(shim_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_cwnd > 4 ? tp->snd_cwnd / 2 : 2;
}

SEC("struct_ops")
__u32 BPF_PROG(shim_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

SEC("struct_ops")
void BPF_PROG(shim_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops accecn_reno = {
	.ssthresh = (void *)shim_ssthresh,
	.undo_cwnd = (void *)shim_undo_cwnd,
	.cong_avoid = (void *)shim_cong_avoid,
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN,
	.name = "accecn_reno",
};
