/* Raises exceptions, and prints which handlers run, in which order, and what they find. The last character
 * of the service's name selects an exception that no handler may take. */

typedef unsigned char UCHAR, KIRQL;
typedef unsigned short USHORT;
typedef unsigned int ULONG;
typedef int LONG, NTSTATUS;
typedef unsigned long long ULONG64, SIZE_T;
typedef void *PVOID;

typedef struct {
    USHORT Length, MaximumLength;
    USHORT *Buffer;
} UNICODE_STRING;

typedef struct DRIVER_OBJECT {
    UCHAR Before[0x68];
    void (*DriverUnload)(struct DRIVER_OBJECT *driver);
} DRIVER_OBJECT;

typedef struct {
    ULONG Code, Flags;
    PVOID Next, Address;
    ULONG Count;
    ULONG64 Information[15];
} RECORD;

typedef struct {
    UCHAR Before[0xF8];
    ULONG64 Rip;
} CONTEXT;

typedef struct {
    RECORD *Record;
    CONTEXT *Context;
} POINTERS;

#define IMPORT __declspec(dllimport)
#define NOINLINE __declspec(noinline)

IMPORT ULONG DbgPrint(const char *format, ...);
IMPORT void ExRaiseStatus(NTSTATUS status);
IMPORT void ExRaiseAccessViolation(void);
IMPORT void ProbeForRead(PVOID address, SIZE_T length, ULONG alignment);
IMPORT void ProbeForWrite(PVOID address, SIZE_T length, ULONG alignment);
IMPORT KIRQL KfRaiseIrql(KIRQL irql);
IMPORT PVOID memcpy(PVOID to, const void *from, SIZE_T length);

unsigned long _exception_code(void);
void *_exception_info(void);
int _abnormal_termination(void);

#define USER ((PVOID)0x10)
#define SYSTEM ((PVOID)0xFFFF800000001000)

/* The linker requires it of code that uses floating-point numbers. */
int _fltused;

static volatile int Zero, Quotient;
static UCHAR Buffer[16];

NOINLINE static int Read(volatile int *address)
{
    return *address;
}

NOINLINE static void Write(volatile int *address)
{
    *address = 1;
}

NOINLINE static void Divide(int value)
{
    Quotient = value / Zero;
}

NOINLINE static void Break(void)
{
    __debugbreak();
}

NOINLINE static void Copy(PVOID from)
{
    memcpy(Buffer, from, sizeof(Buffer));
}

/* Faults in a function that saves registers, among them those of the floating-point unit. */
NOINLINE static double Spill(volatile int *address, double a, double b, double c, double d)
{
    double e = a * b, f = b * c, g = c * d, h = d * a, i = a + d, j = b - c;
    int read = Read(address);

    return a + b + c + d + e + f + g + h + i + j + read;
}

static LONG Show(POINTERS *pointers, LONG result)
{
    RECORD *record = pointers->Record;

    DbgPrint("filter %x flags %x", record->Code, record->Flags);
    for (ULONG at = 0; at < record->Count; at++)
        DbgPrint(" %llx", record->Information[at]);
    DbgPrint("\n");
    return result;
}

static LONG Skip(POINTERS *pointers, ULONG length)
{
    pointers->Context->Rip += length;
    return -1;
}

#define HANDLED(what, body)                                                                            \
    __try {                                                                                            \
        body;                                                                                          \
        DbgPrint(what ": no exception\n");                                                             \
    } __except (1) {                                                                                   \
        DbgPrint(what ": %x\n", (ULONG)_exception_code());                                             \
    }

NOINLINE static void Inner(NTSTATUS status)
{
    __try {
        __try {
            ExRaiseStatus(status);
        } __except (Show(_exception_info(), 0)) {
            DbgPrint("never\n");
        }
    } __finally {
        DbgPrint("inner finally %d\n", _abnormal_termination());
    }
}

NOINLINE static void Middle(NTSTATUS status)
{
    __try {
        Inner(status);
    } __finally {
        DbgPrint("middle finally %d\n", _abnormal_termination());
    }
}

NOINLINE static int Returns(void)
{
    __try {
        if (!Zero)
            return 7;
    } __finally {
        DbgPrint("finally %d\n", _abnormal_termination() != 0);
    }
    return 0;
}

NOINLINE static void Nested(void)
{
    __try {
        HANDLED("inner", Read(USER));
        Write(USER);
    } __except (Show(_exception_info(), 1)) {
        /* An exception in a handler goes to the handlers around it. */
        HANDLED("in the handler", ExRaiseAccessViolation());
    }
}

NOINLINE static int Locals(int a, int b, int c, int d, int e, int f)
{
    int sum = a * b + c;
    double x = sum, y = x / 2, z = y * y;

    __try {
        sum += d;
        x += Spill(USER, x, y, z, a);
    } __except (1) {
        sum += e;
    }
    return sum * f + (int)(x + y + z);
}

static void Run(void)
{
    HANDLED("read", Read(USER));
    HANDLED("write", Write(USER));
    HANDLED("divide", Divide(7));
    HANDLED("copy", Copy(USER));
    HANDLED("good", Copy(Buffer));
    HANDLED("probe", ProbeForRead(SYSTEM, 4, 1));
    HANDLED("misaligned", ProbeForRead((PVOID)0x10001, 4, 4));
    HANDLED("probe for write", ProbeForWrite(USER, 4, 1));
    __try {
        Middle((NTSTATUS)0xC000000D);
        DbgPrint("never\n");
    } __except (Show(_exception_info(), 1)) {
        DbgPrint("outer %x\n", (ULONG)_exception_code());
    }
    DbgPrint("returned %d\n", Returns());
    Nested();
    DbgPrint("locals %d\n", Locals(2, 3, 4, 5, 6, 7));
    __try {
        Break();
        DbgPrint("continued\n");
    } __except (Skip(_exception_info(), 1)) {
        DbgPrint("never\n");
    }
    for (int round = 0; round < 1000; round++) {
        __try {
            ExRaiseStatus(round);
        } __except (1) {
            Zero = (int)_exception_code();
        }
    }
    DbgPrint("last %d\n", Zero);
    Zero = 0;
}

static void Unload(DRIVER_OBJECT *driver)
{
    (void)driver;
}

NTSTATUS DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
    USHORT mode = path->Buffer[path->Length / 2 - 1];

    driver->DriverUnload = Unload;
    switch (mode) {
    case '1':
        HANDLED("system address", Read(SYSTEM));
        break;
    case '2':
        KfRaiseIrql(2);
        HANDLED("at DISPATCH_LEVEL", Read(USER));
        break;
    case '3':
        Inner((NTSTATUS)0xC000000D);
        break;
    case '4':
        __try {
            ExRaiseStatus((NTSTATUS)0xC000000D);
        } __except (Skip(_exception_info(), 0)) {
            DbgPrint("never\n");
        }
        break;
    default:
        Run();
    }
    return 0;
}
