//! QUIC endpoints that run the controllers: `quinn` and `quinn-proto`, unmodified, with our congestion control and our
//! reading of the ECN counts that every receiver sends back (RFC 9000 section 19.3.2).
