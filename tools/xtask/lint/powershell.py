"""Checks PowerShell scripts: prints each error as FILE:LINE: MESSAGE, and fails if there is one.

The grammar is tree-sitter's: PowerShell's own parser needs a .NET runtime, and is that of PowerShell 7.
The scripts are for Windows PowerShell 5.1, so what only PowerShell 7 knows is an error, too.
"""

import sys

import tree_sitter_powershell
from tree_sitter import Language, Parser

# Nodes that only PowerShell 7 can parse.
NEW_NODES = {"pipeline_chain_tail": "`&&` and `||` need PowerShell 7"}
# Parameters, variables and values that Windows PowerShell 5.1 lacks.
NEW_WORDS = {
    "command_parameter": {"-parallel", "-ashashtable", "-noproxy", "-skipcertificatecheck", "-asbytestream"},
    "variable": {"$iswindows", "$islinux", "$ismacos", "$psnativecommanduseerroractionpreference"},
    "generic_token": {"utf8nobom", "utf8bom"},
}


def errors(path, source):
    """Yields the line and the message of each error."""
    parser = Parser(Language(tree_sitter_powershell.language()))
    nodes = [parser.parse(source).root_node]
    while nodes:
        node = nodes.pop()
        line = node.start_point[0] + 1
        text = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        if node.type == "ERROR" or node.is_missing:
            yield line, f"not PowerShell 5.1: {text.splitlines()[0] if text.strip() else node.type}"
            continue
        if node.type in NEW_NODES:
            yield line, NEW_NODES[node.type]
        if text.lower() in NEW_WORDS.get(node.type, ()):
            yield line, f"{text} needs PowerShell 7"
        nodes.extend(node.children)


def main():
    """Checks the files on the command line."""
    failed = False
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            source = file.read()
        found = [(1, "not ASCII, which Windows PowerShell reads as ANSI")] if not source.isascii() else []
        for line, message in found + sorted(errors(path, source)):
            print(f"{path}:{line}: {message}")
            failed = True
    sys.exit(1 if failed else 0)


main()
