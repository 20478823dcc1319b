//! One place decides how many items of work go on at once.

use crate::error::Error;

/// What `act` makes of every item, in their order. After a failure no further item is begun.
#[cfg(feature = "parallel")]
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Result<Vec<R>, Error> {
    use rayon::prelude::*;
    items.par_iter().map(act).collect()
}

/// What `act` makes of every item, in their order. After a failure no further item is begun.
#[cfg(not(feature = "parallel"))]
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Result<Vec<R>, Error> {
    items.iter().map(act).collect()
}
