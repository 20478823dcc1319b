//! A controller that is driven from outside: by a learning agent, a script, or a person.
//!
//! ```text
//! cwnd, pacing rate:   as they were set last, until they are set anew
//! ACKs, losses, marks, timeouts, idle periods, undo:   change nothing
//! ```
//!
//! Whoever steps a simulation sets both and reads what the flow learnt from its view; left alone, it is a
//! sender of constant window or rate. The host repairs losses as for every controller, and the window holds
//! meanwhile.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | cwnd | `cwnd` | packets or bytes | the connection's initial window | rfc6928 2 |
//! | - | `pacing_rate` | bit/s | none | the host's own pacing |
//!
//! Limits: the window is one packet or more, and 1 TB at most; a pacing rate is 1 kbit/s to 10 Tbit/s. What
//! is outside is refused. A window that a larger packet size makes too small is raised to one packet.

use alloc::format;
use alloc::string::{String, ToString};

use brakelight_core::controller::{AckEvent, Connection, Controller, LossEvent, Recovery, TimeoutEvent};
use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::{OrNone, ParameterError};
use brakelight_core::units::{Bytes, Limit, Rate};

use crate::AnyController;

/// The largest window.
pub const LARGEST: Bytes = Bytes(1_000_000_000_000);
/// The lowest and the highest pacing rate.
pub const SLOWEST: Rate = Rate::from_bps(1_000);
/// The highest pacing rate.
pub const FASTEST: Rate = Rate::from_mbps(10_000_000);

parameters! {
    /// The settings of a controller that is driven from outside.
    pub struct Config {
        check check;
        /// The window until another is set; none takes the connection's initial window.
        cwnd: Option<Limit> = None, in .., from "rfc6928 2";
        /// The pacing rate until another is set; none leaves pacing to the host.
        pacing_rate: Option<Rate> = None, in OrNone(SLOWEST..=FASTEST), from "the host's own pacing";
        /// Whether to send ECT(0), so that routers mark and the flow's view counts the marks.
        ecn: bool = false, in .., from "rfc3168 6.1.2";
    }
}

fn check(config: &Config) -> Result<(), ParameterError> {
    match config.cwnd {
        Some(Limit::Packets(0)) => refuse("cwnd", "0pkt".to_string(), "1pkt or more".to_string()),
        Some(Limit::Bytes(bytes)) if bytes == Bytes::ZERO || bytes > LARGEST => {
            refuse("cwnd", bytes.to_string(), format!("1pkt or more, and {LARGEST} at most"))
        }
        _ => Ok(()),
    }
}

fn refuse<T>(name: &'static str, value: String, range: String) -> Result<T, ParameterError> {
    Err(ParameterError::OutOfRange { name, value, range })
}

/// A window and a pacing rate, as they were set last.
#[derive(Clone, Debug)]
pub struct External {
    mss: Bytes,
    cwnd: Bytes,
    pacing_rate: Option<Rate>,
    encoding: Encoding,
}

impl External {
    /// Returns a controller at the start of its connection. A window of less than a packet is raised to one.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let cwnd = match config.cwnd {
            None => connection.initial_window,
            Some(Limit::Packets(packets)) => Bytes(connection.mss.0 * u64::from(packets)).min(LARGEST),
            Some(Limit::Bytes(bytes)) => bytes,
        };
        External {
            mss: connection.mss,
            cwnd: cwnd.max(connection.mss),
            pacing_rate: config.pacing_rate,
            encoding: if config.ecn { Encoding::Classic } else { Encoding::None },
        }
    }

    /// Sets the window, in payload bytes: from one packet to [`LARGEST`].
    ///
    /// # Errors
    /// If it is outside; the window then stays as it was.
    pub fn set_cwnd(&mut self, cwnd: Bytes) -> Result<(), ParameterError> {
        check_cwnd(cwnd, self.mss)?;
        self.cwnd = cwnd;
        Ok(())
    }

    /// Sets the pacing rate, in payload: from [`SLOWEST`] to [`FASTEST`]. `None` leaves pacing to the host.
    ///
    /// # Errors
    /// If it is outside; the rate then stays as it was.
    pub fn set_pacing_rate(&mut self, rate: Option<Rate>) -> Result<(), ParameterError> {
        check_pacing_rate(rate)?;
        self.pacing_rate = rate;
        Ok(())
    }
}

impl AnyController {
    /// Returns the controller that is driven from outside, if it is one.
    pub fn external_mut(&mut self) -> Option<&mut External> {
        match self {
            AnyController::External(external) => Some(external),
            AnyController::Checked(checked) => checked.inner_mut().external_mut(),
            _ => None,
        }
    }
}

/// Refuses a window that no flow with packets of `mss` payload can have.
///
/// # Errors
/// If it is below one packet or above [`LARGEST`].
pub fn check_cwnd(cwnd: Bytes, mss: Bytes) -> Result<(), ParameterError> {
    if (mss..=LARGEST).contains(&cwnd) {
        return Ok(());
    }
    refuse("cwnd", cwnd.to_string(), format!("{mss}, one packet, to {LARGEST}"))
}

/// Refuses a pacing rate that no flow can have.
///
/// # Errors
/// If it is below [`SLOWEST`] or above [`FASTEST`].
pub fn check_pacing_rate(rate: Option<Rate>) -> Result<(), ParameterError> {
    match rate {
        Some(rate) if !(SLOWEST..=FASTEST).contains(&rate) => {
            refuse("pacing_rate", rate.to_string(), format!("{SLOWEST} to {FASTEST}, or none"))
        }
        _ => Ok(()),
    }
}

impl Controller for External {
    fn on_ack(&mut self, _event: &AckEvent<'_>) {}

    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, _event: &TimeoutEvent) {}

    fn cap_cwnd(&mut self, most: Bytes) {
        self.cwnd = self.cwnd.min(most).max(self.mss);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.cwnd = self.cwnd.max(mss);
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn encoding(&self) -> Encoding {
        self.encoding
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::controller::Timeout;
    use brakelight_core::parameters::Parameters;
    use brakelight_core::time::Time;
    use brakelight_testkit::events;

    use super::*;

    fn built(options: &[(&str, &str)]) -> External {
        External::new(Config::from_options(options.iter().copied()).unwrap(), &events::connection(10))
    }

    #[test]
    fn begins_with_the_initial_window_or_the_one_that_is_given() {
        assert_eq!((built(&[]).cwnd(), built(&[]).pacing_rate()), (Bytes(10_000), None));
        assert_eq!(built(&[("cwnd", "50pkt")]).cwnd(), Bytes(50_000));
        assert_eq!(built(&[("cwnd", "100kB")]).cwnd(), Bytes(100_000));
        assert_eq!(built(&[("cwnd", "100B")]).cwnd(), events::MSS);
        assert_eq!(built(&[("pacing_rate", "8Mbps")]).pacing_rate(), Some(Rate::from_mbps(8)));
        assert_eq!(built(&[("ecn", "true")]).encoding(), Encoding::Classic);
    }

    #[test]
    fn keeps_what_was_set_whatever_happens() {
        let mut external = built(&[]);
        external.set_cwnd(Bytes(30_000)).unwrap();
        external.set_pacing_rate(Some(Rate::from_mbps(3))).unwrap();
        external.on_timeout(&TimeoutEvent {
            now: Time::from_secs(1),
            kind: Timeout::Rto,
            inflight: Bytes(30_000),
            repeated: false,
        });
        assert_eq!((external.cwnd(), external.pacing_rate()), (Bytes(30_000), Some(Rate::from_mbps(3))));
        external.set_pacing_rate(None).unwrap();
        assert_eq!(external.pacing_rate(), None);
    }

    #[test]
    fn refuses_what_no_flow_can_have_and_says_what_is_valid() {
        let mut external = built(&[]);
        assert_eq!(
            external.set_cwnd(Bytes(999)).unwrap_err().to_string(),
            "cwnd = `999B` is out of range: valid is 1kB, one packet, to 1000GB"
        );
        assert!(external.set_cwnd(Bytes(LARGEST.0 + 1)).is_err());
        assert_eq!(
            external.set_pacing_rate(Some(Rate::ZERO)).unwrap_err().to_string(),
            "pacing_rate = `0bps` is out of range: valid is 1kbps to 10000Gbps, or none"
        );
        assert_eq!((external.cwnd(), external.pacing_rate()), (Bytes(10_000), None));
        for (name, value) in [("cwnd", "0pkt"), ("cwnd", "0B"), ("cwnd", "2000GB"), ("pacing_rate", "1bps")] {
            assert!(Config::from_options([(name, value)]).is_err(), "{name}={value}");
        }
    }
}
