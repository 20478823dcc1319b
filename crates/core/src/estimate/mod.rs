//! Filters and estimators: one per file.
