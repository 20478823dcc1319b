// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * ABC's sender as a congestion control of Linux TCP, and the program that writes accelerate on what it sends.
 *
 * The arithmetic is in abc.h. Here is what the kernel says, in its words: an ACK is cong_control, the start
 * of an episode is ssthresh, its mistake undo_cwnd. Having cong_control means that the kernel leaves the
 * window alone, PRR included, except after a timeout, where it sets what is in flight plus one.
 *
 * Deviations from the modelled host:
 * K1 bytes ACKed are packets times the MSS, for that is what rate_sample tells.
 * K2 PRR is done here (prr.h): while losses are repaired, in episodes that began while the second window
 *    governed.
 * K3 counts of marks are followed both ways: an ACK that lost its AccECN option to SACK blocks makes the
 *    kernel guess, and the next option corrects the guess. What one ACK may change is bounded by a window.
 */
#include "kernel.h"

#include "connection.h"
#include "socket.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading; `src/bpf/endpoint.rs` writes it. */
const volatile struct abc_setup {
	enum feedback feedback;
	/* Percent of a window per RTT at which packets are paced; 0 for none. */
	__u32 pacing_percent;
	/* Whether the second window is the Cubic of Linux 6.12 tcp_cubic.c, or RFC 9438's without HyStart. */
	__u32 cubic_as_linux;
} settings = { .feedback = FEEDBACK_ACCECN, .cubic_as_linux = 1 };

static __always_inline __u32 packets_of(const struct connection *c)
{
	return abc_cwnd(&c->abc) / (c->abc.mss ? c->abc.mss : 1);
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
	abc_init(&c->abc, tp->mss_cache ? tp->mss_cache : 536, tp->snd_cwnd * tp->mss_cache, bpf_ktime_get_ns(),
		 settings.cubic_as_linux);
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
	ack.rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 0;
	/* Bytes since the connection began. */
	ack.newest = tp->bytes_acked ? tp->bytes_acked - 1 : 0;
	ack.next = tp->bytes_acked + (tp->snd_nxt - tp->snd_una);
	ack.cwnd_limited = is_cwnd_limited(tp, c->abc.second.model.cwnd < c->abc.second.model.ssthresh);
	ack.in_recovery = is_repairing(c);
	ack.paced = sk->sk_pacing_status != PACING_NONE;

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

	note_ack(tp, c, ack.now_ns, ack.newly_acked);
	/* K2 */
	if (ack.in_recovery && c->prr.prior)
		write_window(tp, repaired_window(tp, c, rs, flag, packets_of(c)));
	else
		write_window(tp, packets_of(c));
	/* Without pacing: two windows per RTT, as in slow start. */
	pace(sk, c->srtt_us, (__u64)tp->snd_cwnd * mss, settings.pacing_percent ? settings.pacing_percent : 200,
	     settings.pacing_percent);
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
	if (abc_marks_govern(&c->abc))
		prr_end(&c->prr);
	else
		prr_begin(&c->prr, tp->snd_cwnd);
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
	/* ssthresh has been asked if this is the first timeout of its episode. */
	if (state == CA_STATE_LOSS)
		cubic_on_timeout(&c->abc.second, bpf_ktime_get_ns(), true);
	else if (state == CA_STATE_OPEN && c->state != CA_STATE_OPEN)
		cubic_on_recovery_exit(&c->abc.second);
	note_state(c, state);
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
	idle = idle_ns(tp, c, now, &rto);
	cubic_pause(&c->abc.second, now);
	if (idle > rto) {
		abc_on_idle_restart(&c->abc, idle, rto);
		write_window(tp, packets_of(c));
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
	packets = packets_of(c);
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
