/* Declarations for code that runs as a driver and as a program: the routines that ntoskrnl.exe and
 * ntdll.dll both export. They are written from the data in tools/wdk-standin/data. */
#pragma once

typedef unsigned char UCHAR, BOOLEAN;
typedef unsigned short USHORT, WCHAR;
typedef unsigned int ULONG;
typedef int LONG, NTSTATUS;
typedef long long LONG64;
typedef unsigned long long ULONG64, SIZE_T;
typedef char *va_list;
typedef void *PVOID;

typedef struct {
    USHORT Length;
    USHORT MaximumLength;
    char *Buffer;
} ANSI_STRING;

typedef struct {
    USHORT Length;
    USHORT MaximumLength;
    WCHAR *Buffer;
} UNICODE_STRING;

typedef struct {
    ULONG Data1;
    USHORT Data2;
    USHORT Data3;
    UCHAR Data4[8];
} GUID;

typedef struct {
    short Year, Month, Day, Hour, Minute, Second, Milliseconds, Weekday;
} TIME_FIELDS;

typedef struct {
    ULONG Size, Major, Minor, Build, Platform;
    WCHAR Pack[128];
    USHORT PackMajor, PackMinor, Suite;
    UCHAR Product, Reserved;
} VERSION_INFO;

typedef struct {
    UCHAR Revision, Reserved;
    USHORT Control;
    PVOID Owner, Group, Sacl, Dacl;
} SECURITY_DESCRIPTOR;

#define IMPORT __declspec(dllimport)

IMPORT PVOID memset(PVOID to, int value, SIZE_T length);
IMPORT NTSTATUS RtlGetVersion(VERSION_INFO *version);
IMPORT ULONG64 VerSetConditionMask(ULONG64 mask, ULONG type, UCHAR condition);
IMPORT NTSTATUS RtlVerifyVersionInfo(const VERSION_INFO *version, ULONG type, ULONG64 mask);
IMPORT NTSTATUS RtlCreateAcl(PVOID acl, ULONG length, ULONG revision);
IMPORT NTSTATUS RtlAddAccessAllowedAce(PVOID acl, ULONG revision, ULONG mask, PVOID sid);
IMPORT NTSTATUS RtlCreateSecurityDescriptor(SECURITY_DESCRIPTOR *descriptor, ULONG revision);
IMPORT NTSTATUS RtlSetDaclSecurityDescriptor(SECURITY_DESCRIPTOR *descriptor, BOOLEAN present,
                                             PVOID acl, BOOLEAN defaulted);
IMPORT NTSTATUS RtlSetOwnerSecurityDescriptor(SECURITY_DESCRIPTOR *descriptor, PVOID sid,
                                              BOOLEAN defaulted);
IMPORT NTSTATUS RtlSetGroupSecurityDescriptor(SECURITY_DESCRIPTOR *descriptor, PVOID sid,
                                              BOOLEAN defaulted);
IMPORT NTSTATUS RtlGetDaclSecurityDescriptor(PVOID descriptor, BOOLEAN *present, PVOID *acl,
                                             BOOLEAN *defaulted);
IMPORT NTSTATUS RtlGetSaclSecurityDescriptor(PVOID descriptor, BOOLEAN *present, PVOID *acl,
                                             BOOLEAN *defaulted);
IMPORT NTSTATUS RtlGetOwnerSecurityDescriptor(PVOID descriptor, PVOID *sid, BOOLEAN *defaulted);
IMPORT NTSTATUS RtlGetGroupSecurityDescriptor(PVOID descriptor, PVOID *sid, BOOLEAN *defaulted);
IMPORT ULONG RtlLengthSecurityDescriptor(PVOID descriptor);
IMPORT NTSTATUS RtlAbsoluteToSelfRelativeSD(PVOID absolute, PVOID relative, ULONG *length);

IMPORT void RtlInitAnsiString(ANSI_STRING *string, const char *text);
IMPORT NTSTATUS RtlInitAnsiStringEx(ANSI_STRING *string, const char *text);
IMPORT void RtlInitUnicodeString(UNICODE_STRING *string, const WCHAR *text);
IMPORT NTSTATUS RtlInitUnicodeStringEx(UNICODE_STRING *string, const WCHAR *text);
IMPORT void RtlCopyString(ANSI_STRING *to, const ANSI_STRING *from);
IMPORT void RtlCopyUnicodeString(UNICODE_STRING *to, const UNICODE_STRING *from);
IMPORT NTSTATUS RtlAppendUnicodeToString(UNICODE_STRING *to, const WCHAR *text);
IMPORT NTSTATUS RtlAppendUnicodeStringToString(UNICODE_STRING *to, const UNICODE_STRING *from);
IMPORT NTSTATUS RtlAppendStringToString(ANSI_STRING *to, const ANSI_STRING *from);
IMPORT LONG RtlCompareString(const ANSI_STRING *a, const ANSI_STRING *b, BOOLEAN ignore_case);
IMPORT LONG RtlCompareUnicodeString(const UNICODE_STRING *a, const UNICODE_STRING *b,
                                    BOOLEAN ignore_case);
IMPORT BOOLEAN RtlEqualString(const ANSI_STRING *a, const ANSI_STRING *b, BOOLEAN ignore_case);
IMPORT BOOLEAN RtlEqualUnicodeString(const UNICODE_STRING *a, const UNICODE_STRING *b,
                                     BOOLEAN ignore_case);
IMPORT BOOLEAN RtlPrefixString(const ANSI_STRING *a, const ANSI_STRING *b, BOOLEAN ignore_case);
IMPORT BOOLEAN RtlPrefixUnicodeString(const UNICODE_STRING *a, const UNICODE_STRING *b,
                                      BOOLEAN ignore_case);
IMPORT void RtlUpperString(ANSI_STRING *to, const ANSI_STRING *from);
IMPORT char RtlUpperChar(char character);
IMPORT WCHAR RtlUpcaseUnicodeChar(WCHAR character);
IMPORT WCHAR RtlDowncaseUnicodeChar(WCHAR character);
IMPORT NTSTATUS RtlUpcaseUnicodeString(UNICODE_STRING *to, const UNICODE_STRING *from,
                                       BOOLEAN allocate);
IMPORT NTSTATUS RtlDowncaseUnicodeString(UNICODE_STRING *to, const UNICODE_STRING *from,
                                         BOOLEAN allocate);
IMPORT NTSTATUS RtlDuplicateUnicodeString(ULONG flags, const UNICODE_STRING *from,
                                          UNICODE_STRING *to);
IMPORT NTSTATUS RtlAnsiStringToUnicodeString(UNICODE_STRING *to, const ANSI_STRING *from,
                                             BOOLEAN allocate);
IMPORT NTSTATUS RtlUnicodeStringToAnsiString(ANSI_STRING *to, const UNICODE_STRING *from,
                                             BOOLEAN allocate);
IMPORT ULONG RtlxAnsiStringToUnicodeSize(const ANSI_STRING *string);
IMPORT ULONG RtlxUnicodeStringToAnsiSize(const UNICODE_STRING *string);
IMPORT void RtlFreeAnsiString(ANSI_STRING *string);
IMPORT void RtlFreeUnicodeString(UNICODE_STRING *string);
IMPORT NTSTATUS RtlMultiByteToUnicodeN(WCHAR *to, ULONG size, ULONG *used, const char *from,
                                       ULONG length);
IMPORT NTSTATUS RtlUnicodeToMultiByteN(char *to, ULONG size, ULONG *used, const WCHAR *from,
                                       ULONG length);
IMPORT NTSTATUS RtlHashUnicodeString(const UNICODE_STRING *string, BOOLEAN ignore_case,
                                     ULONG algorithm, ULONG *hash);
IMPORT NTSTATUS RtlIntegerToUnicodeString(ULONG value, ULONG base, UNICODE_STRING *to);
IMPORT NTSTATUS RtlInt64ToUnicodeString(ULONG64 value, ULONG base, UNICODE_STRING *to);
IMPORT NTSTATUS RtlUnicodeStringToInteger(const UNICODE_STRING *string, ULONG base, ULONG *value);
IMPORT NTSTATUS RtlGUIDFromString(const UNICODE_STRING *string, GUID *guid);
IMPORT NTSTATUS RtlStringFromGUID(const GUID *guid, UNICODE_STRING *to);
IMPORT SIZE_T RtlCompareMemory(const void *a, const void *b, SIZE_T length);
IMPORT void RtlFillMemory(void *to, SIZE_T length, UCHAR value);
IMPORT void RtlMoveMemory(void *to, const void *from, SIZE_T length);
IMPORT void RtlZeroMemory(void *to, SIZE_T length);
IMPORT char RtlFindLeastSignificantBit(ULONG64 set);
IMPORT char RtlFindMostSignificantBit(ULONG64 set);
IMPORT void RtlTimeToTimeFields(const LONG64 *time, TIME_FIELDS *fields);
IMPORT BOOLEAN RtlTimeFieldsToTime(TIME_FIELDS *fields, LONG64 *time);
IMPORT BOOLEAN RtlTimeToSecondsSince1970(const LONG64 *time, ULONG *seconds);
IMPORT BOOLEAN RtlTimeToSecondsSince1980(const LONG64 *time, ULONG *seconds);
IMPORT void RtlSecondsSince1970ToTime(ULONG seconds, LONG64 *time);
IMPORT void RtlSecondsSince1980ToTime(ULONG seconds, LONG64 *time);
IMPORT void RtlRunOnceInitialize(PVOID *once);
IMPORT NTSTATUS RtlRunOnceBeginInitialize(PVOID *once, ULONG flags, PVOID *context);
IMPORT NTSTATUS RtlRunOnceComplete(PVOID *once, ULONG flags, PVOID context);
IMPORT NTSTATUS RtlRunOnceExecuteOnce(PVOID *once, ULONG (*routine)(PVOID *once, PVOID parameter,
                                                                    PVOID *context),
                                      PVOID parameter, PVOID *context);
IMPORT void RtlMapGenericMask(ULONG *mask, const ULONG *mapping);
IMPORT NTSTATUS RtlConvertSidToUnicodeString(UNICODE_STRING *to, void *sid, BOOLEAN allocate);
IMPORT LONG RtlCompareUnicodeStrings(const WCHAR *a, SIZE_T a_length, const WCHAR *b,
                                     SIZE_T b_length, BOOLEAN ignore_case);
IMPORT NTSTATUS RtlCharToInteger(const char *text, ULONG base, ULONG *value);
IMPORT NTSTATUS RtlUnicodeToMultiByteSize(ULONG *size, const WCHAR *text, ULONG length);
IMPORT NTSTATUS RtlMultiByteToUnicodeSize(ULONG *size, const char *text, ULONG length);
IMPORT BOOLEAN RtlCreateUnicodeString(UNICODE_STRING *to, const WCHAR *text);
IMPORT ULONG RtlLengthRequiredSid(ULONG count);
IMPORT ULONG RtlLengthSid(void *sid);
IMPORT BOOLEAN RtlValidSid(void *sid);
IMPORT BOOLEAN RtlEqualSid(void *a, void *b);
IMPORT NTSTATUS RtlCopySid(ULONG length, void *to, void *from);

IMPORT int _snprintf(char *to, SIZE_T count, const char *format, ...);
IMPORT int _snwprintf(WCHAR *to, SIZE_T count, const WCHAR *format, ...);
IMPORT int sprintf(char *to, const char *format, ...);
IMPORT int swprintf(WCHAR *to, const WCHAR *format, ...);
IMPORT int _vsnprintf(char *to, SIZE_T count, const char *format, va_list arguments);
IMPORT int _vsnwprintf(WCHAR *to, SIZE_T count, const WCHAR *format, va_list arguments);
IMPORT int _stricmp(const char *a, const char *b);
IMPORT int _strnicmp(const char *a, const char *b, SIZE_T count);
IMPORT int _wcsicmp(const WCHAR *a, const WCHAR *b);
IMPORT int _wcsnicmp(const WCHAR *a, const WCHAR *b, SIZE_T count);
IMPORT char *strcat(char *to, const char *from);
IMPORT char *strchr(const char *text, int character);
IMPORT int strcmp(const char *a, const char *b);
IMPORT char *strcpy(char *to, const char *from);
IMPORT int strncmp(const char *a, const char *b, SIZE_T count);
IMPORT char *strncpy(char *to, const char *from, SIZE_T count);
IMPORT SIZE_T strnlen(const char *text, SIZE_T count);
IMPORT char *strrchr(const char *text, int character);
IMPORT char *strstr(const char *text, const char *part);
IMPORT int tolower(int character);
IMPORT int toupper(int character);
IMPORT WCHAR towlower(WCHAR character);
IMPORT WCHAR towupper(WCHAR character);
IMPORT WCHAR *wcscat(WCHAR *to, const WCHAR *from);
IMPORT WCHAR *wcschr(const WCHAR *text, WCHAR character);
IMPORT int wcscmp(const WCHAR *a, const WCHAR *b);
IMPORT WCHAR *wcscpy(WCHAR *to, const WCHAR *from);
IMPORT SIZE_T wcslen(const WCHAR *text);
IMPORT int wcsncmp(const WCHAR *a, const WCHAR *b, SIZE_T count);
IMPORT WCHAR *wcsncpy(WCHAR *to, const WCHAR *from, SIZE_T count);
IMPORT SIZE_T wcsnlen(const WCHAR *text, SIZE_T count);
IMPORT WCHAR *wcsrchr(const WCHAR *text, WCHAR character);
IMPORT WCHAR *wcsstr(const WCHAR *text, const WCHAR *part);

/* Calls every routine, and reports one line for each call. */
void Routines(void);

/* Shows a zero-terminated line. */
void Say(const char *line);
