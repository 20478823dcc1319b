//! Traits that enums implement by passing every call on to the variant at hand.
//!
//! `dispatched!` declares a trait, as it stands, and the macro that writes such an implementation. The macro
//! is made from the declaration, so it has every method of the trait: one with a default that an enum did not
//! pass on would answer for all algorithms as the default does, and nothing would tell.
//!
//! ```text
//! dispatched! {
//!     pub trait Controller by pass_to_controller { ... }
//! }
//! impl Controller for AnyController { pass_to_controller!(AnyController { Cubic Abc }); }
//! ```
//!
//! Every variant has one field, which implements the trait. The types that the methods name must be in scope
//! where the enum is. The macro is exported: a trait stands in one crate, and its enum in another.
//!
//! Variants that are named once more after `inline` are looked for first, and may be inlined where the call
//! stands. The others are called in a function of their own. With `getters` at the end, methods that take
//! `&self` are inlined for all variants: they are short.
//!
//! ```text
//! pass_to_element!(AnyElement { Link Delay Loss Jitter } inline { Link Delay });
//! ```

/// Declares a trait and the macro that passes its methods on.
#[doc(hidden)]
#[macro_export]
macro_rules! dispatched {
    (
        $(#[$meta:meta])*
        pub trait $Trait:ident $(<$P:ident: $Bound:ident>)? by $pass:ident {
            $($methods:tt)*
        }
    ) => {
        $(#[$meta])*
        pub trait $Trait $(<$P: $Bound>)? {
            $($methods)*
        }

        $crate::dispatched!(@read ($) $pass [] $($methods)*);
    };

    // One signature after the other: with and without a default, with and without `mut`.
    (@read $d:tt $pass:ident [$($read:tt)*] $(#[$meta:meta])* fn $name:ident(&self $(, $arg:ident: $ty:ty)* $(,)?) $(-> $out:ty)?; $($rest:tt)*) => {
        $crate::dispatched!(@read $d $pass [$($read)* { $name [] [$($arg: $ty),*] [$(-> $out)?] }] $($rest)*);
    };
    (@read $d:tt $pass:ident [$($read:tt)*] $(#[$meta:meta])* fn $name:ident(&self $(, $arg:ident: $ty:ty)* $(,)?) $(-> $out:ty)? { $($default:tt)* } $($rest:tt)*) => {
        $crate::dispatched!(@read $d $pass [$($read)* { $name [] [$($arg: $ty),*] [$(-> $out)?] }] $($rest)*);
    };
    (@read $d:tt $pass:ident [$($read:tt)*] $(#[$meta:meta])* fn $name:ident(&mut self $(, $arg:ident: $ty:ty)* $(,)?) $(-> $out:ty)?; $($rest:tt)*) => {
        $crate::dispatched!(@read $d $pass [$($read)* { $name [mut] [$($arg: $ty),*] [$(-> $out)?] }] $($rest)*);
    };
    (@read $d:tt $pass:ident [$($read:tt)*] $(#[$meta:meta])* fn $name:ident(&mut self $(, $arg:ident: $ty:ty)* $(,)?) $(-> $out:ty)? { $($default:tt)* } $($rest:tt)*) => {
        $crate::dispatched!(@read $d $pass [$($read)* { $name [mut] [$($arg: $ty),*] [$(-> $out)?] }] $($rest)*);
    };

    (@read ($d:tt) $pass:ident [$({ $name:ident [$($mut:tt)?] [$($arg:ident: $ty:ty),*] [$($out:tt)*] })*]) => {
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $pass {
            ($d Any:ident { $d($d Var:ident)* }) => {
                $(
                    #[inline]
                    fn $name(&$($mut)? self, $($arg: $ty),*) $($out)* {
                        match self { $d( $d Any::$d Var(inner) => inner.$name($($arg),*), )* }
                    }
                )*
            };
            ($d Any:ident { $d($d Var:ident)* } inline { $d($d Common:ident)* } $d($d getters:ident)?) => {
                $(
                    #[inline(always)]
                    fn $name(&$($mut)? self, $($arg: $ty),*) $($out)* {
                        match self {
                            $d( $d Any::$d Common(inner) => inner.$name($($arg),*), )*
                            any => $crate::in_a_function_of_its_own!([$d($d getters)? $($mut)?] match any {
                                $d( $d Any::$d Var(inner) => inner.$name($($arg),*), )*
                            }),
                        }
                    }
                )*
            };
        }
    };
}

/// Calls `call` in a function of its own, so that its code does not stand where the caller's is inlined.
#[inline(never)]
pub fn apart<R>(call: impl FnOnce() -> R) -> R {
    call()
}

/// The call of a variant that is not among the common ones, by the method's `&self` or `&mut self`.
#[doc(hidden)]
#[macro_export]
macro_rules! in_a_function_of_its_own {
    ([getters] $call:expr) => {
        $call
    };
    ([$(getters)? $(mut)?] $call:expr) => {
        $crate::dispatch::apart(move || $call)
    };
}

/// Reads `given`, or takes what most algorithms have.
#[doc(hidden)]
#[macro_export]
macro_rules! or {
    (else $usual:expr) => {
        $usual
    };
    ($given:expr, else $usual:expr) => {
        $given
    };
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use declared::Probed;

    #[macro_use]
    mod declared {
        dispatched! {
            /// A trait with a method of every form.
            pub trait Probed by pass_to_probed {
                /// Without a default.
                fn required(&self) -> u32;

                /// With one.
                fn defaulted(&mut self, _by: u32) -> u32 {
                    0
                }

                /// With one that does nothing.
                fn silent(&self) {}

                /// Without one, and with arguments that only a call can name.
                fn visited(&mut self, visit: &mut dyn FnMut(u32), other: impl Into<u32>);
            }
        }
    }

    #[derive(Default)]
    struct Probe {
        calls: Cell<u32>,
    }

    impl Probed for Probe {
        fn required(&self) -> u32 {
            1
        }
        fn defaulted(&mut self, by: u32) -> u32 {
            by
        }
        fn silent(&self) {
            self.calls.set(self.calls.get() + 1);
        }
        fn visited(&mut self, visit: &mut dyn FnMut(u32), other: impl Into<u32>) {
            visit(other.into());
        }
    }

    enum Any {
        One(Probe),
        Other(Probe),
    }

    impl Probed for Any {
        pass_to_probed!(Any { One Other });
    }

    enum Partly {
        One(Probe),
        Other(Probe),
    }

    impl Probed for Partly {
        pass_to_probed!(Partly { One Other } inline { One });
    }

    enum Getters {
        One(Probe),
        Other(Probe),
    }

    impl Probed for Getters {
        pass_to_probed!(Getters { One Other } inline { One } getters);
    }

    /// Calls every method once, and returns what the last one passed on.
    fn call_all(any: &mut impl Probed) -> u32 {
        assert_eq!((any.required(), any.defaulted(7)), (1, 7));
        any.silent();
        let mut seen = 0;
        any.visited(&mut |value| seen = value, 3u8);
        seen
    }

    #[test]
    fn every_method_reaches_the_variant_those_with_a_default_too() {
        for mut any in [Any::One(Probe::default()), Any::Other(Probe::default())] {
            let seen = call_all(&mut any);
            let (Any::One(probe) | Any::Other(probe)) = &any;
            assert_eq!((probe.calls.get(), seen), (1, 3));
        }
    }

    #[test]
    fn a_variant_is_reached_inlined_or_not() {
        for mut any in [Partly::One(Probe::default()), Partly::Other(Probe::default())] {
            let seen = call_all(&mut any);
            let (Partly::One(probe) | Partly::Other(probe)) = &any;
            assert_eq!((probe.calls.get(), seen), (1, 3));
        }
    }

    #[test]
    fn every_method_reaches_the_variant_with_getters() {
        for mut any in [Getters::One(Probe::default()), Getters::Other(Probe::default())] {
            let seen = call_all(&mut any);
            let (Getters::One(probe) | Getters::Other(probe)) = &any;
            assert_eq!((probe.calls.get(), seen), (1, 3));
        }
    }
}
