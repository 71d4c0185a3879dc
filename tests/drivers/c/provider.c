#include "provider.h"

/* {6b0f3a52-7c1d-4e8b-9a46-5d2c81f0e937} */
static const GUID Provider = {
    0x6b0f3a52, 0x7c1d, 0x4e8b, {0x9a, 0x46, 0x5d, 0x2c, 0x81, 0xf0, 0xe9, 0x37}};
static const GUID Activity = {
    0x0c0c0c0c, 1, 2, {3, 4, 5, 6, 7, 8, 9, 10}};

static const EVENT_DESCRIPTOR Request = {.Id = 1, .Level = 4, .Keyword = 1};
static const EVENT_DESCRIPTOR State = {.Id = 2, .Level = 4, .Keyword = 2};
static const EVENT_DESCRIPTOR Times = {.Channel = 11, .Level = 5, .Keyword = 4};

/* The provider's traits: their length and the provider's name. */
#define NAME "Contoso.C"
#pragma pack(push, 1)
static const struct {
    USHORT Length;
    char Name[sizeof(NAME)];
} Traits = {sizeof(Traits), NAME};

/* The event's metadata: its length, tags, name, and the name and type of each field. */
enum { TYPE_INT64 = 9 };
static const struct {
    USHORT Length;
    UCHAR Tags;
    char Name[sizeof("Times")];
    char Interrupt[sizeof("Interrupt")];
    UCHAR InterruptType;
    char Ticks[sizeof("Ticks")];
    UCHAR TicksType;
} TimesMetadata = {sizeof(TimesMetadata), 0, "Times", "Interrupt", TYPE_INT64, "Ticks", TYPE_INT64};
#pragma pack(pop)

static REGHANDLE Handle;
static volatile ULONG IsEnabled;

static void Enabled(const GUID *source, ULONG control, UCHAR level, ULONG64 any, ULONG64 all,
                    PVOID filter, PVOID context)
{
    (void)source, (void)level, (void)any, (void)all, (void)filter, (void)context;
    if (control < 2)
        IsEnabled = control;
}

NTSTATUS TraceStart(void)
{
    NTSTATUS status = EtwRegister(&Provider, Enabled, 0, &Handle);
    if (SUCCEEDED(status))
        EtwSetInformation(Handle, EventProviderSetTraits, (PVOID)&Traits, sizeof(Traits));
    return status;
}

void TraceStop(void)
{
    EtwUnregister(Handle);
    Handle = 0;
}

static EVENT_DATA_DESCRIPTOR Data(const void *from, SIZE_T size)
{
    EVENT_DATA_DESCRIPTOR data = {(ULONG64)from, (ULONG)size, 0, 0, 0};
    return data;
}

NTSTATUS TraceRequest(ULONG code, const char *name)
{
    SIZE_T length = 0;
    while (name[length] != 0)
        ++length;
    EVENT_DATA_DESCRIPTOR data[] = {Data(&code, sizeof(code)), Data(name, length + 1)};
    return IsEnabled ? EtwWrite(Handle, &Request, &Activity, 2, data) : STATUS_SUCCESS;
}

NTSTATUS TraceState(ULONG irql, ULONG processor)
{
    EVENT_DATA_DESCRIPTOR data[] = {Data(&irql, sizeof(irql)), Data(&processor, sizeof(processor))};
    return EtwWriteEx(Handle, &State, 0, 0, &Activity, 0, 2, data);
}

NTSTATUS TraceTimes(LONG64 interrupt, LONG64 ticks)
{
    EVENT_DATA_DESCRIPTOR data[] = {
        Data(&Traits, sizeof(Traits)), Data(&TimesMetadata, sizeof(TimesMetadata)),
        Data(&interrupt, sizeof(interrupt)), Data(&ticks, sizeof(ticks))};
    data[0].Type = DATA_PROVIDER_METADATA;
    data[1].Type = DATA_EVENT_METADATA;
    return EtwWriteEx(Handle, &Times, 0, 0, &Activity, 0, 4, data);
}
