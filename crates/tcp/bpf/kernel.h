/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The fields of the kernel's structures that the programs touch, and no others. libbpf finds each field by
 * its name in the running kernel's BTF (CO-RE), so neither offsets nor sizes here mean anything.
 */
#ifndef BRAKELIGHT_KERNEL_H
#define BRAKELIGHT_KERNEL_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u8 icsk_retransmits;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 saw_tstamp : 1, tstamp_ok : 1;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 snd_cwnd_clamp;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 prior_cwnd;
	__u32 prr_out;
	__u32 mss_cache;
	__u32 srtt_us;
	__u32 rttvar_us;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 max_packets_out;
	__u64 bytes_acked;
	__u64 tcp_mstamp;
	struct minmax rtt_min;
	struct tcp_options_received rx_opt;
	__u8 tcp_usec_ts : 1;
	__u8 is_cwnd_limited : 1;
	__u8 ecn_flags;
	__u32 delivered_ecn_bytes[3];
};

struct rate_sample {
	__s32 delivered;
	long rtt_us;
	int losses;
	__u32 acked_sacked;
	__u32 prior_in_flight;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct seq_file {
	void *private;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

/* include/net/tcp.h */
enum {
	TCP_CONG_NON_RESTRICTED = 1,
	TCP_CONG_NEEDS_ECN = 2,
	TCP_CONG_NEEDS_ACCECN = 4,
};

/* include/net/tcp.h: bits of ecn_flags */
enum {
	TCP_ECN_MODE_RFC3168 = 1,
	TCP_ECN_MODE_ACCECN = 16,
};

/* include/uapi/linux/tcp.h: enum tcp_ca_state, in the kernel's order */
enum {
	CA_STATE_OPEN = 0,
	CA_STATE_DISORDER = 1,
	CA_STATE_CWR = 2,
	CA_STATE_RECOVERY = 3,
	CA_STATE_LOSS = 4,
};

/* include/net/tcp.h: enum tcp_ca_event */
enum {
	EVENT_TX_START = 0,
	EVENT_LOSS = 3,
};

/* net/ipv4/tcp_input.c: FLAG_SND_UNA_ADVANCED */
#define ACK_ADVANCES_SND_UNA 0x400

/* include/net/sock.h: enum sk_pacing */
enum {
	PACING_NONE = 0,
	PACING_NEEDED = 1,
};

/* RFC 3168 section 5 */
enum {
	ECN_NOT_ECT = 0,
	ECN_ECT_1 = 1,
	ECN_ECT_0 = 2,
	ECN_CE = 3,
};

#define NS_PER_US 1000ULL

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

#endif
