/* Runs the routines in a program, and writes the lines to its output. */
#include "routines.h"

IMPORT PVOID GetStdHandle(ULONG which);
IMPORT int WriteFile(PVOID file, const void *bytes, ULONG length, ULONG *written, PVOID overlapped);
IMPORT __declspec(noreturn) void ExitProcess(ULONG code);

static PVOID Output;

void Say(const char *line)
{
    ULONG length = 0, written;

    while (line[length])
        length++;
    if (!WriteFile(Output, line, length, &written, 0) || !WriteFile(Output, "\n", 1, &written, 0))
        ExitProcess(1);
}

void Start(void)
{
    Output = GetStdHandle((ULONG)-11);
    Routines();
    ExitProcess(0);
}
