//! What is made of a configuration's values once, for all that is built of it.

use alloc::boxed::Box;
use alloc::sync::Arc;

use once_cell::race::OnceBox;

/// A value that is made of a configuration when it is first needed. All clones of the configuration share it,
/// so all runs of a comparison do. It is for tables that take long to make and never change.
///
/// It lives as long as one of these configurations does, or whatever was built of them.
///
/// It is not a setting: it takes no part in `==`, `Debug` and `settings()` of its configuration.
pub struct Shared<T>(Arc<OnceBox<Arc<T>>>);

impl<T> Shared<T> {
    /// Returns what was made, or else makes it.
    ///
    /// Threads that ask at the same time may each make it, and all get the same one. So `make` must depend on
    /// nothing but the configuration.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.0.get_or_init(|| Box::new(Arc::new(make()))).clone()
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared(Arc::new(OnceBox::new()))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<T> PartialEq for Shared<T> {
    /// Returns `true`: configurations are equal by their values.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;
    use std::thread;
    use std::vec::Vec;

    use super::*;
    use crate::parameters;
    use crate::parameters::Parameters;

    parameters! {
        /// Settings of which a text is made.
        pub struct Config {
            shared text: String;
            /// A number.
            number: u32 = 1, in 0..=9, from "ours";
        }
    }

    impl Config {
        fn text(&self) -> Arc<String> {
            self.text.get_or_make(|| format!("number {}", self.number))
        }
    }

    #[test]
    fn clones_share_what_one_of_them_made() {
        let config = Config::default();
        let clone = config.clone();
        assert!(Arc::ptr_eq(&config.text(), &clone.text()));
    }

    #[test]
    fn other_values_have_their_own() {
        let config = Config::default();
        assert_eq!(*config.text(), "number 1");
        let other = config.clone().with_options([("number", "2")]).unwrap();
        assert_eq!(*other.text(), "number 2");
        assert_eq!(*config.text(), "number 1");
    }

    #[test]
    fn what_was_made_is_no_setting() {
        let (made, not_made) = (Config::default(), Config::default());
        made.text();
        assert_eq!(made, not_made);
        assert_eq!(made.settings(), not_made.settings());
        assert_eq!(format!("{made:?}"), "Config { number: 1 }");
        assert_ne!(made, Config::new(Values { number: 2 }).unwrap());
    }

    #[test]
    fn threads_that_ask_at_the_same_time_get_the_same_one() {
        let config = Config::default();
        let asked = || {
            let config = config.clone();
            thread::spawn(move || config.text())
        };
        let threads: Vec<_> = (0..8).map(|_| asked()).collect();
        let first = config.text();
        for thread in threads {
            assert!(Arc::ptr_eq(&first, &thread.join().unwrap()));
        }
    }
}
