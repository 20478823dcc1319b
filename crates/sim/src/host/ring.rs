//! A window over an endless sequence: items at consecutive numbers, added at the top and retired at the bottom.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

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
        self.items.push_back(item);
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        self.items.front()
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.items.get(number.checked_sub(self.base)? as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.items.get_mut(number.checked_sub(self.base)? as usize)
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.base += 1;
        Some(item)
    }

    /// Empties the ring, whose next item will be number `base`.
    pub(super) fn restart(&mut self, base: u32) {
        self.items.clear();
        self.base = base;
    }
}

impl<T> Index<u32> for Ring<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.items[(number - self.base) as usize]
    }
}

impl<T> IndexMut<u32> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.items[(number - self.base) as usize]
    }
}
