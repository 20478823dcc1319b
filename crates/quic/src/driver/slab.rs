//! The payloads of packets on their way, which are too long to travel inside a simulated packet.

use bytes::Bytes;

/// The slot of a payload in the slab, with the slot's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    /// The place.
    pub slot: u32,
    /// How often the place has been used before.
    pub generation: u32,
}

/// Payloads by handle.
#[derive(Debug, Default)]
pub(super) struct Slab {
    entries: Vec<(u32, Option<Bytes>)>,
    free: Vec<u32>,
}

impl Slab {
    pub(super) fn insert(&mut self, payload: Bytes) -> Handle {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[slot as usize];
        entry.1 = Some(payload);
        Handle { slot, generation: entry.0 }
    }

    /// The payload, unless it is gone.
    pub(super) fn get(&self, handle: Handle) -> Option<Bytes> {
        let (generation, payload) = self.entries.get(handle.slot as usize)?;
        payload.clone().filter(|_| *generation == handle.generation)
    }

    /// Lets go of the payload.
    pub(super) fn remove(&mut self, handle: Handle) {
        if let Some((generation, payload)) = self.entries.get_mut(handle.slot as usize)
            && *generation == handle.generation
            && payload.take().is_some()
        {
            *generation = generation.wrapping_add(1);
            self.free.push(handle.slot);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_outlives_its_payload_without_finding_the_next_one() {
        let mut slab = Slab::default();
        let first = slab.insert(Bytes::from_static(b"first"));
        assert_eq!(slab.get(first), Some(Bytes::from_static(b"first")));
        slab.remove(first);
        slab.remove(first);
        let second = slab.insert(Bytes::from_static(b"second"));
        assert_eq!((second.slot, slab.get(first), slab.len()), (first.slot, None, 1));
        slab.remove(first);
        assert_eq!(slab.get(second), Some(Bytes::from_static(b"second")));
    }
}
