//! Small processes that outlive this one by a moment: one makes the machine's forwarding as it was, one
//! removes files that will never be whole. They hold a pidfd and wake up when this process ends, in whatever
//! way. Only a kill of both leaves something behind.

use std::ffi::OsStr;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, setsid};

use crate::invoker::AsInvoker;
use crate::nat::{NetworkLock, Table};
use crate::process::{close_all_but, never_returns};

/// How long to wait for another emulator that changes the network.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A process that runs an action once this process has ended, in whatever way.
#[derive(Debug)]
struct Survivor {
    pid: Pid,
    /// Pipe to the process.
    word: Option<PipeWriter>,
}

impl Survivor {
    /// Starts the process. `work` is given all that was written into the pipe.
    fn start(work: impl FnOnce(&[u8])) -> io::Result<Self> {
        let emulator = pidfd(getpid())?;
        let (mut heard, word) = io::pipe()?;
        let (mut ready, readied) = io::pipe()?;
        // SAFETY: there are no other threads, which might have held a lock at the fork (the allocator's, for
        // one): whoever calls this promises it. The child never returns.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => {
                drop((heard, readied));
                // One byte once an interrupt no longer reaches it.
                let _ = ready.read(&mut [0]);
                Ok(Survivor { pid: child, word: Some(word) })
            }
            ForkResult::Child => never_returns(|| {
                drop((word, ready));
                let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
                let _ = setsid();
                close_all_but(&[emulator.as_raw_fd(), heard.as_raw_fd(), readied.as_raw_fd()]);
                leave_standard_streams();
                let _ = (&readied).write(&[1]);
                drop(readied);
                let mut told = Vec::new();
                let mut buffer = [0; 4096];
                loop {
                    let mut fds = [
                        PollFd::new(emulator.as_fd(), PollFlags::POLLIN),
                        PollFd::new(heard.as_fd(), PollFlags::POLLIN),
                    ];
                    while poll(&mut fds, PollTimeout::NONE) == Err(nix::Error::EINTR) {}
                    // All other holders of the writing end are closed or gone with this process's parent; so
                    // this does not wait.
                    match heard.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(length) => told.extend_from_slice(&buffer[..length]),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
                work(&told);
                0
            }),
        }
    }

    fn tell(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.word.as_mut().map_or(Ok(()), |word| word.write_all(bytes))
    }

    fn end(&mut self) {
        if let Some(word) = self.word.take() {
            drop(word);
            while waitpid(self.pid, None) == Err(nix::Error::EINTR) {}
        }
    }
}

/// Restores forwarding.
#[derive(Debug)]
pub(crate) struct Supervisor {
    survivor: Survivor,
    /// Held until the network has been changed.
    lock: Option<NetworkLock>,
}

impl Supervisor {
    /// Has forwarding restored when this process ends or the returned value is dropped.
    pub(crate) fn start(table: &Table, lock: NetworkLock) -> io::Result<Self> {
        let survivor = Survivor::start(|_| {
            let _ = restore(table, PATIENCE);
        })?;
        Ok(Supervisor { survivor, lock: Some(lock) })
    }

    /// Releases the lock: the network has been changed, and the table tells other emulators so.
    pub(crate) fn give_way(&mut self) {
        self.lock = None;
    }
}

impl Drop for Supervisor {
    /// Waits until forwarding is restored.
    fn drop(&mut self) {
        self.give_way();
        self.survivor.end();
    }
}

/// Removes what this process was making if it is killed.
#[derive(Debug)]
pub struct Janitor(Survivor);

impl Janitor {
    /// Starts the process that removes, which has nothing to remove yet. Must be called before other threads
    /// are started.
    pub fn start() -> io::Result<Self> {
        Ok(Janitor(Survivor::start(|told| {
            let mut paths = newest(told).into_iter();
            if let Some(path) = paths.next() {
                remove(&path, &paths.collect::<Vec<_>>());
            }
        })?))
    }

    /// Has `path` removed if this process is killed from now on, and then those of `parents`, in this order,
    /// that are empty; in place of what was to be removed before. To be called before `path` is made.
    pub fn tell(&mut self, path: &Path, parents: &[PathBuf]) -> io::Result<()> {
        let paths: Vec<&Path> = std::iter::once(path).chain(parents.iter().map(PathBuf::as_path)).collect();
        self.0.tell(&message(&paths))
    }

    /// Has nothing removed from now on: all that was made is to stay, or is gone.
    pub fn forget(&mut self) {
        // If it cannot be told, it will not find what it should remove.
        let _ = self.0.tell(&message(&[]));
    }
}

impl Drop for Janitor {
    /// Ends the watch: what was made stays.
    fn drop(&mut self) {
        self.forget();
        self.0.end();
    }
}

/// Paths as they are told to a janitor: how many, then each with its length.
fn message(paths: &[&Path]) -> Vec<u8> {
    let mut bytes = (paths.len() as u32).to_ne_bytes().to_vec();
    for path in paths {
        let path = path.as_os_str().as_bytes();
        bytes.extend_from_slice(&(path.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(path);
    }
    bytes
}

/// The paths of the newest message that came whole: of one cut short by a kill, nothing has been made yet.
fn newest(mut told: &[u8]) -> Vec<PathBuf> {
    fn number(bytes: &mut &[u8]) -> Option<usize> {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u32::from_ne_bytes(*number) as usize)
    }
    fn paths(bytes: &mut &[u8]) -> Option<Vec<PathBuf>> {
        let count = number(bytes)?;
        let mut paths = Vec::new();
        for _ in 0..count {
            let length = number(bytes)?;
            let (path, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            paths.push(PathBuf::from(OsStr::from_bytes(path)));
        }
        Some(paths)
    }
    let mut newest = Vec::new();
    while let Some(paths) = paths(&mut told) {
        newest = paths;
    }
    newest
}

/// Removes a folder or file, and then those of `parents`, in this order, that are empty. Errors are ignored.
pub fn remove(path: &Path, parents: &[PathBuf]) {
    let _user = AsInvoker::begin();
    let _ = std::fs::remove_dir_all(path).or_else(|_| std::fs::remove_file(path));
    for parent in parents {
        let _ = std::fs::remove_dir(parent);
    }
}

/// Waits until the emulator's own table is gone, and restores forwarding unless another emulator still needs
/// it. If the lock cannot be had in time, it restores without: forwarding that stays on would be worse.
fn restore(table: &Table, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    loop {
        let lock = NetworkLock::take(until.saturating_duration_since(Instant::now())).ok();
        // Where tables cannot be read, none can have been made.
        let others = Table::all().unwrap_or_default();
        if !others.contains(table) || Instant::now() > until {
            return if others.iter().all(|other| other == table) { table.before.restore() } else { Ok(()) };
        }
        drop(lock);
        // The kernel is about to remove it: its owner is being killed.
        let _ = poll(&mut [], PollTimeout::from(1u8));
    }
}

/// A descriptor of a process, readable once the process has ended: pidfd_open(2).
fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Replaces the standard streams by /dev/null, because a pipeline may wait for their end.
fn leave_standard_streams() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::nat::Forwarding;
    use crate::sysctl::{get, set};

    /// Does something in a network of its own; says what was not run where none can be made.
    fn in_a_network(what: &str, test: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            let run = || {
                let made = unshare(CloneFlags::CLONE_NEWNET).is_ok();
                if made {
                    test();
                }
                made
            };
            if !scope.spawn(run).join().unwrap() {
                brakelight_testkit::skip(&format!("network: {what}"), "no network namespace can be made");
            }
        });
    }

    #[test]
    fn the_network_lock_has_one_holder_at_a_time() {
        in_a_network("network locks", || {
            let first = NetworkLock::take(Duration::ZERO).unwrap();
            assert_eq!(NetworkLock::take(Duration::ZERO).unwrap_err().kind(), io::ErrorKind::TimedOut);
            drop(first);
            drop(NetworkLock::take(PATIENCE).unwrap());
            // It is no emulator's table.
            let _lock = NetworkLock::take(PATIENCE).unwrap();
            assert_eq!(Table::all().unwrap(), []);
        });
    }

    #[test]
    fn forwarding_is_restored_though_the_network_lock_is_never_released() {
        in_a_network("a network lock that is never released", || {
            let _kept = NetworkLock::take(Duration::ZERO).unwrap();
            set("net/ipv4/ip_forward", "1").unwrap();
            let table = Table { token: 7, before: Forwarding { v4: false, v6: None } };
            restore(&table, Duration::from_millis(30)).unwrap();
            assert_eq!(get("net/ipv4/ip_forward").unwrap(), "0");
        });
    }

    #[test]
    fn a_janitor_goes_by_the_newest_message_that_came_whole() {
        let (first, second) = (message(&[Path::new("/a/b"), Path::new("/a")]), message(&[Path::new("/c")]));
        assert_eq!(newest(&[]), [] as [PathBuf; 0]);
        assert_eq!(newest(&first), [PathBuf::from("/a/b"), PathBuf::from("/a")]);
        assert_eq!(newest(&[first.clone(), second.clone()].concat()), [PathBuf::from("/c")]);
        for cut in 0..second.len() {
            assert_eq!(newest(&[&first, &second[..cut]].concat()).len(), 2, "cut at {cut}");
        }
        assert_eq!(newest(&[first, message(&[])].concat()), [] as [PathBuf; 0]);
    }

    #[test]
    fn what_was_moved_away_in_time_stays_with_the_folders_above_it() {
        let top = std::env::temp_dir().join(format!("brakelight-janitor-{}", std::process::id()));
        let parents = [top.join("a/b"), top.join("a"), top.clone()];
        let staging = top.join("a/b/.log.partial");
        // Killed before: nothing is left.
        std::fs::create_dir_all(staging.join("links")).unwrap();
        remove(&staging, &parents);
        assert!(!top.exists());
        // Killed between the move and the word that all is well.
        std::fs::create_dir_all(&staging).unwrap();
        std::fs::rename(&staging, top.join("a/b/log")).unwrap();
        remove(&staging, &parents);
        assert!(top.join("a/b/log").is_dir());
        std::fs::remove_dir_all(&top).unwrap();
    }
}
