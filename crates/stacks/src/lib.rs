//! Transport stacks that others wrote, unmodified as they are published, as hosts of the simulator: with
//! their own controllers, their own loss detection, their own pacing and their own acknowledgements.
//!
//! With the feature `stacks`, `add_to` adds to a registry:
//!
//! | controller | crate |
//! |---|---|
//! | `quinn/newreno`, `quinn/cubic`, `quinn/bbr` | quinn-proto 0.11 |
//! | `noq/newreno`, `noq/cubic`, `noq/bbr3` | noq-proto 1.4 |
//! | `brakelight-noq/copa` and others | noq-proto 1.4 with controllers of `brakelight-noq` |
//! | `s2n-quic/cubic`, `s2n-quic/bbr` | s2n-quic-transport 0.91 |
//! | `str0m/gcc` | str0m 0.24, WebRTC: for media |
//! | `quiche/reno`, `quiche/cubic`, `quiche/bbr2` | quiche 0.30, with the feature `stacks-c` |
//!
//! `stacks-c` builds BoringSSL, which takes cmake, a C++ compiler and minutes. Without a feature there is
//! nothing in this crate.
//!
//! | file | holds |
//! |---|---|
//! | `options` | the options of the controllers |
//! | `quinn`, `noq`, `s2n`, `str0m`, `quiche` | one stack each: the host, and what is its own |
//! | `ends` | an end of quinn or noq in the stack's terms, as far as the two are alike |
//! | `side` | an end as [`core::host`](brakelight_core::host) wants it, whatever its stack |
//! | `seen` | what is seen of a controller from outside |
//! | `frames` | how much of the stream has left: what stands in packets before they are encrypted |
//! | `entropy` | random numbers from the scenario's seed |
//! | `clock` | the simulation's time as the `Instant` that stacks take, and as the clock that some read |
//! | `tls` | TLS 1.3 by rustls, with a certificate that is the same in each run |
//!
//! # Time
//!
//! quinn and noq take the time as an argument. They get a fixed [`Instant`](std::time::Instant) and the
//! simulation's time added to it. What asks for the time of day, in TLS and in tokens, gets one moment.
//!
//! s2n-quic takes the time as an argument as well, in whole microseconds. Its event loop and tokio are left
//! out: its endpoint is given datagrams, and its application's futures are polled after every call.
//!
//! quiche reads the clock itself, by `Instant::now()`, which asks the C library's `clock_gettime`. str0m and
//! its DTLS do so once, for the time of day in their reports. This crate defines a function of that name,
//! which is linked in the place of the library's. While a thread is inside of a stack it shows the
//! simulation's time; at any other time and in any other thread it calls the library's. Where that cannot be,
//! a connection is refused with the reason.
//!
//! # Randomness
//!
//! A run repeats itself only if all that the stacks draw follows the seed. Connection IDs, packet numbers
//! that are skipped, TLS's random values and key shares, and the probing of BBR are random. The stacks take
//! a seed for some of these. For others they take none: the generators of `quinn/bbr` and `noq/bbr3` are
//! seeded by the operating system.
//!
//! All of it comes from one function in the end, the C library's `getrandom`. This crate defines a function
//! of that name, which is linked in the place of the library's. While a thread is inside of a stack, it
//! gives the numbers of the connection's own stream; at any other time and in any other thread it asks the
//! kernel, as the library's does. Keys made in a simulation are therefore no secrets, and those made outside
//! of one are as good as before.
//!
//! s2n-quic takes all its random numbers from a provider, which draws from the same stream.
//!
//! str0m draws its keys from DTLS (`str0m/dtls`), which has the connection's stream. What is no secret it
//! draws from a generator of the thread, which is seeded from that stream.
//!
//! quiche asks BoringSSL's `RAND_bytes`, which asks no function that could be replaced: that function is
//! defined here as well, by the one above. Key exchange is X25519 alone, whose keys come from there.
//!
//! That concerns the whole program that has this crate, so the feature is off unless it is asked for. Linux
//! alone is served: on other systems, and where another `getrandom` was linked, a connection is refused with
//! the reason, and no run is made whose numbers would be others the next time.
//!
//! # What is not the stacks' own
//!
//! - Flow control is open: windows of 1 GB, so that congestion control is what limits. The options
//!   `stream_window` and `send_window` take the stacks' defaults or any others.
//! - No datagram is larger than the path's; the stacks' own limit of 1,452 bytes stays. quiche has 1,350
//!   bytes, as its own client sets it, where its library would have 1,200.
//! - Datagrams are handed over one by one, without segmentation offload.
//! - quiche says when a datagram should leave, and it is held here until then.
//! - s2n-quic has its handshake and its ciphers from rustls and ring, as quinn and noq have, behind its
//!   traits for TLS. Its own providers bring a second cryptography library (`aws-lc-rs`, `s2n-tls`).
//! - A pass-through stands around the controller of quinn and noq, which notes bytes in flight and RTT
//!   samples. A method that a working copy adds to the stack's trait `Controller` must be passed on there as
//!   well (`Watched`). s2n-quic's own events say the same. Nothing stands around quiche's controllers: its
//!   bytes in flight are not seen.
//!
//! - The ciphers of quinn, noq and s2n-quic read each packet before they encrypt it. So the application
//!   learns how much of its stream has left, which these stacks tell nobody. Nothing that is sent differs.
//!
//! # Controllers alone
//!
//! `add_s2n_controller` makes a controller of s2n-quic one of the modelled hosts, without its stack.
#![warn(missing_docs)]

#[cfg(feature = "stacks")]
mod clock;
#[cfg(feature = "stacks")]
mod ends;
#[cfg(feature = "stacks")]
mod entropy;
#[cfg(feature = "stacks")]
mod frames;
#[cfg(feature = "stacks")]
mod noq;
#[cfg(feature = "stacks")]
mod options;
#[cfg(feature = "stacks-c")]
mod quiche;
#[cfg(feature = "stacks")]
mod quinn;
#[cfg(feature = "stacks")]
mod s2n;
#[cfg(feature = "stacks")]
mod seen;
#[cfg(feature = "stacks")]
mod side;
#[cfg(feature = "stacks")]
mod str0m;
#[cfg(feature = "stacks")]
mod tls;

#[cfg(feature = "stacks")]
pub use added::{add_quinn_controller, add_s2n_controller, add_to};

/// What the stacks find by themselves at most (`MtuDiscoveryConfig::default`), in bytes.
#[cfg(feature = "stacks")]
const MOST_DATAGRAM: u16 = 1452;
/// What is written: the values of a stream's bytes do not matter.
#[cfg(feature = "stacks")]
static ZEROES: [u8; 1 << 16] = [0; 1 << 16];

#[cfg(feature = "stacks")]
mod added {
    use std::sync::Arc;

    use brakelight_registry::{RegisterError, Registry};
    use quinn_proto::congestion::ControllerFactory;
    use s2n_quic_core::recovery::CongestionController;
    use s2n_quic_core::recovery::congestion_controller::Endpoint;

    /// Adds the hosts `quinn`, `noq`, `brakelight-noq`, `s2n-quic` and `str0m` to `registry`, with all their
    /// controllers; with the feature `stacks-c` also `quiche`.
    ///
    /// # Errors
    /// A name is taken.
    pub fn add_to(registry: &mut Registry) -> Result<(), RegisterError> {
        registry.add_host("quinn", Arc::new(super::quinn::Quinn))?;
        registry.add_host("noq", Arc::new(super::noq::Noq))?;
        registry.add_host("brakelight-noq", Arc::new(super::noq::Adapted))?;
        registry.add_host("s2n-quic", Arc::new(super::s2n::S2n))?;
        registry.add_host("str0m", Arc::new(super::str0m::Str0m))?;
        #[cfg(feature = "stacks-c")]
        registry.add_host("quiche", Arc::new(super::quiche::Quiche))?;
        Ok(())
    }

    /// Adds to `registry` a controller that was written for quinn, in quinn-proto itself: `factory` makes one
    /// for each connection. `name` is `host/controller`, such as `mine/cubic`, and `summary` is one line.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # let mut registry = brakelight_registry::Registry::standard();
    /// let factory = Arc::new(quinn_proto::congestion::CubicConfig::default());
    /// brakelight_stacks::add_quinn_controller(&mut registry, "mine/cubic", "My Cubic", factory)?;
    /// # Ok::<(), brakelight_registry::RegisterError>(())
    /// ```
    ///
    /// # Errors
    /// The host's name is taken, or the name has no slash.
    pub fn add_quinn_controller(
        registry: &mut Registry,
        name: &'static str,
        summary: &'static str,
        factory: Arc<dyn ControllerFactory + Send + Sync>,
    ) -> Result<(), RegisterError> {
        let host = name.split_once('/').map_or(name, |(host, _)| host);
        registry.add_host(host, Arc::new(super::quinn::Foreign { name, summary, factory }))
    }

    /// Adds to `registry` a controller that was written for s2n-quic, as a controller of the modelled hosts:
    /// `endpoint` makes one for each connection. `name` has lower-case letters, digits, `-` and `_`, such as
    /// `s2n-cubic`, and `summary` is one line.
    ///
    /// ```
    /// # let mut registry = brakelight_registry::Registry::standard();
    /// let cubic = s2n_quic_core::recovery::cubic::Endpoint::default();
    /// brakelight_stacks::add_s2n_controller(&mut registry, "s2n-cubic", "Cubic of s2n-quic", cubic)?;
    /// # Ok::<(), brakelight_registry::RegisterError>(())
    /// ```
    ///
    /// # Errors
    /// The name is malformed or taken.
    pub fn add_s2n_controller<E>(
        registry: &mut Registry,
        name: &'static str,
        summary: &'static str,
        endpoint: E,
    ) -> Result<(), RegisterError>
    where
        E: Endpoint<CongestionController: Sync>,
        <E::CongestionController as CongestionController>::PacketInfo: Sync,
    {
        registry.add_controller_factory(name, summary, Arc::new(super::s2n::Alone::new(endpoint)))
    }
}
