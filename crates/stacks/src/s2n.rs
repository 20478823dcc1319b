//! s2n-quic, as it is published, with its own controllers.
//!
//! | file | holds |
//! |---|---|
//! | `end` | an endpoint of s2n-quic-transport without sockets and clocks |
//! | `tls` | the handshake and the ciphers |
//! | `watch` | what is seen of the sender: s2n-quic's events |
//! | `controller` | a controller of s2n-quic without its stack |

mod controller;
mod end;
mod tls;
mod watch;

use std::time::Duration;

use brakelight_core::ecn::Encoding;
use brakelight_core::host::{About, HostFactory, HostedController, Pair, Setup};
use brakelight_core::parameters::{OptionValues, ParameterError, Parameters};
use brakelight_core::time::Time;
use brakelight_registry::Options;
pub(crate) use controller::Alone;
use s2n_quic_core::recovery::{bbr, cubic};
use s2n_quic_core::time::{Clock as _, NoopClock, Timestamp};

use crate::options::s2n::Config;

/// s2n-quic subtracts from the time; before the start there is room for that.
const BEFORE: Duration = Duration::from_secs(24 * 60 * 60);
const CUBIC: &str = "s2n-quic/cubic";
const BBR: &str = "s2n-quic/bbr";

/// The host `s2n-quic`.
#[derive(Debug)]
pub(crate) struct S2n;

impl HostFactory for S2n {
    fn about(&self) -> About {
        About {
            summary: "s2n-quic-transport, the QUIC stack of s2n-quic, unmodified (https://github.com/aws/s2n-quic)",
            version: env!("S2N_VERSION"),
            licence: "Apache-2.0",
            shows: &["bandwidth_bps", "mtu_bytes"],
            encoding: Encoding::Classic,
            messages: true,
        }
    }

    fn controllers(&self) -> Vec<HostedController> {
        let entry = |name, summary| HostedController { name, summary, parameters: Config::describe };
        vec![
            entry(CUBIC, "Cubic of s2n-quic"),
            entry(BBR, "BBRv2 of s2n-quic (draft-cardwell-iccrg-bbr-congestion-control-02)"),
        ]
    }

    fn settings(&self, _controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Ok(Config::from_options(options.iter().copied())?.settings())
    }

    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        let options = setup.settings.iter().map(|(name, value)| (*name, value.as_str()));
        let options = Config::from_options(options).map_err(|error| error.to_string())?;
        let initial = options.initial();
        match setup.controller {
            BBR => {
                let builder = bbr::builder::Builder::default().with_initial_congestion_window(initial);
                end::pair(setup, &options, builder.build())
            }
            _ => {
                let builder = cubic::builder::Builder::default().with_initial_congestion_window(initial);
                end::pair(setup, &options, builder.build())
            }
        }
    }
}

/// The same moment in s2n-quic's time, which counts microseconds.
fn timestamp(time: Time) -> Timestamp {
    NoopClock.get_time() + BEFORE + Duration::from_nanos(time.as_nanos())
}
