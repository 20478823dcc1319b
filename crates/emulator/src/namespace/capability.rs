//! The account and capabilities of a program: the user who called sudo; in a user namespace of our own, the
//! capabilities that concern its networks.

use std::io;

use brakelight_files::account::Account;
use nix::unistd::{Uid, setgroups, setresgid, setresuid};

/// Capabilities that programs keep in their own user namespace, by number (capabilities(7)): binding low
/// ports, changing their networks, raw sockets, and creating namespaces, which a nested emulator needs. With
/// `NET_ADMIN` every congestion control can be chosen.
const KEPT: [u32; 4] = [10, 12, 13, 21];

/// `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Set {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Between fork and exec: becomes the account, or keeps what an ordinary user has in a namespace of its own.
/// Makes system calls only.
pub(crate) fn become_account(account: Option<&Account>) -> io::Result<()> {
    match account {
        Some(account) => {
            setgroups(&account.groups)?;
            setresgid(account.gid, account.gid, account.gid)?;
            setresuid(account.uid, account.uid, account.uid)?;
            Ok(())
        }
        // Root keeps everything anyway.
        None if Uid::effective().is_root() => Ok(()),
        None => keep(),
    }
}

/// Makes the kept capabilities survive the exec of an ordinary program.
fn keep() -> io::Result<()> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut sets = [Set::default(); 2];
    // SAFETY: version 3 reads and writes two sets, which are there.
    if unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let permitted = sets[0].permitted;
    let kept = KEPT.iter().filter(|capability| permitted >> **capability & 1 == 1);
    sets[0].inheritable |= kept.clone().fold(0, |set, capability| set | 1 << capability);
    // SAFETY: as above.
    if unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for capability in kept {
        // SAFETY: takes numbers only.
        let raised = unsafe {
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, u64::from(*capability), 0u64, 0u64)
        };
        if raised != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
