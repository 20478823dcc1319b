//! The emulated runs of pairs, several at a time: they last as long as they last, and each has a process of
//! its own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use brakelight_scenario::outcome::Run;

use super::Pair;
use crate::progress::Progress;

/// Returns `runs` emulated runs of every pair, in their order. `one` makes that of a pair with a number to be
/// added to its seed, in a thread of its own; `beside` of them go on at a time. After a failure none is
/// begun.
pub fn emulate<E: Send>(
    pairs: &[Pair],
    runs: u32,
    beside: u32,
    progress: &dyn Progress,
    one: impl Fn(&Pair, u32) -> Result<Run, E> + Sync,
) -> Result<Vec<Vec<Run>>, E> {
    let tasks: Vec<(usize, u32)> =
        (0..runs).flat_map(|seed| (0..pairs.len()).map(move |pair| (pair, seed))).collect();
    progress.begin("emulating", tasks.len());
    let done = side_by_side(&tasks, beside, |&(pair, seed)| {
        let run = one(&pairs[pair], seed);
        progress.step(&pairs[pair].label);
        run
    });
    let mut rows: Vec<Vec<Run>> = pairs.iter().map(|_| Vec::new()).collect();
    for (task, run) in done {
        rows[tasks[task].0].push(run?);
    }
    Ok(rows)
}

/// What `act` makes of each task, by the task's place, `beside` of them at a time. After a failure none is
/// begun.
fn side_by_side<T: Sync, R: Send, E: Send>(
    tasks: &[T],
    beside: u32,
    act: impl Fn(&T) -> Result<R, E> + Sync,
) -> Vec<(usize, Result<R, E>)> {
    let next = Mutex::new(tasks.iter().enumerate());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..beside {
            scope.spawn(|| {
                loop {
                    // A statement of its own: the lock is not to be held while the task goes on.
                    let task = lock(&next).next();
                    let Some((place, task)) = task else { break };
                    let one = act(task);
                    if one.is_err() {
                        // No use in minutes of more.
                        lock(&next).by_ref().for_each(drop);
                    }
                    lock(&done).push((place, one));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_on_side_by_side_and_end_with_the_first_that_fails() {
        let (going, met) = (Mutex::new(0), std::sync::Condvar::new());
        let met_another = |_: &u32| {
            *lock(&going) += 1;
            met.notify_all();
            let patience = std::time::Duration::from_secs(60);
            let waited = met.wait_timeout_while(lock(&going), patience, |going| *going < 2).unwrap();
            Ok::<_, &str>(!waited.1.timed_out())
        };
        let seen: Vec<bool> =
            side_by_side(&[1, 2], 2, met_another).into_iter().map(|(_, seen)| seen.unwrap()).collect();
        assert_eq!(seen, [true, true]);
        let fails = |task: &u32| if *task == 1 { Err("no") } else { Ok(()) };
        let tried = side_by_side(&[0, 1, 2, 3], 1, fails);
        assert_eq!(
            tried.iter().map(|(place, one)| (*place, one.is_ok())).collect::<Vec<_>>(),
            [(0, true), (1, false)]
        );
    }
}
