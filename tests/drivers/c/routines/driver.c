/* Runs the routines in a driver without a framework, and prints the lines. */
#include "routines.h"

typedef struct DRIVER_OBJECT DRIVER_OBJECT;
typedef void DRIVER_UNLOAD(DRIVER_OBJECT *driver);

struct DRIVER_OBJECT {
    UCHAR Before[0x68];
    DRIVER_UNLOAD *DriverUnload;
};

IMPORT ULONG DbgPrint(const char *format, ...);

void Say(const char *line)
{
    DbgPrint("%s\n", line);
}

static void Unload(DRIVER_OBJECT *driver)
{
    (void)driver;
}

NTSTATUS DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
    (void)path;
    driver->DriverUnload = Unload;
    Routines();
    return 0;
}
