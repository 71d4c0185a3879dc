"""Reads exported tables with DuckDB and with pyarrow, and runs the queries of a page on them.

Usage: parquet_dump.py FOLDER [PAGE]

Prints JSON lines: the events as both readers see them, each table by event as pyarrow sees it, and the
number of rows of each query in the page's blocks of SQL, with FOLDER in place of `lake`.
"""

import json
import re
import sys
from pathlib import Path

import duckdb
import pyarrow.dataset
import pyarrow.parquet


def plain(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and value != value:
        return "NaN"
    return value


def rows_of(table):
    # Python's times end at microseconds.
    for at, field in enumerate(table.schema):
        if pyarrow.types.is_timestamp(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pyarrow.int64()))
    for row in table.to_pylist():
        yield {name: plain(value) for name, value in row.items()}


def main():
    folder = Path(sys.argv[1])
    events = pyarrow.dataset.dataset(folder / "events", partitioning="hive").to_table()
    for row in sorted(rows_of(events), key=lambda row: row["timestamp"]):
        print(json.dumps({"reader": "pyarrow", **row}, default=str))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    names = "timestamp, epoch_ns(time) AS time, host, provider, process, fields"
    files = f"read_parquet('{folder}/events/**/*.parquet', hive_partitioning = true)"
    query = connection.execute(f"SELECT {names} FROM {files} ORDER BY timestamp")
    columns = [column[0] for column in query.description]
    for row in query.fetchall():
        print(json.dumps({"reader": "duckdb", **dict(zip(columns, row))}, default=str))
    for file in sorted((folder / "by_event").glob("**/*.parquet")):
        for row in rows_of(pyarrow.parquet.ParquetFile(file).read()):
            print(json.dumps({"reader": "table", "file": str(file), **row}, default=str))
    for page in sys.argv[2:]:
        for query in re.findall(r"```sql\n(.*?)```", Path(page).read_text(), re.DOTALL):
            rows = connection.execute(query.replace("'lake/", f"'{folder}/")).fetchall()
            print(json.dumps({"reader": "query", "query": query, "rows": len(rows)}))


main()
