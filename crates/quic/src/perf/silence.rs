//! How long nothing has arrived.

use std::time::Duration;

/// How long nothing may arrive before that is said. A link may be out for so long; a server that died is,
/// too.
pub const LIMIT: Duration = Duration::from_secs(3);

/// Since when nothing has arrived.
#[derive(Debug, Default)]
pub struct Silence {
    bytes: u64,
    since: Duration,
    said: bool,
}

impl Silence {
    /// Returns whether a silence has just reached [`LIMIT`]: once for each. `bytes` have arrived after
    /// `elapsed`.
    pub fn begins(&mut self, elapsed: Duration, bytes: u64) -> bool {
        if bytes != self.bytes {
            *self = Silence { bytes, since: elapsed, said: false };
        }
        let begins = !self.said && elapsed.saturating_sub(self.since) >= LIMIT;
        self.said |= begins;
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_silence_is_said_once() {
        let mut silence = Silence::default();
        let seconds = Duration::from_secs;
        let said: Vec<bool> = [(1, 5), (3, 5), (4, 5), (5, 5), (6, 7), (8, 7), (9, 7)]
            .map(|(elapsed, bytes)| silence.begins(seconds(elapsed), bytes))
            .to_vec();
        assert_eq!(said, [false, false, true, false, false, false, true]);
    }
}
