//! The user who called sudo: whom programs run as, and whose the files are that are written for him.

use nix::unistd::{Gid, Uid};

/// Whom programs run as, where that is not whom the emulator runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// User.
    pub uid: Uid,
    /// Primary group.
    pub gid: Gid,
    /// Every group.
    pub groups: Vec<Gid>,
    /// Name, as far as it is known.
    pub name: Option<String>,
    /// Home folder, as far as it is known.
    pub home: Option<std::path::PathBuf>,
}

impl Account {
    /// Who called sudo, where root runs and sudo says so.
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
