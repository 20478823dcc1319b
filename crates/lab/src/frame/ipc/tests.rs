//! What is written is read by Arrow's own reader.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_ipc::reader::FileReader;

use crate::frame::{Column, Frame, Values, every_run, link_series};
use crate::testing;

/// The only batch of the file.
fn read(file: Vec<u8>) -> RecordBatch {
    let mut reader = FileReader::try_new(Cursor::new(file), None).unwrap();
    let batch = reader.next().unwrap().unwrap();
    assert!(reader.next().is_none());
    batch
}

/// Holds every value of the batch to be that of the frame.
fn agree(batch: &RecordBatch, frame: &Frame) {
    assert_eq!((batch.num_rows(), batch.num_columns()), (frame.rows(), frame.columns().len()));
    for column in frame.columns() {
        let array = batch.column_by_name(&column.name).unwrap();
        match &column.values {
            Values::Text(values) => {
                let read: Vec<&str> = array.as_string::<i32>().iter().flatten().collect();
                assert_eq!(&read, values);
            }
            Values::Count(values) => assert_eq!(array.as_primitive::<UInt64Type>().values(), &values[..]),
            Values::Number(values) => {
                assert_eq!(array.as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), *values);
            }
            Values::Flag(values) => {
                assert_eq!(array.as_boolean().iter().flatten().collect::<Vec<_>>(), *values);
            }
        }
    }
}

#[test]
fn arrow_reads_back_what_was_written() {
    let column = |name: &str, values: Values| Column { name: name.into(), values };
    for rows in [0, 1, 2, 7, 8, 9, 1000] {
        let each = |value: fn(usize) -> String| (0..rows).map(value).collect();
        let frame = Frame::new(vec![
            column("text", Values::Text(each(|row| format!("{}\u{fc}\"", "ab".repeat(row % 5))))),
            column("count", Values::Count((0..rows).map(|row| u64::MAX - row as u64).collect())),
            column(
                "gaps",
                Values::Number((0..rows).map(|row| (row % 3 > 0).then_some(0.1 * row as f64)).collect()),
            ),
            column("whole", Values::Number((0..rows).map(|row| Some(-1e300 / (1 + row) as f64)).collect())),
            column("none", Values::Number(vec![None; rows])),
            column("flag", Values::Flag((0..rows).map(|row| row % 5 == 0).collect())),
        ]);
        let frame = frame.unwrap();
        agree(&read(frame.arrow_file().unwrap()), &frame);
    }
    let none = Frame::default();
    agree(&read(none.arrow_file().unwrap()), &none);
}

#[test]
fn runs_and_series_are_the_same_in_arrow_and_in_csv() {
    let outcomes = testing::outcomes(4);
    let runs = every_run(outcomes.iter().map(|outcome| &outcome.run));
    let series = outcomes.iter().enumerate();
    let series = series.filter_map(|(index, outcome)| Some((index, &outcome.run, outcome.series.as_ref()?)));
    let series = link_series(series);
    for frame in [runs, series] {
        let batch = read(frame.arrow_file().unwrap());
        agree(&batch, &frame);
        assert!(frame.rows() > 1);
        assert_eq!(frame.csv_rows().lines().count(), batch.num_rows());
        let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(frame.csv_heading().trim_end(), names.join(","));
    }
}
