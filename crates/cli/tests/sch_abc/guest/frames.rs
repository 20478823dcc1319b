//! Ethernet frames with an IP header whose every byte is known, and a port that sends and receives them.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use brakelight_core::ecn::Ecn;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeVal;

const MACS: usize = 12;
const VLAN: [u8; 4] = [0x81, 0x00, 0x00, 0x2a];

/// A frame of ours: its payload begins with its number.
#[derive(Clone)]
pub struct Frame {
    bytes: Vec<u8>,
    /// Where the IP header is.
    header: usize,
}

impl Frame {
    /// A frame of `size` bytes, Ethernet header included.
    pub fn new(id: u64, ecn: Ecn, v6: bool, tagged: bool, size: usize) -> Self {
        let mut bytes = vec![0xff; 6];
        bytes.extend([2, 0, 0, 0, 0, 1]);
        if tagged {
            bytes.extend(VLAN);
        }
        bytes.extend(if v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        let header = bytes.len();
        let length = (size - header) as u16;
        if v6 {
            // Traffic class 0xb8 (expedited) and the field, flow label 0x54321; payload length, next header
            // 59 (none), hop limit.
            bytes.extend([0x6b, 0x80 | (ecn as u8) << 4 | 5, 0x43, 0x21]);
            bytes.extend((length - 40).to_be_bytes());
            bytes.extend([59, 64]);
            bytes.extend([0xfd; 32]);
        } else {
            bytes.extend([0x45, 0xb8 | ecn as u8]);
            bytes.extend(length.to_be_bytes());
            bytes.extend([0x12, 0x34, 0x40, 0, 64, 253, 0, 0]);
            bytes.extend([10, 9, 0, 1, 10, 9, 0, 2]);
        }
        bytes.extend(id.to_be_bytes());
        assert!(bytes.len() <= size, "{size}");
        bytes.resize(size, id as u8);
        let mut frame = Frame { bytes, header };
        frame.fill_checksum();
        frame
    }

    fn is_v6(&self) -> bool {
        self.bytes[self.header] >> 4 == 6
    }

    /// rfc791 3.1
    fn fill_checksum(&mut self) {
        if self.is_v6() {
            return;
        }
        let header = &mut self.bytes[self.header..self.header + 20];
        header[10..12].fill(0);
        let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn ecn(&self) -> Ecn {
        let byte = self.bytes[self.header + 1];
        Ecn::from_bits(if self.is_v6() { byte >> 4 } else { byte })
    }

    pub fn id(&self) -> u64 {
        let at = self.header + if self.is_v6() { 40 } else { 20 };
        u64::from_be_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// The same as it is to come in with that field: receiving takes a tag off.
    pub fn received_with(&self, ecn: Ecn) -> Frame {
        let mut frame = self.clone();
        frame.bytes.drain(MACS..frame.header - 2);
        frame.header = MACS + 2;
        let (byte, shift) = (frame.header + 1, if self.is_v6() { 4 } else { 0 });
        frame.bytes[byte] = frame.bytes[byte] & !(3 << shift) | (ecn as u8) << shift;
        frame.fill_checksum();
        frame
    }
}

/// A packet socket on a device.
pub struct Port(File);

impl Port {
    /// One that sends, and hears nothing.
    pub fn out(device: &str) -> Self {
        Port::open(device, 0)
    }

    /// One that hears everything.
    pub fn into(device: &str) -> Self {
        Port::open(device, libc::ETH_P_ALL)
    }

    fn open(device: &str, protocol: i32) -> Self {
        let index = nix::net::if_::if_nametoindex(device).unwrap() as i32;
        // SAFETY: it takes numbers and returns a descriptor of our own, or -1.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the descriptor was just opened and is nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all its fields are integers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (protocol as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is of that length and outlives the call.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
        setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20)).unwrap();
        setsockopt(&socket, sockopt::SndBufForce, &(64 << 20)).unwrap();
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(60, 0)).unwrap();
        Port(File::from(socket))
    }

    pub fn send(&self, frame: &Frame) {
        // A frame that its queue dropped is ENOBUFS here.
        match (&self.0).write(frame.bytes()) {
            Ok(written) => assert_eq!(written, frame.bytes().len()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS), "{error}"),
        }
    }

    /// The next frame that came in; frames that are not ours do not count.
    pub fn receive(&self) -> Frame {
        let mut buffer = [0; 2048];
        loop {
            let length = (&self.0).read(&mut buffer).expect("a frame within a minute");
            let bytes = buffer[..length].to_vec();
            let header = MACS + 2;
            let ours = bytes.get(6..MACS) == Some(&[2, 0, 0, 0, 0, 1]);
            if ours {
                return Frame { bytes, header };
            }
        }
    }
}
