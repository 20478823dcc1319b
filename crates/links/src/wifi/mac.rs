//! Times and rates of 802.11n: one spatial stream in 20 MHz, long guard interval, 5 GHz.
//!
//! ```text
//! airtime of an A-MPDU of L bytes  =  preamble + ceil((16 + 8 L + 6) / N_DBPS) symbols     ieee80211n 20.4.3
//! bytes of an MPDU                 =  delimiter 4 + MAC 26 + LLC 8 + IP packet + FCS 4, padded to 4
//! an exchange                      =  DIFS + backoff + A-MPDU + SIFS + block ACK
//! backlogged rate                  =  M (1 - p) S / mean exchange
//! ```

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;

use super::Config;

/// Short interframe space (ieee80211 table 17-21).
pub const SIFS: Duration = Duration::from_micros(16);
/// A backoff slot (the same).
pub const SLOT: Duration = Duration::from_micros(9);
/// DCF interframe space: SIFS + 2 slots.
pub const DIFS: Duration = Duration::from_micros(34);
/// Mixed-format preamble for one stream: L-STF, L-LTF, L-SIG, HT-SIG, HT-STF, HT-LTF (ieee80211n 20.3.9).
pub const PREAMBLE: Duration = Duration::from_micros(36);
/// A data symbol with long guard interval.
const SYMBOL: Duration = Duration::from_micros(4);
/// A compressed block ACK of 32 bytes at 24 Mbit/s: 20 us of preamble and 3 symbols of 96 bits
/// (ieee80211 17.4.3).
pub const BLOCK_ACK: Duration = Duration::from_micros(32);
/// The longest A-MPDU, bytes (ieee80211n 8.4.2.58.3).
pub const LONGEST_AMPDU: u32 = 65_535;
/// After so long without a transmission, the stations' ACKs have been sent.
pub const QUIET: Duration = Duration::from_millis(1);

/// Smallest and largest contention windows, slots (best effort).
const CW_MIN: u32 = 15;
const CW_MAX: u32 = 1023;

/// Data bits per symbol by index (ieee80211n table 20-30).
const N_DBPS: [u32; 8] = [26, 52, 78, 104, 156, 208, 234, 260];

/// Delimiter, MAC header with QoS, LLC and SNAP, FCS.
const MPDU_OVERHEAD: u32 = 4 + 26 + 8 + 4;
/// A full IP packet, and a TCP ACK.
const FULL: u32 = 1500;
const ACK: u32 = 52;

/// Returns R, the bit rate of an index.
pub fn phy_rate(mcs: u8) -> Rate {
    Rate::from_bps(u64::from(N_DBPS[usize::from(mcs)]) * 250_000)
}

/// Returns the bytes of an IP packet of `size` bytes within an A-MPDU.
pub fn mpdu_bytes(size: u32) -> u32 {
    (MPDU_OVERHEAD + size).next_multiple_of(4)
}

/// Returns the time on the air of `bytes` in one A-MPDU.
pub fn airtime(mcs: u8, bytes: u32) -> Duration {
    let symbols = (16 + 8 * bytes + 6).div_ceil(N_DBPS[usize::from(mcs)]);
    PREAMBLE + SYMBOL * u64::from(symbols)
}

/// Returns the time on the air of a station's exchange with so many TCP ACKs.
pub fn ack_airtime(mcs: u8, acks: u32) -> Duration {
    let bytes = (acks * mpdu_bytes(ACK)).min(LONGEST_AMPDU);
    airtime(mcs, bytes) + SIFS + BLOCK_ACK
}

/// Returns the slots of the contention window after so many failures in a row.
pub fn contention_window(failures: u32) -> u32 {
    (((CW_MIN + 1) << failures.min(6)) - 1).min(CW_MAX)
}

/// Returns the frames of a full batch of full packets.
pub fn full_batch(config: &Config) -> u32 {
    config.frames.min(LONGEST_AMPDU / mpdu_bytes(FULL))
}

/// Returns what the link carries at this index when it is always backlogged with full packets, on average.
pub fn backlogged(config: &Config, mcs: u8) -> Rate {
    let frames = full_batch(config);
    let received = f64::from(frames) * (1.0 - config.loss);
    let bits = received * f64::from(8 * FULL);
    Rate::from_bps_f64(bits / mean_exchange_s(config, mcs, frames))
}

/// Returns the mean time from one block ACK to the next of a backlogged access point with batches of `frames`
/// full packets, s.
pub fn mean_exchange_s(config: &Config, mcs: u8, frames: u32) -> f64 {
    let received = f64::from(frames) * (1.0 - config.loss);
    // A geometric number of other networks' transmissions, each followed by another DIFS.
    let others = config.neighbours / (1.0 - config.neighbours);
    let foreign_s = others * (config.neighbour_airtime + DIFS).as_secs_f64();
    // A station that owes ACKs wins the medium every other time, with the ACKs of two batches on average.
    let own_s = if config.ack_every == 0 {
        0.0
    } else {
        let acks = libm::round(2.0 * received / f64::from(config.ack_every)) as u32;
        0.5 * (ack_airtime(mcs, acks) + DIFS).as_secs_f64()
    };
    // All frames of a batch fail so rarely that the window is almost always the smallest.
    let backoff_s = 0.5 * f64::from(CW_MIN) * SLOT.as_secs_f64();
    let batch = airtime(mcs, frames * mpdu_bytes(FULL));
    foreign_s + own_s + backoff_s + (DIFS + batch + SIFS + BLOCK_ACK).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::*;

    #[test]
    fn rates_are_those_of_the_standard_s_table() {
        let mbps: [f64; 8] = core::array::from_fn(|mcs| phy_rate(mcs as u8).as_mbps_f64());
        assert_eq!(mbps, [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0]);
    }

    #[test]
    fn airtime_counts_whole_symbols() {
        // One full packet: 42 + 1500 bytes, padded to 1544: 12,374 bits, 48 symbols at index 7, 476 at
        // index 0.
        assert_eq!(mpdu_bytes(1500), 1544);
        assert_eq!(airtime(7, 1544), Duration::from_micros(36 + 4 * 48));
        assert_eq!(airtime(0, 1544), Duration::from_micros(36 + 4 * 476));
    }

    #[test]
    fn the_contention_window_doubles_up_to_its_largest() {
        let windows: [u32; 9] = core::array::from_fn(|failures| contention_window(failures as u32));
        assert_eq!(windows, [15, 31, 63, 127, 255, 511, 1023, 1023, 1023]);
    }

    #[test]
    fn a_batch_on_a_quiet_channel_takes_what_can_be_added_up() {
        let config =
            Config::new(Values { loss: 0.0, neighbours: 0.0, ack_every: 0, ..Values::default() }).unwrap();
        // 20 packets at index 7: 30,880 bytes, 247,062 bits, 951 symbols; DIFS 34, backoff 67.5, SIFS 16,
        // block ACK 32 us.
        let exchange_s = mean_exchange_s(&config, 7, 20);
        assert!((exchange_s - (34.0 + 67.5 + 36.0 + 3804.0 + 16.0 + 32.0) * 1e-6).abs() < 1e-12);
        let mbps = backlogged(&config, 7).as_mbps_f64();
        assert!((mbps - 240_000.0 / 3989.5).abs() < 1e-4, "{mbps}");
    }
}
