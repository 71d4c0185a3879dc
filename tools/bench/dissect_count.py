"""Counts the events of an .etl file with dissect.etl, and reads their headers and user data."""
import sys

from dissect.etl.etl import ETL

events = size = 0
with open(sys.argv[1], "rb") as file:
    for buffer in ETL(file).buffers():
        for record in buffer:
            header = record.header
            if type(header).__name__ == "EventHeader" and header.descriptor is not None:
                events += 1
                size += len(header.payload)
print(events, size)
