/* Accesses to the processor's state, as inline functions of drivers' headers make them. */
#pragma once

#include "kernel.h"

#define OF_PROCESSOR(type, offset) \
    (*(volatile type __attribute__((address_space(256))) *)(offset))
#define OF_SHARED_DATA(type, offset) (*(volatile type *)(0xFFFFF78000000000ull + (offset)))

static __inline ULONG64 ReadCr8(void)
{
    ULONG64 value;
    __asm__ volatile("mov %%cr8, %0" : "=r"(value));
    return value;
}

static __inline void WriteCr8(ULONG64 value)
{
    __asm__ volatile("mov %0, %%cr8" : : "r"(value) : "memory");
}

static __inline KIRQL RaiseIrql(KIRQL to)
{
    KIRQL before = (KIRQL)ReadCr8();
    WriteCr8(to);
    return before;
}

static __inline PVOID CurrentThread(void)
{
    return (PVOID)OF_PROCESSOR(ULONG64, 0x188);
}

static __inline ULONG ProcessorNumber(void)
{
    return OF_PROCESSOR(UCHAR, 0x184);
}

static __inline ULONG ProcessorIndex(void)
{
    return OF_PROCESSOR(ULONG, 0x1A4);
}

static __inline LONG64 InterruptTime(void)
{
    return OF_SHARED_DATA(LONG64, 0x08);
}

static __inline LONG64 SystemTime(void)
{
    return OF_SHARED_DATA(LONG64, 0x14);
}

static __inline LONG64 TickCount(void)
{
    return OF_SHARED_DATA(LONG64, 0x320);
}

static __inline void FastFail(ULONG code)
{
    __asm__ volatile("int $0x29" : : "c"(code));
    __builtin_unreachable();
}
