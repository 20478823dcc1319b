//! The memory packets wait in: slots of equal size that are taken and given back, so that a packet costs no
//! allocation.
//!
//! Memory is taken from the system in blocks of 512 slots as the number of packets under way grows, and kept.
//! A slot may be shared by a packet and its copies.

/// Slots in one block.
const BLOCK: usize = 512;

/// Slots for packets.
#[derive(Debug)]
pub struct Slots {
    size: usize,
    most: usize,
    blocks: Vec<Box<[u8]>>,
    /// Those not in use; the one given back last is taken first, for it is still in the cache.
    free: Vec<u32>,
    /// Number of packets in each slot.
    holders: Vec<u32>,
}

impl Slots {
    /// Returns the slots of `size` bytes each, at most `most` of them.
    pub fn new(size: usize, most: usize) -> Self {
        Slots { size, most, blocks: Vec::new(), free: Vec::new(), holders: Vec::new() }
    }

    /// Returns a free slot; `None` if all are in use.
    pub fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop()?;
        self.holders[slot as usize] = 1;
        Some(slot)
    }

    #[cold]
    fn grow(&mut self) {
        let have = self.holders.len();
        let more = BLOCK.min(self.most - have);
        if more == 0 {
            return;
        }
        self.blocks.push(vec![0; more * self.size].into_boxed_slice());
        self.holders.resize(have + more, 0);
        self.free.extend((have as u32..(have + more) as u32).rev());
    }

    /// Counts one more packet in `slot`, which is in use.
    pub fn share(&mut self, slot: u32) {
        let holders = &mut self.holders[slot as usize];
        debug_assert!(*holders > 0, "slot {slot} is free");
        *holders += 1;
    }

    /// Returns whether more than one packet is in `slot`.
    pub fn is_shared(&self, slot: u32) -> bool {
        self.holders[slot as usize] > 1
    }

    /// Counts one packet less in `slot`, and frees it after the last.
    pub fn give_back(&mut self, slot: u32) {
        let holders = &mut self.holders[slot as usize];
        debug_assert!(*holders > 0, "slot {slot} was free");
        *holders -= 1;
        if *holders == 0 {
            self.free.push(slot);
        }
    }

    /// Returns the bytes of a slot, read-only.
    pub fn look(&self, slot: u32) -> &[u8] {
        let (block, place) = (slot as usize / BLOCK, slot as usize % BLOCK);
        &self.blocks[block][place * self.size..][..self.size]
    }

    /// Returns the bytes of a slot.
    pub fn bytes(&mut self, slot: u32) -> &mut [u8] {
        let (block, place) = (slot as usize / BLOCK, slot as usize % BLOCK);
        &mut self.blocks[block][place * self.size..][..self.size]
    }

    /// Returns the slots in use.
    pub fn in_use(&self) -> usize {
        self.holders.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_packets_share_a_slot_unless_they_are_copies() {
        let mut slots = Slots::new(64, 1300);
        let all: Vec<u32> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(all.len(), 1300);
        assert_eq!(slots.in_use(), 1300);
        for &slot in &all {
            slots.bytes(slot).fill(slot as u8);
        }
        for &slot in &all {
            assert!(
                slots.bytes(slot).iter().all(|&byte| byte == slot as u8),
                "slot {slot} was written by another"
            );
        }
        slots.share(all[700]);
        assert!(slots.is_shared(all[700]));
        slots.give_back(all[700]);
        assert!(!slots.is_shared(all[700]));
        assert_eq!(slots.take(), None);
        slots.give_back(all[700]);
        assert_eq!(slots.take(), Some(all[700]));
    }
}
