"""Reads a timeline with the protocol buffers that Perfetto publishes, and prints its contents.

Usage: perfetto_dump.py FILE

Checks what every timeline must have, whatever is in it:
- every packet can be parsed, and no message has a field that the schema does not have;
- every number of interned data is defined before its use, and after the last reset;
- every track is described before its first event;
- on every track, times do not decrease, and every end of a slice has a beginning;
- every flow that ends began before, at an event that is not later, and ends once.

Prints one line of JSON for each track, slice, instant, counter value, ETW event, sample, clock and
attribute.
"""

import json
import sys

from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def reject_unknown(message, path):
    for unknown in UnknownFieldSet(message):
        raise SystemExit(f"{path}: no field has the number {unknown.field_number}")
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for item in value if field.is_repeated else [value]:
            reject_unknown(item, f"{path}.{field.name}")


class Interned:
    """The interned data of the sequence."""

    def __init__(self):
        self.entries = {}

    def add(self, data):
        for field, entries in data.ListFields():
            for entry in entries:
                assert entry.iid != 0, field.name
                key = (field.name, entry.iid)
                assert key not in self.entries, f"{key} is defined twice"
                self.entries[key] = entry

    def get(self, kind, iid):
        assert (kind, iid) in self.entries, f"{kind} has no entry {iid}"
        return self.entries[kind, iid]

    def name(self, kind, iid):
        return self.get(kind, iid).name

    def text(self, kind, iid):
        return self.get(kind, iid).str.decode()

    def stack(self, iid):
        frames = []
        for frame in self.get("callstacks", iid).frame_ids:
            frame = self.get("frames", frame)
            mapping = self.get("mappings", frame.mapping_id)
            paths = [self.text("mapping_paths", path) for path in mapping.path_string_ids]
            function = self.text("function_names", frame.function_name_id)
            frames.append([function, "/".join(paths), frame.rel_pc])
        return frames

    def value(self, annotation):
        kind = annotation.WhichOneof("value")
        if annotation.dict_entries:
            return self.annotations(annotation.dict_entries)
        if annotation.array_values:
            return [self.value(item) for item in annotation.array_values]
        if kind == "string_value_iid":
            return self.text("debug_annotation_string_values", annotation.string_value_iid)
        if kind == "pointer_value":
            return hex(annotation.pointer_value)
        if kind == "double_value":
            return repr(annotation.double_value)
        assert kind is not None, "an annotation without a value"
        return getattr(annotation, kind)

    def annotations(self, annotations):
        values = {}
        for annotation in annotations:
            if annotation.WhichOneof("name_field") == "name_iid":
                name = self.name("debug_annotation_names", annotation.name_iid)
            else:
                name = annotation.name
            assert name not in values, f"two annotations are named {name}"
            values[name] = self.value(annotation)
        return values


class Reader:
    def __init__(self):
        self.interned = None
        self.tracks = {}
        self.open = {}
        self.last = {}
        self.flows = {}
        self.ended = set()
        self.lines = []

    def packet(self, packet):
        assert packet.trusted_packet_sequence_id == 1
        if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
            self.interned = Interned()
            self.defaults = packet.trace_packet_defaults
        if packet.HasField("interned_data"):
            assert packet.sequence_flags & packet.SEQ_NEEDS_INCREMENTAL_STATE
            self.interned.add(packet.interned_data)
        kind = packet.WhichOneof("data")
        handler = getattr(self, kind)
        handler(packet, getattr(packet, kind))

    def line(self, kind, **members):
        self.lines.append({"kind": kind, **members})

    def clock_snapshot(self, packet, snapshot):
        clocks = {str(clock.clock_id): clock.timestamp for clock in snapshot.clocks}
        self.line("clock", clocks=clocks, primary=snapshot.primary_trace_clock)

    def system_info(self, packet, info):
        self.line("system", **MessageToDict(info, preserving_proto_field_name=True))

    def trace_attributes(self, packet, attributes):
        for attribute in attributes.attribute:
            value = getattr(attribute, attribute.WhichOneof("value"))
            self.line("attribute", key=attribute.key, value=value)

    def track_descriptor(self, packet, track):
        # Groups come before their tracks.
        assert not track.parent_uuid or track.parent_uuid in self.tracks
        members = MessageToDict(track, preserving_proto_field_name=True)
        self.tracks[track.uuid] = members
        self.last.setdefault(track.uuid, 0)
        self.open.setdefault(track.uuid, [])
        self.line("track", **{**members, "uuid": track.uuid, "parent_uuid": track.parent_uuid})

    def time(self, packet):
        assert packet.HasField("timestamp")
        assert self.defaults.timestamp_clock_id == 6
        return packet.timestamp

    def common(self, event):
        members = {}
        if event.debug_annotations:
            members["args"] = self.interned.annotations(event.debug_annotations)
        if event.category_iids:
            members["category"] = [
                self.interned.name("event_categories", iid) for iid in event.category_iids
            ]
        if event.HasField("name_iid"):
            members["name"] = self.interned.name("event_names", event.name_iid)
        if event.HasField("correlation_id_str_iid"):
            iid = event.correlation_id_str_iid
            members["activity"] = self.interned.text("correlation_id_str", iid)
        if event.HasField("callstack_iid"):
            members["stack"] = self.interned.stack(event.callstack_iid)
        return members

    def track_event(self, packet, event):
        time = self.time(packet)
        uuid = event.track_uuid
        assert uuid in self.tracks, f"track {uuid} is not described"
        assert time >= self.last[uuid], f"the times of track {uuid} decrease"
        self.last[uuid] = time
        is_counter = "counter" in self.tracks[uuid]
        assert is_counter == (event.type == TrackEvent.TYPE_COUNTER)
        if is_counter:
            self.line("counter", track=uuid, time=time, value=event.counter_value)
            return
        place = {"track": uuid, "time": time}
        for flow in event.flow_ids:
            assert flow not in self.flows and flow not in self.ended, f"flow {flow} begins twice"
            self.flows[flow] = {**place, **self.common(event)}
        for flow in event.terminating_flow_ids:
            source = self.flows.pop(flow, None)
            assert source is not None, f"flow {flow} has no beginning"
            assert source["time"] <= time
            self.ended.add(flow)
            self.line("flow", id=flow, source=source, target={**place, **self.common(event)})
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            line = {"kind": "slice", "start": time, "end": None, "track": uuid}
            line.update(self.common(event))
            self.open[uuid].append(line)
            self.lines.append(line)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            assert self.open[uuid], f"the end of a slice on track {uuid} has no beginning"
            line = self.open[uuid].pop()
            line["end"] = time
            common = self.common(event)
            line.setdefault("args", {}).update(common.get("args", {}))
            # A stop event has the activity of its start event. The end of an interval is not a
            # separate event, and has no properties.
            assert not common or common.get("activity") == line.get("activity")
        else:
            assert event.type == TrackEvent.TYPE_INSTANT, event.type
            self.line("instant", time=time, track=uuid, **self.common(event))

    def etw_events(self, packet, bundle):
        for event in bundle.event:
            # Perfetto uses these times unchanged: they must be in the trace's clock.
            assert event.timestamp == self.time(packet)
            assert event.HasField("cpu")
            form = event.WhichOneof("event")
            members = MessageToDict(getattr(event, form), preserving_proto_field_name=True)
            if form == "stack_walk":
                members["stack"] = self.interned.stack(event.stack_walk.callstack_iid)
            thread = event.thread_id if event.HasField("thread_id") else None
            self.line(
                "etw", form=form, time=event.timestamp, cpu=event.cpu, thread=thread, event=members
            )

    def perf_sample(self, packet, sample):
        members = MessageToDict(sample, preserving_proto_field_name=True)
        members["stack"] = self.interned.stack(sample.callstack_iid)
        self.line("sample", time=self.time(packet), **members)


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    trace = Trace()
    trace.ParseFromString(data)
    reject_unknown(trace, "trace")
    reader = Reader()
    for packet in trace.packet:
        reader.packet(packet)
    assert not reader.flows, f"flows without an end: {sorted(reader.flows)}"
    for line in reader.lines:
        print(json.dumps(line))


main()
