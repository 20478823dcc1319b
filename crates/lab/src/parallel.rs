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
