//! Rows as columns, in Arrow's memory layout. Whoever knows the Arrow PyCapsule interface takes them without
//! a copy.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::DataType;
use brakelight::lab;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::error::{failed, of_lab};

/// A table of columns.
#[pyclass(frozen, module = "brakelight._brakelight")]
pub struct Frame {
    batch: RecordBatch,
}

impl Frame {
    /// Returns the rows of a frame of the lab.
    pub fn of(frame: &lab::frame::Frame) -> PyResult<Self> {
        Ok(Frame { batch: frame.record_batch().map_err(of_lab)? })
    }
}

#[pymethods]
impl Frame {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The Arrow PyCapsule interface. The requested schema is a wish, which is not granted.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (field, column) in self.batch.schema_ref().fields().iter().zip(self.batch.columns()) {
            columns.set_item(field.name(), list(py, column)?)?;
        }
        Ok(columns)
    }
}

fn list<'py>(py: Python<'py>, column: &Arc<dyn Array>) -> PyResult<Bound<'py, PyList>> {
    match column.data_type() {
        DataType::Utf8 => PyList::new(py, column.as_string::<i32>().iter().collect::<Vec<_>>()),
        DataType::UInt64 => PyList::new(py, column.as_primitive::<UInt64Type>().iter().collect::<Vec<_>>()),
        DataType::Float64 => PyList::new(py, column.as_primitive::<Float64Type>().iter().collect::<Vec<_>>()),
        DataType::Boolean => PyList::new(py, column.as_boolean().iter().collect::<Vec<_>>()),
        other => Err(failed(format_args!("a column of type {other} has no Python values"))),
    }
}
