//! What can be said to `perf-server` and `perf`.

use std::path::PathBuf;

use brakelight_core::time::Duration;
use brakelight_core::units::Bytes;
use brakelight_quic::perf::wire::MOST_EXCHANGED;
use clap::Args;

use crate::arguments::{DocumentFormat, positive_size, positive_time, whole};

/// `perf-server`.
#[derive(Clone, Debug, Args)]
pub struct Server {
    /// Address and port to listen on; `[::]:4433` is every address of this machine, and port 0 picks a free
    /// one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4433")]
    pub listen: String,
    /// Maximum number of concurrent connections
    #[arg(long, value_name = "N", default_value = "2000", value_parser = whole::<1, 100_000>, allow_hyphen_values = true)]
    pub max_connections: u32,
    /// Maximum number of concurrent connections from one address, or from one IPv6 /64
    #[arg(long, value_name = "N", default_value = "1200", value_parser = whole::<1, 100_000>, allow_hyphen_values = true)]
    pub max_per_address: u32,
    /// Maximum duration of a connection
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = positive_time, allow_hyphen_values = true)]
    pub max_duration: Duration,
    /// Maximum size of a connection's data, both directions together
    #[arg(long, value_name = "SIZE", default_value = "1000GB", value_parser = positive_size, allow_hyphen_values = true)]
    pub max_bytes: Bytes,
    /// The controller for what the server sends
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub controller: String,
    /// Declare that every router between here and the clients is yours, so that a controller may give the ECN
    /// bits its own meaning
    #[arg(long)]
    pub own_path: bool,
    /// Certificates in PEM, the server's own first [default: a new self-signed one]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The private key in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Serve only clients that know the secret in this file, which has at least 16 bytes
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Write a qlog of every connection into this folder
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Maximum total size of the qlog files
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = positive_size, requires = "qlog", allow_hyphen_values = true)]
    pub qlog_limit: Bytes,
}

/// `perf`.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("work"))]
pub struct Client {
    /// The server's name or address, and its port [default port: 4433]
    #[arg(value_name = "ADDR")]
    pub server: String,
    /// The controller for what this end sends, with options after a colon: `abc:delta=100ms`
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub controller: String,
    /// How long to run
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Duration,
    /// Number of bytes to transfer over all connections, instead of a duration
    #[arg(long, value_name = "SIZE", value_parser = positive_size, conflicts_with = "duration", allow_hyphen_values = true)]
    pub bytes: Option<Bytes>,
    /// Send bulk data (the default)
    #[arg(long, group = "work")]
    pub upload: bool,
    /// Receive bulk data; the server's controller applies
    #[arg(long, group = "work")]
    pub download: bool,
    /// Send requests, one at a time, and wait for each response
    #[arg(long, group = "work")]
    pub request_response: bool,
    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "1kB", value_parser = message, requires = "request_response", allow_hyphen_values = true)]
    pub request: Bytes,
    /// Size of a response
    #[arg(long, value_name = "SIZE", default_value = "10kB", value_parser = message, requires = "request_response", allow_hyphen_values = true)]
    pub response: Bytes,
    /// Number of parallel connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<1, 1000>, allow_hyphen_values = true)]
    pub connections: u32,
    /// Interval at which to send a small message and wait for its answer, on a separate connection
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "100ms", value_parser = positive_time)]
    pub probe: Option<Duration>,
    /// Declare that every router on the path is yours, so that a controller may give the ECN bits its own
    /// meaning
    #[arg(long)]
    pub own_path: bool,
    /// Accept only the server whose certificate has this SHA-256, as the server prints it
    #[arg(long, value_name = "SHA256", conflicts_with = "ca")]
    pub pin: Option<String>,
    /// Accept only a server that a certificate in this PEM file vouches for, under the name given as ADDR
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Prove to the server that this end knows the secret in this file, without sending it
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Write a qlog of every connection into this folder
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Maximum total size of the qlog files
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = positive_size, requires = "qlog", allow_hyphen_values = true)]
    pub qlog_limit: Bytes,
    /// Alternate with uploads by the stack's own Cubic, and print the ratios of throughput and of processor
    /// time per byte
    #[arg(long, conflicts_with_all = ["download", "request_response", "probe", "qlog"])]
    pub compare_stock: bool,
    /// Pairs of runs for --compare-stock
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<1, 1000>, requires = "compare_stock", allow_hyphen_values = true)]
    pub runs: u32,
    /// How to print the results
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

fn message(text: &str) -> Result<Bytes, String> {
    match positive_size(text)? {
        Bytes(bytes) if bytes > MOST_EXCHANGED => {
            Err(format!("`{text}` is out of range: valid is any size above 0 and up to 1GiB, such as `10kB`"))
        }
        bytes => Ok(bytes),
    }
}
