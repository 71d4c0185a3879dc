/* The declarations of ntoskrnl.exe that this driver uses. They are based on the data in
 * tools/wdk-standin/data; the WDK is not needed. */
#pragma once

typedef unsigned char UCHAR, BOOLEAN, KIRQL;
typedef unsigned short USHORT, WCHAR;
typedef unsigned int ULONG;
typedef int LONG, NTSTATUS;
typedef long long LONG64;
typedef unsigned long long ULONG64, SIZE_T, REGHANDLE;
typedef void *PVOID;

#define STATUS_SUCCESS ((NTSTATUS)0)
#define STATUS_UNSUCCESSFUL ((NTSTATUS)0xC0000001)
#define STATUS_INVALID_PARAMETER ((NTSTATUS)0xC000000D)
#define STATUS_INVALID_DEVICE_REQUEST ((NTSTATUS)0xC0000010)
#define SUCCEEDED(status) ((status) >= 0)

enum { PASSIVE_LEVEL = 0, DISPATCH_LEVEL = 2 };

typedef struct {
    USHORT Length;
    USHORT MaximumLength;
    WCHAR *Buffer;
} UNICODE_STRING;

typedef struct {
    ULONG Data1;
    USHORT Data2;
    USHORT Data3;
    UCHAR Data4[8];
} GUID;

typedef struct DRIVER_OBJECT DRIVER_OBJECT;
typedef void DRIVER_UNLOAD(DRIVER_OBJECT *driver);

struct DRIVER_OBJECT {
    USHORT Type;
    USHORT Size;
    PVOID DeviceObject;
    ULONG Flags;
    PVOID DriverStart;
    ULONG DriverSize;
    PVOID DriverSection;
    PVOID DriverExtension;
    UNICODE_STRING DriverName;
    PVOID HardwareDatabase;
    PVOID FastIoDispatch;
    PVOID DriverInit;
    PVOID DriverStartIo;
    DRIVER_UNLOAD *DriverUnload;
    PVOID MajorFunction[28];
};

typedef struct {
    USHORT Id;
    UCHAR Version;
    UCHAR Channel;
    UCHAR Level;
    UCHAR Opcode;
    USHORT Task;
    ULONG64 Keyword;
} EVENT_DESCRIPTOR;

typedef struct {
    ULONG64 Ptr;
    ULONG Size;
    UCHAR Type;
    UCHAR Reserved1;
    USHORT Reserved2;
} EVENT_DATA_DESCRIPTOR;

enum { DATA_EVENT_METADATA = 1, DATA_PROVIDER_METADATA = 2 };
enum { EventProviderSetTraits = 2 };

typedef void ENABLE_CALLBACK(const GUID *source, ULONG control, UCHAR level, ULONG64 any,
                             ULONG64 all, PVOID filter, PVOID context);

#define IMPORT __declspec(dllimport)

IMPORT NTSTATUS EtwRegister(const GUID *provider, ENABLE_CALLBACK *callback, PVOID context,
                            REGHANDLE *handle);
IMPORT NTSTATUS EtwSetInformation(REGHANDLE handle, ULONG class, PVOID data, ULONG length);
IMPORT NTSTATUS EtwUnregister(REGHANDLE handle);
IMPORT NTSTATUS EtwWrite(REGHANDLE handle, const EVENT_DESCRIPTOR *event, const GUID *activity,
                         ULONG count, EVENT_DATA_DESCRIPTOR *data);
IMPORT NTSTATUS EtwWriteEx(REGHANDLE handle, const EVENT_DESCRIPTOR *event, ULONG64 filter,
                           ULONG flags, const GUID *activity, const GUID *related, ULONG count,
                           EVENT_DATA_DESCRIPTOR *data);
IMPORT KIRQL KeGetCurrentIrql(void);
IMPORT LONG KeSetPriorityThread(PVOID thread, LONG priority);
IMPORT void KeQuerySystemTimePrecise(LONG64 *time);
IMPORT PVOID MmGetSystemRoutineAddress(UNICODE_STRING *name);
IMPORT void RtlInitUnicodeString(UNICODE_STRING *string, const WCHAR *text);
IMPORT void RtlCopyUnicodeString(UNICODE_STRING *destination, const UNICODE_STRING *source);
IMPORT ULONG DbgPrint(const char *format, ...);
