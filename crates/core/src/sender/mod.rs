//! What every host does for its controller, whatever its wire format: the contract's half that is arithmetic.
//!
//! A controller is only as good as what it is told. A host that runs one keeps its scoreboard, detects losses
//! and builds packets in its own way; all that follows from there is done here, once:
//!
//! | module | holds |
//! |---|---|
//! | [`delivery`] | bytes in flight, delivered, lost; state per packet; application limits; round trips |
//! | [`rtt`] | filters over RTT samples (RFC 6298 as in Linux 6.12, RFC 9002) and the timeouts |
//! | [`pacer`] | when the next packet may leave: evenly spaced, or from a bucket of tokens |
//! | [`episode`] | one reaction per congestion episode: where it begins, what it covers, when it ends |
//! | [`usage`] | whether the window was needed, so that one that was not does not grow |
//! | [`checked`] | a controller around a controller that holds the host to the contract |
//!
//! What a host owes its controller is written where the events are defined: see
//! [`controller`](crate::controller#the-contract).

pub mod checked;
pub mod delivery;
mod delivery_rate;
pub mod episode;
pub mod pacer;
pub mod rtt;
pub mod usage;

pub use checked::{Checked, Violation};
pub use delivery::{Delivery, Snapshot};
pub use delivery_rate::RateSample;
pub use episode::{Episode, Phase};
pub use pacer::{Pacer, most_together};
pub use rtt::RttEstimator;
pub use usage::{Stop, Usage};
