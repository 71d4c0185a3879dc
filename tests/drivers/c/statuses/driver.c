/* Calls routines of ntoskrnl.exe whose results, or whose checks, are easily wrong, and prints the results.
 * Requests come from a program's process; the rest runs in the system's. */

typedef unsigned char UCHAR, BOOLEAN, KIRQL;
typedef char CHAR;
typedef unsigned short USHORT, WCHAR;
typedef unsigned int ULONG;
typedef int LONG, NTSTATUS;
typedef long long LONG64;
typedef unsigned long long ULONG64, SIZE_T;
typedef void *PVOID, *HANDLE;

typedef struct {
    USHORT Length, MaximumLength;
    WCHAR *Buffer;
} UNICODE_STRING;

typedef struct {
    USHORT Length, MaximumLength;
    CHAR *Buffer;
} ANSI_STRING;

typedef struct DRIVER_OBJECT {
    UCHAR Before[0x28];
    PVOID DriverSection, DriverExtension;
    UNICODE_STRING DriverName, *HardwareDatabase;
    UCHAR Between[0x18];
    void (*DriverUnload)(struct DRIVER_OBJECT *driver);
    NTSTATUS (*MajorFunction[28])(PVOID device, UCHAR *irp);
} DRIVER_OBJECT;

typedef struct {
    ULONG Length;
    HANDLE Root;
    UNICODE_STRING *Name;
    ULONG Attributes;
    PVOID Descriptor, Quality;
} OBJECT_ATTRIBUTES;

#define IMPORT __declspec(dllimport)

IMPORT ULONG DbgPrint(const char *format, ...);
IMPORT NTSTATUS IoCreateDevice(DRIVER_OBJECT *driver, ULONG extension, UNICODE_STRING *name, ULONG type,
                               ULONG characteristics, BOOLEAN exclusive, PVOID *device);
IMPORT void IoDeleteDevice(PVOID device);
IMPORT void IofCompleteRequest(PVOID irp, CHAR boost);
IMPORT void RtlInitUnicodeString(UNICODE_STRING *string, const WCHAR *text);
IMPORT void RtlInitUTF8String(ANSI_STRING *string, const CHAR *text);
IMPORT void RtlFreeUTF8String(ANSI_STRING *string);
IMPORT NTSTATUS RtlUnicodeStringToUTF8String(ANSI_STRING *to, UNICODE_STRING *from, BOOLEAN allocate);
IMPORT NTSTATUS RtlUnicodeStringToAnsiString(ANSI_STRING *to, UNICODE_STRING *from, BOOLEAN allocate);
IMPORT NTSTATUS RtlAppendUnicodeToString(UNICODE_STRING *to, const WCHAR *text);
IMPORT NTSTATUS RtlAppendUnicodeStringToString(UNICODE_STRING *to, UNICODE_STRING *from);
IMPORT NTSTATUS RtlAppendStringToString(ANSI_STRING *to, ANSI_STRING *from);
IMPORT NTSTATUS RtlDuplicateUnicodeString(ULONG flags, UNICODE_STRING *from, UNICODE_STRING *to);
IMPORT NTSTATUS RtlUTF8ToUnicodeN(WCHAR *to, ULONG room, ULONG *length, const CHAR *from, ULONG count);
IMPORT NTSTATUS RtlUnicodeToUTF8N(CHAR *to, ULONG room, ULONG *length, const WCHAR *from, ULONG count);
IMPORT CHAR RtlUpperChar(CHAR character);
IMPORT ULONG RtlHashUnicodeString(UNICODE_STRING *string, BOOLEAN fold, ULONG algorithm, ULONG *hash);
IMPORT LONG wcstol(const WCHAR *text, WCHAR **end, int base);
IMPORT WCHAR towlower(WCHAR character);
IMPORT LONG64 _atoi64(const CHAR *text);
IMPORT NTSTATUS ZwCreateEvent(HANDLE *handle, ULONG access, OBJECT_ATTRIBUTES *attributes, ULONG type,
                              BOOLEAN state);
IMPORT NTSTATUS ZwSetEvent(HANDLE event, LONG *previous);
IMPORT NTSTATUS ZwClose(HANDLE handle);
IMPORT NTSTATUS ObCloseHandle(HANDLE handle, CHAR mode);
IMPORT NTSTATUS ObReferenceObjectByHandle(HANDLE handle, ULONG access, PVOID type, CHAR mode, PVOID *object,
                                          PVOID information);
IMPORT NTSTATUS ZwDuplicateObject(HANDLE process, HANDLE source, HANDLE target, HANDLE *handle, ULONG access,
                                  ULONG attributes, ULONG options);
IMPORT NTSTATUS ZwQueryObject(HANDLE handle, ULONG class, PVOID buffer, ULONG length, ULONG *needed);
IMPORT NTSTATUS ZwCreateSection(HANDLE *handle, ULONG access, OBJECT_ATTRIBUTES *attributes, LONG64 *size,
                                ULONG protection, ULONG allocation, HANDLE file);
IMPORT NTSTATUS ZwMapViewOfSection(HANDLE section, HANDLE process, PVOID *base, SIZE_T zero, SIZE_T commit,
                                   LONG64 *offset, SIZE_T *size, ULONG inherit, ULONG type,
                                   ULONG protection);
IMPORT PVOID MmAllocatePagesForMdl(LONG64 low, LONG64 high, LONG64 skip, SIZE_T bytes);
IMPORT void MmFreePagesFromMdl(PVOID mdl);
IMPORT void ExFreePool(PVOID block);
IMPORT LONG KeReadStateEvent(PVOID event);
IMPORT KIRQL KfRaiseIrql(KIRQL irql);
IMPORT void KeLowerIrql(KIRQL irql);
IMPORT HANDLE PsGetCurrentThreadId(void);
IMPORT NTSTATUS KeDelayExecutionThread(CHAR mode, BOOLEAN alertable, LONG64 *interval);
IMPORT ULONG64 KeQueryInterruptTime(void);
IMPORT ULONG64 KeQueryUnbiasedInterruptTimePrecise(ULONG64 *counter);

enum { EVENT_ALL_ACCESS = 0x1F0003, SYNCHRONIZE = 0x100000, OBJ_KERNEL_HANDLE = 0x200 };

#define CURRENT_PROCESS ((HANDLE)-1)
#define SHOW(name, value) DbgPrint(name " %llx\n", (ULONG64)(value))
#define STATUS(name, value) DbgPrint(name " %x\n", (ULONG)(value))

static PVOID Device;
static HANDLE OfSystem, Kernel;

static HANDLE Event(ULONG attributes)
{
    OBJECT_ATTRIBUTES value = { sizeof(value), 0, 0, attributes, 0, 0 };
    HANDLE handle = 0;

    STATUS("event", ZwCreateEvent(&handle, EVENT_ALL_ACCESS, &value, 0, 0));
    return handle;
}

static void Strings(void)
{
    WCHAR wide[8] = { 'a', 'b', 'c', 'd', 0 };
    CHAR narrow[12] = "-----------";
    UNICODE_STRING string = { 4, 14, wide }, empty = { 0, 0, 0 }, text;
    ANSI_STRING full = { 5, 0, narrow }, nothing = { 0, 0, 0 }, ansi = { 0, 5, narrow }, utf8;
    ULONG length;

    DbgPrint("upper %x %x %c\n", (UCHAR)RtlUpperChar((CHAR)0x83), (UCHAR)RtlUpperChar((CHAR)0xE0),
             RtlUpperChar('a'));
    STATUS("append", RtlAppendUnicodeToString(&string, 0));
    STATUS("append", RtlAppendUnicodeStringToString(&string, &empty));
    STATUS("append", RtlAppendStringToString(&full, &nothing));
    SHOW("kept", wide[2]);
    RtlInitUnicodeString(&text, L"abcdef");
    STATUS("ansi", RtlUnicodeStringToAnsiString(&ansi, &text, 0));
    DbgPrint("ansi %d %s\n", ansi.Length, narrow);
    string.MaximumLength = 2;
    STATUS("duplicate", RtlDuplicateUnicodeString(1, &string, &text));
    STATUS("part", RtlUTF8ToUnicodeN(wide, 6, &length, "X\xC2\x80\xF0\x90\x80\x80", 7));
    SHOW("part", length);
    STATUS("odd", RtlUnicodeToUTF8N(0, 0, &length, L"", 1));
    SHOW("odd", length);
    RtlInitUTF8String(&utf8, "abc");
    SHOW("utf8", utf8.Length);
    RtlInitUnicodeString(&text, L"abc");
    STATUS("utf8", RtlUnicodeStringToUTF8String(&utf8, &text, 1));
    RtlFreeUTF8String(&utf8);
    SHOW("wide", wcstol(L"\xA0 +44", 0, 0));
    SHOW("wide", wcstol(L"\x0E59", 0, 0));
    SHOW("wide", towlower(0xC0));
    SHOW("overflow", _atoi64("18446744073709551616"));
}

static void Times(void)
{
    for (LONG64 wait = 20000; wait <= 500000; wait *= 25) {
        ULONG64 before = KeQueryInterruptTime(), counter;
        LONG64 interval = -wait;

        KeDelayExecutionThread(0, 0, &interval);
        SHOW("waited", KeQueryInterruptTime() - before >= (ULONG64)wait);
        SHOW("precise", KeQueryUnbiasedInterruptTimePrecise(&counter) > before);
    }
}

static void Memory(void)
{
    OBJECT_ATTRIBUTES attributes = { sizeof(attributes), 0, 0, OBJ_KERNEL_HANDLE, 0, 0 };
    LONG64 size = 4096;
    SIZE_T viewed = 0;
    PVOID base = (PVOID)0xFFFF8000000000C8, mdl;
    HANDLE section;

    STATUS("large pages", ZwCreateSection(&section, 0xF001F, &attributes, &size, 4, 0x88000000, 0));
    STATUS("section", ZwCreateSection(&section, 0xF001F, &attributes, &size, 4, 0x8000000, 0));
    STATUS("view", ZwMapViewOfSection(section, CURRENT_PROCESS, &base, 0, 0, 0, &viewed, 2, 0, 4));
    STATUS("close", ZwClose(section));
    mdl = MmAllocatePagesForMdl(0, -1, 0, 2048ull << 20);
    SHOW("pages", mdl != 0);
    if (mdl) {
        MmFreePagesFromMdl(mdl);
        ExFreePool(mdl);
    }
}

static void Levels(void)
{
    static WCHAR letters[] = L"abc";
    static ULONG64 zeroed[3];
    UNICODE_STRING text = { 6, 8, letters };
    ULONG hash;
    KIRQL before = KfRaiseIrql(8);

    SHOW("thread", PsGetCurrentThreadId() != 0);
    KeLowerIrql(before);
    KfRaiseIrql(1);
    STATUS("hash", RtlHashUnicodeString(&text, 1, 0, &hash));
    KeLowerIrql(before);
    SHOW("zeroed", KeReadStateEvent(zeroed));
    STATUS("null", ZwClose(0));
}

static NTSTATUS Dispatch(PVOID device, UCHAR *irp)
{
    ULONG basic[14], needed;
    HANDLE own, copy;
    PVOID object;

    (void)device;
    if (**(UCHAR **)(irp + 0xB8) == 14) {
        STATUS("of the system", ZwSetEvent(OfSystem, 0));
        STATUS("kernel", ZwSetEvent(Kernel, 0));
        own = Event(0);
        SHOW("own is positive", (LONG64)own > 0);
        STATUS("own", ZwSetEvent(own, 0));
        STATUS("close", ObCloseHandle(own, 1));
        STATUS("close kernel", ObCloseHandle(Kernel, 1));
        STATUS("reference kernel", ObReferenceObjectByHandle(Kernel, 0, 0, 1, &object, 0));
        STATUS("duplicate", ZwDuplicateObject(CURRENT_PROCESS, Kernel, CURRENT_PROCESS, &copy, SYNCHRONIZE, 0, 0));
        STATUS("query", ZwQueryObject(copy, 0, basic, sizeof(basic), &needed));
        SHOW("access", basic[1]);
        STATUS("write", ObReferenceObjectByHandle(copy, 2, 0, 1, &object, 0));
        STATUS("close", ZwClose(copy));
    }
    *(NTSTATUS *)(irp + 0x30) = 0;
    *(ULONG64 *)(irp + 0x38) = 0;
    IofCompleteRequest(irp, 0);
    return 0;
}

static void Unload(DRIVER_OBJECT *driver)
{
    (void)driver;
    ZwClose(OfSystem);
    ZwClose(Kernel);
    IoDeleteDevice(Device);
}

NTSTATUS DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
    UNICODE_STRING name;

    (void)path;
    driver->DriverUnload = Unload;
    for (int major = 0; major < 28; major++)
        driver->MajorFunction[major] = Dispatch;
    RtlInitUnicodeString(&name, L"\\Device\\Statuses");
    SHOW("section", driver->DriverSection != 0);
    SHOW("database", driver->HardwareDatabase->Length);
    Strings();
    Times();
    Memory();
    Levels();
    OfSystem = Event(0);
    Kernel = Event(OBJ_KERNEL_HANDLE);
    return IoCreateDevice(driver, 0, &name, 0x22, 0, 0, &Device);
}
