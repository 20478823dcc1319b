//! What `iperf3 --json-stream` prints (3.17 and later): the parts of `--json`, one object a line, each as
//! `{"event": NAME, "data": PART}`.
//!
//! | event | becomes |
//! |---|---|
//! | `start`, `end`, `server_output_json`, `error` | the key of that name |
//! | `interval` | one of `intervals` |
//! | any other | nothing |
//!
//! A last line that breaks off, as of a program that was stopped, is left out.

use serde_json::{Deserializer, Map, Value, json};

use super::{ConvertError, refuse_json};

/// Returns the document that `iperf3 --json` would have printed; `None` if the text has another form.
pub(super) fn document(bytes: &[u8]) -> Option<Result<Value, ConvertError>> {
    let mut document = Map::new();
    let mut intervals = Vec::new();
    let mut read = 0_usize;
    for object in Deserializer::from_slice(bytes).into_iter::<Value>() {
        let mut object = match object {
            Ok(object) => object,
            Err(_) if read == 0 => return None,
            Err(error) if error.is_eof() && !intervals.is_empty() => break,
            Err(error) => {
                return Some(Err(refuse_json(format!("line {}", read + 1), format!("not JSON: {error}"))));
            }
        };
        read += 1;
        let Some(event) = object.get("event").and_then(Value::as_str).map(String::from) else {
            // The whole document, which `--json-stream-full-output` prints after the events.
            if read > 1 && object.get("intervals").is_some() {
                return Some(Ok(object));
            }
            if read == 1 {
                return None;
            }
            continue;
        };
        let data = object.get_mut("data").map_or(Value::Null, Value::take);
        match event.as_str() {
            "interval" => intervals.push(data),
            "start" | "end" | "error" | "server_output_json" => drop(document.insert(event, data)),
            _ => {}
        }
    }
    (read > 0).then(|| {
        document.insert("intervals".to_string(), json!(intervals));
        Ok(Value::Object(document))
    })
}
