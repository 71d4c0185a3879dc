"""Runs the benchmark's images in a CPU emulator and counts their instructions.

Usage: count.py IMAGE [NAME=IMAGE]...

Executes IMAGE, and compares the sections of the other images, each built with eight more
events, with those of IMAGE. Executes the image with the name "facades", too. Prints JSON.

The script counts only instructions of the image: its imports are stubs. The stub of
EtwRegister keeps the enable callback, which the script calls to enable and disable the
provider.
"""
import json
import struct
import sys

import pefile
from unicorn import UC_ARCH_X86, UC_HOOK_CODE, UC_HOOK_MEM_READ, UC_MODE_64, Uc
from unicorn.x86_const import (
    UC_X86_REG_R8,
    UC_X86_REG_R9,
    UC_X86_REG_RAX,
    UC_X86_REG_RCX,
    UC_X86_REG_RDX,
    UC_X86_REG_RIP,
    UC_X86_REG_RSP,
)

PAGE = 0x1000
STUBS = 0x10_0000_0000
STACK = 0x20_0000_0000
STACK_SIZE = 0x10_0000
DATA = 0x30_0000_0000
#: The address to which a function under test returns.
END = STUBS + 0xF000
#: The stack pointer when a function under test starts.
ENTRY = STACK + STACK_SIZE - 0x108
TEXT = b"\\Device\\0001"
#: A caller's request: the number of bytes, and the text's address.
REQUEST = DATA + 0x100
VALUES = [0xC000_0001, 4096, DATA, len(TEXT)]
ARGUMENTS = [UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_R8, UC_X86_REG_R9]


class Machine:
    """An image in memory."""

    def __init__(self, path):
        self.pe = pefile.PE(path)
        self.base = self.pe.OPTIONAL_HEADER.ImageBase
        self.size = self.pe.OPTIONAL_HEADER.SizeOfImage
        self.cpu = Uc(UC_ARCH_X86, UC_MODE_64)
        self.cpu.mem_map(self.base, -(-self.size // PAGE) * PAGE)
        self.cpu.mem_write(self.base, self.pe.get_memory_mapped_image())
        self.cpu.mem_map(STUBS, 0x10000)
        self.cpu.mem_map(STACK, STACK_SIZE)
        self.cpu.mem_map(DATA, PAGE)
        self.cpu.mem_write(DATA, TEXT)
        self.cpu.mem_write(REQUEST, struct.pack("<QQQ", *VALUES[1:]))
        self.stubs = {}
        for module in self.pe.DIRECTORY_ENTRY_IMPORT:
            for entry in module.imports:
                stub = STUBS + 16 * len(self.stubs)
                self.stubs[stub] = entry.name.decode()
                self.cpu.mem_write(entry.address, struct.pack("<Q", stub))
        self.exports = {
            symbol.name.decode(): self.base + symbol.address
            for symbol in self.pe.DIRECTORY_ENTRY_EXPORT.symbols
        }
        self.writable = [
            (self.base + s.VirtualAddress, self.base + s.VirtualAddress + s.Misc_VirtualSize)
            for s in self.pe.sections
            if s.Characteristics & 0x8000_0000
        ]
        self.callbacks = []
        self.traits = {}
        self.created = 0
        self.cpu.hook_add(UC_HOOK_CODE, self.on_instruction)
        self.cpu.hook_add(UC_HOOK_MEM_READ, self.on_read)

    def register(self, register):
        return self.cpu.reg_read(register)

    def word(self, address):
        return struct.unpack("<Q", self.cpu.mem_read(address, 8))[0]

    def argument(self, number):
        """An argument of the routine whose first instruction is next."""
        if number < 4:
            return self.register(ARGUMENTS[number])
        return self.word(self.register(UC_X86_REG_RSP) + 8 + 8 * number)

    def on_instruction(self, _cpu, address, size, _user):
        if self.base <= address < self.base + self.size:
            self.count += 1
            self.lowest = min(self.lowest, self.register(UC_X86_REG_RSP))
            if self.not_taken is not None and address != self.not_taken:
                self.taken += 1
            code = bytes(self.cpu.mem_read(address, 2))
            branch = 0x70 <= code[0] <= 0x7F or (code[0] == 0x0F and 0x80 <= code[1] <= 0x8F)
            self.not_taken = address + size if branch else None
            # The rundown, which protects the handle during a write: a locked instruction, and
            # the branch on its result.
            if code[0] == 0xF0 or (self.after_lock and branch):
                self.locked += 1
            self.after_lock = code[0] == 0xF0
            if self.check is not None and self.branch is None:
                # The check ends with its branch.
                if branch:
                    self.branch = self.count
        elif address in self.stubs:
            self.on_stub(self.stubs[address])

    def on_read(self, _cpu, _access, address, _size, _value, _user):
        inside = any(start <= address < end for start, end in self.writable)
        # The import table is also writable; calls read it.
        imported = any(
            entry.address <= address < entry.address + 8
            for module in self.pe.DIRECTORY_ENTRY_IMPORT
            for entry in module.imports
        )
        if not inside or imported:
            return
        self.loads += 1
        if self.check is None:
            self.check = self.count
            self.check_rsp = self.register(UC_X86_REG_RSP)

    def on_stub(self, name):
        result = 0
        if name == "EtwRegister":
            self.callbacks.append((self.argument(1), self.argument(2)))
            handle = 0x1000 + len(self.callbacks)
            self.cpu.mem_write(self.argument(3), struct.pack("<Q", handle))
        elif name == "EtwSetInformation" and self.argument(1) & 0xFFFFFFFF == SET_TRAITS:
            length = self.argument(3) & 0xFFFFFFFF
            self.traits[self.argument(0)] = bytes(self.cpu.mem_read(self.argument(2), length))
        elif name in ("EtwWriteEx", "EtwWriteTransfer"):
            first = 6 if name == "EtwWriteEx" else 4
            self.traits_of_write = self.traits.get(self.argument(0), b"")
            self.written(self.argument(first) & 0xFFFFFFFF, self.argument(first + 1))
        elif name.startswith(("Other", "Another")):
            result = self.argument(0)
        elif name == "Evaluate":
            result = self.argument(0)
            self.evaluated += 1
        elif name in ("memcpy", "memmove"):
            data = self.cpu.mem_read(self.argument(1), self.argument(2))
            self.cpu.mem_write(self.argument(0), bytes(data))
            result = self.argument(0)
        elif name == "memset":
            data = bytes([self.argument(1) & 0xFF]) * self.argument(2)
            self.cpu.mem_write(self.argument(0), data)
            result = self.argument(0)
        elif name == "memcmp":
            one, other = (self.cpu.mem_read(self.argument(n), self.argument(2)) for n in (0, 1))
            result = (bytes(one) > bytes(other)) - (bytes(one) < bytes(other))
            result &= 0xFFFF_FFFF_FFFF_FFFF
        elif name == "EtwActivityIdControl":
            if self.argument(0) & 0xFFFFFFFF == CREATE_ID:
                self.created += 1
                self.cpu.mem_write(self.argument(1), struct.pack("<QQ", self.created, 1))
        rsp = self.register(UC_X86_REG_RSP)
        self.cpu.reg_write(UC_X86_REG_RAX, result)
        self.cpu.reg_write(UC_X86_REG_RIP, self.word(rsp))
        self.cpu.reg_write(UC_X86_REG_RSP, rsp + 8)

    def written(self, count, descriptors):
        data_descriptors = []
        for number in range(count):
            data = self.cpu.mem_read(descriptors + 16 * number, 16)
            address, size, kind = struct.unpack("<QIB", data[:13])
            data_descriptors.append((kind, bytes(self.cpu.mem_read(address, size))))
        self.writes.append(
            {
                "instructions": self.count - self.check + 1,
                # The stack below the caller's frame at the check.
                "stack": self.check_rsp - (self.register(UC_X86_REG_RSP) + 8),
                "data": data_descriptors,
                "traits": self.traits_of_write,
            }
        )

    def call(self, address, arguments):
        self.count = 0
        self.check = None
        self.check_rsp = None
        self.branch = None
        self.writes = []
        self.loads = 0
        self.taken = 0
        self.not_taken = None
        self.evaluated = 0
        rsp = ENTRY
        self.lowest = rsp
        self.locked = 0
        self.after_lock = False
        self.cpu.mem_write(rsp, struct.pack("<Q", END))
        for number, value in enumerate(arguments):
            if number < 4:
                self.cpu.reg_write(ARGUMENTS[number], value)
            else:
                self.cpu.mem_write(rsp + 8 + 8 * number, struct.pack("<Q", value))
        self.cpu.reg_write(UC_X86_REG_RSP, rsp)
        self.cpu.emu_start(address, END)

    def run(self, name, status=VALUES[0]):
        """Calls an exported function with the reference event's values."""
        values = [status, *VALUES[1:]]
        self.call(self.exports[name], [REQUEST] if name.endswith("_request") else values)
        return {
            "instructions": self.count,
            "check": None if self.branch is None else self.branch - self.check + 1,
            "frame": ENTRY - self.lowest,
            "loads": self.loads,
            "taken": self.taken,
            "evaluated": self.evaluated,
            "writes": self.writes,
            "locked": self.locked,
        }

    def switch(self, code, level, any_keyword, all_keywords=0):
        """Notifies every provider, as ETW does."""
        for callback, context in self.callbacks:
            self.call(callback, [0, code, level, any_keyword, all_keywords, 0, context])


#: The states of the provider: control code, level, match-any keywords.
STATES = {
    "disabled": (0, 0, 0),
    "by level": (1, 3, 0xFF),
    "by keyword": (1, 5, 0xFD),
    "enabled": (1, 5, 0xFF),
}
#: EventProviderSetTraits of EVENT_INFO_CLASS.
SET_TRAITS = 2
#: EVENT_ACTIVITY_CTRL_CREATE_ID.
CREATE_ID = 3
WAYS = ["described", "manifest", "unprotected", "peer"]
CALLERS = ["five", "four", "request", "leaf"]


def record(write, traits):
    """Returns the size of the event's record in a buffer: header, extended data items, payload."""

    def item(data):
        # An item has a header of 8 bytes and its data, padded to a multiple of 8.
        return -(-(8 + len(data)) // 8) * 8 if data else 0

    metadata = b"".join(data for kind, data in write["data"] if kind == 1)
    payload = b"".join(data for kind, data in write["data"] if kind == 0)
    return 80 + item(metadata) + item(traits) + len(payload)


def sections(path):
    """Returns the size of an image's code, read-only data, writable data and relocations."""
    pe = pefile.PE(path)
    found = {"code": 0, "read-only": 0, "writable": 0, "relocations": 0}
    for section in pe.sections:
        name = section.Name.rstrip(b"\0")
        kind = {b".text": "code", b".rdata": "read-only", b".reloc": "relocations"}.get(
            name, "writable"
        )
        # .pdata grows with the code and is not counted.
        if name != b".pdata":
            found[kind] += section.Misc_VirtualSize
    return found


def helpers(machine):
    """Returns the differences in instructions of events with helpers, for each situation."""
    machine.call(machine.exports["helpers_register"], [])

    def delta(name, writes, status=VALUES[0]):
        without = machine.run("without_five", status)
        event = machine.run(name, status)
        if len(event["writes"]) != writes:
            sys.exit(f"{name}: {len(event['writes'])} writes, expected {writes}")
        return event["instructions"] - without["instructions"]

    limits = ["every", "once", "limit"]
    found = {name: {} for name in [*limits, "single", "counted", "dump", "traced"]}
    machine.switch(*STATES["disabled"])
    for name, measured in found.items():
        measured["disabled"] = delta(f"helper_{name}", 0)
    machine.switch(*STATES["enabled"])
    for name, measured in found.items():
        measured["written"] = delta(f"helper_{name}", 1)
    for name in limits:
        found[name]["left out"] = delta(f"helper_{name}", 0)
    found["traced"]["left out"] = delta("helper_traced", 0, status=0)
    return found


#: The ways of writing in the image with the facades, and the events that each way writes.
FACADES = {"native": 1, "log": 1, "pairs": 1, "tracing": 1, "span": 2}


def facades(path):
    """Returns the cost of the reference event through the facades, in the caller with five
    arguments."""
    machine = Machine(path)
    machine.call(machine.exports["facades_register"], [])
    if not machine.register(UC_X86_REG_RAX) & 0xFF:
        sys.exit("the facades cannot be installed")
    # `tracing` registers each call site when it is first reached.
    machine.switch(*STATES["enabled"])
    for way in FACADES:
        machine.run(f"{way}_five")
        machine.run(f"{way}_evaluated")
    machine.run("tracing_long")
    found = {way: {} for way in FACADES}
    for state, notification in STATES.items():
        machine.switch(*notification)
        without = machine.run("without_five")
        for way, events in FACADES.items():
            event = machine.run(f"{way}_five")
            writes = event["writes"]
            if len(writes) != (events if state == "enabled" else 0):
                sys.exit(f"{way}, {state}: {len(writes)} writes")
            measured = {
                "delta": event["instructions"] - without["instructions"],
                "stack": event["frame"] - without["frame"],
                "evaluated": machine.run(f"{way}_evaluated")["evaluated"],
            }
            if writes:
                measured["descriptors"] = len(writes[0]["data"])
                measured["record"] = sum(record(write, write["traits"]) for write in writes)
            found[way][state] = measured
    for way in ["log", "tracing"]:
        found[way]["enabled"]["long"] = machine.run(f"{way}_long")["instructions"]
    return found


def main():
    machine = Machine(sys.argv[1])
    machine.call(machine.exports["ours_register"], [])
    machine.call(machine.exports["peer_register"], [])
    states = {}
    frames = {}
    traits = b""
    for state, notification in STATES.items():
        machine.switch(*notification)
        states[state] = {}
        for way in WAYS:
            evaluated = machine.run(f"{way}_evaluated")["evaluated"]
            for caller in CALLERS:
                without = machine.run(f"without_{caller}")
                event = machine.run(f"{way}_{caller}")
                # A missing or unexpected write is an error, not a cheap event.
                if len(event["writes"]) != evaluated or evaluated != (state == "enabled"):
                    sys.exit(f"{way}, {caller}, {state}: {len(event['writes'])} writes")
                measured = {"delta": event["instructions"] - without["instructions"]}
                if event["writes"]:
                    (write,) = event["writes"]
                    traits = traits or write["traits"]
                    measured["to call"] = write["instructions"]
                    measured["stack"] = write["stack"] + frames[way, caller]
                    measured["descriptors"] = len(write["data"])
                    measured["rundown"] = event["locked"]
                    measured["record"] = record(write, write["traits"])
                    measured["record with traits"] = record(write, traits)
                else:
                    # Without a write, the whole stack use is the caller's frame.
                    frames[way, caller] = event["frame"] - without["frame"]
                    measured["frame"] = frames[way, caller]
                    measured["check"] = event["check"]
                    measured["loads"] = event["loads"]
                    measured["taken"] = event["taken"]
                    measured["evaluated"] = evaluated
                states[state][f"{way} {caller}"] = measured
    measured_helpers = helpers(machine)
    base = sections(sys.argv[1])
    sizes = {}
    measured_facades = {}
    for argument in sys.argv[2:]:
        name, path = argument.split("=", 1)
        if name == "facades":
            measured_facades = facades(path)
            continue
        more = sections(path)
        sizes[name] = {kind: (more[kind] - base[kind]) / 8 for kind in base}
    found = {
        "states": states,
        "per event": sizes,
        "helpers": measured_helpers,
        "facades": measured_facades,
    }
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
