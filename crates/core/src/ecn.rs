//! The two ECN bits of the IP header, and the meanings that different schemes give them.

use core::fmt;

/// The ECN field of a packet (RFC 3168 section 5), named as there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// 00: the transport does not speak ECN.
    #[default]
    NotEct = 0b00,
    /// 01: ABC's accelerate; L4S's identifier.
    Ect1 = 0b01,
    /// 10: what classic ECN senders set; ABC's brake.
    Ect0 = 0b10,
    /// 11: congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the codepoint of the two low bits of `bits`.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Returns whether a router may mark instead of drop.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// What a flow means by its ECN bits. ABC, BMCC and L4S give ECT(1) different meanings (open-questions#X-48),
/// so a queue says which encodings it speaks and a scenario that mixes them is refused before it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Encoding {
    /// The flow sends Not-ECT.
    #[default]
    None,
    /// RFC 3168: ECT(0), and CE for congestion.
    Classic,
    /// ABC, legacy-compatible: 01 accelerate, 10 brake, 11 congestion (abc20 section 4.2).
    Abc,
    /// ABC behind a proxy: 01 or 10 accelerate, 11 brake (abc20 section 4.2, last paragraph).
    AbcProxied,
    /// BMCC: 10 unmarked, 01 load above the packet's hash, 11 overload.
    Bmcc,
    /// L4S: ECT(1) identifies, CE at a shallow threshold (RFC 9331).
    L4s,
    /// A congestion header of the scheme's own, beside an ECN field of Not-ECT: XCP, RCP, E-ABC, VCP, MLCP.
    Explicit,
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::None => "none",
            Encoding::Classic => "classic",
            Encoding::Abc => "abc",
            Encoding::AbcProxied => "abc-proxied",
            Encoding::Bmcc => "bmcc",
            Encoding::L4s => "l4s",
            Encoding::Explicit => "explicit",
        })
    }
}

/// What the network told the sender about one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Mark {
    /// Nothing: Not-ECT, or an ECN-capable packet that no router touched and whose scheme reads nothing into
    /// it.
    #[default]
    None,
    /// ABC: send two packets for this one.
    Accelerate,
    /// ABC: send none for this one.
    Brake,
    /// Congestion experienced.
    Ce,
}

impl Encoding {
    /// Returns the codepoint a sender of this encoding puts on its data.
    pub const fn sent(self) -> Ecn {
        match self {
            Encoding::None | Encoding::Explicit => Ecn::NotEct,
            Encoding::Classic | Encoding::Bmcc => Ecn::Ect0,
            Encoding::Abc | Encoding::AbcProxied | Encoding::L4s => Ecn::Ect1,
        }
    }

    /// Returns what `ecn` on an arriving packet says in this encoding. BMCC reads more than a mark: see its
    /// receiver.
    pub const fn mark(self, ecn: Ecn) -> Mark {
        match (self, ecn) {
            (Encoding::Abc, Ecn::Ect1) | (Encoding::AbcProxied, Ecn::Ect1 | Ecn::Ect0) => Mark::Accelerate,
            (Encoding::Abc, Ecn::Ect0) | (Encoding::AbcProxied, Ecn::Ce) => Mark::Brake,
            (Encoding::Abc | Encoding::Classic | Encoding::L4s | Encoding::Bmcc, Ecn::Ce) => Mark::Ce,
            _ => Mark::None,
        }
    }
}
