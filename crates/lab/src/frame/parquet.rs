//! Frames as Parquet, compressed by zstd: text as UTF-8, whole numbers as unsigned 64 bits, numbers as
//! doubles with gaps as nulls. The metadata of a file says which version wrote it, and the unit of each
//! column.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
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
        Self::about(file, first, &[])
    }

    /// Begins such a file, whose metadata say what it is `about` besides: key and value.
    pub fn about(file: W, first: &Frame, about: &[(&str, String)]) -> Result<Self, Error> {
        let fields = first.columns().iter().map(|column| field(&column.name, &column.values).map(Arc::new));
        let units: BTreeMap<&str, &str> =
            first.columns().iter().filter_map(|column| Some((&*column.name, unit(&column.name)?))).collect();
        let units = serde_json::to_string(&units).map_err(|error| Error::json(&error))?;
        let own =
            [("brakelight.version", env!("CARGO_PKG_VERSION").to_string()), ("brakelight.units", units)];
        let entries =
            own.iter().chain(about).map(|(key, value)| KeyValue::new(key.to_string(), value.clone()));
        let properties = WriterProperties::builder()
            .set_created_by(format!("brakelight {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(entries.collect()));
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

/// The units that names of columns end in.
const UNITS: [&str; 8] = ["ms", "s", "mbps", "percent", "packets", "pkts", "bytes", "marks"];

/// The unit that the name of a column ends in.
fn unit(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('_')?;
    UNITS.into_iter().find(|unit| *unit == end)
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
    use parquet::file::metadata::ColumnChunkMetaData;
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
                column("rtt_p95_ms", Values::Number(vec![Some(1.5)])),
            ])
            .unwrap()
        };
        let about = [("brakelight.table", "runs".to_string())];
        let mut writer = Writer::about(Vec::new(), &frame(1), &about).unwrap();
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
                "{scheme: \"abc\", seed: 1, jain: 0.5, unreliable: false, rtt_p95_ms: 1.5}",
                "{scheme: \"abc\", seed: 18446744073709551615, jain: null, unreliable: false, rtt_p95_ms: 1.5}"
            ]
        );
        let metadata = reader.metadata();
        let said: BTreeMap<&str, Option<&str>> = metadata
            .file_metadata()
            .key_value_metadata()
            .unwrap()
            .iter()
            .map(|entry| (entry.key.as_str(), entry.value.as_deref()))
            .collect();
        assert_eq!(said["brakelight.units"], Some("{\"rtt_p95_ms\":\"ms\"}"));
        assert_eq!(said["brakelight.table"], Some("runs"));
        assert_eq!(said["brakelight.version"], Some(env!("CARGO_PKG_VERSION")));
        let compressed = |column: &ColumnChunkMetaData| matches!(column.compression(), Compression::ZSTD(_));
        assert!(metadata.row_groups().iter().flat_map(|group| group.columns()).all(compressed));
    }
}
