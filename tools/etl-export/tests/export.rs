//! Exports traces with the program, and reads what it writes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_file::{ClockType, EventRecord, FirstPass, Pipeline, TraceFile};
use etl_fixtures::{schema_events, trace};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::Value;
use tempfile::TempDir;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/many-machines.md");

/// Exports the fixtures' events of two hosts, and an event source whose processes write different
/// manifests. Returns the folder with the traces and the exported files.
fn exported(format: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let (file, _) = trace::file(header.clone(), 20, etl_file::write::Losses::default());
    let part = |process, name: &str| {
        let xml = schema_events::manifest(name);
        schema_events::chunk(schema_events::PROVIDER, process, xml.as_bytes(), 1, 0)
    };
    let event = |process_id: u32| EventRecord {
        provider: schema_events::PROVIDER,
        descriptor: schema_events::sample().descriptor,
        process_id,
        user_data: vec![7, 0, 0, 0],
        ..EventRecord::default()
    };
    let events = [part(1, "One"), part(2, "Two"), event(1), event(2), event(1), event(2)];
    let events = (header.start_clock + 1..).zip(events);
    let events = events.map(|(timestamp, event)| EventRecord { timestamp, ..event });
    let two = trace::of_records(header.clone(), header.start_clock + 100, events);
    for (name, bytes) in [("a@1.etl", &file), ("b@1.etl", &file), ("c@two builds.etl", &two)] {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_etl-export"));
    command.current_dir(folder.path()).args(["--format", format, "--out", "lake"]);
    command.arg("--man").arg(trace::manifest_path());
    let output = command.args(["a@1.etl", "b@1.etl", "c@two builds.etl"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    folder
}

/// Returns the events of a trace as JSON, by the readings of the clock.
fn json(path: &Path) -> BTreeMap<i64, Value> {
    let mut file = TraceFile::open(path).unwrap();
    let mut catalog = etl_file::Catalog::new();
    catalog.load(trace::manifest_path()).unwrap();
    FirstPass::read(&mut file).unwrap().schemas.add_to(&mut catalog);
    let mut lines = Vec::new();
    let mut members = etl_file::lines::Members::default();
    let (events, _) = trace::events(&mut file, &Pipeline::new(&catalog));
    for (event, decoded) in &events {
        members.line(&event.view(), decoded, &mut lines).unwrap();
    }
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    events.map(|event| (event["timestamp"].as_i64().unwrap(), event)).collect()
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn events_are_partitioned_by_provider_and_date_and_traces_stay_apart() {
    let folder = exported("parquet");
    let lake = folder.path().join("lake");
    let rows = |part: &str| {
        let files = files(&lake.join(part)).into_iter().map(|path| {
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            let rows = reader.metadata().file_metadata().num_rows();
            (path.strip_prefix(&lake).unwrap().to_str().unwrap().to_owned(), rows)
        });
        files.collect::<Vec<_>>()
    };
    let events = rows("events");
    assert_eq!(events.iter().map(|(_, rows)| rows).sum::<i64>(), 46);
    let start = trace::START.raw();
    for (path, expected) in [
        (format!("events/provider=Fixture.Device/date=2026-01-02/a%401-{start}-0.parquet"), 10),
        (format!("events/provider=Fixture.Device/date=2026-01-02/b%401-{start}-0.parquet"), 10),
    ] {
        assert!(events.contains(&(path.clone(), expected)), "{path}: {events:#?}");
    }
    // The events of processes with other fields share a table, in few files.
    let of_source = rows("by_event/provider=Contoso-Own/event=id-5-5-v2");
    assert_eq!(of_source.iter().map(|(_, rows)| rows).sum::<i64>(), 4, "{of_source:?}");
    assert!(of_source.len() <= 2, "{of_source:?}");
}

#[test]
fn events_are_log_records_and_activities_spans() {
    let folder = exported("otlp");
    let lines = |end: &str| -> Vec<Value> {
        let files = files(&folder.path().join("lake"));
        let of_host = files.iter().find(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("a@1") && name.ends_with(end)
        });
        let text = fs::read_to_string(of_host.unwrap()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let logs = lines("-logs.jsonl");
    assert_eq!(logs.len(), 20);
    let log = logs
        .iter()
        .map(|line| &line["resourceLogs"][0]["scopeLogs"][0])
        .find(|scope| scope["scope"]["name"] == "Fixture.Device")
        .unwrap();
    let record = &log["logRecords"][0];
    assert_eq!(record["traceId"], "b2".repeat(16));
    assert_eq!((&record["severityNumber"], &record["severityText"]), (&9.into(), &"INFO".into()));
    let attributes = record["attributes"].as_array().unwrap();
    let kind = attributes.iter().find(|attribute| attribute["key"] == "kind").unwrap();
    let entries = &kind["value"]["kvlistValue"]["values"];
    assert!(entries[1]["value"]["stringValue"].is_string(), "{kind}");
    let spans = lines("-spans.jsonl");
    assert!(!spans.is_empty());
    for line in &spans {
        let span = &line["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
    }
}

/// Returns true if a value in a table is that in JSON, whose hexadecimal numbers are text.
fn is_same(table: &Value, json: &Value) -> bool {
    match (table, json) {
        (Value::Number(number), Value::String(text)) => {
            let digits = text.strip_prefix("0x");
            digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) == number.as_u64()
        }
        (Value::Object(table), Value::Object(json)) if json.contains_key("name") => {
            is_same(&table["value"], &json["value"])
                && table.get("name").is_none_or(|name| *name == json["name"])
        }
        (Value::Object(table), Value::Object(json)) => {
            table.len() == json.len()
                && table.iter().all(|(name, value)| is_same(value, &json[name]))
        }
        (Value::Number(number), Value::Object(json)) => {
            is_same(&Value::Number(number.clone()), &json["value"])
        }
        (Value::Object(table), Value::Number(_)) => table["value"] == *json,
        (Value::Array(table), Value::Array(json)) => {
            table.len() == json.len()
                && table.iter().zip(json).all(|(table, json)| is_same(table, json))
        }
        (table, json) => table == json,
    }
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn duckdb_and_pyarrow_read_every_value_of_the_json() {
    let folder = exported("parquet");
    let lake = folder.path().join("lake");
    let output = etw_test_support::run_python([
        etw_test_support::oracle("parquet_dump.py"),
        lake,
        PAGE.into(),
    ]);
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let rows: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let expected = json(&folder.path().join("a@1.etl"));
    for reader in ["pyarrow", "duckdb"] {
        let of_host = |row: &&Value| row["reader"] == reader && row["host"] == "a";
        let found: Vec<&Value> = rows.iter().filter(of_host).collect();
        assert_eq!(found.len(), expected.len(), "{reader}");
        for row in found {
            let event = &expected[&row["timestamp"].as_i64().unwrap()];
            let fields: Value = serde_json::from_str(row["fields"].as_str().unwrap()).unwrap();
            assert_eq!(fields, event["fields"], "{reader}");
            assert_eq!(row["process"], event["process"], "{reader}");
            let time: etl_file::FileTime = event["time"].as_str().unwrap().parse().unwrap();
            assert_eq!(row["time"], i64::try_from(time.unix_nanos()).unwrap(), "{reader}");
        }
    }
    let mut compared = 0;
    for row in rows.iter().filter(|row| row["reader"] == "table" && row["host"] == "a") {
        let time = row["time"].as_i64().unwrap();
        let event = expected.values().find(|event| {
            let own: etl_file::FileTime = event["time"].as_str().unwrap().parse().unwrap();
            i64::try_from(own.unix_nanos()).unwrap() == time
        });
        for (name, value) in event.unwrap()["fields"].as_object().unwrap() {
            assert!(is_same(&row[name], value), "{name}: {} {value}", row[name]);
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared} values");
    let queries: Vec<&Value> = rows.iter().filter(|row| row["reader"] == "query").collect();
    assert!(queries.len() >= 5);
    for query in queries {
        assert!(query["rows"].as_u64() > Some(0), "{query:#}");
    }
}
