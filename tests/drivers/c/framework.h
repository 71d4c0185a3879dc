/* The declarations of KMDF 1.31 that this driver uses, from the data in tools/wdk-standin/data. */
#pragma once

#include "kernel.h"

typedef PVOID WDFDRIVER, WDFDEVICE, WDFQUEUE, WDFREQUEST, WDFDPC, WDFOBJECT;
typedef struct DEVICE_INIT DEVICE_INIT;

typedef NTSTATUS EVT_DEVICE_ADD(WDFDRIVER driver, DEVICE_INIT *init);
typedef void EVT_UNLOAD(WDFDRIVER driver);
typedef void EVT_DEVICE_CONTROL(WDFQUEUE queue, WDFREQUEST request, SIZE_T output, SIZE_T input,
                                ULONG code);
typedef void EVT_DPC(WDFDPC dpc);

typedef struct {
    ULONG Size;
    EVT_DEVICE_ADD *EvtDriverDeviceAdd;
    EVT_UNLOAD *EvtDriverUnload;
    ULONG DriverInitFlags;
    ULONG DriverPoolTag;
} DRIVER_CONFIG;

typedef struct {
    ULONG Size;
    PVOID EvtCleanupCallback;
    PVOID EvtDestroyCallback;
    ULONG ExecutionLevel;
    ULONG SynchronizationScope;
    WDFOBJECT ParentObject;
    SIZE_T ContextSizeOverride;
    const void *ContextTypeInfo;
} OBJECT_ATTRIBUTES;

enum { EXECUTION_INHERIT = 1, SYNCHRONIZATION_INHERIT = 1 };

typedef struct {
    ULONG Size;
    ULONG DispatchType;
    ULONG PowerManaged;
    BOOLEAN AllowZeroLengthRequests;
    BOOLEAN DefaultQueue;
    PVOID EvtIoDefault;
    PVOID EvtIoRead;
    PVOID EvtIoWrite;
    EVT_DEVICE_CONTROL *EvtIoDeviceControl;
    PVOID EvtIoInternalDeviceControl;
    PVOID EvtIoStop;
    PVOID EvtIoResume;
    PVOID EvtIoCanceledOnQueue;
    ULONG NumberOfPresentedRequests;
    WDFDRIVER Driver;
} QUEUE_CONFIG;

enum { DISPATCH_SEQUENTIAL = 1, USE_DEFAULT = 2 };

typedef struct {
    ULONG Size;
    EVT_DPC *EvtDpcFunc;
    BOOLEAN AutomaticSerialization;
} DPC_CONFIG;

_Static_assert(sizeof(DRIVER_CONFIG) == 32, "WDF_DRIVER_CONFIG");
_Static_assert(sizeof(OBJECT_ATTRIBUTES) == 56, "WDF_OBJECT_ATTRIBUTES");
_Static_assert(sizeof(QUEUE_CONFIG) == 96, "WDF_IO_QUEUE_CONFIG");
_Static_assert(sizeof(DPC_CONFIG) == 24, "WDF_DPC_CONFIG");
_Static_assert(sizeof(DRIVER_OBJECT) == 336, "DRIVER_OBJECT");

typedef void FUNCTION(void);

/* Set by the entry code: the function table and the driver's globals. */
extern FUNCTION **Functions;
extern PVOID Globals;

/* Each function is called through its entry in the table, with the globals first. */
static __inline NTSTATUS DriverCreate(DRIVER_OBJECT *driver, const UNICODE_STRING *path,
                                      DRIVER_CONFIG *config)
{
    typedef NTSTATUS TYPE(PVOID, DRIVER_OBJECT *, const UNICODE_STRING *, OBJECT_ATTRIBUTES *,
                          DRIVER_CONFIG *, WDFDRIVER *);
    return ((TYPE *)Functions[116])(Globals, driver, path, 0, config, 0);
}

static __inline NTSTATUS DeviceCreate(DEVICE_INIT **init, WDFDEVICE *device)
{
    typedef NTSTATUS TYPE(PVOID, DEVICE_INIT **, OBJECT_ATTRIBUTES *, WDFDEVICE *);
    return ((TYPE *)Functions[75])(Globals, init, 0, device);
}

static __inline NTSTATUS DeviceCreateInterface(WDFDEVICE device, const GUID *class)
{
    typedef NTSTATUS TYPE(PVOID, WDFDEVICE, const GUID *, const UNICODE_STRING *);
    return ((TYPE *)Functions[77])(Globals, device, class, 0);
}

static __inline NTSTATUS QueueCreate(WDFDEVICE device, QUEUE_CONFIG *config)
{
    typedef NTSTATUS TYPE(PVOID, WDFDEVICE, QUEUE_CONFIG *, OBJECT_ATTRIBUTES *, WDFQUEUE *);
    return ((TYPE *)Functions[152])(Globals, device, config, 0, 0);
}

static __inline NTSTATUS DpcCreate(DPC_CONFIG *config, OBJECT_ATTRIBUTES *attributes, WDFDPC *dpc)
{
    typedef NTSTATUS TYPE(PVOID, DPC_CONFIG *, OBJECT_ATTRIBUTES *, WDFDPC *);
    return ((TYPE *)Functions[111])(Globals, config, attributes, dpc);
}

static __inline BOOLEAN DpcEnqueue(WDFDPC dpc)
{
    typedef BOOLEAN TYPE(PVOID, WDFDPC);
    return ((TYPE *)Functions[112])(Globals, dpc);
}

static __inline NTSTATUS RequestInput(WDFREQUEST request, SIZE_T least, PVOID *buffer)
{
    typedef NTSTATUS TYPE(PVOID, WDFREQUEST, SIZE_T, PVOID *, SIZE_T *);
    return ((TYPE *)Functions[269])(Globals, request, least, buffer, 0);
}

static __inline NTSTATUS RequestOutput(WDFREQUEST request, SIZE_T least, PVOID *buffer)
{
    typedef NTSTATUS TYPE(PVOID, WDFREQUEST, SIZE_T, PVOID *, SIZE_T *);
    return ((TYPE *)Functions[270])(Globals, request, least, buffer, 0);
}

static __inline void RequestComplete(WDFREQUEST request, NTSTATUS status, SIZE_T information)
{
    typedef void TYPE(PVOID, WDFREQUEST, NTSTATUS, SIZE_T);
    ((TYPE *)Functions[265])(Globals, request, status, information);
}
