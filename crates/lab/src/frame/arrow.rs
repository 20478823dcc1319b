//! Frames as Arrow record batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};

use super::{Frame, Values};
use crate::error::Error;

impl Frame {
    /// Returns the rows as an Arrow record batch: text as UTF-8, whole numbers as unsigned 64 bits, numbers
    /// as doubles that may be null.
    pub fn record_batch(&self) -> Result<RecordBatch, Error> {
        let field = |name: &str, values: &Values| {
            let (kind, nullable) = match values {
                Values::Text(_) => (DataType::Utf8, false),
                Values::Count(_) => (DataType::UInt64, false),
                Values::Number(_) => (DataType::Float64, true),
                Values::Flag(_) => (DataType::Boolean, false),
            };
            Field::new(name, kind, nullable)
        };
        let array = |values: &Values| -> ArrayRef {
            match values {
                Values::Text(values) => Arc::new(StringArray::from_iter_values(values)),
                Values::Count(values) => Arc::new(UInt64Array::from_iter_values(values.iter().copied())),
                Values::Number(values) => Arc::new(Float64Array::from_iter(values.iter().copied())),
                Values::Flag(values) => Arc::new(BooleanArray::from(values.clone())),
            }
        };
        let fields: Vec<Field> =
            self.columns.iter().map(|column| field(&column.name, &column.values)).collect();
        let arrays = self.columns.iter().map(|column| array(&column.values)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map_err(|error| Error::Encode { format: "Arrow", reason: error.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use crate::{frame, testing};

    #[test]
    fn a_batch_has_every_row_and_column_and_nulls_where_values_are_missing() {
        let runs: Vec<_> = testing::outcomes(1).into_iter().map(|outcome| outcome.run).collect();
        let frame = frame::runs(&runs);
        let batch = frame.record_batch().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (frame.rows(), frame.columns().len()));
        assert_eq!(batch.column_by_name("jain").unwrap().null_count(), runs.len());
        assert_eq!(batch.column_by_name("throughput_mbps").unwrap().null_count(), 0);
    }
}
