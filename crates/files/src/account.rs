//! The user who called sudo: programs run as that user, and files are written as that user.

use nix::unistd::{Gid, Uid};

/// The account that programs run as, if it is not this process's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// User.
    pub uid: Uid,
    /// Primary group.
    pub gid: Gid,
    /// Every group.
    pub groups: Vec<Gid>,
    /// Name, if known.
    pub name: Option<String>,
    /// Home folder, if known.
    pub home: Option<std::path::PathBuf>,
}

impl Account {
    /// Returns the user who called sudo. `None` unless this process runs as root and sudo's variables name
    /// another user.
    pub fn invoking() -> Option<Self> {
        if !Uid::effective().is_root() {
            return None;
        }
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        let uid = Uid::from_raw(number("SUDO_UID")?);
        let gid = Gid::from_raw(number("SUDO_GID")?);
        if uid.is_root() {
            return None;
        }
        let user = nix::unistd::User::from_uid(uid).ok().flatten();
        let groups = user.as_ref().and_then(|user| {
            let name = std::ffi::CString::new(user.name.as_str()).ok()?;
            nix::unistd::getgrouplist(&name, gid).ok()
        });
        Some(Account {
            uid,
            gid,
            groups: groups.unwrap_or_else(|| vec![gid]),
            name: user.as_ref().map(|user| user.name.clone()),
            home: user.map(|user| user.dir),
        })
    }
}
