//! Time series as Parquet: every column a double, gaps as nulls.

use std::sync::Arc;

use parquet::basic::{Compression, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::DoubleType;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::Columns;
use crate::error::Error;

/// Returns the file.
pub fn encode(columns: &Columns) -> Result<Vec<u8>, Error> {
    write(columns).map_err(|error| Error::Encode { format: "Parquet", reason: error.to_string() })
}

fn write(columns: &Columns) -> Result<Vec<u8>, ParquetError> {
    let field = |name: &str| {
        let column = Type::primitive_type_builder(name, PhysicalType::DOUBLE);
        column.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = columns.iter().map(|(name, _)| field(name)).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("series").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_created_by(format!("brakelight {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::default()));
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties.build()))?;
    let mut rows = writer.next_row_group()?;
    for (_, values) in columns {
        let there: Vec<f64> = values.iter().flatten().copied().collect();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let mut column = rows
            .next_column()?
            .ok_or_else(|| ParquetError::General("the schema has fewer columns than the data".into()))?;
        column.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
        column.close()?;
    }
    rows.close()?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn a_file_reads_back_gaps_included() {
        let columns: Columns =
            vec![("time_s".into(), vec![Some(0.0), Some(0.1)]), ("rtt_ms".into(), vec![None, Some(104.25)])];
        let path = std::env::temp_dir().join(format!("brakelight-{}.parquet", std::process::id()));
        std::fs::write(&path, encode(&columns).unwrap()).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(rows, ["{time_s: 0E0, rtt_ms: null}", "{time_s: 0.1, rtt_ms: 104.25}"]);
    }
}
