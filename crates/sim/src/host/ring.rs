//! A window over an endless sequence: items at consecutive numbers, added at the top and retired at the
//! bottom.

use std::ops::{Index, IndexMut};

/// Items numbered from [`Ring::base`] upwards. The place of an item is its number modulo a power of two.
#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    base: u32,
    end: u32,
    /// As many places as a power of two, or none.
    items: Vec<T>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { base: 0, end: 0, items: Vec::new() }
    }
}

impl<T: Copy> Ring<T> {
    /// The number of the oldest item, or of the next one where there is none.
    #[inline]
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// The number the next item will get.
    #[inline]
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.base == self.end
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        number as usize & self.items.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        if (self.end - self.base) as usize == self.items.len() {
            self.grow(item);
        }
        let place = self.place(self.end);
        self.items[place] = item;
        self.end += 1;
    }

    /// Doubles the places; those without an item hold `filler`.
    #[cold]
    fn grow(&mut self, filler: T) {
        let places = (2 * self.items.len()).max(4);
        let mut items = vec![filler; places];
        for number in self.base..self.end {
            items[number as usize & (places - 1)] = self[number];
        }
        self.items = items;
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        self.get(self.base)
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        if number < self.base || number >= self.end { None } else { self.items.get(self.place(number)) }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        if number < self.base || number >= self.end {
            return None;
        }
        let place = self.place(number);
        self.items.get_mut(place)
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        let item = *self.front()?;
        self.base += 1;
        Some(item)
    }

    /// Empties the ring, whose next item will be number `base`.
    pub(super) fn restart(&mut self, base: u32) {
        self.base = base;
        self.end = base;
    }
}

impl<T: Copy> Index<u32> for Ring<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        debug_assert!(self.base <= number && number < self.end);
        &self.items[self.place(number)]
    }
}

impl<T: Copy> IndexMut<u32> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        debug_assert!(self.base <= number && number < self.end);
        let place = self.place(number);
        &mut self.items[place]
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
                for (offset, value) in model.iter().enumerate() {
                    prop_assert_eq!(ring[base + offset as u32], *value);
                }
                prop_assert_eq!(ring.get(ring.end()), None);
                prop_assert_eq!(ring.get(base.wrapping_sub(1)), None);
            }
        }
    }
}
