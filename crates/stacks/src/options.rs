//! The options of the controllers. Defaults are the stacks' own, but for flow control, which is open.

use brakelight_core::parameters;
use brakelight_core::units::{Bytes, Rate};

/// The datagram in which stacks count windows (quinn-proto and noq-proto, `BASE_DATAGRAM_SIZE`), in bytes.
const DATAGRAM: u64 = 1200;
/// A window that limits nothing.
const OPEN: Bytes = Bytes(1_000_000_000);
/// The smallest window of flow control that lets a datagram pass.
const LEAST: Bytes = Bytes(10_000);

/// Windows that every controller's connection has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Of the controller, before the first ACK.
    pub(crate) initial: u64,
    /// What the receiver lets the sender have outstanding on the stream.
    pub(crate) stream: u32,
    /// What the sender keeps that is not acknowledged.
    pub(crate) send: u64,
}

impl Windows {
    fn new(initial_window: u64, stream_window: Bytes, send_window: Bytes) -> Self {
        let stream = u32::try_from(stream_window.0).unwrap_or(u32::MAX);
        Windows { initial: initial_window * DATAGRAM, stream, send: send_window.0 }
    }
}

/// A module with the options of a controller: the first window, its own, and flow control.
macro_rules! options {
    ($(#[doc = $about:literal])* $name:ident, $first:literal { $($own:tt)* }) => {
        $(#[doc = $about])*
        pub(crate) mod $name {
            use super::*;

            parameters! {
                $(#[doc = $about])*
                pub struct Config {
                    /// The window before the first ACK, in datagrams of 1,200 bytes.
                    initial_window: u64 = $first, in 1..=10_000, from "the stack";
                    $($own)*
                    /// What the receiver lets the sender have outstanding; the stacks' own default is 1.25MB.
                    stream_window: Bytes = OPEN, in LEAST..=OPEN, from "chosen here";
                    /// What the sender keeps that is not acknowledged; the stacks' own default is 10MB.
                    send_window: Bytes = OPEN, in LEAST..=OPEN, from "chosen here";
                }
            }

            impl Config {
                pub(crate) fn windows(&self) -> Windows {
                    Windows::new(self.initial_window, self.stream_window, self.send_window)
                }
            }
        }
    };
}

options! {
    /// Options of a controller that has none of its own but the first window.
    plain, 10 {}
}

options! {
    /// Options of the stacks' New Reno.
    newreno, 10 {
        /// What is left of the window after a loss.
        beta: f64 = 0.5, in 0.1..=0.95, from "the stack";
    }
}

options! {
    /// Options of quinn's BBR, which begins with a large window.
    bbr, 200 {}
}

/// Options of a controller that is not ours to set.
pub(crate) mod foreign {
    use super::*;

    parameters! {
        /// Options of a controller that is not ours to set: flow control alone.
        pub struct Config {
            /// What the receiver lets the sender have outstanding; the stacks' own default is 1.25MB.
            stream_window: Bytes = OPEN, in LEAST..=OPEN, from "chosen here";
            /// What the sender keeps that is not acknowledged; the stacks' own default is 10MB.
            send_window: Bytes = OPEN, in LEAST..=OPEN, from "chosen here";
        }
    }

    impl Config {
        pub(crate) fn windows(&self) -> Windows {
            Windows::new(0, self.stream_window, self.send_window)
        }
    }
}

/// Options of s2n-quic's controllers.
pub(crate) mod s2n {
    use super::*;

    parameters! {
        /// Options of s2n-quic's controllers.
        pub struct Config {
            /// The window before the first ACK, in datagrams of 1,200 bytes.
            initial_window: u64 = 10, in 1..=10_000, from "the stack";
            /// What the receiver lets the sender have outstanding; the stack's own default is 3.75MB.
            stream_window: Bytes = OPEN, in LEAST..=OPEN, from "chosen here";
            /// What the sender keeps that is not acknowledged; the stack's own default is 4.2MB.
            send_window: Bytes = OPEN, in LEAST..=OPEN, from "chosen here";
        }
    }

    impl Config {
        /// Returns the window before the first ACK, in bytes.
        pub(crate) fn initial(&self) -> u32 {
            u32::try_from(self.initial_window * DATAGRAM).unwrap_or(u32::MAX)
        }
    }
}

/// Options of quiche's controllers.
#[cfg(feature = "stacks-c")]
pub(crate) mod quiche {
    use super::*;

    parameters! {
        /// Options of quiche's controllers.
        pub struct Config {
            /// The window before the first ACK, in packets.
            initial_window: u64 = 10, in 1..=10_000, from "the stack";
            /// Whether slow start also ends by HyStart++ (`reno`, `cubic`).
            hystart: bool = true, in .., from "the stack";
            /// Whether idle time begins at the last ACK, where that came after the last packet (`cubic`).
            idle_restart_fix: bool = true, in .., from "the stack";
            /// The largest datagram that it sends, in bytes; quiche's own default is 1,200.
            datagram: u64 = 1350, in 1200..=1472, from "quiche's own client";
            /// What the receiver lets the sender have outstanding.
            stream_window: Bytes = OPEN, in LEAST..=OPEN, from "chosen here";
        }
    }
}

/// Options of str0m's controller.
pub(crate) mod str0m {
    use super::*;

    /// What a rate may be.
    const RATES: std::ops::RangeInclusive<Rate> = Rate::from_bps(40_000)..=Rate::from_mbps(10_000);

    parameters! {
        /// Options of str0m's controller.
        pub struct Config {
            /// The estimate before there is any feedback.
            initial_rate: Rate = Rate::from_bps(300_000), in RATES, from "libwebrtc bitrate_constraints.h, kDefaultStartBitrateBps";
            /// The rate that the application would like to have, which its probes look for.
            desired_rate: Rate = Rate::from_bps(2_500_000), in RATES, from "the highest rate of `call`";
        }
    }
}
