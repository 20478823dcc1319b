//! Applications: what asks a flow to send, and what it makes of the result.
//!
//! They are sans-IO. An application is told the time and what arrived, and acts on a [`Socket`], which every
//! host implements for its own flows: the modelled host, and the driver of the real QUIC stack. One
//! application is both ends of its flow: the sending end, whose payload travels forward, and the receiving
//! end.
//!
//! | module | the application |
//! |---|---|
//! | [`bulk`] | backlogged, or one transfer of a given size |
//! | [`paced`] | at a constant rate; in periods of sending and silence |
//! | [`phases`] | phases, each with its own rate: a trickle, then bulk |
//! | [`request_response`] | a client that asks and waits |
//! | [`game`] | small messages both ways at a fixed beat |
//! | [`video`] | adaptive-bitrate video |
//! | [`call`] | a real-time video call |
//! | [`short_flows`] | short connections that come and go: the host opens one for each arrival |
//!
//! | module | holds |
//! |---|---|
//! | [`traffic`] | the configuration of every application |
//! | [`socket`] | what an application may do to its flow |
//! | [`application`] | what a host tells an application |
//! | [`any`] | the enum of all applications |
//! | [`custom`] | applications that a program adds at run time |
//! | [`distribution`] | delays seen so far: mean, quantiles, maximum |
//! | [`audio`] | the sound of a call |
//! | [`encoder`] | the sizes of a call's frames |
//! | [`playout`] | when a call's frames are shown |
//! | [`quality`] | how good a call looks, by an opinion model |
//! | [`repair`] | a call's frames in packets of their own, and what is done about those that are lost |

#![forbid(unsafe_code)]

pub mod any;
pub mod application;
pub mod audio;
pub mod bulk;
pub mod call;
pub mod custom;
pub mod distribution;
pub mod encoder;
pub mod game;
mod histogram;
pub mod paced;
pub mod phases;
pub mod playout;
pub mod quality;
pub mod repair;
pub mod request_response;
mod requests;
pub mod short_flows;
pub mod socket;
pub mod traffic;
pub mod video;

pub use any::AnyApplication;
pub use application::Application;
pub use custom::{Applications, CustomApplication, CustomTraffic};
pub use distribution::Distribution;
pub use short_flows::ArrivalProcess;
pub use socket::{Datagram, ENDLESS, Piece, Socket};
pub use traffic::Traffic;

#[cfg(test)]
mod tests;
