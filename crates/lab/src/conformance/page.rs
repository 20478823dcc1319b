//! Conformance as a page: that of each link, and both clouds with their envelopes.

use serde_json::{Value, json};

use super::{Cell, Conformance, Conforming};
use crate::report::{origin_rows, page};
use crate::text::conformance::verdict;

const BODY: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// Returns the file.
pub fn html(conformance: &Conformance) -> String {
    let title = format!("Is it like {}?", conformance.reference);
    let scheme = |scheme: &Conforming| {
        json!({
            "name": scheme.scheme,
            "verdict": verdict(scheme, &conformance.reference),
            "cells": scheme.cells.iter().map(cell).collect::<Vec<_>>(),
        })
    };
    let data = json!({
        "title": title,
        "reference": conformance.reference,
        "setting": [("level", conformance.level.clone()), ("runs of each cloud", conformance.runs.to_string())],
        "origin": origin_rows(&conformance.origin),
        "schemes": conformance.schemes.iter().map(scheme).collect::<Vec<_>>(),
    });
    page(&title, BODY, &data, SCRIPT)
}

fn cell(cell: &Cell) -> Value {
    json!({
        "place": cell.place(), "conformance": cell.conformance, "moved": cell.conformance_t, "overlap": cell.overlap,
        "throughput": cell.throughput_offset_mbps, "delay": cell.delay_offset_ms, "note": cell.note,
        "own": cell.own, "reference": cell.reference,
    })
}
