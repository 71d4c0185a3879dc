"""Prints the WPP messages that dissect.etl finds in an .etl file: one JSON object per line."""
import json
import sys

from dissect.etl.etl import ETL

with open(sys.argv[1], "rb") as file:
    for buffer in ETL(file).buffers():
        for record in buffer:
            header = record.header
            if type(header).__name__ != "MessageTraceHeader":
                continue
            parts = [
                (header.sequence_number, 4),
                (header.provider_id, 16),
                (header.time_delta, 8),
                (header.thread_id, 8),
            ]
            skipped = sum(size for part, size in parts if part is not None)
            print(json.dumps({
                "number": header.id,
                "sequence": header.sequence_number,
                "guid": str(header.provider_id),
                "time": header.time_delta,
                "thread": header.thread_id,
                "process": header.process_id,
                "arguments": list(header.payload[skipped:]),
            }))
