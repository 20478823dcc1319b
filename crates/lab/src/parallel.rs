//! One place decides how many items of work go on at once.

use crate::error::Error;

/// What `act` makes of every item, in their order. After a failure no further item is begun.
#[cfg(feature = "parallel")]
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Result<Vec<R>, Error> {
    use rayon::prelude::*;
    bound_threads();
    items.par_iter().map(act).collect()
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

/// Hands what `act` makes of every item to `sink`: in their order, and as soon as all items before it are
/// done. After a failure no further item is begun; what was made of the items before the one that failed is
/// handed over.
#[cfg(feature = "parallel")]
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
    sink: &mut (dyn FnMut(R) -> Result<(), Error> + Send),
) -> Result<(), Error> {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    use rayon::prelude::*;

    bound_threads();
    // The place of the item that is handed over next, and those that are done before their turn.
    let order = Mutex::new((0, BTreeMap::new(), sink));
    // Items are begun in their order, so those that wait for one before them are few.
    items.iter().enumerate().par_bridge().try_for_each(|(place, item)| {
        let made = act(item)?;
        let mut order = order.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, waiting, sink) = &mut *order;
        waiting.insert(place, made);
        while let Some(made) = waiting.remove(next) {
            *next += 1;
            sink(made)?;
        }
        Ok(())
    })
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
