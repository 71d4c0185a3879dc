"""Prints what dissect.etl reads from an .etl file: one JSON object per line, header first."""
import json
import sys
import uuid

from dissect.etl.etl import ETL


def header_of(etl):
    logfile = etl.logfile_header
    header = logfile.header
    return {
        "logger": logfile.logger_name,
        "file": logfile.log_filename,
        "buffers": logfile.buffers_written,
        "ptr": logfile.pointer_size,
        "cpus": header.NumberOfProcessors,
        "lost": header.EventsLost,
        "buflost": header.BufferLost,
        "clock": header.ReservedFlags,
        "freq": logfile.perf_freq,
        "start": logfile.start_time,
        "end": logfile.end_time,
        "mode": header.LogFileMode,
    }


def extensions_of(header):
    """Returns the extended data items, and the number of payload bytes that they take."""
    items, size = [], 0
    if header.header.Flags & 1:
        for item in header.header_extensions:
            size += item.size
            items.append([int(item.ext_type), item.raw_data.hex()])
            if not item.reserved1 & 1:
                break
    return items, size


def event_of(buffer, header):
    items, size = extensions_of(header)
    descriptor = header.descriptor
    return {
        "cpu": buffer.header.ProcessorIndex,
        "provider": str(uuid.UUID(bytes_le=header.header.ProviderId)),
        "id": descriptor.id,
        "ver": descriptor.version,
        "chan": descriptor.channel,
        "level": descriptor.level,
        "op": descriptor.opcode,
        "task": descriptor.task,
        "kw": descriptor.keywords,
        "pid": header.process_id,
        "tid": header.thread_id,
        "raw_ts": header.header.TimeDelta,
        "time": header.timestamp.isoformat(),
        "activity": str(header.activity_id),
        "ext": items,
        "user": bytes(header.payload[size:]).hex(),
    }


def main():
    with open(sys.argv[1], "rb") as file:
        etl = ETL(file)
        print(json.dumps(header_of(etl)))
        for buffer in etl.buffers():
            for record in buffer:
                header = record.header
                # Other records (the kernel's own) have other headers.
                if type(header).__name__ == "EventHeader":
                    print(json.dumps(event_of(buffer, header)))


if __name__ == "__main__":
    main()
