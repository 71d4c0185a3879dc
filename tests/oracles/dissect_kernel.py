# dissect.etl 3.14 -> one JSON object per system, performance or classic record, in the order of the file
import json, sys
from dissect.cstruct import Structure
from dissect.etl import manifest as manifests
from dissect.etl.etl import ETL
from dissect.util.sid import read_sid

# Three corrections, without which dissect.etl cannot decode classes with such a field, or 32-bit headers: sizes (SizeT)
# have the size of a pointer, 8-bit text (AnsiString) is like String, and as_32bit lacks its decorator.
manifests.FIELD_MAP["SizeT"] = "EtwPointer {name}"
manifests.FIELD_MAP["AnsiString"] = manifests.FIELD_MAP["String"]
narrow = "    def as_32bit(cls):\n        if cls"
assert manifests.CLASS_FMT.count(narrow) == 2
manifests.CLASS_FMT = manifests.CLASS_FMT.replace(narrow, "    @classmethod\n" + narrow)

def plain(value):
    if isinstance(value, Structure):
        return read_sid(value.sid.dumps()) if hasattr(value, "sid") else str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, str):
        return value.split("\0")[0]
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value)

with open(sys.argv[1], "rb") as fh:
    for buf in ETL(fh).buffers():
        for rec in buf:
            h = rec.header
            if type(h).__name__ == "EventHeader":
                continue
            line = {"header": type(h).__name__, "raw_ts": h.time_delta, "payload": bytes(h.payload).hex(),
                "tid": getattr(h, "thread_id", None), "pid": getattr(h, "process_id", None)}
            if hasattr(h, "hook_id"):
                line.update(hook=h.hook_id, version=h.version & 0xFF, cls=str(h.provider_id))
                try:
                    event = rec.event
                    if event._struct is not None:
                        line["name"] = event._event.symbol
                        line["fields"] = {name: plain(value) for name, value in event._struct.__values__.items()}
                except Exception as error:
                    line["error"] = f"{type(error).__name__}: {error}"
            elif type(h).__name__ != "MessageTraceHeader":
                line.update(cls=str(h.provider_id))
            print(json.dumps(line))
