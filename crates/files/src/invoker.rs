//! Files on behalf of the user who called sudo: what root writes where a user chose the place is checked as
//! that user's doing, and his.
//!
//! Files of other users that a link leads to, folders he may not write to: what he could not do himself is
//! not done for him.

use std::marker::PhantomData;

use nix::unistd::{Gid, Uid, getgroups, setfsgid, setfsuid};

use crate::account::Account;

/// While this lives, this thread accesses files as the user who called sudo, if one did: new files belong to
/// that user, and that user's permissions apply. Threads started meanwhile inherit this.
#[derive(Debug)]
pub struct AsInvoker {
    before: Option<(Uid, Gid, Option<Vec<Gid>>)>,
    /// It is one thread's.
    _thread: PhantomData<*const ()>,
}

impl AsInvoker {
    /// Starts to access files as that user. Within another `AsInvoker` it changes nothing.
    pub fn begin() -> Self {
        let before = Account::invoking().map(|account| {
            // Where groups may not be set, the user's own identity is set all the same.
            let groups = getgroups().ok().filter(|_| set_groups(&account.groups).is_ok());
            let gid = setfsgid(account.gid);
            (setfsuid(account.uid), gid, groups)
        });
        AsInvoker { before, _thread: PhantomData }
    }
}

impl Drop for AsInvoker {
    fn drop(&mut self) {
        if let Some((uid, gid, groups)) = self.before.take() {
            setfsuid(uid);
            setfsgid(gid);
            if let Some(groups) = groups {
                let _ = set_groups(&groups);
            }
        }
    }
}

/// Of this thread alone: the C library would do it to all.
fn set_groups(groups: &[Gid]) -> nix::Result<()> {
    let groups: Vec<libc::gid_t> = groups.iter().map(|group| group.as_raw()).collect();
    // SAFETY: the list is there, and as long as it says.
    nix::errno::Errno::result(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })
        .map(drop)
}
