// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reno for receivers whose kernel has Accurate ECN: its flags make the kernel accept Accurate ECN whatever
 * its sysctl says.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops")
__u32 BPF_PROG(receiver_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_cwnd > 4 ? tp->snd_cwnd / 2 : 2;
}

SEC("struct_ops")
__u32 BPF_PROG(receiver_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

SEC("struct_ops")
void BPF_PROG(receiver_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops accecn_reno = {
	.ssthresh = (void *)receiver_ssthresh,
	.undo_cwnd = (void *)receiver_undo_cwnd,
	.cong_avoid = (void *)receiver_cong_avoid,
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN,
	.name = "accecn_reno",
};
