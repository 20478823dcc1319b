//! One place decides how many items of work go on at once.

#[cfg(feature = "parallel")]
use std::collections::BTreeMap;
#[cfg(feature = "parallel")]
use std::sync::{Mutex, PoisonError};

use crate::error::Error;

/// What `act` makes of every item, in their order. After a failure no further item is begun.
#[cfg(feature = "parallel")]
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Result<Vec<R>, Error> {
    map_longest_first(items, |_| 0.0, act)
}

/// More than any machine has processors for work of this kind.
#[cfg(feature = "parallel")]
const MOST_THREADS: usize = 256;

/// rayon makes as many threads as RAYON_NUM_THREADS says, were it 65,536: they would take the memory and
/// minutes. A pool that stands already stays.
#[cfg(feature = "parallel")]
fn bound_threads() {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse::<usize>().ok());
    if asked.is_some_and(|threads| threads > MOST_THREADS) {
        let _ = rayon::ThreadPoolBuilder::new().num_threads(MOST_THREADS).build_global();
    }
}

/// What `act` makes of every item, in their order. After a failure no further item is begun.
#[cfg(not(feature = "parallel"))]
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Result<Vec<R>, Error> {
    items.iter().map(act).collect()
}

/// The same as [`map`], but items are begun in the order of their `cost`, the highest first: what takes long
/// is not left for the end, when other threads have nothing to do.
#[cfg(feature = "parallel")]
pub(crate) fn map_longest_first<T: Sync, R: Send>(
    items: &[T],
    cost: impl Fn(&T) -> f64,
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Result<Vec<R>, Error> {
    use rayon::prelude::*;
    bound_threads();
    let mut order: Vec<(usize, f64)> = items.iter().map(cost).enumerate().collect();
    order.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    // A thread takes the next item whenever it has none. An iterator by place would hand out halves instead,
    // and a thread would be left with many items while others have none.
    let made = order.into_iter().par_bridge().map(|(place, _)| Ok((place, act(&items[place])?)));
    let mut made = made.collect::<Result<Vec<(usize, R)>, Error>>()?;
    made.sort_by_key(|(place, _)| *place);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}

/// The same as [`map`]: one after the other no order is shorter than another.
#[cfg(not(feature = "parallel"))]
pub(crate) fn map_longest_first<T: Sync, R: Send>(
    items: &[T],
    _: impl Fn(&T) -> f64,
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Result<Vec<R>, Error> {
    map(items, act)
}

/// No item is begun that is this many places behind the next one to be handed over: so many results may wait
/// in memory for one before them.
#[cfg(feature = "parallel")]
const MOST_AHEAD: usize = 256;

/// Hands what `act` makes of every item to `sink`: in their order, and as soon as all items before it are
/// done. After a failure no further item is begun; what was made of the items before the one that failed is
/// handed over.
#[cfg(feature = "parallel")]
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
    sink: &mut (dyn FnMut(R) -> Result<(), Error> + Send),
) -> Result<(), Error> {
    bound_threads();
    let order = Mutex::new(Order {
        items: items.len(),
        begun: 0,
        handed: 0,
        waiting: BTreeMap::new(),
        idle: 0,
        sink,
        failed: None,
    });
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|scope| work(scope, items, &act, &order));
        }
    });
    order.into_inner().unwrap_or_else(PoisonError::into_inner).failed.map_or(Ok(()), Err)
}

/// Acts on one item after the other until there is none to begin.
#[cfg(feature = "parallel")]
fn work<'scope, T: Sync, R: Send>(
    scope: &rayon::Scope<'scope>,
    items: &'scope [T],
    act: &'scope (impl Fn(&T) -> Result<R, Error> + Sync + Send),
    order: &'scope Mutex<Order<'_, R>>,
) {
    let lock = || order.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(place) = { lock().begin() } {
        let made = act(&items[place]);
        let idle = { lock().end(place, made) };
        // No thread waits for room: those that found none stopped, and there may be some now.
        for _ in 0..idle {
            scope.spawn(|scope| work(scope, items, act, order));
        }
    }
}

/// Which items of [`each`] are begun, done and handed over.
#[cfg(feature = "parallel")]
struct Order<'sink, R> {
    items: usize,
    /// The item to be begun next.
    begun: usize,
    /// The item to be handed over next.
    handed: usize,
    /// What is done before its turn.
    waiting: BTreeMap<usize, R>,
    /// Threads that found nothing to begin.
    idle: usize,
    sink: &'sink mut (dyn FnMut(R) -> Result<(), Error> + Send),
    /// The first failure.
    failed: Option<Error>,
}

#[cfg(feature = "parallel")]
impl<R> Order<'_, R> {
    /// The place of the next item, if it may be begun.
    fn begin(&mut self) -> Option<usize> {
        let last = self.items.min(self.handed + MOST_AHEAD);
        if self.failed.is_some() || self.begun >= last {
            self.idle += 1;
            return None;
        }
        self.begun += 1;
        Some(self.begun - 1)
    }

    /// Takes what was made of an item. Returns how many threads found nothing to begin before.
    fn end(&mut self, place: usize, made: Result<R, Error>) -> usize {
        if let Err(error) = made.and_then(|made| self.hand_over(place, made)) {
            self.failed.get_or_insert(error);
        }
        std::mem::take(&mut self.idle)
    }

    fn hand_over(&mut self, place: usize, made: R) -> Result<(), Error> {
        self.waiting.insert(place, made);
        while let Some(made) = self.waiting.remove(&self.handed) {
            (self.sink)(made)?;
            self.handed += 1;
        }
        Ok(())
    }
}

/// Hands what `act` makes of every item to `sink`, in their order. After a failure no further item is begun.
#[cfg(not(feature = "parallel"))]
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
    sink: &mut (dyn FnMut(R) -> Result<(), Error> + Send),
) -> Result<(), Error> {
    items.iter().try_for_each(|item| sink(act(item)?))
}

#[cfg(all(test, feature = "parallel"))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const FEW: u64 = 4;

    /// Runs in a pool of that many threads.
    fn with<R: Send>(threads: usize, act: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(act)
    }

    fn fails(at: u64) -> Error {
        Error::NoRun(at.to_string())
    }

    #[test]
    fn the_longest_is_begun_first_and_results_are_in_the_order_of_the_items() {
        let items = [3.0, 1.0, 9.0, f64::NAN, 3.0];
        let begun = Mutex::new(Vec::new());
        let act = |item: &f64| {
            begun.lock().unwrap().push(*item);
            Ok(item.to_bits())
        };
        let made = with(1, || map_longest_first(&items, |item| *item, act)).unwrap();
        assert_eq!(made, items.map(f64::to_bits));
        assert_eq!(format!("{:?}", begun.into_inner().unwrap()), "[NaN, 9.0, 3.0, 3.0, 1.0]");
        let many: Vec<u64> = (0..1000).collect();
        assert_eq!(
            with(4, || map_longest_first(&many, |item| *item as f64, |item| Ok(*item))).unwrap(),
            many
        );
    }

    #[test]
    fn a_failure_ends_the_work_on_what_was_to_follow() {
        let act = |item: &u64| if *item == 7 { Err(fails(7)) } else { Ok(*item) };
        let items: Vec<u64> = (0..10).collect();
        let error = with(2, || map_longest_first(&items, |item| -(*item as f64), act)).unwrap_err();
        assert_eq!(error.to_string(), fails(7).to_string());
    }

    #[test]
    fn items_are_handed_over_in_their_order_while_a_long_one_holds_them_back() {
        let items: Vec<u64> = (0..5 * MOST_AHEAD as u64).collect();
        // Those that may be done before the first.
        let (begun, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut handed = Vec::new();
        let act = |item: &u64| {
            begun.fetch_add(1, Ordering::SeqCst);
            // The first takes until as many others are done as may be.
            while *item == 0 && done.load(Ordering::SeqCst) < MOST_AHEAD - 1 {
                std::thread::yield_now();
            }
            if *item == 0 {
                assert_eq!(begun.load(Ordering::SeqCst), MOST_AHEAD);
            }
            done.fetch_add(1, Ordering::SeqCst);
            Ok(*item)
        };
        let mut sink = |item| {
            handed.push(item);
            Ok(())
        };
        with(4, || each(&items, act, &mut sink)).unwrap();
        assert_eq!(handed, items);
    }

    #[test]
    fn what_comes_before_an_item_that_failed_is_handed_over() {
        for failing in [0, 1, 9, FEW * MOST_AHEAD as u64 - 1] {
            let items: Vec<u64> = (0..FEW * MOST_AHEAD as u64).collect();
            let mut handed = Vec::new();
            let act = |item: &u64| if *item == failing { Err(fails(*item)) } else { Ok(*item) };
            let mut sink = |item| {
                handed.push(item);
                Ok(())
            };
            let error = with(4, || each(&items, act, &mut sink)).unwrap_err();
            assert_eq!(error.to_string(), fails(failing).to_string());
            assert_eq!(handed, items[..failing as usize]);
        }
    }

    #[test]
    fn nothing_is_begun_once_the_sink_has_failed() {
        let items: Vec<u64> = (0..FEW * MOST_AHEAD as u64).collect();
        let begun = AtomicUsize::new(0);
        let act = |item: &u64| {
            begun.fetch_add(1, Ordering::SeqCst);
            Ok(*item)
        };
        let mut taken = 0;
        let mut sink = |item| {
            taken += 1;
            if item == 5 { Err(fails(item)) } else { Ok(()) }
        };
        let error = with(1, || each(&items, act, &mut sink)).unwrap_err();
        assert_eq!(error.to_string(), fails(5).to_string());
        assert_eq!((taken, begun.into_inner()), (6, 6));
    }

    #[test]
    fn no_items_are_no_work() {
        let none: [u64; 0] = [];
        each(&none, |_| Ok(()), &mut |()| Ok(())).unwrap();
        assert_eq!(map_longest_first(&none, |_| 0.0, |item| Ok(*item)).unwrap(), none);
    }
}
