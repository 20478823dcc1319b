//! What an interrupt does before it ends the process.

use std::sync::{Mutex, PoisonError};

use brakelight_files::folder;

/// What else an interrupt has to take down.
static AT_INTERRUPT: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Replaces the action of the interrupt handler: `act` runs before the process exits.
pub fn at_interrupt(act: impl FnOnce() + Send + 'static) {
    *AT_INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
}

/// Installs the interrupt handler, which removes unfinished output and runs the action of [`at_interrupt`].
pub fn clean_up_on_interrupt() {
    // A second handler would be refused; there is none.
    let _ = ctrlc::set_handler(|| {
        let _given_up = folder::give_up();
        let act = AT_INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(act) = act {
            act();
        }
        // 128 + SIGINT, as shells count.
        std::process::exit(130);
    });
}

/// Waits for the interrupt handler, which is ending the process: the exit code is the handler's to give.
pub fn wait_for_exit() -> ! {
    loop {
        std::thread::park();
    }
}
