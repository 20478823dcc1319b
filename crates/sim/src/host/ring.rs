//! A window over an endless sequence: items at consecutive numbers, added at the top and retired at the
//! bottom.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use brakelight_core::frugal;

/// Items numbered from [`Ring::base`] upwards.
#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    base: u32,
    items: VecDeque<T>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { base: 0, items: VecDeque::new() }
    }
}

impl<T> Ring<T> {
    /// The number of the oldest item, or of the next one where there is none.
    #[inline]
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// The number the next item will get.
    #[inline]
    pub(super) fn end(&self) -> u32 {
        self.base + self.items.len() as u32
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        frugal::push_back(&mut self.items, item);
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        self.items.front()
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.items.get(number.wrapping_sub(self.base) as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.items.get_mut(number.wrapping_sub(self.base) as usize)
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.base += 1;
        Some(item)
    }

    /// All items, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut()
    }

    /// Gives back room that was needed once.
    #[inline]
    pub(super) fn trim(&mut self) {
        frugal::trim(&mut self.items);
    }

    /// Empties the ring, whose next item will be number `base`.
    pub(super) fn restart(&mut self, base: u32) {
        self.base = base;
        self.items.clear();
    }
}

impl<T> Index<u32> for Ring<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.items[number.wrapping_sub(self.base) as usize]
    }
}

impl<T> IndexMut<u32> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.items[number.wrapping_sub(self.base) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_queue(start in 0_u32..1000, steps in proptest::collection::vec((any::<bool>(), any::<u32>()), 0..200)) {
            let mut ring = Ring::default();
            ring.restart(start);
            let mut model = VecDeque::new();
            let mut base = start;
            for (push, value) in steps {
                if push {
                    ring.push(value);
                    model.push_back(value);
                } else {
                    let popped = model.pop_front();
                    base += u32::from(popped.is_some());
                    prop_assert_eq!(ring.pop_front(), popped);
                }
                prop_assert_eq!((ring.base(), ring.end()), (base, base + model.len() as u32));
                prop_assert!(ring.iter().eq(&model));
                for (offset, value) in model.iter().enumerate() {
                    prop_assert_eq!(ring[base + offset as u32], *value);
                }
                prop_assert_eq!(ring.get(ring.end()), None);
                prop_assert_eq!(ring.get(base.wrapping_sub(1)), None);
            }
        }
    }
}
