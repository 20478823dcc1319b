//! The controller in its place. In this crate's own tests the host is held to the contract of events
//! ([`brakelight_core::controller`]), with every controller and on every path that they run.

use brakelight_registry::{AnyController, Needs};

#[cfg(not(test))]
pub(in crate::adapter) type Held = AnyController;
#[cfg(test)]
pub(in crate::adapter) type Held = brakelight_core::sender::Checked<AnyController>;

/// Puts `controller`, whose needs are `needs`, in its place as a connection begins.
pub(super) fn hold(controller: AnyController, needs: &Needs) -> Held {
    #[cfg(test)]
    let controller = Held::new(controller).growing_by_use(!needs.grows_unused);
    #[cfg(not(test))]
    let _ = needs;
    controller
}

/// Puts `controller` in the place of the one before.
pub(super) fn replace(held: &mut Held, controller: AnyController) {
    #[cfg(not(test))]
    {
        *held = controller;
    }
    #[cfg(test)]
    held.replace(controller);
}
