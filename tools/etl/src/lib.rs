//! Reads, writes and decodes .etl (Event Trace Log) files.
