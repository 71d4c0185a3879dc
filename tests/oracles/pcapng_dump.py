"""Reads a pcapng file with python-pcapng, and prints its blocks: one JSON object a line.

Usage: pcapng_dump.py FILE

The reader checks the lengths of blocks and options. This script also checks that every option is one that
the format defines, and that the file has only one section, descriptions of interfaces, and packets.
"""

import json
import struct
import sys

from pcapng import FileScanner
from pcapng.blocks import EnhancedPacket, InterfaceDescription, SectionHeader

# The names of options that the reader does not know.
FURTHER = {EnhancedPacket: {5: "epb_packetid", 8: "epb_processid_threadid"}}


def options_of(block):
    known = FURTHER.get(type(block), {})
    options = {}
    for key in block.options:
        if isinstance(key, int) and key not in known:
            raise SystemExit(f"{type(block).__name__}: no option has the number {key}")
        value = block.options[key]
        if key == 8:
            value = list(struct.unpack("<II", value))
        elif isinstance(value, bytes):
            value = value.hex()
        elif not isinstance(value, str):
            value = value.inout
        options[known.get(key, key)] = value
    return options


def line_of(number, block):
    if isinstance(block, SectionHeader):
        assert number == 0, "there is one section"
        return {"kind": "section", "version": list(block.version)}
    if isinstance(block, InterfaceDescription):
        return {"kind": "interface", "link": block.link_type, "snaplen": block.snaplen}
    assert isinstance(block, EnhancedPacket), f"block {number} is no packet"
    assert block.interface_id in block.section.interfaces, "an interface is described before its packets"
    assert block.captured_len <= block.interface.snaplen
    assert block.captured_len <= block.packet_len
    return {
        "kind": "packet",
        "interface": block.interface_id,
        "nanoseconds": (block.timestamp_high << 32) + block.timestamp_low,
        "resolution": block.timestamp_resolution,
        "original": block.packet_len,
        "data": block.packet_data.hex(),
    }


with open(sys.argv[1], "rb") as file:
    for number, block in enumerate(FileScanner(file)):
        print(json.dumps({**line_of(number, block), **options_of(block)}))
