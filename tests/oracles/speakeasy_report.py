"""Runs a driver's entry point in the speakeasy emulator, and prints its report.

The emulator is Mandiant's, made for triage of unknown drivers: it knows the
framework's loader and EtwRegister, and stops at a routine that it does not know.
Those of our imports that it lacks are given as routines that succeed; what the
test asserts about is its own.
"""
import json
import sys

from speakeasy import Speakeasy

SUCCEED = [
    ("ntoskrnl", "EtwSetInformation", 4),
    ("ntoskrnl", "EtwUnregister", 1),
    ("ntoskrnl", "EtwWriteEx", 8),
    ("ntoskrnl", "EtwActivityIdControl", 2),
    ("ntoskrnl", "ExFreePoolWithTag", 2),
    ("ntoskrnl", "KeGetCurrentIrql", 0),
]


def succeed(_emulator, _name, _function, _parameters):
    return 0


def find_nothing(_emulator, _name, _function, _parameters):
    """STATUS_OBJECT_NAME_NOT_FOUND: the service has no parameters."""
    return 0xC0000034


def allocate(emulator, _name, _function, parameters):
    """ExAllocatePool2: flags, size, tag."""
    return emulator.mem_map(parameters[1], tag="pool")


def main():
    emulator = Speakeasy()
    for module, name, parameters in SUCCEED:
        emulator.add_api_hook(succeed, module, name, argc=parameters)
    emulator.add_api_hook(allocate, "ntoskrnl", "ExAllocatePool2", argc=3)
    key = "WdfDriverOpenParametersRegistryKey"
    emulator.add_api_hook(find_nothing, "wdfldr", key, argc=5)
    driver = emulator.load_module(sys.argv[1])
    emulator.run_module(driver, all_entrypoints=False)
    report = emulator.get_report()
    print(json.dumps(report if isinstance(report, dict) else json.loads(report), default=str))


if __name__ == "__main__":
    main()
