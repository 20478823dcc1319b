//! Queues that grow by a quarter, and give back what they needed once. Doubling leaves a quarter of all room
//! empty on average, and a run of ten thousand flows is made of queues.

use alloc::collections::VecDeque;

/// Least number of places that are added.
const LEAST: usize = 8;

/// Adds `item` behind the others. Where there is no room, makes a quarter more.
#[inline]
pub fn push_back<T>(items: &mut VecDeque<T>, item: T) {
    if items.len() == items.capacity() {
        grow(items);
    }
    items.push_back(item);
}

#[cold]
fn grow<T>(items: &mut VecDeque<T>) {
    items.reserve_exact((items.len() / 4).max(LEAST));
}

/// Gives back room if more than half of it is empty.
#[inline]
pub fn trim<T>(items: &mut VecDeque<T>) {
    if items.len() < items.capacity() / 2 && items.capacity() > 2 * LEAST {
        shrink(items);
    }
}

#[cold]
fn shrink<T>(items: &mut VecDeque<T>) {
    items.shrink_to(items.len() + (items.len() / 4).max(LEAST));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_quarter_of_the_room_is_empty() {
        let mut items = VecDeque::new();
        for item in 0..10_000 {
            push_back(&mut items, item);
            assert!(items.capacity() <= (items.len() + items.len() / 4).max(items.len() + LEAST), "{item}");
        }
        assert!(items.iter().copied().eq(0..10_000));
    }

    #[test]
    fn what_is_trimmed_is_small_or_half_full() {
        let mut items = VecDeque::new();
        (0..10_000).for_each(|item| push_back(&mut items, item));
        for item in 0..10_000 {
            assert_eq!(items.pop_front(), Some(item));
            trim(&mut items);
            assert!(items.capacity() <= (2 * items.len() + 1).max(2 * LEAST), "{item}");
        }
    }
}
