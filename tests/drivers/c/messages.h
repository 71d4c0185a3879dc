/* The WPP messages of this driver. */
#pragma once

#include "kernel.h"

void MessagesStart(void);
void MessagesStop(void);

/* Writes a message about a request: its code, the IRQL and a name. Any IRQL. */
void MessageRequest(ULONG code, ULONG irql, const char *name);
