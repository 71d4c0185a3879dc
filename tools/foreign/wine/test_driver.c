/* The driver with which the shim is tested, in the form of Wine's. */

#include <stdarg.h>
#include <stdio.h>

#include "windef.h"
#include "winbase.h"
#include "ddk/wdm.h"
#include "utils.h"

static DEVICE_OBJECT *control;

static void check_value_(int line, int value)
{
    ok_(__FILE__, line)(value > 0, "got %d, not above 0\n", value);
    ok_(__FILE__, line)(value < 3, "got %d, not below 3\n", value);
}
#define check_value(value) check_value_(__LINE__, value)

static void test_passing(void)
{
    int i;

    for (i = 0; i < 3; i++)
        ok(i < 3, "got %d\n", i);
    ok(broken(1), "not broken\n");
    todo_wine ok(1, "only Wine's own result is marked\n");
    todo_wine_if(1)
        ok(1, "only Wine's own result is marked\n");
    if (winetest_platform_is_wine) ok(0, "this is not Wine\n");
    trace("no check\n");
    check_value(1);
}

static void test_failing(void)
{
    int i;

    for (i = 0; i < 3; i++)
        ok(i != 1, "got %d of %ls\n", i, L"wide");
    check_value(3);
    ok(1, "reached\n");
}

static void test_skipping(int early)
{
    ok(early, "early %d\n", early);
    skip("no device\n");
    win_skip("no routine\n");
    if (early) return;
    ok(0, "not reached\n");
}

static void test_marked(void)
{
    todo_if(1) ok(0, "fails as marked\n");
    todo_if(1)
        ok(1, "passes although marked\n");
    todo_if(0) ok(1, "not marked\n");
    ok(1, "after the marks\n");
}

static void test_inner(void)
{
    ok(1, "inner\n");
}

static void test_outer(void)
{
    test_inner();
    ok(1, "outer\n");
}

static void test_unprovided(void)
{
    ok(1, "before\n");
    NoKernelHasThisRoutine();
    ok(0, "after\n");
}

static void WINAPI thread(void *argument)
{
    ok(argument == (void *)1, "got %p\n", argument);
    ok(!argument, "in a thread\n");
    PsTerminateSystemThread(STATUS_SUCCESS);
}

static void test_thread(void)
{
    HANDLE handle;

    ok(!PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, thread, (void *)1), "no thread\n");
    ok(!ZwWaitForSingleObject(handle, FALSE, NULL), "no end\n");
    ZwClose(handle);
}

static NTSTATUS WINAPI dispatch(DEVICE_OBJECT *device, IRP *irp)
{
    if (IoGetCurrentIrpStackLocation(irp)->MajorFunction == IRP_MJ_DEVICE_CONTROL)
    {
        ok(device == control, "another device\n");
        test_passing();
        test_failing();
        test_skipping(1);
        test_marked();
        test_outer();
        test_unprovided();
        test_thread();
    }
    irp->IoStatus.Status = STATUS_SUCCESS;
    irp->IoStatus.Information = 0;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return STATUS_SUCCESS;
}

static void WINAPI unload(DRIVER_OBJECT *driver)
{
    IoDeleteDevice(control);
    winetest_cleanup();
}

NTSTATUS WINAPI DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
    UNICODE_STRING name;
    NTSTATUS status;

    if ((status = winetest_init())) return status;
    driver->DriverUnload = unload;
    driver->MajorFunction[IRP_MJ_CREATE] = dispatch;
    driver->MajorFunction[IRP_MJ_CLOSE] = dispatch;
    driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = dispatch;
    RtlInitUnicodeString(&name, L"\\Device\\ShimTest");
    status = IoCreateDevice(driver, 0, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, &control);
    ok(!status, "got %#lx\n", status);
    control->Flags &= ~DO_DEVICE_INITIALIZING;
    return STATUS_SUCCESS;
}
