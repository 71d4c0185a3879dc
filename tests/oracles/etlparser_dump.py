"""Prints what etl-parser reads from an .etl file: one JSON object per line, header first."""
import json
import os
import struct
import sys
import types

import etl.parsers
from etl.error import TlMetaDataNotFound

# `etl.parsers.etw.__init__` imports a thousand modules with events of Windows' providers, which
# takes two seconds. No test compares such events.
WINDOWS = types.ModuleType("etl.parsers.etw")
WINDOWS.__path__ = [os.path.join(path, "etw") for path in etl.parsers.__path__]
sys.modules[WINDOWS.__name__] = WINDOWS

from etl.etl import ChunkParser, EtlLogFile, IEtlFileObserver, build_from_stream


def header_of(raw, etl):
    source = etl.get_header().source
    # The parser omits some fields of TRACE_LOGFILE_HEADER, so the record is read again.
    mof = ChunkParser.parse(EtlLogFile.parse(raw)[0].payload)[0].value.mof_data
    _boot, freq, start, clock, buffers_lost = struct.unpack_from("<qqqII", mof, 0xF8)
    names = mof[0x118:].decode("utf-16le").split("\0")
    return {
        "logger": names[0],
        "file": names[1],
        "buffers": source.BuffersWritten,
        "ptr": source.PointerSize,
        "cpus": source.NumberOfProcessors,
        "lost": source.EventsLost,
        "buflost": buffers_lost,
        "clock": clock,
        "freq": freq,
        "start": start,
        "end": source.EndTime,
        "mode": source.LogFileMode,
    }


def plain(value):
    """A parsed value in a form that JSON can represent."""
    kind = getattr(value, "type", None)
    if kind == "WString":
        return bytes(value.string)[:-2].decode("utf-16le")
    if kind == "CString":
        return bytes(value.string)[:-1].decode()
    if kind == "Guid":
        guid = value.inner
        tail = bytes(guid.data4)
        return "%08x-%04x-%04x-%s-%s" % (
            guid.data1,
            guid.data2,
            guid.data3,
            tail[:2].hex(),
            tail[2:].hex(),
        )
    return list(value) if isinstance(value, list) else value


class Events(IEtlFileObserver):
    def on_event_record(self, event):
        header = event.source.event_header
        descriptor = header.event_descriptor
        out = {
            "provider": plain(header.provider_id),
            "id": descriptor.Id,
            "ver": descriptor.Version,
            "chan": descriptor.Channel,
            "level": descriptor.Level,
            "op": descriptor.Opcode,
            "task": descriptor.Task,
            "kw": descriptor.Keyword,
            "pid": event.get_process_id(),
            "tid": event.get_thread_id(),
            "raw_ts": event.get_timestamp(),
            "activity": plain(header.activity_id),
            "ext": [
                [item.ext_type, bytes(item.data_item).hex()]
                for item in event.source.extended_data or []
            ],
            "user": bytes(event.source.user_data).hex(),
        }
        try:
            fields = event.parse_tracelogging()
            values = {name: plain(value) for name, value in fields.items()}
            out["tl"] = [fields.get_name(), values]
        except TlMetaDataNotFound:
            pass
        print(json.dumps(out))

    def on_trace_record(self, event):
        print('{"other":"trace"}')

    def on_perfinfo_trace(self, event):
        print('{"other":"perfinfo"}')

    def on_system_trace(self, event):
        print('{"other":"system"}')

    def on_win_trace(self, event):
        print('{"other":"wintrace"}')


def main():
    with open(sys.argv[1], "rb") as file:
        raw = file.read()
    etl = build_from_stream(raw)
    header = header_of(raw, etl)
    print(json.dumps(header))
    # The parser silently drops a chunk with a bad size.
    assert len(etl.chunks) == header["buffers"] - 1, "a chunk was dropped"
    etl.parse(Events())


if __name__ == "__main__":
    main()
