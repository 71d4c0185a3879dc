/* A driver in C. Its control codes select what it does: it reads the processor's state as inline
 * functions do, traces it, and executes instructions that a driver cannot execute. */

#include "framework.h"
#include "inline.h"
#include "messages.h"
#include "provider.h"

/* The control codes, METHOD_BUFFERED. standin-kernel/tests/it/c_drivers.rs repeats them. */
#define CODE(number) (0x222000u | (number) << 2)
enum {
    READ_STATE = CODE(1),
    RAISE_AND_LOWER = CODE(2),
    LEAVE_RAISED = CODE(3),
    LOAD_FORMS = CODE(4),
    CALL_POINTER = CODE(5),
    SMASH_STACK = CODE(6),
    CALL_WITH_DIRECTION = CODE(7),
    RETURN_WITH_DIRECTION = CODE(8),
    RETURN_WITH_CONTROL = CODE(9),
    READ_COUNTER = CODE(10),
    WAIT_BY_CLOCK = CODE(11),
    SET_PRIORITY = CODE(12),
    LARGE_FRAME = CODE(13),
    HUGE_FRAME = CODE(14),
    TRAP = CODE(16),
};

/* {0d5b6f2e-4c1a-4f69-8b57-91e3a0c4d812} */
static const GUID Interface = {
    0x0d5b6f2e, 0x4c1a, 0x4f69, {0x8b, 0x57, 0x91, 0xe3, 0xa0, 0xc4, 0xd8, 0x12}};

enum { RESULTS = 16 };

static WDFDPC Dpc;
static volatile ULONG DpcRuns, DpcIrql;

static void OnDpc(WDFDPC dpc)
{
    (void)dpc;
    DpcIrql = (ULONG)ReadCr8();
    ++DpcRuns;
    TraceState(DpcIrql, ProcessorNumber());
}

static void ReadState(ULONG64 *out)
{
    LONG64 precise;
    out[0] = ReadCr8();
    out[1] = KeGetCurrentIrql();
    out[2] = (ULONG64)CurrentThread();
    out[3] = ProcessorNumber();
    out[4] = ProcessorIndex();
    out[5] = (ULONG64)InterruptTime();
    out[6] = (ULONG64)SystemTime();
    out[7] = (ULONG64)TickCount();
    KeQuerySystemTimePrecise(&precise);
    out[8] = (ULONG64)precise;
    out[9] = OF_SHARED_DATA(ULONG, 0x26C);
    out[10] = OF_SHARED_DATA(ULONG, 0x004);
    /* The block's own address, read from the block. */
    UCHAR *self = (UCHAR *)OF_PROCESSOR(ULONG64, 0x18);
    UCHAR *control = (UCHAR *)OF_PROCESSOR(ULONG64, 0x20);
    out[11] = (ULONG64)(control - self);
    out[12] = *(volatile ULONG64 *)(control + 8);
    TraceState((ULONG)out[0], (ULONG)out[3]);
    TraceTimes((LONG64)out[5], (LONG64)out[7]);
}

static void RaiseAndLower(ULONG64 *out)
{
    KIRQL before = RaiseIrql(DISPATCH_LEVEL);
    out[0] = before;
    out[1] = ReadCr8();
    out[2] = KeGetCurrentIrql();
    TraceState((ULONG)out[1], ProcessorNumber());
    ULONG runs = DpcRuns;
    DpcEnqueue(Dpc);
    out[3] = DpcRuns - runs;
    /* The DPC runs in this write. Registers with live values must survive it. */
    double sum = (double)(before + 3) * 1.5;
    __asm__ volatile("" : "+x"(sum));
    WriteCr8(before);
    __asm__ volatile("" : "+x"(sum));
    out[4] = DpcRuns - runs;
    out[5] = DpcIrql;
    out[6] = KeGetCurrentIrql();
    out[7] = (ULONG64)(sum * 2);
}

/* Loads in the forms that compilers choose for such accesses. */
static void LoadForms(ULONG64 *out)
{
    ULONG64 page = 0xFFFFF78000000000ull;
    ULONG64 value;
    UCHAR flag;
    /* With an absolute address, for each width. */
    __asm__ volatile("movabsq 0xFFFFF7800000026C, %%rax" : "=a"(value));
    out[0] = value;
    __asm__ volatile("movq $-1, %%rax; movabsl 0xFFFFF7800000026C, %%eax" : "=a"(value));
    out[1] = value;
    __asm__ volatile("movl $0x11223344, %%eax; movabsw 0xFFFFF7800000026C, %%ax" : "=a"(value));
    out[2] = value & 0xFFFFFFFF;
    __asm__ volatile("movl $0x11223344, %%eax; movabsb 0xFFFFF7800000026C, %%al" : "=a"(value));
    out[3] = value & 0xFFFFFFFF;
    /* With a base and an index, with extension, as an operand of arithmetic. */
    __asm__ volatile("movzbl 0x26C(%1), %k0" : "=r"(value) : "r"(page));
    out[4] = value;
    __asm__ volatile("movswq 0x2C(%1,%2,2), %0" : "=r"(value) : "r"(page), "r"(1ull));
    out[5] = value;
    __asm__ volatile("movslq 0x26C(%1), %0" : "=r"(value) : "r"(page));
    out[6] = value;
    __asm__ volatile("cmpl $10, 0x26C(%1); sete %0" : "=q"(flag) : "r"(page) : "cc");
    out[7] = flag;
    __asm__ volatile("testb $2, 0x26C(%1); setne %0" : "=q"(flag) : "r"(page) : "cc");
    out[8] = flag;
    value = 5;
    __asm__ volatile("addl 0x26C(%1), %k0" : "+r"(value) : "r"(page) : "cc");
    out[9] = value;
    __asm__ volatile("pushq 0x26C(%1); popq %0" : "=r"(value) : "r"(page));
    out[10] = value;
    __asm__ volatile("movdqu 0x264(%1), %%xmm5; movq %%xmm5, %0"
                     : "=r"(value)
                     : "r"(page)
                     : "xmm5");
    out[11] = value;
    __asm__ volatile("cmpb $0, %%gs:0x184; sete %0" : "=q"(flag) : : "cc");
    out[12] = flag;
    __asm__ volatile("movl $0x184, %%ecx; movzbl %%gs:(%%rcx), %k0" : "=r"(value) : : "rcx");
    out[13] = value;
    __asm__ volatile("movl $0x1234, %%eax; movq %%cr8, %%r9; movq %%r9, %0"
                     : "=r"(value)
                     :
                     : "rax", "r9");
    out[14] = value;
}

typedef ULONG TARGET(ULONG);
static ULONG Double(ULONG value)
{
    return value * 2;
}
static ULONG Triple(ULONG value)
{
    return value * 3;
}
static TARGET *volatile Targets[] = {Double, Triple};

static void CallPointer(ULONG which, ULONG64 *out)
{
    out[0] = Targets[which & 1](21);
}

__attribute__((noinline)) static void SmashStack(SIZE_T length)
{
    char buffer[16];
    volatile char *at = buffer;
    for (SIZE_T index = 0; index < length; ++index)
        at[index] = 0x5A;
}

/* A frame of several pages, whose prologue calls __chkstk with the parameters in registers. */
__attribute__((noinline)) static ULONG64 LargeFrame(ULONG64 first, ULONG64 second, ULONG64 third,
                                                    ULONG64 fourth)
{
    volatile UCHAR frame[3 * 4096];
    /* The compiler must not split the array. */
    __asm__ volatile("" : : "r"(frame) : "memory");
    frame[0] = (UCHAR)first;
    frame[4096] = (UCHAR)second;
    frame[2 * 4096] = (UCHAR)third;
    frame[sizeof(frame) - 1] = (UCHAR)fourth;
    return frame[0] + 10 * frame[4096] + 100 * frame[2 * 4096] + 1000 * frame[sizeof(frame) - 1];
}

/* A frame that is larger than a kernel stack, of which the function uses only the near end. */
__attribute__((noinline)) static ULONG64 HugeFrame(UCHAR value)
{
    volatile UCHAR frame[40 * 4096];
    __asm__ volatile("" : : "r"(frame) : "memory");
    frame[sizeof(frame) - 1] = value;
    return frame[sizeof(frame) - 1];
}

static void Wait(ULONG64 *out)
{
    LONG64 start = InterruptTime(), now;
    ULONG64 looks = 0;
    do {
        now = InterruptTime();
        ++looks;
    } while (now - start < 10 * 10000);
    out[0] = (ULONG64)(now - start);
    out[1] = looks;
}

/* Instructions that a driver cannot execute here, and fields that do not exist. */
__attribute__((noinline)) static void Trap(ULONG which)
{
    ULONG64 page = 0xFFFFF78000000000ull;
    switch (which) {
    case 0: FastFail(3);
    case 1: __asm__ volatile("cli"); break;
    case 2: __asm__ volatile("sti"); break;
    case 3: __asm__ volatile("hlt"); break;
    case 4: __asm__ volatile("rdmsr" : : "c"(0xC0000080) : "rax", "rdx"); break;
    case 5: __asm__ volatile("wrmsr" : : "a"(0), "d"(0), "c"(0xC0000080)); break;
    /* System call 231 ends a Linux process. */
    case 6: __asm__ volatile("syscall" : : "a"(231), "D"(3) : "rcx", "r11"); break;
    case 7: __asm__ volatile("inb $0x60, %%al" : : : "rax"); break;
    case 8: __asm__ volatile("outb %%al, $0x80" : : "a"(0)); break;
    case 9: __asm__ volatile("int3"); break;
    case 10: __asm__ volatile("int $0x2D" : : "a"(1)); break;
    case 11: __asm__ volatile("ud2"); break;
    case 12: __asm__ volatile("divl %k0" : : "r"(0), "a"(1), "d"(0)); break;
    case 13: __asm__ volatile("divl %k0" : : "r"(1), "a"(1), "d"(5)); break;
    /* System call 252 ends a 32-bit Linux process. */
    case 14: __asm__ volatile("int $0x80" : : "a"(252), "b"(3)); break;
    case 15: __asm__ volatile("sysenter" : : "a"(252), "b"(3)); break;
    case 16: __asm__ volatile("int $0x2C"); break;
    case 17: __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq; nop; nop" : : : "cc"); break;
    case 18: (void)OF_PROCESSOR(ULONG, 0x2D8); break;
    case 19: (void)OF_SHARED_DATA(ULONG, 0x330); break;
    case 20: OF_SHARED_DATA(ULONG, 0x320) = 1; break;
    case 21: OF_PROCESSOR(ULONG, 0x184) = 1; break;
    case 22: WriteCr8(0x12); break;
    case 23: (void)*(volatile ULONG *)CurrentThread(); break;
    case 24: __asm__ volatile("movq %%cr3, %%rax" : : : "rax"); break;
    case 25: __asm__ volatile("rep movsb" : : "S"(page + 0x14), "D"(&page), "c"(8) : "memory"); break;
    /* An unaligned access with the alignment check on. */
    case 26:
        __asm__ volatile("pushfq; orl $0x40000, (%%rsp); popfq; movl 1(%0), %%eax" : : "r"(&page)
                         : "rax", "cc");
        break;
    default: break;
    }
}

static void OnControl(WDFQUEUE queue, WDFREQUEST request, SIZE_T output, SIZE_T input, ULONG code)
{
    ULONG64 results[RESULTS] = {0};
    NTSTATUS status = STATUS_SUCCESS;
    ULONG argument = 0;
    ULONG64 *to = 0;
    PVOID buffer;

    (void)queue;
    if (input >= sizeof(ULONG) && SUCCEEDED(RequestInput(request, sizeof(ULONG), &buffer)))
        argument = *(ULONG *)buffer;
    if (output >= sizeof(results) &&
        SUCCEEDED(RequestOutput(request, sizeof(results), &buffer)))
        to = buffer;
    TraceRequest(code, "control");
    MessageRequest(code, (ULONG)ReadCr8(), "control");
    switch (code) {
    case READ_STATE: ReadState(results); break;
    case RAISE_AND_LOWER: RaiseAndLower(results); break;
    case LEAVE_RAISED: RaiseIrql(DISPATCH_LEVEL); break;
    case LOAD_FORMS: LoadForms(results); break;
    case CALL_POINTER: CallPointer(argument, results); break;
    case SMASH_STACK: SmashStack(argument); break;
    case CALL_WITH_DIRECTION:
        __asm__ volatile("std");
        results[0] = KeGetCurrentIrql();
        break;
    case RETURN_WITH_DIRECTION: break;
    case RETURN_WITH_CONTROL: {
        ULONG control = 0x7F80;
        USHORT x87 = 0x127F;
        if (argument == 0)
            __asm__ volatile("ldmxcsr %0" : : "m"(control));
        else
            __asm__ volatile("fldcw %0" : : "m"(x87));
        break;
    }
    case READ_COUNTER:
        __asm__ volatile("rdtscp; shlq $32, %%rdx; orq %%rdx, %%rax"
                         : "=a"(results[0])
                         :
                         : "rcx", "rdx");
        break;
    case WAIT_BY_CLOCK: Wait(results); break;
    case SET_PRIORITY:
        results[0] = (ULONG64)KeSetPriorityThread(CurrentThread(), 9);
        results[1] = (ULONG64)KeSetPriorityThread(CurrentThread(), (LONG)results[0]);
        break;
    case LARGE_FRAME: results[0] = LargeFrame(1, 2, 3, 4); break;
    case HUGE_FRAME: results[0] = HugeFrame(5); break;
    case TRAP: Trap(argument); break;
    default: status = STATUS_INVALID_DEVICE_REQUEST; break;
    }
    if (to != 0)
        for (ULONG index = 0; index < RESULTS; ++index)
            to[index] = results[index];
    RequestComplete(request, status, to != 0 ? sizeof(results) : 0);
    if (code == RETURN_WITH_DIRECTION)
        __asm__ volatile("std");
}

static NTSTATUS OnDevice(WDFDRIVER driver, DEVICE_INIT *init)
{
    WDFDEVICE device;
    NTSTATUS status;

    (void)driver;
    status = DeviceCreate(&init, &device);
    if (!SUCCEEDED(status))
        return status;
    OBJECT_ATTRIBUTES attributes = {
        .Size = sizeof(attributes),
        .ExecutionLevel = EXECUTION_INHERIT,
        .SynchronizationScope = SYNCHRONIZATION_INHERIT,
        .ParentObject = device,
    };
    DPC_CONFIG dpc = {.Size = sizeof(dpc), .EvtDpcFunc = OnDpc};
    status = DpcCreate(&dpc, &attributes, &Dpc);
    if (!SUCCEEDED(status))
        return status;
    QUEUE_CONFIG queue = {
        .Size = sizeof(queue),
        .DispatchType = DISPATCH_SEQUENTIAL,
        .PowerManaged = USE_DEFAULT,
        .DefaultQueue = 1,
        .EvtIoDeviceControl = OnControl,
    };
    status = QueueCreate(device, &queue);
    if (!SUCCEEDED(status))
        return status;
    return DeviceCreateInterface(device, &Interface);
}

static void OnUnload(WDFDRIVER driver)
{
    (void)driver;
    MessagesStop();
    TraceStop();
}

NTSTATUS DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
    DRIVER_CONFIG config = {
        .Size = sizeof(config),
        .EvtDriverDeviceAdd = OnDevice,
        .EvtDriverUnload = OnUnload,
    };
    NTSTATUS status = TraceStart();
    if (!SUCCEEDED(status))
        return status;
    MessagesStart();
    status = DriverCreate(driver, path, &config);
    if (!SUCCEEDED(status)) {
        MessagesStop();
        TraceStop();
    }
    return status;
}
