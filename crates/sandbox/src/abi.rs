//! What a module exports, and the fields through which it is told and answers.
//!
//! A module has a buffer of [`BYTES`] bytes in its memory. Each [`Field`] of it is a number of 8 bytes, an
//! f64 in little-endian order, always at the same place. Before a call the fields of the event are written;
//! the others keep what they had. After the call the fields of the decision are read. Times are in seconds
//! since the run began, sizes in bytes of payload, and 0 stands for none.

/// The version of all this.
pub const VERSION: i32 = 1;

/// The export that returns [`VERSION`].
pub const ABI: &str = "brakelight_abi";
/// The export that returns the address of the buffer.
pub const BUFFER: &str = "brakelight_buffer";
/// The export that returns the sum of [`OWN_RECOVERY`] and [`ECN`], as they apply. A module need not have it.
pub const TRAITS: &str = "brakelight_traits";
/// The export that is the module's memory.
pub const MEMORY: &str = "memory";

/// Its window holds while losses are repaired, and no PRR shapes it.
pub const OWN_RECOVERY: i32 = 1;
/// Its packets are ECN-capable, and it hears of CE marks.
pub const ECN: i32 = 2;

/// The least time from [`ModuleEvent::Timer`] to the next, in nanoseconds: a run comes to an end whatever a
/// module asks for.
pub const LEAST_TIMER_NS: u64 = 1_000;

/// What a module is told: the functions that it exports, without parameters and results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModuleEvent {
    /// A flow begins.
    Init,
    /// An ACK that acknowledged, lost or said something.
    Ack,
    /// A loss starts a congestion episode: at most once per round trip.
    Loss,
    /// A CE mark starts one.
    Ce,
    /// A timer of loss recovery fired.
    Timeout,
    /// The last episode was a mistake: nothing was lost.
    SpuriousLoss,
    /// Every packet sent in the recovery period has been acknowledged.
    RecoveryExit,
    /// The flow sends again after an idle time.
    IdleRestart,
    /// The size of packets changed.
    MtuChange,
    /// The window was lowered, in its field.
    CapCwnd,
    /// The timer of the decision is due.
    Timer,
    /// A packet is about to leave.
    Send,
}

impl ModuleEvent {
    /// All of them.
    pub const ALL: [ModuleEvent; 12] = [
        ModuleEvent::Init,
        ModuleEvent::Ack,
        ModuleEvent::Loss,
        ModuleEvent::Ce,
        ModuleEvent::Timeout,
        ModuleEvent::SpuriousLoss,
        ModuleEvent::RecoveryExit,
        ModuleEvent::IdleRestart,
        ModuleEvent::MtuChange,
        ModuleEvent::CapCwnd,
        ModuleEvent::Timer,
        ModuleEvent::Send,
    ];

    /// Returns the name of the export that is called.
    pub const fn export(self) -> &'static str {
        match self {
            ModuleEvent::Init => "init",
            ModuleEvent::Ack => "on_ack",
            ModuleEvent::Loss => "on_loss",
            ModuleEvent::Ce => "on_ce",
            ModuleEvent::Timeout => "on_timeout",
            ModuleEvent::SpuriousLoss => "on_spurious_loss",
            ModuleEvent::RecoveryExit => "on_recovery_exit",
            ModuleEvent::IdleRestart => "on_idle_restart",
            ModuleEvent::MtuChange => "on_mtu_change",
            ModuleEvent::CapCwnd => "on_cap_cwnd",
            ModuleEvent::Timer => "on_timer",
            ModuleEvent::Send => "on_send",
        }
    }

    /// Returns whether a module must have it. Without `on_ce` a mark is told as a loss.
    pub const fn is_required(self) -> bool {
        matches!(self, ModuleEvent::Init | ModuleEvent::Ack | ModuleEvent::Loss | ModuleEvent::Timeout)
    }
}

/// Declares the fields of the buffer, in their order.
macro_rules! fields {
    ($($Field:ident $name:literal $unit:literal $meaning:literal;)*) => {
        /// A number in the buffer.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Field {
            $(#[doc = $meaning] $Field,)*
        }

        impl Field {
            /// All of them, in their order.
            pub const ALL: &[Field] = &[$(Field::$Field),*];

            /// Returns its name, its unit and its meaning.
            pub const fn about(self) -> (&'static str, &'static str, &'static str) {
                match self {
                    $(Field::$Field => ($name, $unit, $meaning),)*
                }
            }
        }
    };
}

fields! {
    Mss "mss" "bytes" "largest payload of a packet";
    Overhead "overhead" "bytes" "headers that each packet has besides";
    InitialWindow "initial_window" "bytes" "the window before the first ACK";
    Seed "seed" "" "a whole number below 2^53, for random numbers of one's own";
    Cwnd "cwnd" "bytes" "decision: how much may be in flight";
    PacingRate "pacing_rate" "bytes/s" "decision: how fast to send; 0 leaves it to the host";
    NextTimer "next_timer" "s" "decision: when to call `on_timer`; 0 for never";
    Ssthresh "ssthresh" "bytes" "decision: where slow start ends, for plots; 0 for none";
    Now "now" "s" "the time";
    Inflight "inflight" "bytes" "in flight: after an ACK, before a loss, a timeout or a packet";
    Srtt "srtt" "s" "smoothed RTT";
    MinRtt "min_rtt" "s" "smallest RTT of the connection";
    Rtt "rtt" "s" "the ACK's sample of the RTT; 0 without one";
    RttVariation "rtt_variation" "s" "mean deviation of the RTT";
    NewlyAcked "newly_acked" "bytes" "newly acknowledged";
    Growth "growth" "bytes" "the part of `newly_acked` by which a window may grow";
    NewlyLost "newly_lost" "bytes" "newly declared lost";
    InflightBefore "inflight_before" "bytes" "in flight just before the ACK";
    Delivered "delivered" "bytes" "delivered since the connection began";
    TotalLost "total_lost" "bytes" "lost since the connection began";
    AckDelay "ack_delay" "s" "how long the receiver held the ACK back, where it says so";
    Round "round" "" "round trips so far";
    RoundStart "round_start" "0 or 1" "whether this ACK began a round trip";
    CwndLimited "cwnd_limited" "0 or 1" "whether the window was the limit in the last round trip";
    Recovery "recovery" "" "0 open, 1 fast recovery, 2 after a timeout";
    CePackets "ce_packets" "packets" "that came back with a CE mark";
    CeBytes "ce_bytes" "bytes" "that came back with a CE mark";
    PacketSentAt "packet_sent_at" "s" "the newest packet acknowledged: when it was sent; 0 without one";
    PacketDelivered "packet_delivered" "bytes" "the same: `delivered` when it was sent";
    PacketDeliveredAt "packet_delivered_at" "s" "the same: when the last of those was acknowledged";
    PacketInflight "packet_inflight" "bytes" "the same: in flight when it was sent, itself included";
    PacketAppLimited "packet_app_limited" "0 or 1" "the same: whether the application was the limit then";
    SentAt "sent_at" "s" "when the newest lost or marked packet was sent";
    Kind "kind" "" "1 retransmission timeout, 2 probe timeout, 3 persistent congestion";
    Repeated "repeated" "0 or 1" "whether the same data timed out before";
    AfterTimeout "after_timeout" "0 or 1" "whether the mistaken episode began with a timeout";
    Idle "idle" "s" "how long ago the last packet was sent";
    Rto "rto" "s" "the retransmission timeout";
    Size "size" "bytes" "payload of the packet";
    Number "number" "" "the packet's number";
    Retransmission "retransmission" "0 or 1" "whether its payload was sent before";
    AppLimited "app_limited" "0 or 1" "whether there was nothing else to send";
}

impl Field {
    /// Returns its place in the buffer, in bytes.
    pub const fn offset(self) -> usize {
        self as usize * 8
    }
}

/// The size of the buffer.
pub const BYTES: usize = Field::ALL.len() * 8;
