//! The payloads of packets on their way, which are too long to travel inside a simulated packet.

/// Payloads by slot. A slot is used again once its payload is gone; its generation then rises.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    used: bool,
    bytes: Vec<u8>,
}

impl Payloads {
    /// Keeps a copy of `payload`. Returns its slot and generation.
    pub(super) fn insert(&mut self, payload: &[u8]) -> (u32, u32) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[place as usize];
        slot.used = true;
        slot.bytes.clear();
        slot.bytes.extend_from_slice(payload);
        (place, slot.generation)
    }

    /// Returns whether none is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Writes the payload into `into`, and keeps it. Returns `false` if it is gone.
    pub(super) fn copy(&self, place: u32, generation: u32, into: &mut Vec<u8>) -> bool {
        into.clear();
        let slot = self.slots.get(place as usize).filter(|slot| slot.used && slot.generation == generation);
        slot.inspect(|slot| into.extend_from_slice(&slot.bytes)).is_some()
    }

    /// Lets go of the payload, if it is there.
    pub(super) fn remove(&mut self, place: u32, generation: u32) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        if slot.used && slot.generation == generation {
            slot.used = false;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_used_again_does_not_answer_to_its_old_generation() {
        let mut payloads = Payloads::default();
        let mut out = Vec::new();
        let (place, first) = payloads.insert(b"first");
        assert!(payloads.copy(place, first, &mut out) && out == b"first");
        assert!(!payloads.is_empty());
        payloads.remove(place, first);
        payloads.remove(place, first);
        assert!(payloads.is_empty());
        let (again, second) = payloads.insert(b"second");
        assert_eq!(place, again);
        assert!(!payloads.copy(place, first, &mut out) && out.is_empty());
        assert!(payloads.copy(place, second, &mut out) && out == b"second");
    }
}
