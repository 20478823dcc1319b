//! Whether a program listens, as the kernel's own tables tell: /proc/net/{tcp,tcp6,udp,udp6} of its
//! namespace, and who holds the sockets in them.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use super::build::Sides;
use crate::channel::Side;

/// Socket states of servers (include/net/tcp_states.h): a TCP listener, and a UDP socket that is bound but
/// not connected.
const TCP_LISTEN: &str = "0A";
const UDP_BOUND: &str = "07";

/// A server whose listening is waited for.
#[derive(Debug)]
pub(crate) struct Listening {
    /// Sockets that listened before it was started.
    before: BTreeSet<u64>,
    /// The server, by its number in this process namespace.
    pid: i32,
    /// Whether /proc shows the processes of this namespace.
    own_proc: bool,
}

impl Listening {
    /// Records the sockets that listen on that side before the server is started.
    pub(crate) fn before(side: Side, sides: &Sides) -> io::Result<Self> {
        // On the inner side nothing can be seen from here; nor is there anything that listens before the
        // first server.
        let before = if side == Side::Outer { listeners("self") } else { BTreeSet::new() };
        Ok(Listening { before, pid: 0, own_proc: sides.own_proc })
    }

    /// The same, for the server with this process number and its process group.
    pub(crate) fn by(self, pid: i32) -> Self {
        Listening { pid, ..self }
    }

    /// Whether it listens.
    pub(crate) fn now(&self) -> bool {
        if !self.own_proc {
            return listeners("self").difference(&self.before).next().is_some();
        }
        let new: BTreeSet<u64> = listeners(&self.pid.to_string()).difference(&self.before).copied().collect();
        // A server that goes into the background leaves its group, and is a child of this process then.
        !new.is_empty() && processes().any(|pid| is_of(pid, self.pid) && holds(pid, &new))
    }
}

/// The sockets that listen in the network namespace of a process, by their inodes.
fn listeners(process: &str) -> BTreeSet<u64> {
    [("tcp", TCP_LISTEN), ("tcp6", TCP_LISTEN), ("udp", UDP_BOUND), ("udp6", UDP_BOUND)]
        .into_iter()
        .filter_map(|(table, state)| {
            let text = fs::read_to_string(format!("/proc/{process}/net/{table}")).ok()?;
            Some(inodes(&text, state))
        })
        .flatten()
        .collect()
}

/// The inodes of the sockets in a state: the tenth column, where the fourth is the state.
fn inodes(table: &str, state: &str) -> Vec<u64> {
    let row = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        (columns.get(3) == Some(&state)).then(|| columns.get(9)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(row).collect()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| *pid != 1)
}

/// Whether a process is of a server's group, or has gone into the background and belongs to process 1.
fn is_of(pid: i32, server: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name stands in parentheses and may hold anything: proc_pid_stat(5).
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut columns = rest.split_whitespace().skip(1);
    let parent: Option<i32> = columns.next().and_then(|text| text.parse().ok());
    let group: Option<i32> = columns.next().and_then(|text| text.parse().ok());
    group == Some(server) || (parent == Some(1) && group == Some(pid))
}

/// Whether a process holds one of the sockets.
fn holds(pid: i32, sockets: &BTreeSet<u64>) -> bool {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let socket = |target: std::path::PathBuf| -> Option<u64> {
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    entries
        .filter_map(|entry| fs::read_link(entry.path()).ok().and_then(socket))
        .any(|inode| sockets.contains(&inode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0000000000000000 20 4 30 10 -1
";

    #[test]
    fn reads_the_inodes_of_listeners_and_of_nothing_else() {
        assert_eq!(inodes(TABLE, TCP_LISTEN), [4711]);
        assert_eq!(inodes("", TCP_LISTEN), [] as [u64; 0]);
        assert_eq!(inodes("header\nshort line\n", TCP_LISTEN), [] as [u64; 0]);
    }

    #[test]
    fn a_listener_shows_and_a_connection_does_not() {
        let inode = |fd: &dyn std::os::fd::AsFd| nix::sys::stat::fstat(fd.as_fd()).unwrap().st_ino;
        let me = std::process::id() as i32;
        let shows = |inode: u64| listeners("self").contains(&inode) && holds(me, &BTreeSet::from([inode]));
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("[::1]:0").unwrap();
        let stream = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        assert!(shows(inode(&tcp)));
        assert!(shows(inode(&udp)));
        assert!(!shows(inode(&stream)));
        udp.connect("[::1]:9").unwrap();
        assert!(!shows(inode(&udp)), "a client's socket");
    }
}
