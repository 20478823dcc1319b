//! Nothing but tests: the QUIC endpoints towards receivers that others wrote, over sockets of this machine.
