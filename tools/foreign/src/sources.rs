//! The C text that is compiled with the samples.

/// Declarations that newer samples use but headers before Windows 10 2004 lack.
pub const NEWER: &str = "#ifndef POOL_FLAG_NON_PAGED\n\
     typedef unsigned __int64 POOL_FLAGS;\n\
     #define POOL_FLAG_USE_QUOTA 0x1ULL\n\
     #define POOL_FLAG_UNINITIALIZED 0x2ULL\n\
     #define POOL_FLAG_SESSION 0x4ULL\n\
     #define POOL_FLAG_CACHE_ALIGNED 0x8ULL\n\
     #define POOL_FLAG_RAISE_ON_FAILURE 0x20ULL\n\
     #define POOL_FLAG_NON_PAGED 0x40ULL\n\
     #define POOL_FLAG_NON_PAGED_EXECUTE 0x80ULL\n\
     #define POOL_FLAG_PAGED 0x100ULL\n\
     #define POOL_FLAG_SPECIAL_POOL 0x100000000ULL\n\
     #ifdef __cplusplus\n\
     extern \"C\"\n\
     #endif\n\
     __declspec(dllimport) void *ExAllocatePool2(unsigned __int64, unsigned __int64, unsigned long);\n\
     #define ExAllocatePoolZero(type, size, tag) ExAllocatePoolWithTag((type) | 0x400, size, tag)\n\
     #define ExAllocatePoolQuotaZero(type, size, tag) \
     ExAllocatePoolWithQuotaTag((type) | 0x400, size, tag)\n\
     #endif\n";

/// The variables of the framework's entry code that its headers declare in addition to those in
/// `tests/drivers/c/entry.c`, and the contents of wdmsec.lib.
pub const VARIABLES: &str = "unsigned long WdfFunctionCount = FUNCTION_COUNT, WdfStructureCount;\n\
     unsigned char WdfClientVersionHigherThanFramework;\n\
     void *WdfStructures[1];\n\
     typedef struct { unsigned short Length, MaximumLength; const unsigned short *Buffer; } TEXT;\n\
     #define DESCRIPTOR(name, text) \
     const TEXT name = { sizeof(text) - 2, sizeof(text), (const unsigned short *)text }\n\
     DESCRIPTOR(SDDL_DEVOBJ_KERNEL_ONLY, L\"D:P\");\n\
     DESCRIPTOR(SDDL_DEVOBJ_SYS_ALL, L\"D:P(A;;GA;;;SY)\");\n\
     DESCRIPTOR(SDDL_DEVOBJ_SYS_ALL_ADM_ALL, L\"D:P(A;;GA;;;SY)(A;;GA;;;BA)\");\n\
     DESCRIPTOR(SDDL_DEVOBJ_SYS_ALL_ADM_RX, L\"D:P(A;;GA;;;SY)(A;;GRGX;;;BA)\");\n\
     DESCRIPTOR(SDDL_DEVOBJ_SYS_ALL_ADM_RWX_WORLD_R, \
     L\"D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GR;;;WD)\");\n\
     DESCRIPTOR(SDDL_DEVOBJ_SYS_ALL_ADM_RWX_WORLD_RW_RES_R, \
     L\"D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GRGW;;;WD)(A;;GR;;;RC)\");\n\
     DESCRIPTOR(SDDL_DEVOBJ_SYS_ALL_ADM_RWX_WORLD_RWX_RES_RWX, \
     L\"D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GRGWGX;;;WD)(A;;GRGWGX;;;RC)\");\n\
     __declspec(dllimport) int IoCreateDevice(void *, unsigned, const void *, unsigned, unsigned, \
     unsigned char, void **);\n\
     /* As wdmsec.lib has it, but for the descriptor. */\n\
     int WdmlibIoCreateDeviceSecure(void *driver, unsigned size, const void *name, unsigned type, \
     unsigned options, unsigned char exclusive, const void *text, const void *class, void **device)\n\
     { return IoCreateDevice(driver, size, name, type, options, exclusive, device); }\n";

/// The contents of ntstrsafe.lib: the functions of its header, which can also implement them
/// inline.
pub const STRINGS: &str =
    "#define NTSTRSAFE_LIB_IMPL\n#include <ntddk.h>\n#include <ntstrsafe.h>\n";

/// No-op replacements for the code, other than trace functions, that the WPP preprocessor
/// generates.
pub const WITHOUT_RECORDER: &str = "#define WPP_INIT_TRACING(...) ((void)0)\n\
     #define WPP_CLEANUP(...) ((void)0)\n\
     #define WPP_LEVEL_ENABLED(...) 0\n#define WPP_RECORDER_INIT(...) ((void)0)\n\
     #define WPP_SYSTEMCONTROL(...) ((void)0)\n#define WPP_SYSTEMCONTROL2(...) ((void)0)\n";

/// The replacements for drivers that keep messages in the recorder: its start and end, with a
/// control block that all files of the driver share.
pub const WITH_RECORDER: &str = "#include <WppRecorder.h>\n\
     __declspec(selectany) unsigned __int64 WppControlBlock[16] = { 0 };\n\
     #define WPP_CB ((void *)WppControlBlock)\n\
     struct _DRIVER_OBJECT;\nstruct _UNICODE_STRING;\n\
     __declspec(dllimport) void WppAutoLogStart(void *, struct _DRIVER_OBJECT *, \
     struct _UNICODE_STRING *);\n\
     __declspec(dllimport) void WppAutoLogStop(void *, struct _DRIVER_OBJECT *);\n\
     #define WPP_INIT_TRACING(driver, path) \
     WppAutoLogStart(WPP_CB, (driver), (struct _UNICODE_STRING *)(path))\n\
     #define WPP_CLEANUP(driver) WppAutoLogStop(WPP_CB, (driver))\n\
     #define WPP_LEVEL_ENABLED(...) 0\n#define WPP_RECORDER_INIT(...) ((void)0)\n\
     #define WPP_SYSTEMCONTROL(...) ((void)0)\n#define WPP_SYSTEMCONTROL2(...) ((void)0)\n";
