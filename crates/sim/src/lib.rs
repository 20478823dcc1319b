//! The discrete-event engine and the modelled host.
