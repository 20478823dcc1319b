//! What the emulator and the first process of its namespaces say to each other: whole messages over a socket
//! pair, with file descriptors beside them.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg,
    socketpair,
};

/// The longest message: a command line with its environment.
const LONGEST: usize = 128 * 1024;

/// Most descriptors beside one message.
const MOST_FDS: usize = 8;

/// A side of the emulator, with its network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Behind the link.
    Inner,
    /// Where the link leads.
    Outer,
}

/// A program to be run in the namespaces.
#[derive(Debug)]
pub struct Program {
    /// Where it runs.
    pub side: Side,
    /// Its name and its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables besides those of the emulator.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether to report when it listens.
    pub listens: bool,
    /// Whether it gets a process group of its own, which Ctrl-C at the terminal does not reach.
    pub own_group: bool,
    /// Standard input, output and error, where they are not the emulator's.
    pub stdio: [Option<OwnedFd>; 3],
    /// UDP ports of the outer side, for each of which the program inherits a socket
    /// ([`inherited`](crate::inherited)), whichever side it runs on.
    pub ports: Vec<u16>,
}

/// From the emulator.
#[derive(Debug)]
pub(crate) enum Order {
    /// Run a program under this number.
    Run(u32, Program),
    /// Send a program a signal.
    Signal(u32, i32),
    /// End everything.
    Finish,
}

/// From the first process of the namespaces.
#[derive(Debug)]
pub(crate) enum Report {
    /// The namespaces are ready; carries the devices of the outer side and of the inner one, then the sockets
    /// that hear of TCP's.
    Ready(Vec<OwnedFd>),
    /// Something that the user should know of them, before they are ready.
    Note(String),
    /// They could not be created; carries the reason.
    Failed(String),
    /// A program runs.
    Started(u32),
    /// A program could not be run; carries the errno.
    NotStarted(u32, i32),
    /// A program listens.
    Listening(u32),
    /// A program ended; carries the exit code as a shell counts: 128 plus the signal's number if a signal
    /// ended it.
    Ended(u32, i32),
}

/// Words, and the descriptors beside them.
type Message = (Vec<Vec<u8>>, Vec<OwnedFd>);

/// One end.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

impl Channel {
    /// Both ends.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        Ok((Channel(a), Channel(b)))
    }

    /// The same end, once more.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Channel(self.0.try_clone()?))
    }

    /// Gives an order.
    pub(crate) fn order(&self, order: &Order) -> io::Result<()> {
        match order {
            Order::Run(id, program) => {
                let side = if program.side == Side::Inner { "inner" } else { "outer" };
                let given: String =
                    program.stdio.iter().map(|fd| if fd.is_some() { 'g' } else { '-' }).collect();
                let flag = |set| if set { "yes" } else { "no" };
                let head = [
                    "run".to_string(),
                    id.to_string(),
                    side.to_string(),
                    flag(program.listens).to_string(),
                    flag(program.own_group).to_string(),
                    given,
                    program.ports.iter().map(u16::to_string).collect::<Vec<_>>().join(","),
                    program.environment.len().to_string(),
                ];
                let mut fields: Vec<&[u8]> = head.iter().map(|field| field.as_bytes()).collect();
                for (name, value) in &program.environment {
                    fields.push(name.as_bytes());
                    fields.push(value.as_bytes());
                }
                fields.extend(program.arguments.iter().map(|argument| argument.as_bytes()));
                let fds: Vec<BorrowedFd<'_>> = program.stdio.iter().flatten().map(AsFd::as_fd).collect();
                self.send(&fields, &fds)
            }
            Order::Signal(id, signal) => self.say("signal", &[i64::from(*id), i64::from(*signal)]),
            Order::Finish => self.say("finish", &[]),
        }
    }

    /// The next order; nothing once the emulator has gone.
    pub(crate) fn next_order(&self) -> io::Result<Option<Order>> {
        let Some((fields, fds)) = self.receive()? else { return Ok(None) };
        read_order(&fields, fds).map(Some).ok_or_else(malformed)
    }

    /// Reports.
    pub(crate) fn report(&self, report: &Report) -> io::Result<()> {
        match report {
            Report::Ready(fds) => {
                let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
                self.send(&[b"ready"], &fds)
            }
            Report::Note(text) => self.send(&[b"note", text.as_bytes()], &[]),
            Report::Failed(why) => self.send(&[b"failed", why.as_bytes()], &[]),
            Report::Started(id) => self.say("started", &[i64::from(*id)]),
            Report::NotStarted(id, errno) => self.say("not-started", &[i64::from(*id), i64::from(*errno)]),
            Report::Listening(id) => self.say("listening", &[i64::from(*id)]),
            Report::Ended(id, code) => self.say("ended", &[i64::from(*id), i64::from(*code)]),
        }
    }

    /// The next report; nothing once the first process has gone.
    pub(crate) fn next_report(&self) -> io::Result<Option<Report>> {
        let Some((fields, fds)) = self.receive()? else { return Ok(None) };
        read_report(&fields, fds).map(Some).ok_or_else(malformed)
    }

    fn say(&self, word: &str, numbers: &[i64]) -> io::Result<()> {
        let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
        let fields: Vec<&[u8]> =
            std::iter::once(word.as_bytes()).chain(numbers.iter().map(String::as_bytes)).collect();
        self.send(&fields, &[])
    }

    /// Fields hold no NUL, as arguments and variables cannot; so NUL stands between them.
    fn send(&self, fields: &[&[u8]], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        if fields.iter().any(|field| field.contains(&0)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a word holds a NUL byte"));
        }
        let message = fields.join(&0);
        if message.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command line is too long"));
        }
        let raw: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&raw)];
        let control = if raw.is_empty() { &[][..] } else { &rights[..] };
        sendmsg::<()>(self.0.as_raw_fd(), &[IoSlice::new(&message)], control, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }

    fn receive(&self) -> io::Result<Option<Message>> {
        let mut message = vec![0; LONGEST];
        let mut space = nix::cmsg_space!([i32; MOST_FDS]);
        let (length, fds) = {
            let mut parts = [IoSliceMut::new(&mut message)];
            let received = loop {
                match recvmsg::<()>(
                    self.0.as_raw_fd(),
                    &mut parts,
                    Some(&mut space),
                    MsgFlags::MSG_CMSG_CLOEXEC,
                ) {
                    Err(nix::Error::EINTR) => {}
                    // The other end went with unread messages before it.
                    Err(nix::Error::ECONNRESET) => return Ok(None),
                    other => break other?,
                }
            };
            let mut fds = Vec::new();
            for control in received.cmsgs()? {
                if let ControlMessageOwned::ScmRights(given) = control {
                    // SAFETY: the kernel has just made these descriptors for this process; nobody else owns
                    // them.
                    fds.extend(given.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
                }
            }
            (received.bytes, fds)
        };
        if length == 0 {
            return Ok(None);
        }
        let fields = message[..length].split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        Ok(Some((fields, fds)))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "unknown kind of message")
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn read_order(fields: &[Vec<u8>], fds: Vec<OwnedFd>) -> Option<Order> {
    let words: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
    match words.as_slice() {
        [b"run", id, side, listens, own_group, given, ports, variables, rest @ ..] => {
            let ports = ports.split(|byte| *byte == b',').filter(|port| !port.is_empty());
            let variables =
                number::<usize>(variables)?.checked_mul(2).filter(|count| *count <= rest.len())?;
            let (environment, arguments) = rest.split_at(variables);
            let word = |bytes: &&[u8]| OsString::from_vec(bytes.to_vec());
            let mut fds = fds.into_iter();
            let mut stdio = [None, None, None];
            for (place, mark) in stdio.iter_mut().zip(given.iter()) {
                if *mark == b'g' {
                    *place = Some(fds.next()?);
                }
            }
            let program = Program {
                side: if *side == b"inner" { Side::Inner } else { Side::Outer },
                arguments: arguments.iter().map(word).collect(),
                environment: environment.chunks(2).map(|pair| (word(&pair[0]), word(&pair[1]))).collect(),
                listens: *listens == b"yes",
                own_group: *own_group == b"yes",
                stdio,
                ports: ports.map(number).collect::<Option<_>>()?,
            };
            (!program.arguments.is_empty()).then_some(Order::Run(number(id)?, program))
        }
        [b"signal", id, signal] => Some(Order::Signal(number(id)?, number(signal)?)),
        [b"finish"] => Some(Order::Finish),
        _ => None,
    }
}

fn read_report(fields: &[Vec<u8>], fds: Vec<OwnedFd>) -> Option<Report> {
    let words: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
    match words.as_slice() {
        [b"ready"] => Some(Report::Ready(fds)),
        [b"note", text] => Some(Report::Note(OsStr::from_bytes(text).to_string_lossy().into_owned())),
        [b"failed", why] => Some(Report::Failed(OsStr::from_bytes(why).to_string_lossy().into_owned())),
        [b"started", id] => Some(Report::Started(number(id)?)),
        [b"not-started", id, errno] => Some(Report::NotStarted(number(id)?, number(errno)?)),
        [b"listening", id] => Some(Report::Listening(number(id)?)),
        [b"ended", id, code] => Some(Report::Ended(number(id)?, number(code)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    #[test]
    fn a_program_arrives_whole_with_its_descriptors() {
        let (here, there) = Channel::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let program = Program {
            side: Side::Inner,
            arguments: vec!["sh".into(), "-c".into(), "".into(), OsString::from_vec(vec![0xff, b'\n'])],
            environment: vec![("A".into(), "".into()), ("B".into(), "2".into())],
            listens: false,
            own_group: true,
            stdio: [None, Some(writer.into()), None],
            ports: vec![5201, 5202],
        };
        here.order(&Order::Run(7, program)).unwrap();
        let Some(Order::Run(7, mut program)) = there.next_order().unwrap() else { panic!("not the order") };
        assert_eq!(program.side, Side::Inner);
        assert_eq!(program.arguments.len(), 4);
        assert_eq!(program.arguments[3].as_bytes(), [0xff, b'\n']);
        assert_eq!(program.environment, [("A".into(), "".into()), ("B".into(), "2".into())]);
        assert!(program.own_group && !program.listens && program.stdio[0].is_none());
        assert_eq!(program.ports, [5201, 5202]);
        io::Write::write_all(&mut File::from(program.stdio[1].take().unwrap()), b"through").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }

    #[test]
    fn the_end_of_the_other_side_is_seen() {
        let (here, there) = Channel::pair().unwrap();
        there.report(&Report::Ended(1, 137)).unwrap();
        drop(there);
        assert!(matches!(here.next_report().unwrap(), Some(Report::Ended(1, 137))));
        assert!(here.next_report().unwrap().is_none());
        assert!(here.order(&Order::Finish).is_err());
    }

    #[test]
    fn a_command_line_that_does_not_fit_is_refused() {
        let (here, _there) = Channel::pair().unwrap();
        let program = Program {
            side: Side::Inner,
            arguments: vec!["x".repeat(LONGEST).into()],
            environment: Vec::new(),
            listens: false,
            own_group: false,
            stdio: [None, None, None],
            ports: Vec::new(),
        };
        assert!(
            here.order(&Order::Run(1, program)).unwrap_err().to_string().contains("command line is too long")
        );
    }
}
