//! Rows as columns, in Arrow's memory layout. Whoever knows the Arrow PyCapsule interface takes them without
//! a copy.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use brakelight::lab;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use serde::{Deserialize, Serialize};

use crate::error::{failed, input, of_lab};
use crate::travel::{Reduced, packed, reduced_to_bytes, unpacked};

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

/// The values of a column, in bytes.
#[derive(Serialize, Deserialize)]
enum Packed {
    Text(Vec<Option<String>>),
    Count(Vec<Option<u64>>),
    Number(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

impl Packed {
    fn of(column: &Arc<dyn Array>) -> PyResult<Self> {
        match column.data_type() {
            DataType::Utf8 => {
                let values = column.as_string::<i32>().iter();
                Ok(Packed::Text(values.map(|value| value.map(String::from)).collect()))
            }
            DataType::UInt64 => Ok(Packed::Count(column.as_primitive::<UInt64Type>().iter().collect())),
            DataType::Float64 => Ok(Packed::Number(column.as_primitive::<Float64Type>().iter().collect())),
            DataType::Boolean => Ok(Packed::Flag(column.as_boolean().iter().collect())),
            other => Err(unknown(other)),
        }
    }

    fn array(self) -> Arc<dyn Array> {
        match self {
            Packed::Text(values) => Arc::new(StringArray::from(values)),
            Packed::Count(values) => Arc::new(UInt64Array::from(values)),
            Packed::Number(values) => Arc::new(Float64Array::from(values)),
            Packed::Flag(values) => Arc::new(BooleanArray::from(values)),
        }
    }
}

#[pymethods]
impl Frame {
    /// The rows of these bytes.
    #[new]
    fn new(bytes: &[u8]) -> PyResult<Self> {
        let columns: Vec<(String, bool, Packed)> = unpacked(bytes)?;
        let (fields, arrays): (Vec<Field>, Vec<Arc<dyn Array>>) = columns
            .into_iter()
            .map(|(name, nullable, values)| {
                let array = values.array();
                (Field::new(name, array.data_type().clone(), nullable), array)
            })
            .unzip();
        let schema = Arc::new(Schema::new(fields));
        Ok(Frame { batch: RecordBatch::try_new(schema, arrays).map_err(input)? })
    }

    fn __reduce__<'py>(own: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let batch = &own.get().batch;
        let fields = batch.schema_ref().fields().iter().zip(batch.columns());
        let columns =
            fields.map(|(field, column)| Ok((field.name(), field.is_nullable(), Packed::of(column)?)));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        reduced_to_bytes(own.as_any(), &packed(&columns)?)
    }

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
        other => Err(unknown(other)),
    }
}

fn unknown(kind: &DataType) -> PyErr {
    failed(format_args!("a column of type {kind} has no Python values"))
}
