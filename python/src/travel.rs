//! What is pickled and copied: views by their fields, rows and results as bytes. Pickles are for programs of
//! the same version of the package.

use std::convert::Infallible;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{failed, input};
use crate::registry::interned;

/// One of a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word(pub &'static str);

impl<'py> IntoPyObject<'py> for Word {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(PyString::intern(py, self.0))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Word {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text: String = object.extract()?;
        Ok(Word(interned(object.py(), &text)))
    }
}

/// The keywords that an object is made of, each of them once.
pub struct Fields<'py> {
    class: &'static str,
    given: Bound<'py, PyDict>,
}

impl<'py> Fields<'py> {
    /// Returns those that are `given` to the class called `class`. Fails if they have not the `names`.
    pub fn of(
        py: Python<'py>,
        class: &'static str,
        names: &[&str],
        given: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let given = given.unwrap_or_else(|| PyDict::new(py));
        let wrong = |what: &str, name: &str| {
            PyTypeError::new_err(format!("{class}: {what} keyword `{name}`: valid are {}", names.join(", ")))
        };
        for name in given.keys() {
            let name: String = name.extract()?;
            if !names.contains(&name.as_str()) {
                return Err(wrong("unknown", &name));
            }
        }
        match names.iter().find(|name| !given.contains(name).unwrap_or(false)) {
            Some(name) => Err(wrong("missing", name)),
            None => Ok(Fields { class, given }),
        }
    }

    /// Returns the value of a field.
    pub fn take<T>(&self, name: &str) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let value = self.given.as_any().get_item(name)?;
        let read: Result<T, PyErr> = value.extract().map_err(Into::into);
        read.map_err(|error| PyTypeError::new_err(format!("{}: {name} = `{value}`: {error}", self.class)))
    }
}

/// What pickle asks for: a function and its arguments.
pub type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// Returns how to make `own` again: its class, called with these keywords.
pub fn reduced<'py>(own: &Bound<'py, PyAny>, fields: Bound<'py, PyDict>) -> PyResult<Reduced<'py>> {
    let py = own.py();
    let made = py.import("copyreg")?.getattr("__newobj_ex__")?;
    Ok((made, (own.get_type(), PyTuple::empty(py), fields).into_pyobject(py)?))
}

/// Returns how to make `own` again: its class, called with these bytes.
pub fn reduced_to_bytes<'py>(own: &Bound<'py, PyAny>, bytes: &[u8]) -> PyResult<Reduced<'py>> {
    let py = own.py();
    let bytes = pyo3::types::PyBytes::new(py, bytes);
    Ok((own.get_type().into_any(), (bytes,).into_pyobject(py)?))
}

/// Returns `value` as bytes: CBOR, which keeps every number exactly.
pub fn packed(value: &impl Serialize) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Returns what [`packed`] made bytes of.
pub fn unpacked<T: DeserializeOwned>(bytes: &[u8]) -> PyResult<T> {
    ciborium::from_reader(bytes).map_err(|error| input(format_args!("pickle: {error}")))
}

/// Declares what a class in Python is given, and what is looked at: attributes that cannot be set. It is made
/// by its fields, so that it can be copied, and that a class can be tried without a run.
macro_rules! given {
    ($(#[$doc:meta])* $Name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[pyclass(frozen, get_all, from_py_object, module = "brakelight._brakelight")]
        #[derive(Clone)]
        pub struct $Name {
            $($field: $type,)*
        }

        #[pymethods]
        impl $Name {
            #[new]
            #[pyo3(signature = (**fields))]
            fn new(py: Python<'_>, fields: Option<Bound<'_, PyDict>>) -> PyResult<Self> {
                let given =
                    $crate::travel::Fields::of(py, stringify!($Name), &[$(stringify!($field)),*], fields)?;
                Ok($Name { $($field: given.take(stringify!($field))?),* })
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                self.show(py)
            }

            /// Nothing of it changes.
            fn __copy__(own: Py<Self>) -> Py<Self> {
                own
            }

            fn __deepcopy__(own: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
                own
            }

            fn __reduce__<'py>(own: &Bound<'py, Self>) -> PyResult<$crate::travel::Reduced<'py>> {
                $crate::travel::reduced(own.as_any(), own.get().fields(own.py())?)
            }
        }

        impl $Name {
            fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let fields = PyDict::new(py);
                $(fields.set_item(stringify!($field), self.$field.clone())?;)*
                Ok(fields)
            }
        }
    };
}
pub(crate) use given;

/// Has these be shown with all their fields.
macro_rules! shown_by_fields {
    ($($Name:ident),*) => {
        $(impl $Name {
            fn show(&self, py: Python<'_>) -> PyResult<String> {
                Ok(format!("{}({})", stringify!($Name), self.fields(py)?))
            }
        })*
    };
}
pub(crate) use shown_by_fields;
