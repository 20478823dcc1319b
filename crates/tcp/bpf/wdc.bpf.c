// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * QUIC-DC's delay control as a congestion control of Linux TCP. It needs nothing but a peer with timestamps
 * (rfc7323).
 *
 * The arithmetic is in wdc.h. Here is what the kernel says, in its words, as in abc.bpf.c.
 *
 * Deviations from QUIC's host:
 * K1 bytes ACKed are packets times the MSS, for that is what rate_sample tells.
 * K2 QUIC's receiver tells when packets arrived; a timestamp tells when the ACK left. A packet whose ACK was
 *    held back would look late by up to 40 ms, so an ACK of a single packet counts only after another of a
 *    single packet, while the window is the limit: then the receiver holds nothing back. Others are sent at
 *    once when their last packet comes.
 * K3 the time at which a lost packet was sent is not known where an episode starts: it is taken to be that of
 *    the newest packet measured.
 * K4 repairs of losses go by PRR, as everywhere in Linux 6.12 tcp_input.c. A reduction by delay has nothing
 *    to repair: the window is set.
 */
#include "kernel.h"

#include "connection.h"
#include "socket.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading; `src/bpf/endpoint.rs` writes it. */
const volatile struct wdc_setup {
	/* Percent of a window per RTT at which packets are paced. */
	__u32 pacing_percent;
	__u32 threshold_us;
	__u32 share_ppm;
} settings = { .share_ppm = 500000, .pacing_percent = 100 };

static __always_inline void set_window(struct tcp_sock *tp, struct connection *c)
{
	write_window(tp, c->wdc.westwood.cwnd / (c->wdc.westwood.mss ? c->wdc.westwood.mss : 1));
}

static __always_inline __u32 tick_us(struct tcp_sock *tp)
{
	if (bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts))
		return 1;
	return 1000;
}

/* Whether this ACK tells when its newest packet came; K2. */
static __always_inline bool measure(struct tcp_sock *tp, struct connection *c, const struct rate_sample *rs,
				    struct wdc_ack *ack)
{
	bool single = rs->acked_sacked == 1, after_single = c->acked_single;

	c->acked_single = single;
	if (!BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp))
		return false;
	if (!peer_clock_read(&c->clock, tp->rx_opt.rcv_tsval, ack->now_us, tick_us(tp))) {
		c->feedback = FEEDBACK_NONE;
		return false;
	}
	c->feedback = FEEDBACK_TIMESTAMPS;
	ack->received_us = c->clock.received_us;
	return rs->acked_sacked > 0 && (!single || (after_single && ack->cwnd_limited));
}

SEC("struct_ops")
void BPF_PROG(wdc_init_connection, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = bpf_sk_storage_get(&bl_connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	__u32 mss = tp->mss_cache ? tp->mss_cache : 536;

	if (!c)
		return;
	__builtin_memset(c, 0, sizeof(*c));
	c->controller = CONTROLLER_WDC;
	wdc_init(&c->wdc, mss, (__u64)tp->snd_cwnd * mss, tp->tcp_mstamp);
}

SEC("struct_ops")
void BPF_PROG(wdc_release, struct sock *sk)
{
	bpf_sk_storage_delete(&bl_connections, sk);
}

SEC("struct_ops")
void BPF_PROG(wdc_cong_control, struct sock *sk, __u32 ack_seq, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	/* Before init there is none: the ACK that completes the handshake. */
	struct connection *c = connection_of(sk);
	struct wdc_settings limits = { settings.threshold_us, settings.share_ppm };
	struct wdc_ack ack = {};
	__u32 mss;

	if (!c)
		return;
	mss = tp->mss_cache;
	if (mss && mss != c->wdc.westwood.mss)
		westwood_on_mtu_change(&c->wdc.westwood, mss);
	mss = c->wdc.westwood.mss;

	/* Milliseconds tell less than 5 of them not from none. */
	if (limits.threshold_us && limits.threshold_us < 5000 && tick_us(tp) > 1)
		limits.threshold_us = 5000;
	ack.now_us = tp->tcp_mstamp;
	ack.newly_acked = rs->acked_sacked * mss;
	ack.rtt_us = rs->rtt_us > 0 && rs->rtt_us < WESTWOOD_RTT_MAX_US ? rs->rtt_us : 0;
	ack.cwnd_limited = is_cwnd_limited(tp, c->wdc.westwood.cwnd < c->wdc.westwood.ssthresh);
	ack.in_recovery = is_repairing(c);
	ack.measured = measure(tp, c, rs, &ack);
	wdc_on_ack(&c->wdc, &ack, &limits);

	note_ack(tp, c, bpf_ktime_get_ns(), ack.newly_acked);
	if (ack.in_recovery && c->prr.prior)
		write_window(tp, repaired_window(tp, c, rs, flag, c->wdc.westwood.cwnd / (mss ? mss : 1)));
	else
		set_window(tp, c);
	pace(sk, c->srtt_us, (__u64)tp->snd_cwnd * mss, settings.pacing_percent, true);
}

/* The start of an episode: a loss, a CE mark, a timeout; the kernel asks once. */
SEC("struct_ops")
__u32 BPF_PROG(wdc_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	__u64 packets;

	if (!c)
		return tp->snd_ssthresh;
	prr_begin(&c->prr, tp->snd_cwnd);
	/* K3 */
	c->reduced = wdc_on_episode(&c->wdc, tp->tcp_mstamp, c->wdc.newest_us);
	packets = min_u64(c->wdc.westwood.ssthresh, WINDOW_MAX) / (c->wdc.westwood.mss ? c->wdc.westwood.mss : 1);
	return packets > 2 ? packets : 2;
}

SEC("struct_ops")
void BPF_PROG(wdc_set_state, struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);

	if (!c)
		return;
	if (state == CA_STATE_RECOVERY || state == CA_STATE_LOSS)
		wdc_note_loss(&c->wdc);
	/* ssthresh has been asked if this is the first timeout of its episode. */
	if (state == CA_STATE_LOSS) {
		wdc_on_timeout(&c->wdc, tp->tcp_mstamp, c->reduced);
		c->reduced = 1;
	} else if (state == CA_STATE_OPEN && c->state != CA_STATE_OPEN) {
		westwood_on_recovery_exit(&c->wdc.westwood);
	}
	note_state(c, state);
}

/* The flow sends again after nothing was in flight. */
SEC("struct_ops")
void BPF_PROG(wdc_cwnd_event, struct sock *sk, int event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c;
	__u64 idle, rto;

	if (event != EVENT_TX_START)
		return;
	c = connection_of(sk);
	if (!c)
		return;
	idle = idle_ns(tp, c, bpf_ktime_get_ns(), &rto);
	if (idle > rto) {
		westwood_on_idle_restart(&c->wdc.westwood, tp->tcp_mstamp, c->wdc.initial, idle / NS_PER_US, rto / NS_PER_US);
		set_window(tp, c);
	}
}

SEC("struct_ops")
__u32 BPF_PROG(wdc_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	__u64 packets;

	if (!c)
		return tp->snd_cwnd;
	westwood_on_spurious_loss(&c->wdc.westwood);
	packets = c->wdc.westwood.cwnd / (c->wdc.westwood.mss ? c->wdc.westwood.mss : 1);
	return packets > tp->snd_cwnd ? packets : tp->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops wdc = {
	.init = (void *)wdc_init_connection,
	.release = (void *)wdc_release,
	.cong_control = (void *)wdc_cong_control,
	.ssthresh = (void *)wdc_ssthresh,
	.set_state = (void *)wdc_set_state,
	.cwnd_event = (void *)wdc_cwnd_event,
	.undo_cwnd = (void *)wdc_undo_cwnd,
	.name = "wdc",
};
