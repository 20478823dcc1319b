//! Proportional rate reduction (RFC 9937, as in Linux 6.12 tcp_input.c, tcp_cwnd_reduction): what may be in
//! flight while losses are repaired.
//!
//! ```text
//! pipe >  target:   sndcnt = ceil(prr_delivered * target / prior) - prr_out                      rfc9937 6.2
//! pipe <= target:   sndcnt = max(prr_delivered - prr_out, newly delivered) + MSS where the ACK is safe,
//!                   at most target - pipe                                                        rfc9937 6.2
//! cwnd = pipe + sndcnt, where sndcnt >= MSS until the first packet of the episode is out
//! ```
//!
//! Deviations: D1 `prior` is the window before the episode, as in tcp_init_cwnd_reduction there, not RFC
//! 9937's RecoverFS; they agree for a flow whose window was the limit.

/// The state of one recovery episode; bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    prior: u64,
    delivered: u64,
    out: u64,
    window: u64,
}

impl Prr {
    /// An episode begins with the window `prior` and `pipe` bytes in flight.
    pub(super) fn new(prior: u64, pipe: u64) -> Self {
        Prr { prior: prior.max(1), delivered: 0, out: 0, window: pipe }
    }

    /// What may be in flight.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// A packet left.
    pub(super) fn sent(&mut self, size: u64) {
        self.out += size;
    }

    /// An ACK delivered `newly` bytes; `pipe` are in flight and the controller's window is `target`. `safe`
    /// says that the ACK advanced `snd_una` and brought no new loss.
    pub(super) fn acked(&mut self, newly: u64, pipe: u64, target: u64, mss: u64, safe: bool) {
        self.delivered += newly;
        let quota = if pipe > target {
            // rfc9937 6.2, first branch
            let share =
                (u128::from(self.delivered) * u128::from(target)).div_ceil(u128::from(self.prior)) as u64;
            share.saturating_sub(self.out)
        } else {
            // rfc9937 6.2, second branch: slow-start reduction bound
            let bound = self.delivered.saturating_sub(self.out).max(newly) + if safe { mss } else { 0 };
            bound.min(target - pipe)
        };
        // The fast retransmit goes out whatever the proportion says.
        let quota = if self.out == 0 { quota.max(mss) } else { quota };
        self.window = pipe + quota;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9937's aim: reducing by half sends one packet for every two delivered.
    #[test]
    fn sends_one_packet_for_two_delivered_when_the_target_is_half() {
        let mss = 1_000;
        let mut pipe = 99_000;
        let mut prr = Prr::new(100_000, pipe);
        let mut sent = Vec::new();
        for _ in 0..40 {
            pipe -= mss;
            prr.acked(mss, pipe, 50_000, mss, false);
            let mut count = 0;
            while pipe + mss <= prr.window() {
                prr.sent(mss);
                pipe += mss;
                count += 1;
            }
            sent.push(count);
        }
        assert_eq!(sent.iter().sum::<i32>(), 20);
        assert!(sent.chunks(2).all(|pair| pair.iter().sum::<i32>() == 1), "{sent:?}");
    }

    #[test]
    fn grows_back_to_the_target_by_at_most_one_extra_packet_per_safe_ack() {
        let mss = 1_000;
        let mut prr = Prr::new(100_000, 10_000);
        prr.sent(mss);
        prr.acked(mss, 10_000, 50_000, mss, true);
        assert_eq!(prr.window(), 12_000);
        prr.acked(mss, 10_000, 50_000, mss, false);
        assert_eq!(prr.window(), 11_000);
        prr.acked(mss, 49_500, 50_000, mss, true);
        assert_eq!(prr.window(), 50_000);
    }

    #[test]
    fn always_lets_the_first_retransmission_out() {
        let mut prr = Prr::new(100_000, 90_000);
        prr.acked(0, 90_000, 50_000, 1_000, false);
        assert_eq!(prr.window(), 91_000);
    }
}
