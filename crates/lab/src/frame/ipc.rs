//! Frames as Arrow IPC files, the files that pandas, polars, DuckDB and R call Feather version 2.
//!
//! ```text
//! ARROW1 0 0 | schema | record batch | end of stream | footer | its length | ARROW1
//! ```
//!
//! Schema and record batch are messages: a flatbuffer that describes the buffers, then the buffers. All
//! columns of a [`Frame`] are of four types, so this file writes those and needs no other crate: a page with
//! the simulator in it must stay small. Everything is little-endian, and buffers begin at multiples of 8.
//!
//! Source: <https://arrow.apache.org/docs/format/Columnar.html>, version 1.5 of the format, and its schemas
//! `Schema.fbs`, `Message.fbs` and `File.fbs`.

use super::{Frame, Values};
use crate::error::Error;
use flatbuffer::{Slot, Writer};

mod flatbuffer;

const MAGIC: &[u8; 6] = b"ARROW1";
/// Before the length of a message; with a length of 0 it is the end of the stream.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// `MetadataVersion.V5`.
const VERSION: i16 = 4;
/// `MessageHeader.Schema`.
const SCHEMA: u8 = 1;
/// `MessageHeader.RecordBatch`.
const RECORD_BATCH: u8 = 3;

/// `Type` of a column.
const INT: u8 = 2;
const FLOATING_POINT: u8 = 3;
const UTF8: u8 = 5;
const BOOL: u8 = 6;
/// `Precision.DOUBLE`.
const DOUBLE: i16 = 2;

impl Frame {
    /// Returns the rows as an Arrow IPC file with one record batch: text as UTF-8, whole numbers as unsigned
    /// 64 bits, numbers as doubles that may be null, flags as booleans. Fails if a column has more than 2 GB
    /// of text.
    pub fn arrow_file(&self) -> Result<Vec<u8>, Error> {
        let body = Body::of(self)?;
        let mut file = [MAGIC, &[0, 0][..]].concat();
        message(&mut file, SCHEMA, &[], |writer| self.schema(writer));
        let begin = file.len();
        let metadata = message(&mut file, RECORD_BATCH, &body.bytes, |writer| {
            let [nodes, buffers] =
                writer.table(&[Slot::Long(self.rows() as i64), Slot::Offset, Slot::Offset]);
            writer.structs(nodes, &body.nodes);
            writer.structs(buffers, &body.buffers);
        });
        file.extend_from_slice(&CONTINUATION);
        file.extend_from_slice(&[0; 4]);
        let mut footer = Writer::new();
        let [schema, dictionaries, batches] =
            footer.table(&[Slot::Short(VERSION), Slot::Offset, Slot::Offset, Slot::Offset]);
        footer.place(schema);
        self.schema(&mut footer);
        footer.structs::<3>(dictionaries, &[]);
        // The length of the metadata is 32 bits, and 32 bits of padding follow.
        footer.structs(batches, &[[begin as i64, metadata as i64, body.bytes.len() as i64]]);
        let footer = footer.finish();
        file.extend_from_slice(&footer);
        file.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        file.extend_from_slice(MAGIC);
        Ok(file)
    }

    /// Writes the table `Schema`.
    fn schema(&self, writer: &mut Writer) {
        let [fields] = writer.table(&[Slot::Short(0), Slot::Offset]);
        for (column, field) in self.columns.iter().zip(writer.offsets(fields, self.columns.len())) {
            writer.place(field);
            let (kind, nullable) = match column.values {
                Values::Text(_) => (UTF8, false),
                Values::Count(_) => (INT, false),
                Values::Number(_) => (FLOATING_POINT, true),
                Values::Flag(_) => (BOOL, false),
            };
            let [name, data_type, children] = writer.table(&[
                Slot::Offset,
                Slot::Byte(nullable.into()),
                Slot::Byte(kind),
                Slot::Offset,
                Slot::Absent,
                Slot::Offset,
            ]);
            writer.text(name, &column.name);
            writer.place(data_type);
            let [] = match column.values {
                Values::Count(_) => writer.table(&[Slot::Int(64), Slot::Byte(0)]),
                Values::Number(_) => writer.table(&[Slot::Short(DOUBLE)]),
                Values::Text(_) | Values::Flag(_) => writer.table(&[]),
            };
            writer.offsets(children, 0);
        }
    }
}

/// Appends a message with `body` whose header is the table that `header` writes. Returns the length of what
/// stands before the body.
fn message(file: &mut Vec<u8>, kind: u8, body: &[u8], header: impl FnOnce(&mut Writer)) -> usize {
    let mut writer = Writer::new();
    let [place] =
        writer.table(&[Slot::Short(VERSION), Slot::Byte(kind), Slot::Offset, Slot::Long(body.len() as i64)]);
    writer.place(place);
    header(&mut writer);
    let metadata = writer.finish();
    file.extend_from_slice(&CONTINUATION);
    file.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
    file.extend_from_slice(&metadata);
    file.extend_from_slice(body);
    CONTINUATION.len() + 4 + metadata.len()
}

/// The buffers of all columns.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    /// Rows and nulls of each column.
    nodes: Vec<[i64; 2]>,
    /// Where each buffer begins, and its length.
    buffers: Vec<[i64; 2]>,
}

impl Body {
    fn of(frame: &Frame) -> Result<Self, Error> {
        let mut body = Body::default();
        for column in &frame.columns {
            body.column(&column.values).ok_or_else(|| Error::Encode {
                format: "Arrow",
                reason: format!("column `{}` has more than 2 GB of text", column.name),
            })?;
        }
        Ok(body)
    }

    /// Appends the buffers of a column: which values are there, for text where each ends, the values. `None`
    /// if they do not fit.
    fn column(&mut self, values: &Values) -> Option<()> {
        let missing = match values {
            Values::Number(values) => values.iter().filter(|value| value.is_none()).count(),
            _ => 0,
        };
        self.nodes.push([values.len() as i64, missing as i64]);
        match values {
            Values::Number(values) if missing > 0 => self.bits(values.iter().map(Option::is_some)),
            _ => self.buffer([]),
        }
        match values {
            Values::Text(values) => {
                let mut end = 0_i32;
                let mut ends = vec![end];
                for value in values {
                    end = end.checked_add(i32::try_from(value.len()).ok()?)?;
                    ends.push(end);
                }
                self.buffer(ends.into_iter().flat_map(i32::to_le_bytes));
                self.buffer(values.iter().flat_map(|value| value.bytes()));
            }
            Values::Count(values) => self.buffer(values.iter().copied().flat_map(u64::to_le_bytes)),
            Values::Number(values) => {
                self.buffer(values.iter().map(|value| value.unwrap_or_default()).flat_map(f64::to_le_bytes));
            }
            Values::Flag(values) => self.bits(values.iter().copied()),
        }
        Some(())
    }

    /// Appends a bit for each value, the first one the lowest of its byte.
    fn bits(&mut self, values: impl Iterator<Item = bool>) {
        let values: Vec<bool> = values.collect();
        let byte = |bits: &[bool]| {
            bits.iter().enumerate().fold(0, |byte, (place, &bit)| byte | u8::from(bit) << place)
        };
        self.buffer(values.chunks(8).map(byte));
    }

    fn buffer(&mut self, bytes: impl IntoIterator<Item = u8>) {
        let begin = self.bytes.len();
        self.bytes.extend(bytes);
        self.buffers.push([begin as i64, (self.bytes.len() - begin) as i64]);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }
}

#[cfg(test)]
mod tests;
