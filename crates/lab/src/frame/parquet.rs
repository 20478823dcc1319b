//! Frames as Parquet: text as UTF-8, whole numbers as unsigned 64 bits, numbers as doubles with gaps as
//! nulls.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::{Frame, Values};
use crate::error::Error;

/// A Parquet file that grows by one frame after the other; each becomes a row group.
pub struct Writer<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> Writer<W> {
    /// Begins a file for frames with the columns of `first`, which is not yet written.
    pub fn new(file: W, first: &Frame) -> Result<Self, Error> {
        let fields = first.columns().iter().map(|column| field(&column.name, &column.values).map(Arc::new));
        let properties =
            WriterProperties::builder().set_created_by(format!("brakelight {}", env!("CARGO_PKG_VERSION")));
        let writer = fields.collect::<Result<_, _>>().and_then(|fields| {
            let schema = Type::group_type_builder("table").with_fields(fields).build()?;
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
        });
        Ok(Writer(writer.map_err(failed)?))
    }

    /// Writes the rows of `frame`.
    pub fn write(&mut self, frame: &Frame) -> Result<(), Error> {
        self.rows(frame).map_err(failed)
    }

    fn rows(&mut self, frame: &Frame) -> Result<(), ParquetError> {
        let mut rows = self.0.next_row_group()?;
        for column in frame.columns() {
            let mut writer = rows.next_column()?.ok_or_else(|| {
                ParquetError::General(format!("column `{}` is not in the file", column.name))
            })?;
            values(&mut writer, &column.values)?;
            writer.close()?;
        }
        rows.close()?;
        Ok(())
    }

    /// Ends the file.
    pub fn finish(self) -> Result<W, Error> {
        self.0.into_inner().map_err(failed)
    }
}

fn values(writer: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<usize, ParquetError> {
    match values {
        Values::Text(values) => {
            let values: Vec<ByteArray> = values.iter().map(|value| ByteArray::from(value.as_str())).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, None, None)
        }
        Values::Count(values) => {
            let values: Vec<i64> = values.iter().map(|value| value.cast_signed()).collect();
            writer.typed::<Int64Type>().write_batch(&values, None, None)
        }
        Values::Number(values) => {
            let there: Vec<f64> = values.iter().flatten().copied().collect();
            let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
            writer.typed::<DoubleType>().write_batch(&there, Some(&levels), None)
        }
        Values::Flag(values) => writer.typed::<BoolType>().write_batch(values, None, None),
    }
}

fn field(name: &str, values: &Values) -> Result<Type, ParquetError> {
    let required = |kind, logical| {
        let field = Type::primitive_type_builder(name, kind).with_repetition(Repetition::REQUIRED);
        field.with_logical_type(logical).build()
    };
    match values {
        Values::Text(_) => required(PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Count(_) => required(PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        Values::Flag(_) => required(PhysicalType::BOOLEAN, None),
        Values::Number(_) => {
            let field = Type::primitive_type_builder(name, PhysicalType::DOUBLE);
            field.with_repetition(Repetition::OPTIONAL).build()
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // As `map_err` gives it.
fn failed(error: ParquetError) -> Error {
    Error::Encode { format: "Parquet", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::frame::{Column, Values};

    #[test]
    fn a_file_of_two_frames_reads_back_types_and_gaps_included() {
        let column = |name: &str, values| Column { name: name.into(), values };
        let frame = |seed| {
            Frame::new(vec![
                column("scheme", Values::Text(vec!["abc".into()])),
                column("seed", Values::Count(vec![seed])),
                column("jain", Values::Number(vec![(seed == 1).then_some(0.5)])),
                column("unreliable", Values::Flag(vec![false])),
            ])
            .unwrap()
        };
        let mut writer = Writer::new(Vec::new(), &frame(1)).unwrap();
        writer.write(&frame(1)).unwrap();
        writer.write(&frame(u64::MAX)).unwrap();
        let path = std::env::temp_dir().join(format!("brakelight-frame-{}.parquet", std::process::id()));
        std::fs::write(&path, writer.finish().unwrap()).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            rows,
            [
                "{scheme: \"abc\", seed: 1, jain: 0.5, unreliable: false}",
                "{scheme: \"abc\", seed: 18446744073709551615, jain: null, unreliable: false}"
            ]
        );
    }
}
