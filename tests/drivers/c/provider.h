/* The events of this driver. Code that WPP or another generator would write is in its own file. */
#pragma once

#include "kernel.h"

NTSTATUS TraceStart(void);
void TraceStop(void);

/* Writes event 1 with EtwWrite: the request's code and a name. Any IRQL. */
NTSTATUS TraceRequest(ULONG code, const char *name);

/* Writes event 2 with EtwWriteEx: the IRQL and the processor. Any IRQL. */
NTSTATUS TraceState(ULONG irql, ULONG processor);

/* Writes the TraceLogging event "Times". Any IRQL. */
NTSTATUS TraceTimes(LONG64 interrupt, LONG64 ticks);
