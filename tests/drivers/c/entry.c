/* The entry code of a driver: for KMDF, as the WDK links it from WdfDriverEntry.lib, or, with the macro WDM,
 * for no framework; and the code that /GS and /guard:cf need, as the WDK links it from
 * BufferOverflowFastFailK.lib. It is written for these tests
 * from docs/reference/kmdf-binding.md. */

#ifndef KMDF_MINOR
#define KMDF_MINOR 31
#define FUNCTION_COUNT 458
#endif

#include "framework.h"
#include "inline.h"

enum { FAST_FAIL_STACK_COOKIE = 2, FAST_FAIL_COOKIE_INIT = 6 };

/* The security cookie. The loader replaces this default, and InitializeCookie checks that it did. */
#define DEFAULT_COOKIE 0x00002B992DDFA232ull
ULONG64 __security_cookie = DEFAULT_COOKIE;
ULONG64 __security_cookie_complement = ~DEFAULT_COOKIE;

static void InitializeCookie(void)
{
    if (__security_cookie == 0 || __security_cookie == DEFAULT_COOKIE)
        FastFail(FAST_FAIL_COOKIE_INIT);
    __security_cookie_complement = ~__security_cookie;
}

void __security_check_cookie(ULONG64 cookie)
{
    if (cookie != __security_cookie || cookie >> 48 != 0)
        FastFail(FAST_FAIL_STACK_COOKIE);
}

/* The functions that guarded code calls until the loader sets others. They crash the driver, so
 * that a test notices a loader that does not. */
static void NoGuard(void)
{
    FastFail(10);
}

#pragma section(".00cfg", read)
__declspec(allocate(".00cfg")) PVOID __guard_check_icall_fptr = (PVOID)NoGuard;
__declspec(allocate(".00cfg")) PVOID __guard_dispatch_icall_fptr = (PVOID)NoGuard;

#ifndef NO_LOAD_CONFIG
extern char __guard_fids_table[], __guard_fids_count[], __guard_flags[];

/* The load configuration. Its length depends on the driver's variant. The linker finds it by name. */
typedef struct {
    ULONG Size;
    ULONG Reserved0[21];
    ULONG64 *SecurityCookie;
    ULONG64 Reserved1[2];
#ifndef OLD_LOAD_CONFIG
    PVOID *GuardCFCheckFunctionPointer;
    PVOID *GuardCFDispatchFunctionPointer;
    void *GuardCFFunctionTable;
    void *GuardCFFunctionCount;
    void *GuardFlags;
    ULONG64 Reserved2[21];
#endif
} LOAD_CONFIG;

const LOAD_CONFIG _load_config_used = {
    .Size = sizeof(LOAD_CONFIG),
    .SecurityCookie = &__security_cookie,
#ifndef OLD_LOAD_CONFIG
    .GuardCFCheckFunctionPointer = &__guard_check_icall_fptr,
    .GuardCFDispatchFunctionPointer = &__guard_dispatch_icall_fptr,
    .GuardCFFunctionTable = __guard_fids_table,
    .GuardCFFunctionCount = __guard_fids_count,
    .GuardFlags = __guard_flags,
#endif
};
#endif

/* Compilers refer to this symbol where code uses floating-point numbers. */
int _fltused = 0;

NTSTATUS DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path);

#ifdef WDM

/* The image's entry point in a driver that uses no framework. */
__declspec(safebuffers) NTSTATUS GsDriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
    InitializeCookie();
    return DriverEntry(driver, path);
}

#else

typedef struct {
    ULONG Major, Minor, Build;
} VERSION;

typedef struct {
    ULONG Size;
    const WCHAR *Component;
    VERSION Version;
    ULONG FuncCount;
    FUNCTION ***FuncTable;
    PVOID Module;
} BIND_INFO;

_Static_assert(sizeof(BIND_INFO) == 48, "WDF_BIND_INFO");

/* The first bytes of the public globals; the last one says whether to displace DriverUnload. */
typedef struct {
    WDFDRIVER Driver;
    ULONG DriverFlags;
    ULONG DriverTag;
    char DriverName[32];
    BOOLEAN DisplaceDriverUnload;
} PUBLIC_GLOBALS;

IMPORT NTSTATUS WdfVersionBind(DRIVER_OBJECT *driver, UNICODE_STRING *path, BIND_INFO *info,
                               PVOID *globals);
IMPORT NTSTATUS WdfVersionUnbind(UNICODE_STRING *path, BIND_INFO *info, PVOID globals);

FUNCTION **Functions;
PVOID Globals;

static const WCHAR Component[] = {'K', 'm', 'd', 'f', 'L', 'i', 'b', 'r', 'a', 'r', 'y', 0};
static BIND_INFO Info = {
    .Size = sizeof(BIND_INFO),
    .Component = Component,
    .Version = {1, KMDF_MINOR, 0},
    .FuncCount = FUNCTION_COUNT,
    .FuncTable = &Functions,
};
static WCHAR PathBuffer[260];
static UNICODE_STRING Path = {0, sizeof(PathBuffer), PathBuffer};
static DRIVER_UNLOAD *Displaced;

static void FxStubDriverUnload(DRIVER_OBJECT *driver)
{
    if (Displaced != 0 && Displaced != FxStubDriverUnload)
        Displaced(driver);
    WdfVersionUnbind(&Path, &Info, Globals);
}

/* The image's entry point. The check of the cookie comes first, in a function without a cookie. */
__declspec(safebuffers) NTSTATUS FxDriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
    InitializeCookie();
    if (driver == 0)
        return DriverEntry(driver, path);
    RtlCopyUnicodeString(&Path, path);
    NTSTATUS status = WdfVersionBind(driver, &Path, &Info, &Globals);
    if (!SUCCEEDED(status))
        return status;
    status = DriverEntry(driver, path);
    if (!SUCCEEDED(status)) {
        WdfVersionUnbind(&Path, &Info, Globals);
        return status;
    }
    if (((PUBLIC_GLOBALS *)Globals)->DisplaceDriverUnload) {
        Displaced = driver->DriverUnload;
        driver->DriverUnload = FxStubDriverUnload;
    }
    return STATUS_SUCCESS;
}

#endif
