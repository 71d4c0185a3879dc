"""Prints the unwind data of an image as pefile reads it, one function per line.

The last test of standin-kernel/src/ground/unwind/tests.rs prints the same lines.
"""

import re
import sys

import pefile

image = pefile.PE(sys.argv[1], fast_load=True)
directory = pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_EXCEPTION"]
image.parse_data_directories(directories=[directory])

PATTERNS = [
    (r"\.PUSHREG (\w+)", lambda info, found: f"push {found[1]}"),
    (r"\.ALLOCSTACK (\w+)", lambda info, found: f"alloc {int(found[1], 0)}"),
    (
        r"\.SETFRAME (\w+), (\w+)",
        lambda info, found: f"frame {found[1]}+{int(found[2], 0)}",
    ),
    (
        r"\.SAVEREG (\w+), (\w+)",
        lambda info, found: f"save {found[1]} {int(found[2], 0)}",
    ),
    (
        r"\.SAVEXMM128 (\w+), (\w+)",
        lambda info, found: f"save {found[1]} {int(found[2], 0)}",
    ),
]


def describe(info, code):
    text = str(code)
    for pattern, words in PATTERNS:
        found = re.fullmatch(pattern, text.strip(), re.IGNORECASE)
        if found:
            return words(info, found)
    return text


for entry in image.DIRECTORY_ENTRY_EXCEPTION:
    function, info = entry.struct, entry.unwindinfo
    codes = "".join(
        f" {code.struct.CodeOffset}:{describe(info, code)}"
        for code in info.UnwindCodes
    )
    print(
        f"{function.BeginAddress:x} {function.EndAddress:x}"
        f" v{info.Version} {info.SizeOfProlog}{codes}"
    )
