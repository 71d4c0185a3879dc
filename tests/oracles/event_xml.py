"""Writes the events of an .etl file like Windows' decoders, for the tests of `etl compare`.

    event_xml.py FORM TRACE [MANIFEST]

FORM is `tracerpt` (XML in UTF-16), `winevent` (JSON with the XML of each event) or `tdh` (the lines of
the sample driver's client). dissect.etl reads the records; the fields are decoded here, from the
documents about TraceLogging metadata and manifests and not from this project's decoder.
"""
import datetime
import json
import re
import struct
import sys
import uuid
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from dissect.etl.etl import ETL

EVENT = "http://schemas.microsoft.com/win/2004/08/events/event"
EVENTS = "{http://schemas.microsoft.com/win/2004/08/events}"
EPOCH = datetime.datetime(1601, 1, 1)
SCHEMA, TRAITS, RELATED = 11, 12, 1
NUMBERS = {3: "b", 4: "B", 5: "h", 6: "H", 7: "i", 8: "I", 9: "q", 10: "Q",
           11: "f", 12: "d", 13: "i", 20: "I", 21: "Q"}
MANIFEST_TYPES = {"Int8": 3, "UInt8": 4, "Int16": 5, "UInt16": 6, "Int32": 7, "UInt32": 8,
                  "Int64": 9, "UInt64": 10, "Float": 11, "Double": 12, "Boolean": 13,
                  "UnicodeString": 1, "AnsiString": 2, "GUID": 15, "HexInt32": 20, "HexInt64": 21}
STATUS = {"win:NTSTATUS", 14}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise ValueError("the data ends in a field")
        self.at += size
        return self.data[self.at - size:self.at]

    def unpack(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def until_nul(self, size):
        start = self.at
        while any(self.take(size)):
            pass
        return self.data[start:self.at - size]

    def chain(self):
        """A byte whose top bit says that another byte follows: the first byte and the others."""
        first = self.unpack("B")
        if first & 0x80:
            rest, _ = self.chain()
            return first & 0x7F, rest
        return first, None


def text_of(kind, out, reader):
    """The text of a value, as documented for Windows' decoders."""
    if kind == 1:
        return reader.until_nul(2).decode("utf-16-le")
    if kind == 2:
        return reader.until_nul(1).decode("utf-8" if out == 35 else "latin-1")
    if kind in (22, 23):
        data = reader.take(reader.unpack("H"))
        return data.decode("utf-16-le" if kind == 22 else "utf-8" if out == 35 else "latin-1")
    if kind in (14, 25):
        return reader.take(reader.unpack("H")).hex().upper()
    if kind == 15:
        return "{%s}" % str(uuid.UUID(bytes_le=bytes(reader.take(16)))).upper()
    if kind == 17:
        return time_text(reader.unpack("Q"))
    if kind == 19:
        revision, count, high, low = struct.unpack(">BBHI", reader.take(8))
        parts = [str(reader.unpack("I")) for _ in range(count)]
        return "-".join(["S", str(revision), str(high << 32 | low)] + parts)
    value = reader.unpack(NUMBERS[kind])
    if out in STATUS or out == 15:
        return "0x%08X" % (value & 0xFFFFFFFF)
    if kind == 13 or out == 3:
        return "true" if value else "false"
    if kind in (20, 21) or out == 4:
        return "0x%X" % (value & (1 << 8 * struct.calcsize(NUMBERS[kind])) - 1)
    if kind in (11, 12):
        return repr(value) if kind == 12 else "%.9g" % value
    return str(value)


def self_described(schema, data):
    """Returns the event's name and its fields, each with a name and a text, a list of texts, or a list of structures."""
    reader, values = Reader(schema), Reader(data)
    reader.take(2)
    reader.chain()
    title = reader.until_nul(1).decode()

    def metadata():
        name = reader.until_nul(1).decode()
        kind, out = reader.chain()
        tags = None
        if out is not None and out & 0x80:
            out, tags = out & 0x7F, True
        flags, kind = kind & 0x60, kind & 0x1F
        count = reader.unpack("H") if flags == 0x20 else None
        members = [metadata() for _ in range(out)] if kind == 24 else None
        return name, kind, out, flags, count, members

    def value(kind, out, members):
        if members is None:
            return text_of(kind, out, values)
        return [(name, decoded(rest)) for name, *rest in members]

    def decoded(field):
        kind, out, flags, count, members = field
        if flags == 0:
            return value(kind, out, members)
        count = values.unpack("H") if flags == 0x40 else count
        return Array(value(kind, out, members) for _ in range(count))

    fields = []
    while reader.at < len(schema):
        fields.append(metadata())
    return title, [(name, decoded(rest)) for name, *rest in fields]


class Array(list):
    """The elements of an array."""


class Manifest:
    def __init__(self, path):
        root = ElementTree.parse(path).getroot()
        self.texts = {}
        for resources in root.iter(EVENTS + "resources"):
            if resources.get("culture") == "en-US":
                self.texts = {one.get("id"): one.get("value") for one in resources.iter(EVENTS + "string")}
        self.providers = {}
        for provider in root.iter(EVENTS + "provider"):
            templates = {one.get("tid"): list(one) for one in provider.iter(EVENTS + "template")}
            maps = {
                one.get("name"): {int(entry.get("value"), 0): self.text(entry.get("message")) for entry in one}
                for one in provider.iter(EVENTS + "valueMap")
            }
            events = {
                (int(one.get("value"), 0), int(one.get("version", "0"), 0)):
                    templates.get(one.get("template"), [])
                for one in provider.iter(EVENTS + "event")
            }
            guid = uuid.UUID(provider.get("guid"))
            self.providers[guid] = (provider.get("name"), events, maps)

    def text(self, reference):
        return self.texts[re.fullmatch(r"\$\(string\.(.*)\)", reference).group(1)]

    def fields(self, provider, key, data, is_live):
        _, events, maps = self.providers[provider]
        reader, fields = Reader(data), []
        for field in events[key]:
            kind = MANIFEST_TYPES[field.get("inType").removeprefix("win:")]
            text = text_of(kind, field.get("outType"), reader)
            names = maps.get(field.get("map"), {})
            if is_live and text in map(str, names):
                # The message compiler ends the texts of maps with a space.
                text = names[int(text)] + " "
            fields.append((field.get("name"), text))
        return fields


def time_text(raw, offset=0):
    time = EPOCH + datetime.timedelta(microseconds=raw // 10, minutes=offset)
    zone = "Z" if offset == 0 else "%s%02d:%02d" % ("-" if offset < 0 else "+", *divmod(abs(offset), 60))
    return "%s.%07d00%s" % (time.strftime("%Y-%m-%dT%H:%M:%S"), raw % 10_000_000, zone)


def events_of(etl, manifest, is_live):
    logfile = etl.logfile_header
    frequency, base = logfile.perf_freq, logfile.system_header.time_delta
    for buffer in etl.buffers():
        for record in buffer:
            header = record.header
            if type(header).__name__ != "EventHeader":
                continue
            items, size = {}, 0
            if header.header.Flags & 1:
                for item in header.header_extensions:
                    size += item.size
                    items[int(item.ext_type)] = bytes(item.raw_data)
                    if not item.reserved1 & 1:
                        break
            data = bytes(header.payload[size:])
            provider = uuid.UUID(bytes_le=header.header.ProviderId)
            descriptor = header.descriptor
            name = title = None
            if SCHEMA in items:
                title, fields = self_described(items[SCHEMA], data)
                name = items[TRAITS][2:].split(b"\0")[0].decode()
            elif manifest and provider in manifest.providers:
                name = manifest.providers[provider][0]
                fields = manifest.fields(provider, (descriptor.id, descriptor.version), data, is_live)
            else:
                raise ValueError("nothing describes an event of %s" % provider)
            ticks = header.header.TimeDelta - base
            yield {
                "provider": provider, "name": name, "title": title, "fields": fields,
                "id": descriptor.id, "version": descriptor.version, "level": descriptor.level,
                "task": descriptor.task, "opcode": descriptor.opcode, "keyword": descriptor.keywords,
                "process": header.process_id, "thread": header.thread_id,
                "processor": buffer.header.ProcessorIndex,
                "activity": uuid.UUID(str(header.activity_id)),
                "related": uuid.UUID(bytes_le=items[RELATED]) if RELATED in items else None,
                "time": logfile.start_time + ticks * 10_000_000 // frequency,
            }


def data_xml(name, value):
    if isinstance(value, Array):
        return "".join(data_xml(name, element) for element in value)
    if isinstance(value, list):
        members = "".join(data_xml(*member) for member in value)
        return "<ComplexData Name=%s>%s</ComplexData>" % (quoteattr(name), members)
    return "<Data Name=%s>%s</Data>\r\n" % (quoteattr(name), escape(value, {"\r": "&#xD;"}))


def event_xml(event, offset):
    related = ' RelatedActivityID="{%s}"' % event["related"] if event["related"] else ""
    system = [
        "<Provider Name=%s Guid=\"{%s}\" />" % (quoteattr(event["name"]), event["provider"]),
        "<EventID>%d</EventID><Version>%d</Version><Level>%d</Level>" % (event["id"], event["version"], event["level"]),
        "<Task>%d</Task><Opcode>%d</Opcode><Keywords>0x%X</Keywords>" % (event["task"], event["opcode"], event["keyword"]),
        '<TimeCreated SystemTime="%s" />' % time_text(event["time"], offset),
        '<Correlation ActivityID="{%s}"%s />' % (event["activity"], related),
        '<Execution ProcessID="%d" ThreadID="%d" ProcessorID="%d" KernelTime="0" UserTime="15" />'
        % (event["process"], event["thread"], event["processor"]),
        "<Channel /><Computer />",
    ]
    data = "".join(data_xml(*field) for field in event["fields"])
    title = "<Task>%s</Task>" % escape(event["title"]) if event["title"] else ""
    return '<Event xmlns="%s">\r\n<System>%s</System>\r\n<EventData>%s</EventData>\r\n%s</Event>\r\n' % (
        EVENT, "\r\n".join(system), data, '<RenderingInfo Culture="en-US">%s</RenderingInfo>' % title)


HEADER = (
    '<Event xmlns="%s"><System><Provider Guid="{9e814aad-3204-11d2-9a82-006008a86939}" /><EventID>0</EventID>'
    '<Version>2</Version><Level>0</Level><Task>0</Task><Opcode>0</Opcode><Keywords>0x0</Keywords>'
    '<TimeCreated SystemTime="2026-01-01T00:00:00.000000000Z" /></System><EventData><Data Name="BufferSize">'
    '   65536</Data></EventData><ExtendedTracingInfo xmlns="http://schemas.microsoft.com/win/2004/08/events/'
    'trace"><EventGuid>{68fdd900-4a3e-11d1-84f4-0000f80464e3}</EventGuid></ExtendedTracingInfo></Event>\r\n'
) % EVENT


def flat(name, value):
    if isinstance(value, Array):
        return [one for at, element in enumerate(value) for one in flat("%s[%d]" % (name, at), element)]
    if isinstance(value, list):
        return [one for member, inner in value for one in flat("%s.%s" % (name, member), inner)]
    return [[name, value]]


def line(event):
    result = {
        "time": time_text(event["time"])[:-3] + "Z", "process": event["process"], "thread": event["thread"],
        "processor": event["processor"], "provider": event["name"], "guid": str(event["provider"]),
        "name": event["title"] or "event %d" % event["id"], "id": event["id"], "version": event["version"],
        "level": event["level"], "task": event["task"], "opcode": event["opcode"],
        "keyword": "0x%x" % event["keyword"],
        "fields": [one for field in event["fields"] for one in flat(*field)],
    }
    if event["activity"].int:
        result["activity"] = str(event["activity"])
    if event["related"]:
        result["related_activity"] = str(event["related"])
    return json.dumps(result)


def main():
    form, trace = sys.argv[1:3]
    manifest = Manifest(sys.argv[3]) if len(sys.argv) > 3 else None
    out = sys.stdout.buffer
    with open(trace, "rb") as file:
        events = list(events_of(ETL(file), manifest, form == "tdh"))
    # The decoders of Windows return the events of all processors in order of time.
    events.sort(key=lambda event: event["time"])
    if form == "tracerpt":
        body = "".join(event_xml(event, -299) for event in events)
        text = '<?xml version="1.0" encoding="utf-16"?>\r\n<Events>\r\n%s%s</Events>\r\n' % (HEADER, body)
        out.write(b"\xff\xfe" + text.encode("utf-16-le"))
    elif form == "winevent":
        decoded = [
            {"id": event["id"], "level": event["level"], "task": event["title"], "message": None,
             "xml": event_xml(event, 0)}
            for event in events
        ]
        out.write(json.dumps({"events": decoded}, indent=4).encode())
    else:
        out.write("".join(line(event) + "\r\n" for event in events).encode())


if __name__ == "__main__":
    main()
