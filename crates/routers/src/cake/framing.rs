//! What a packet costs on the link behind the shaper (cake18 III-A): headers that the link adds, its smallest
//! packet, and cells or symbols that it cuts packets into.
//!
//! ```text
//! size = max(size + overhead, mpu)
//! atm:   53 bytes per cell of 48, the last one padded                              ITU-T I.361
//! ptm:   one byte more per 64, or part thereof                                 IEEE 802.3 61.3.3: 64b/65b
//! ```

choices! {
    /// How the link cuts packets up.
    pub enum Framing {
        /// It does not.
        Noatm = "noatm",
        /// Into ATM cells.
        Atm = "atm",
        /// Into PTM's blocks of 64 and 65 bytes.
        Ptm = "ptm",
    }
}

/// Declares the keywords with what each stands for.
macro_rules! link_layers {
    ($( $(#[doc = $doc:literal])+ $Variant:ident = $text:literal, ($framing:ident, $overhead:literal, $mpu:literal); )+) => {
        choices! {
            /// A kind of link, by tc-cake(8)'s keyword.
            pub enum LinkLayer {
                $( $(#[doc = $doc])+ $Variant = $text, )+
            }
        }

        impl LinkLayer {
            /// Returns framing, overhead in bytes, and the smallest packet in bytes.
            pub(super) const fn costs(self) -> (Framing, i32, u32) {
                match self {
                    $( LinkLayer::$Variant => (Framing::$framing, $overhead, $mpu), )+
                }
            }
        }
    };
}

// tc-cake(8), overhead compensation; iproute2 tc/q_cake.c
link_layers! {
    /// Packets as they are at the IP layer.
    Raw = "raw", (Noatm, 0, 0);
    /// Safe where the link is not known: a whole ATM cell.
    Conservative = "conservative", (Atm, 48, 0);
    /// IP over ATM, VC-multiplexed.
    IpoaVcmux = "ipoa-vcmux", (Atm, 8, 0);
    /// IP over ATM, LLC/SNAP.
    IpoaLlcsnap = "ipoa-llcsnap", (Atm, 16, 0);
    /// Bridged Ethernet over ATM, VC-multiplexed.
    BridgedVcmux = "bridged-vcmux", (Atm, 24, 0);
    /// Bridged Ethernet over ATM, LLC/SNAP.
    BridgedLlcsnap = "bridged-llcsnap", (Atm, 32, 0);
    /// PPP over ATM, VC-multiplexed.
    PppoaVcmux = "pppoa-vcmux", (Atm, 10, 0);
    /// PPP over ATM, LLC.
    PppoaLlc = "pppoa-llc", (Atm, 14, 0);
    /// PPP over Ethernet over ATM, VC-multiplexed.
    PppoeVcmux = "pppoe-vcmux", (Atm, 32, 0);
    /// PPP over Ethernet over ATM, LLC/SNAP.
    PppoeLlcsnap = "pppoe-llcsnap", (Atm, 40, 0);
    /// PPP over Ethernet on VDSL2.
    PppoePtm = "pppoe-ptm", (Ptm, 30, 0);
    /// Bridged Ethernet on VDSL2.
    BridgedPtm = "bridged-ptm", (Ptm, 22, 0);
    /// Ethernet with preamble, frame check and gap.
    Ethernet = "ethernet", (Noatm, 38, 84);
    /// A cable modem: an Ethernet frame with its check.
    Docsis = "docsis", (Noatm, 18, 64);
}

/// What packets cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    pub(super) framing: Framing,
    pub(super) overhead: i32,
    pub(super) mpu: u32,
}

impl Costs {
    /// Returns what a packet of `size` bytes at the IP layer takes of the link, in bytes.
    pub(super) fn of(&self, size: u32) -> u32 {
        let framed = (i64::from(size) + i64::from(self.overhead)).max(i64::from(self.mpu));
        let framed = framed.clamp(0, i64::from(u32::MAX / 2)) as u32;
        match self.framing {
            Framing::Noatm => framed,
            Framing::Atm => framed.div_ceil(48) * 53,
            Framing::Ptm => framed + framed.div_ceil(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(layer: LinkLayer) -> Costs {
        let (framing, overhead, mpu) = layer.costs();
        Costs { framing, overhead, mpu }
    }

    #[test]
    fn packets_cost_what_their_link_adds() {
        assert_eq!([40, 1500].map(|size| costs(LinkLayer::Raw).of(size)), [40, 1500]);
        // 40 + 10 bytes are two cells; 1500 + 10 are 31.46.
        assert_eq!([40, 1500].map(|size| costs(LinkLayer::PppoaVcmux).of(size)), [106, 32 * 53]);
        // 1530 bytes and 24 for as many blocks of 64.
        assert_eq!([40, 1500].map(|size| costs(LinkLayer::PppoePtm).of(size)), [72, 1554]);
        assert_eq!([40, 46, 47, 1500].map(|size| costs(LinkLayer::Docsis).of(size)), [64, 64, 65, 1518]);
        assert_eq!([40, 46, 47, 1500].map(|size| costs(LinkLayer::Ethernet).of(size)), [84, 84, 85, 1538]);
        let less = Costs { overhead: -20, ..costs(LinkLayer::Raw) };
        assert_eq!([10, 40].map(|size| less.of(size)), [0, 20]);
    }
}
