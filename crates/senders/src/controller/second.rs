//! What may be ABC's second window: the controllers that answer losses, CE and delay by themselves, whatever
//! routers say. The table (`table.rs`) tells which.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, ControllerFailure, Decision, IdleEvent, LossEvent, Recovery,
    SendDirective, SendEvent, SpuriousEvent, Stage, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::facts::{Host, Kernel, Needs};
use brakelight_core::parameters::Value;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

use super::{bbr, bbr2, bbr3, copa, ctcp, cubic, newreno, quicdc, vegas, vivace, westwood};

macro_rules! make_second_windows {
    ($(
        $Var:ident($mod:ident :: $Ty:ident) = $name:literal $(| $alias:literal)*, $summary:literal,
        $(second_window $heard:literal,)?
        needs $needs:tt
        $(, feedback_options $options:expr)?
        $(, survives_without_marks $survives:expr)?
        $(, delay_threshold $threshold:expr)?;
    )*) => {
        make_second_windows!(@keep [] $( [$($heard)?] $Var($mod::$Ty) [$name $($alias)*] $needs )*);
    };

    // Those lines that say what they hear.
    (@keep [$($kept:tt)*] [$heard:literal] $Var:ident $path:tt $names:tt $needs:tt $($rest:tt)*) => {
        make_second_windows!(@keep [$($kept)* { $heard $Var $path $names $needs }] $($rest)*);
    };
    (@keep [$($kept:tt)*] [] $Var:ident $path:tt $names:tt $needs:tt $($rest:tt)*) => {
        make_second_windows!(@keep [$($kept)*] $($rest)*);
    };

    (@keep [$({
        $heard:literal $Var:ident ($mod:ident :: $Ty:ident) [$name:literal $($alias:literal)*]
        { $($need:ident: $value:expr),* }
    })*]) => {
        /// Which controller is the second window.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Other { $( #[doc = concat!("Hears ", $heard, ".")] $Var, )* }

        impl Other {
            /// All controllers that can be the second window.
            pub const ALL: &[Other] = &[$( Other::$Var, )*];

            /// Returns its registered name.
            pub const fn name(self) -> &'static str {
                match self { $( Other::$Var => $name, )* }
            }

            /// The one of this name or alias.
            fn find(name: &str) -> Option<Other> {
                match name { $( $name $(| $alias)* => Some(Other::$Var), )* _ => None }
            }

            /// Returns what it needs of its receiver and its host.
            pub const fn needs(self) -> Needs {
                match self { $( Other::$Var => Needs { $($need: $value,)* ..Needs::PLAIN }, )* }
            }
        }

        /// A second window of any kind, dispatched by `match`.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub(super) enum SecondWindow { $( $Var($mod::$Ty), )* }

        impl SecondWindow {
            /// One with the default settings, at the start of its connection.
            pub(super) fn new(other: Other, connection: &Connection) -> Self {
                match other { $(
                    Other::$Var => SecondWindow::$Var($mod::$Ty::new($mod::Config::default(), connection)),
                )* }
            }
        }

        impl Controller for SecondWindow {
            pass_to_controller!(SecondWindow { $($Var)* });
        }
    };
}

controllers!(make_second_windows);

fn names(between: &str) -> String {
    Other::ALL.iter().map(|other| other.name()).collect::<Vec<_>>().join(between)
}

impl Value for Other {
    fn unit() -> String {
        names(" | ")
    }

    fn parse(text: &str) -> Result<Self, String> {
        Other::find(text).ok_or_else(|| format!("one of {}", names(", ")))
    }

    fn show(&self) -> String {
        self.name().to_string()
    }
}
