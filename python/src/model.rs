//! Models in ONNX that decide.

use std::path::PathBuf;

use brakelight_learn::onnx;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::error::{failed, input};

/// A model in ONNX, as the controller `onnx` has it.
#[pyclass(frozen, module = "brakelight._brakelight")]
pub struct Model(onnx::Model);

#[pymethods]
impl Model {
    /// Reads a model from a file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        let read = onnx::Model::read(&path);
        read.map(Model).map_err(|error| input(format!("model `{}`: {error}", path.display())))
    }

    /// Returns the model that comes with the package.
    #[staticmethod]
    fn shipped() -> Self {
        Model(onnx::Model::shipped())
    }

    /// What it was made for, as JSON.
    #[getter]
    fn specification(&self) -> PyResult<String> {
        serde_json::to_string(&**self.0.specification()).map_err(failed)
    }

    /// Returns the action for an observation.
    fn act(&self, observation: PyReadonlyArray1<'_, f32>) -> PyResult<f64> {
        let (width, numbers) = (self.0.specification().width(), observation.as_slice()?);
        if numbers.len() != width {
            return Err(input(format!("observation: it has {} numbers, valid is {width}", numbers.len())));
        }
        Ok(self.0.act(numbers))
    }
}
