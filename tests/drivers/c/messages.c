/* The WPP messages, written by hand: a control GUID that is registered as in WPP's code, messages
 * with WmiTraceMessage, and their formats as annotations in the PDB. */

#include "messages.h"

/* {5e0c7a91-3d44-4b1e-8f62-0a9be5d27c14} */
static const GUID Control = {
    0x5e0c7a91, 0x3d44, 0x4b1e, {0x8f, 0x62, 0x0a, 0x9b, 0xe5, 0xd2, 0x7c, 0x14}};

/* The GUID of this file's messages. {b7d01c5e-6a2f-3e94-9c08-44f1d3a85b60} */
static const GUID Messages = {
    0xb7d01c5e, 0x6a2f, 0x3e94, {0x9c, 0x08, 0x44, 0xf1, 0xd3, 0xa8, 0x5b, 0x60}};

enum { LEVEL_INFORMATION = 4, FLAG_REQUEST = 1 };
/* With a sequence number, the GUID, the time, and thread and process. */
enum { MESSAGE_FLAGS = 1 | 2 | 8 | 32 };

/* The trace handle, whose parts are the session, the level and the flags. */
typedef struct {
    USHORT Logger;
    UCHAR Level;
    UCHAR Internal;
    ULONG Flags;
} ENABLE_CONTEXT;

typedef void CLASSIC_CALLBACK(const GUID *guid, UCHAR control, ENABLE_CONTEXT *enabled,
                              PVOID context);
typedef NTSTATUS REGISTER_CLASSIC(const GUID *guid, ULONG type, CLASSIC_CALLBACK *callback,
                                  PVOID context, REGHANDLE *handle);
typedef NTSTATUS TRACE_MESSAGE(ULONG64 logger, ULONG flags, const GUID *guid, USHORT number, ...);

static TRACE_MESSAGE *TraceMessage;
static REGHANDLE Handle;
static volatile ULONG64 Logger;
static volatile ULONG Flags;
static volatile UCHAR Level;

static void OnEnable(const GUID *guid, UCHAR control, ENABLE_CONTEXT *enabled, PVOID context)
{
    (void)guid, (void)context;
    if (control == 1) {
        Logger = *(ULONG64 *)enabled;
        Level = enabled->Level;
        Flags = enabled->Flags;
    } else if (control == 0) {
        Flags = 0;
        Level = 0;
        Logger = 0;
    }
}

static PVOID Routine(const WCHAR *name)
{
    UNICODE_STRING text;
    RtlInitUnicodeString(&text, name);
    return MmGetSystemRoutineAddress(&text);
}

void MessagesStart(void)
{
    REGISTER_CLASSIC *registerClassic = (REGISTER_CLASSIC *)Routine(L"EtwRegisterClassicProvider");
    TraceMessage = (TRACE_MESSAGE *)Routine(L"WmiTraceMessage");
    if (registerClassic != 0 && TraceMessage != 0)
        registerClassic(&Control, 0, OnEnable, 0, &Handle);
}

void MessagesStop(void)
{
    if (Handle != 0)
        EtwUnregister(Handle);
    Handle = 0;
}

void MessageRequest(ULONG code, ULONG irql, const char *name)
{
    __annotation(L"TMF:", L"b7d01c5e-6a2f-3e94-9c08-44f1d3a85b60 etw_c_driver // SRC=messages.c MJ= MN=",
                 L"#typev messages_c80 10 \"%0request %10!#x! at %11!u!: %12!s! in %!FUNC!\" //   "
                 L"LEVEL=TRACE_LEVEL_INFORMATION FLAGS=FLAG_REQUEST FUNC=MessageRequest",
                 L"{", L"code, ItemLong -- 10", L"irql, ItemLong -- 11", L"name, ItemString -- 12",
                 L"}");
    if ((Flags & FLAG_REQUEST) != 0 && Level >= LEVEL_INFORMATION) {
        SIZE_T length = 1;
        while (name[length - 1] != 0)
            ++length;
        TraceMessage(Logger, MESSAGE_FLAGS, &Messages, 10, (PVOID)&code, sizeof(code),
                     (PVOID)&irql, sizeof(irql), (PVOID)name, length, (PVOID)0);
    }
}
