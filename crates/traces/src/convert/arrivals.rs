//! Packets that arrived, made into opportunities: one as soon as the bytes of one are there.

use brakelight_core::units::Bytes;
use brakelight_links::trace::Trace;

use super::{ConvertError, check_size};

/// When packets arrived, and how long they were.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Nanoseconds of any origin, and bytes with the IP header.
    packets: Vec<(i128, u32)>,
}

impl Arrivals {
    /// Adds a packet; they may come in any order.
    pub(super) fn push(&mut self, nanos: i128, bytes: u32) {
        self.packets.push((nanos, bytes));
    }

    /// Returns `true` if there is no packet.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the trace, which begins at the first packet, in milliseconds and in microseconds. Fails if
    /// there is no packet, which is told as `what`.
    pub(super) fn trace(
        mut self,
        opportunity: Bytes,
        what: &'static str,
    ) -> Result<(Trace, Trace), ConvertError> {
        // Several queues of one adapter may deliver slightly out of order.
        self.packets.sort_by_key(|(nanos, _)| *nanos);
        let (Some(&(first, _)), Some(&(last, _))) = (self.packets.first(), self.packets.last()) else {
            return Err(ConvertError::Empty(what));
        };
        let total: f64 = self.packets.iter().map(|(_, bytes)| f64::from(*bytes)).sum();
        check_size((last - first) as f64 * 1e-9, total / opportunity.as_f64())?;
        if total < opportunity.as_f64() {
            return Err(ConvertError::Silent(opportunity));
        }
        let due = || {
            let mut bytes = 0;
            self.packets.iter().map(move |&(nanos, length)| {
                bytes += u64::from(length);
                let due = bytes / opportunity.0;
                bytes %= opportunity.0;
                ((nanos - first) as u64 / 1_000, due as u32)
            })
        };
        let stamps = due().flat_map(|(micros, due)| std::iter::repeat_n(micros / 1_000, due as usize));
        let trace = Trace::from_millis(stamps)?;
        Ok((trace, Trace::from_micros(due())?))
    }
}
