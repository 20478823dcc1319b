//! Path elements and radios from outside: what a program adds at run time.

mod element;
mod radio;

pub use element::{BoxedElement, CustomElement, CustomElementConfig, DynElement};
pub use radio::{CustomRadio, CustomRadioConfig, DynRadio};
