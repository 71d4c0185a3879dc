/* Declares what Wine's test drivers use: mingw-w64's headers for drivers, and what those lack. The headers for
 * programs, which the drivers include too, contradict these; the command puts this one in their place. */
#ifndef SHIM_KERNEL_H
#define SHIM_KERNEL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <wchar.h>
#include <ntifs.h>
#include <ntddk.h>
#include <devpropdef.h>

typedef int BOOL;
typedef unsigned char BYTE;
typedef unsigned short WORD;
typedef unsigned long DWORD;
typedef unsigned int UINT;

#define WINAPI __stdcall
#define MAX_PATH 260
#define WAIT_TIMEOUT 258
#define LOCALE_NEUTRAL 0
#define lstrlenW wcslen
#define swprintf _snwprintf

#ifndef min
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#endif
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif
#ifndef POOL_NX_ALLOCATION
#define POOL_NX_ALLOCATION 512
#endif
#ifndef RTL_QUERY_REGISTRY_TYPECHECK
#define RTL_QUERY_REGISTRY_TYPECHECK 0x100
#define RTL_QUERY_REGISTRY_TYPECHECK_SHIFT 24
#endif
#ifndef PROCESS_QUERY_INFORMATION
#define PROCESS_QUERY_INFORMATION 0x400
#endif

typedef struct {
    ULONG Barrier;
    ULONG TotalProcessors;
} DEFERRED_REVERSE_BARRIER;

/* No header of a WDK declares these. */
HANDLE NTAPI PsGetProcessInheritedFromUniqueProcessId(PEPROCESS process);
void *NTAPI PsGetProcessSectionBaseAddress(PEPROCESS process);

#endif
