/* Calls routines that ntoskrnl.exe and ntdll.dll both export, and reports each one's result and output. The
 * driver in the stand-in kernel and the program under Wine must report the same lines. */
#include "routines.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static char Line[400];
static SIZE_T Used;

static void Character(char character)
{
    if (Used + 1 < sizeof(Line))
        Line[Used++] = character;
}

static void Word(const char *text)
{
    while (*text)
        Character(*text++);
}

static void Begin(const char *name)
{
    Used = 0;
    Word(name);
}

static void End(void)
{
    Line[Used] = 0;
    Say(Line);
}

static void Hex(const char *name, ULONG64 value)
{
    int shift = 60;

    Character(' ');
    Word(name);
    Word("=0x");
    while (shift > 0 && value >> shift == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        Character("0123456789abcdef"[value >> shift & 15]);
}

/* A character, or its number if it is not printable ASCII. */
static void Unit(ULONG unit)
{
    if (unit >= ' ' && unit < 0x7F && unit != '\\') {
        Character((char)unit);
        return;
    }
    Character('\\');
    for (int shift = 12; shift >= 0; shift -= 4)
        Character("0123456789abcdef"[unit >> shift & 15]);
}

static void Bytes(const char *name, const void *bytes, SIZE_T length)
{
    Character(' ');
    Word(name);
    Word("='");
    for (SIZE_T at = 0; at < length; at++)
        Unit(((const UCHAR *)bytes)[at]);
    Character('\'');
}

static void Units(const char *name, const WCHAR *units, SIZE_T count)
{
    Character(' ');
    Word(name);
    Word("='");
    for (SIZE_T at = 0; at < count; at++)
        Unit(units[at]);
    Character('\'');
}

static void Ansi(const char *name, const ANSI_STRING *string)
{
    Bytes(name, string->Buffer, string->Length);
    Hex("maximum", string->MaximumLength);
}

static void Unicode(const char *name, const UNICODE_STRING *string)
{
    Units(name, string->Buffer, string->Length / 2);
    Hex("maximum", string->MaximumLength);
}

/* The sign of a comparison's result; only the sign is defined. */
static ULONG64 Sign(LONG result)
{
    return result < 0 ? 2 : result > 0;
}

/* The position of a pointer in a text, from 1; 0 for null. */
static ULONG64 Place(const void *start, const void *found)
{
    return found ? (ULONG64)((const char *)found - (const char *)start) + 1 : 0;
}

static char Narrow[64];
static WCHAR Broad[64];

static void Fill(void)
{
    RtlFillMemory(Narrow, sizeof(Narrow), '#');
    for (SIZE_T at = 0; at < COUNT(Broad); at++)
        Broad[at] = '#';
}

static const WCHAR *const WIDE[] = {
    L"", L"a", L"A", L"b", L"Device", L"DEVICE", L"device\\Name", L"Dev", L"stra\u00dfe",
    L"STRASSE", L"\u00e4\u00d6\u0161\u0178", L"\u0391\u03b2\u0432\u042f", L"\u4e00\U0001F600", L"  x  ",
};

static const char *const ASCII[] = { "", "a", "A", "b", "Device", "DEVICE", "device\\Name", "Dev", "zz" };

static void Initialization(void)
{
    UNICODE_STRING wide;
    ANSI_STRING narrow;

    RtlInitUnicodeString(&wide, L"text");
    Begin("RtlInitUnicodeString"), Unicode("string", &wide), End();
    RtlInitUnicodeString(&wide, 0);
    Begin("RtlInitUnicodeString null"), Hex("length", wide.Length), Hex("maximum", wide.MaximumLength);
    Hex("buffer", (ULONG64)wide.Buffer), End();
    RtlInitAnsiString(&narrow, "text");
    Begin("RtlInitAnsiString"), Ansi("string", &narrow), End();
    RtlInitAnsiString(&narrow, 0);
    Begin("RtlInitAnsiString null"), Hex("length", narrow.Length);
    Hex("maximum", narrow.MaximumLength), Hex("buffer", (ULONG64)narrow.Buffer), End();
    Begin("RtlInitUnicodeStringEx"), Hex("status", (ULONG)RtlInitUnicodeStringEx(&wide, L"ex"));
    Unicode("string", &wide), End();
    Begin("RtlInitAnsiStringEx"), Hex("status", (ULONG)RtlInitAnsiStringEx(&narrow, "ex"));
    Ansi("string", &narrow), End();
}

static void Comparisons(void)
{
    for (SIZE_T a = 0; a < COUNT(WIDE); a++) {
        for (SIZE_T b = 0; b < COUNT(WIDE); b++) {
            UNICODE_STRING one, other;

            RtlInitUnicodeString(&one, WIDE[a]);
            RtlInitUnicodeString(&other, WIDE[b]);
            Begin("unicode"), Hex("a", a), Hex("b", b);
            for (BOOLEAN ignore = 0; ignore < 2; ignore++) {
                Hex("compare", Sign(RtlCompareUnicodeString(&one, &other, ignore)));
                Hex("equal", RtlEqualUnicodeString(&one, &other, ignore));
                Hex("prefix", RtlPrefixUnicodeString(&one, &other, ignore));
            }
            Hex("wcscmp", Sign(wcscmp(WIDE[a], WIDE[b])));
            Hex("wcsncmp", Sign(wcsncmp(WIDE[a], WIDE[b], 3)));
            Hex("wcsstr", Place(WIDE[a], wcsstr(WIDE[a], WIDE[b]))), End();
        }
    }
    for (SIZE_T a = 0; a < COUNT(ASCII); a++) {
        for (SIZE_T b = 0; b < COUNT(ASCII); b++) {
            ANSI_STRING one, other;

            RtlInitAnsiString(&one, ASCII[a]);
            RtlInitAnsiString(&other, ASCII[b]);
            Begin("ansi"), Hex("a", a), Hex("b", b);
            for (BOOLEAN ignore = 0; ignore < 2; ignore++) {
                Hex("compare", Sign(RtlCompareString(&one, &other, ignore)));
                Hex("equal", RtlEqualString(&one, &other, ignore));
                Hex("prefix", RtlPrefixString(&one, &other, ignore));
            }
            Hex("strcmp", Sign(strcmp(ASCII[a], ASCII[b])));
            Hex("strncmp", Sign(strncmp(ASCII[a], ASCII[b], 3)));
            Hex("stricmp", Sign(_stricmp(ASCII[a], ASCII[b])));
            Hex("strnicmp", Sign(_strnicmp(ASCII[a], ASCII[b], 3)));
            Hex("strstr", Place(ASCII[a], strstr(ASCII[a], ASCII[b]))), End();
            /* Only ASCII wide characters: others depend on the C library's tables. */
            if (a < 8 && b < 8) {
                Begin("wide"), Hex("wcsicmp", Sign(_wcsicmp(WIDE[a], WIDE[b])));
                Hex("wcsnicmp", Sign(_wcsnicmp(WIDE[a], WIDE[b], 3))), End();
            }
        }
    }
}

static void Copies(void)
{
    static const USHORT SIZES[] = { 0, 1, 2, 5, 8, 9, 10, 12, 40 };
    UNICODE_STRING wide, text;
    ANSI_STRING narrow, word;

    RtlInitUnicodeString(&text, L"Text\u00e9");
    RtlInitAnsiString(&word, "Word!");
    for (SIZE_T at = 0; at < COUNT(SIZES); at++) {
        Fill();
        wide = (UNICODE_STRING){ 0, SIZES[at], Broad };
        RtlCopyUnicodeString(&wide, &text);
        Begin("RtlCopyUnicodeString"), Unicode("to", &wide), Units("memory", Broad, 8), End();
        Begin("RtlAppendUnicodeToString");
        Hex("status", (ULONG)RtlAppendUnicodeToString(&wide, L"+")), Unicode("to", &wide);
        Units("memory", Broad, 8), End();
        Begin("RtlAppendUnicodeStringToString");
        Hex("status", (ULONG)RtlAppendUnicodeStringToString(&wide, &text)), Unicode("to", &wide);
        Units("memory", Broad, 14), End();
        narrow = (ANSI_STRING){ 0, SIZES[at], Narrow };
        RtlCopyString(&narrow, &word);
        Begin("RtlCopyString"), Ansi("to", &narrow), Bytes("memory", Narrow, 8), End();
        Begin("RtlAppendStringToString");
        Hex("status", (ULONG)RtlAppendStringToString(&narrow, &word)), Ansi("to", &narrow);
        Bytes("memory", Narrow, 14), End();
        Fill();
        narrow = (ANSI_STRING){ 0, SIZES[at], Narrow };
        RtlUpperString(&narrow, &word);
        Begin("RtlUpperString"), Ansi("to", &narrow), End();
    }
    for (SIZE_T at = 0; at < COUNT(WIDE); at++) {
        RtlInitUnicodeString(&text, WIDE[at]);
        for (ULONG flags = 0; flags < 5; flags++) {
            wide = (UNICODE_STRING){ 0, 0, 0 };
            NTSTATUS status = RtlDuplicateUnicodeString(flags, &text, &wide);

            Begin("RtlDuplicateUnicodeString"), Hex("flags", flags), Hex("status", (ULONG)status);
            if (status >= 0) {
                Unicode("to", &wide), Hex("buffer", wide.Buffer != 0);
                if (wide.MaximumLength > wide.Length)
                    Hex("end", wide.Buffer[wide.Length / 2]);
                RtlFreeUnicodeString(&wide);
            }
            End();
        }
    }
}

/* Returns 1 if a character's case changed after version 14 of Unicode, so that tables of different ages
 * differ. */
static int IsLater(ULONG unit)
{
    return unit == 0x19b || unit == 0x264 || unit == 0x1c89 || unit == 0x1c8a ||
           (unit >= 0xa7cb && unit <= 0xa7dc);
}

static void Cases(void)
{
    UNICODE_STRING text, wide;

    for (SIZE_T at = 0; at < COUNT(WIDE); at++) {
        RtlInitUnicodeString(&text, WIDE[at]);
        Fill();
        wide = (UNICODE_STRING){ 0, 12, Broad };
        Begin("RtlUpcaseUnicodeString");
        Hex("status", (ULONG)RtlUpcaseUnicodeString(&wide, &text, 0)), Unicode("to", &wide), End();
        wide = (UNICODE_STRING){ 0, 0, 0 };
        Begin("RtlDowncaseUnicodeString");
        Hex("status", (ULONG)RtlDowncaseUnicodeString(&wide, &text, 1)), Unicode("to", &wide), End();
        RtlFreeUnicodeString(&wide);
        ULONG hash = 0;

        for (BOOLEAN ignore = 0; ignore < 2; ignore++) {
            Begin("RtlHashUnicodeString");
            Hex("status", (ULONG)RtlHashUnicodeString(&text, ignore, 1, &hash)), Hex("hash", hash);
            End();
        }
    }
    Begin("RtlHashUnicodeString algorithm");
    ULONG hash = 0;

    Hex("status", (ULONG)RtlHashUnicodeString(&text, 0, 2, &hash)), End();
    for (ULONG unit = 0; unit < 0x10000; unit++) {
        WCHAR upper = RtlUpcaseUnicodeChar((WCHAR)unit), lower = RtlDowncaseUnicodeChar((WCHAR)unit);

        if (!IsLater(unit) && (upper != unit || lower != unit))
            Begin("letter"), Hex("unit", unit), Hex("upper", upper), Hex("lower", lower), End();
    }
    Begin("characters");
    for (int unit = 0x20; unit < 0x7F; unit++) {
        Unit((UCHAR)RtlUpperChar((char)unit));
        Unit((ULONG)tolower(unit)), Unit((ULONG)toupper(unit));
        if ((unit & 15) == 15)
            End(), Begin("characters");
    }
    End();
    Begin("wide characters");
    for (WCHAR unit = 'A'; unit < 'z'; unit++)
        Unit(towlower(unit)), Unit(towupper(unit));
    End();
}

static void Conversions(void)
{
    UNICODE_STRING text, wide;
    ANSI_STRING word, narrow;
    ULONG used;

    for (SIZE_T at = 0; at < COUNT(ASCII); at++) {
        RtlInitAnsiString(&word, ASCII[at]);
        RtlInitUnicodeString(&text, WIDE[at]);
        for (USHORT size = 0; size < 26; size += 3) {
            Fill();
            wide = (UNICODE_STRING){ 0, size, Broad };
            NTSTATUS status = RtlAnsiStringToUnicodeString(&wide, &word, 0);

            Begin("RtlAnsiStringToUnicodeString"), Hex("size", size), Hex("status", (ULONG)status);
            if (status >= 0)
                Unicode("to", &wide);
            End();
            if (at == 8)
                continue;
            narrow = (ANSI_STRING){ 0, size, Narrow };
            status = RtlUnicodeStringToAnsiString(&narrow, &text, 0);
            Begin("RtlUnicodeStringToAnsiString"), Hex("size", size), Hex("status", (ULONG)status);
            if (status >= 0)
                Ansi("to", &narrow);
            End();
            Fill();
            used = 77;
            Begin("RtlMultiByteToUnicodeN");
            Hex("status", (ULONG)RtlMultiByteToUnicodeN(Broad, size, &used, word.Buffer, word.Length));
            Hex("used", used), Units("to", Broad, used / 2), End();
            used = 77;
            Begin("RtlUnicodeToMultiByteN");
            Hex("status", (ULONG)RtlUnicodeToMultiByteN(Narrow, size, &used, text.Buffer, text.Length));
            Hex("used", used), Bytes("to", Narrow, used), End();
        }
        Begin("sizes"), Hex("unicode", RtlxAnsiStringToUnicodeSize(&word));
        if (at < 8)
            Hex("ansi", RtlxUnicodeStringToAnsiSize(&text));
        End();
        Begin("allocated"), Hex("status", (ULONG)RtlAnsiStringToUnicodeString(&wide, &word, 1));
        Unicode("to", &wide), End();
        RtlFreeUnicodeString(&wide);
        Begin("freed"), Hex("length", wide.Length), Hex("maximum", wide.MaximumLength);
        Hex("buffer", (ULONG64)wide.Buffer), End();
        if (at == 8)
            continue;
        Begin("allocated"), Hex("status", (ULONG)RtlUnicodeStringToAnsiString(&narrow, &text, 1));
        Ansi("to", &narrow), End();
        RtlFreeAnsiString(&narrow);
    }
}

static void Numbers(void)
{
    static const ULONG64 VALUES[] = { 0, 1, 9, 10, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                                      0x123456789, 0xFFFFFFFFFFFFFFFF };
    static const ULONG BASES[] = { 0, 2, 3, 8, 10, 16, 36 };
    static const WCHAR *const TEXTS[] = {
        L"", L"0", L"12", L"-12", L"+7", L"  42 ", L"0x1F", L"0b101", L"0o17", L"017", L"fF", L"4294967295",
        L"4294967296", L"12x", L"x12", L"-", L"\t9", L"0x",
    };
    UNICODE_STRING text, wide;
    ULONG value;

    for (SIZE_T at = 0; at < COUNT(VALUES); at++) {
        for (SIZE_T base = 0; base < COUNT(BASES); base++) {
            for (USHORT size = 6; size <= 126; size += 60) {
                Fill();
                wide = (UNICODE_STRING){ 0, size, Broad };
                NTSTATUS status = RtlIntegerToUnicodeString((ULONG)VALUES[at], BASES[base], &wide);

                Begin("RtlIntegerToUnicodeString"), Hex("base", BASES[base]);
                Hex("status", (ULONG)status);
                if (status >= 0)
                    Unicode("to", &wide);
                End();
                Fill();
                wide = (UNICODE_STRING){ 0, size, Broad };
                status = RtlInt64ToUnicodeString(VALUES[at], BASES[base], &wide);
                Begin("RtlInt64ToUnicodeString"), Hex("base", BASES[base]);
                Hex("status", (ULONG)status);
                if (status >= 0)
                    Unicode("to", &wide);
                End();
            }
        }
        Begin("bits"), Hex("least", (UCHAR)RtlFindLeastSignificantBit(VALUES[at]));
        Hex("most", (UCHAR)RtlFindMostSignificantBit(VALUES[at])), End();
    }
    for (SIZE_T at = 0; at < COUNT(TEXTS); at++) {
        for (SIZE_T base = 0; base < COUNT(BASES); base++) {
            value = 77;
            RtlInitUnicodeString(&text, TEXTS[at]);
            Begin("RtlUnicodeStringToInteger"), Hex("text", at), Hex("base", BASES[base]);
            Hex("status", (ULONG)RtlUnicodeStringToInteger(&text, BASES[base], &value));
            Hex("value", value), End();
        }
    }
}

static void Identifiers(void)
{
    static const WCHAR *const TEXTS[] = {
        L"{0123abcd-4567-89EF-0123-456789abcdef}", L"{0123abcd-4567-89EF-0123-456789abcdef",
        L"0123abcd-4567-89EF-0123-456789abcdef",   L"{0123abcd-4567-89EG-0123-456789abcdef}",
        L"{0123abcd-4567-89EF0-123-456789abcdef}", L"",
    };
    /* S-1-5-21-1-2 and S-1-5-18, and one of an unknown revision. */
    static ULONG SIDS[][4] = { { 0x0301, 0x05000000, 21, 1 }, { 0x0101, 0x05000000, 18, 0 },
                               { 0x0102, 0x05000000, 18, 0 }, { 0x1001, 0x05000000, 18, 0 } };
    UNICODE_STRING text;
    GUID guid;
    ULONG copy[8];

    for (SIZE_T at = 0; at < COUNT(TEXTS); at++) {
        RtlInitUnicodeString(&text, TEXTS[at]);
        RtlFillMemory(&guid, sizeof(guid), 0);
        NTSTATUS status = RtlGUIDFromString(&text, &guid);

        Begin("RtlGUIDFromString"), Hex("status", (ULONG)status);
        if (status >= 0)
            Bytes("guid", &guid, sizeof(guid));
        End();
    }
    RtlInitUnicodeString(&text, TEXTS[0]);
    RtlGUIDFromString(&text, &guid);
    Begin("RtlStringFromGUID"), Hex("status", (ULONG)RtlStringFromGUID(&guid, &text));
    Unicode("to", &text), End();
    RtlFreeUnicodeString(&text);
    for (SIZE_T at = 0; at < COUNT(SIDS); at++) {
        RtlFillMemory(copy, sizeof(copy), 0);
        Begin("sid"), Hex("valid", RtlValidSid(SIDS[at])), Hex("length", RtlLengthSid(SIDS[at]));
        if (at < 2) {
            Hex("copied", (ULONG)RtlCopySid(at == 0 ? 20 : 11, copy, SIDS[at]));
            Hex("equal", RtlEqualSid(copy, SIDS[at]));
        }
        Hex("other", RtlEqualSid(SIDS[0], SIDS[at])), Hex("required", RtlLengthRequiredSid((ULONG)at));
        End();
    }
}

static void Times(void)
{
    static const LONG64 VALUES[] = { 0, 1, 9999, 10000, 116444736000000000, 125911583990000000,
                                     125912447990000000, 134117966450000001, 0x7FFFFFFFFFFFFFFF };
    static const TIME_FIELDS FIELDS[] = {
        { 1601, 1, 1, 0, 0, 0, 0, 0 },        { 2000, 2, 29, 23, 59, 59, 999, 0 },
        { 2001, 2, 29, 0, 0, 0, 0, 0 },       { 1900, 1, 1, 0, 0, 0, 0, 0 },
        { 2024, 13, 1, 0, 0, 0, 0, 0 },       { 2024, 0, 1, 0, 0, 0, 0, 0 },
        { 2024, 12, 31, 24, 0, 0, 0, 0 },     { 2024, 12, 31, 23, 60, 0, 0, 0 },
        { 2024, 12, 31, 23, 59, 59, 1000, 0 }, { 2400, 2, 29, 1, 2, 3, 4, 5 },
    };

    for (SIZE_T at = 0; at < COUNT(VALUES); at++) {
        TIME_FIELDS fields;
        const short *each = &fields.Year;

        RtlTimeToTimeFields(&VALUES[at], &fields);
        Begin("RtlTimeToTimeFields");
        for (int field = 0; field < 8; field++)
            Hex("", (USHORT)each[field]);
        End();
    }
    for (SIZE_T at = 0; at < COUNT(FIELDS); at++) {
        TIME_FIELDS fields = FIELDS[at];
        LONG64 time = 77;
        BOOLEAN is_valid = RtlTimeFieldsToTime(&fields, &time);

        Begin("RtlTimeFieldsToTime"), Hex("valid", is_valid);
        if (is_valid)
            Hex("time", (ULONG64)time);
        End();
    }
}

static void Memory(void)
{
    static char from[] = "0123456789";

    Fill();
    RtlMoveMemory(Narrow, from, 10);
    RtlMoveMemory(Narrow + 2, Narrow, 8);
    Begin("RtlMoveMemory"), Bytes("to", Narrow, 12), End();
    RtlMoveMemory(Narrow, Narrow + 2, 8);
    RtlZeroMemory(Narrow + 9, 2);
    Begin("RtlZeroMemory"), Bytes("to", Narrow, 12), End();
    Begin("RtlCompareMemory"), Hex("whole", RtlCompareMemory(from, from, 10));
    Hex("part", RtlCompareMemory(from, "0123x", 5)), Hex("none", RtlCompareMemory("x", from, 1)), End();
}

static void Texts(void)
{
    Begin("strchr"), Hex("found", Place(ASCII[6], strchr(ASCII[6], 'e')));
    Hex("last", Place(ASCII[6], strrchr(ASCII[6], 'e')));
    Hex("end", Place(ASCII[6], strchr(ASCII[6], 0))), Hex("none", Place(ASCII[6], strchr(ASCII[6], 'x')));
    Hex("none", Place(ASCII[6], strrchr(ASCII[6], 'x'))), End();
    Begin("wcschr"), Hex("found", Place(WIDE[6], wcschr(WIDE[6], 'e')));
    Hex("last", Place(WIDE[6], wcsrchr(WIDE[6], 'e')));
    Hex("end", Place(WIDE[6], wcschr(WIDE[6], 0))), Hex("none", Place(WIDE[6], wcschr(WIDE[6], 'x')));
    Hex("none", Place(WIDE[6], wcsrchr(WIDE[6], 'x'))), End();
    Begin("lengths"), Hex("strnlen", strnlen("four", 9)), Hex("strnlen", strnlen("four", 2));
    Hex("wcslen", wcslen(L"four")), Hex("wcsnlen", wcsnlen(L"four", 9)), Hex("wcsnlen", wcsnlen(L"four", 2));
    End();
    Fill();
    strcpy(Narrow, "one"), strcat(Narrow, "+two");
    Begin("strcat"), Bytes("to", Narrow, 10), End();
    Fill();
    strncpy(Narrow, "abcdef", 3), strncpy(Narrow + 5, "ab", 5);
    Begin("strncpy"), Bytes("to", Narrow, 12), End();
    wcscpy(Broad, L"one"), wcscat(Broad, L"+two");
    Begin("wcscat"), Units("to", Broad, 10), End();
    Fill();
    wcsncpy(Broad, L"abcdef", 3), wcsncpy(Broad + 5, L"ab", 5);
    Begin("wcsncpy"), Units("to", Broad, 12), End();
}

/* Prints to buffers of sizes around the text's length, with both character widths. */
#define PRINT(format, ...)                                                               \
    for (SIZE_T size = 0; size < 20; size += size == 0 || size > 7 ? 3 : 1) {            \
        Fill();                                                                          \
        Begin("_snprintf " format);                                                      \
        Hex("size", size), Hex("result", (ULONG)_snprintf(Narrow, size, format, __VA_ARGS__)); \
        Bytes("to", Narrow, 20), End();                                                  \
        Begin("_snwprintf " format);                                                     \
        Hex("result", (ULONG)_snwprintf(Broad, size, L##format, __VA_ARGS__));           \
        Units("to", Broad, 20), End();                                                   \
    }

static int Variable(char *to, SIZE_T size, const char *format, ...)
{
    __builtin_va_list arguments;

    __builtin_va_start(arguments, format);
    int result = _vsnprintf(to, size, format, (va_list)arguments);
    __builtin_va_end(arguments);
    return result;
}

static int WideVariable(WCHAR *to, SIZE_T size, const WCHAR *format, ...)
{
    __builtin_va_list arguments;

    __builtin_va_start(arguments, format);
    int result = _vsnwprintf(to, size, format, (va_list)arguments);
    __builtin_va_end(arguments);
    return result;
}

static void Printing(void)
{
    static const WCHAR WORD[] = L"wide";

    PRINT("%d %u", -5, -5);
    PRINT("%5d|%-5d|", 42, 42);
    PRINT("%05d|%+d|% d", 42, 42, 42);
    PRINT("%.3d|%5.3d", 7, 7);
    PRINT("%x %X %#x", 0xBEEF, 0xBEEF, 0xBEEF);
    PRINT("%o %#o", 64, 64);
    PRINT("%08x", 0xABC);
    PRINT("%I64x", 0x123456789ABCDEFull);
    PRINT("%lld", -1ll);
    PRINT("%I64u", 0xFFFFFFFFFFFFFFFFull);
    PRINT("%I32d", -1);
    PRINT("%hd %hu", 70000, 70000);
    PRINT("%ld %lu", -3, 3);
    PRINT("%c%c%%", 'a', 'b');
    PRINT("%3c|%-3c|", 'a', 'b');
    PRINT("%hs", "narrow");
    PRINT("%ls", WORD);
    PRINT("%ws", WORD);
    PRINT("%6.2hs|%-6.2hs|", "narrow", "narrow");
    PRINT("%*d|%-*d|", 4, 7, 4, 7);
    PRINT("%.*hs|", 2, "abc");
    PRINT("%p", (PVOID)0x1234);
    PRINT("%hs", (char *)0);
    PRINT("%i", 17);
    PRINT("%.0d|", 0);
    PRINT("%#x", 0);
    PRINT("%q%d", 3);
    Fill();
    Begin("sprintf"), Hex("result", (ULONG)sprintf(Narrow, "%s=%d", "x", 5)), Bytes("to", Narrow, 8);
    Hex("variable", (ULONG)Variable(Narrow, 8, "%s-%u", "y", 6)), Bytes("to", Narrow, 8);
    Hex("short", (ULONG)Variable(Narrow, 2, "%s-%u", "y", 6)), Bytes("to", Narrow, 8), End();
    Begin("swprintf"), Hex("result", (ULONG)swprintf(Broad, L"%s=%d", WORD, 5)), Units("to", Broad, 10);
    Hex("variable", (ULONG)WideVariable(Broad, 8, L"%s-%u", WORD, 6)), Units("to", Broad, 8), End();
}

/* Adds 1 or -1, but not below 1: small version numbers differ between systems. */
static ULONG Changed(ULONG value, int change)
{
    return value < 2 && change < 0 ? value : value + change;
}

/* Compares each part of the version with itself, one less and one more, under each condition. */
static void Versions(void)
{
    static const ULONG MASKS[] = {1, 2, 4, 8, 0x10, 0x20, 0x80, 0x03, 0x30, 0x33};
    VERSION_INFO real, wanted;

    for (ULONG type = 0; type < 0x200; type += type < 0x20 ? 1 : 0x1F)
        for (ULONG condition = 0; condition < 10; condition += 3) {
            Begin("mask"), Hex("type", type), Hex("condition", condition);
            Hex("none", VerSetConditionMask(0, type, (UCHAR)condition));
            Hex("more", VerSetConditionMask(0x8000000000000009ull, type, (UCHAR)condition)), End();
        }
    memset(&real, 0, sizeof(real));
    real.Size = sizeof(real);
    RtlGetVersion(&real);
    for (SIZE_T at = 0; at < COUNT(MASKS); at++)
        for (int major = -1; major <= 1; major++)
            for (int other = -1; other <= 1; other++)
                for (UCHAR condition = 1; condition <= 5; condition++) {
                    ULONG64 mask = 0;
                    wanted = real;
                    wanted.Major = Changed(real.Major, major);
                    wanted.PackMajor = (USHORT)Changed(real.PackMajor, major);
                    wanted.Minor = Changed(real.Minor, other);
                    wanted.Build = Changed(real.Build, other);
                    wanted.Platform = Changed(real.Platform, other);
                    wanted.PackMinor = (USHORT)Changed(real.PackMinor, other);
                    wanted.Product = (UCHAR)Changed(real.Product, other);
                    for (ULONG bit = 1; bit <= 0x80; bit *= 2)
                        if (MASKS[at] & bit)
                            mask = VerSetConditionMask(mask, bit, condition);
                    Begin("version"), Hex("type", MASKS[at]), Hex("major", major & 0xFF);
                    Hex("other", other & 0xFF), Hex("condition", condition);
                    Hex("status", (ULONG)RtlVerifyVersionInfo(&wanted, MASKS[at], mask)), End();
                }
    Begin("version"), Hex("type", (ULONG)RtlVerifyVersionInfo(&real, 0, 1));
    Hex("mask", (ULONG)RtlVerifyVersionInfo(&real, 1, 0)), End();
}

/* Describes a security descriptor, with offsets relative to it. */
static void Describe(PVOID descriptor)
{
    BOOLEAN present = 0, defaulted = 0;
    PVOID part = 0;

    Begin("descriptor"), Hex("length", RtlLengthSecurityDescriptor(descriptor));
    Hex("dacl", (ULONG)RtlGetDaclSecurityDescriptor(descriptor, &present, &part, &defaulted));
    Hex("present", present), Hex("default", defaulted), Hex("null", part == 0);
    present = defaulted = 9;
    Hex("sacl", (ULONG)RtlGetSaclSecurityDescriptor(descriptor, &present, &part, &defaulted));
    Hex("present", present), Hex("default", defaulted);
    Hex("owner", (ULONG)RtlGetOwnerSecurityDescriptor(descriptor, &part, &defaulted));
    Hex("null", part == 0), Hex("default", defaulted);
    Hex("group", (ULONG)RtlGetGroupSecurityDescriptor(descriptor, &part, &defaulted));
    Hex("null", part == 0), Hex("default", defaulted), End();
}

static void Descriptors(void)
{
    static ULONG User[] = {0x0201, 0x05000000, 32, 545}, World[] = {0x0101, 0x01000000, 0};
    static UCHAR Acl[64], Relative[256];
    SECURITY_DESCRIPTOR descriptor;

    for (ULONG revision = 0; revision < 4; revision++) {
        memset(&descriptor, 0xEE, sizeof(descriptor));
        Begin("create"), Hex("revision", revision);
        Hex("status", (ULONG)RtlCreateSecurityDescriptor(&descriptor, revision)), End();
    }
    RtlCreateSecurityDescriptor(&descriptor, 1);
    Describe(&descriptor);
    for (ULONG revision = 1; revision < 6; revision++)
        for (ULONG length = 8; length < 40; length += 12) {
            memset(Acl, 0xEE, sizeof(Acl));
            Begin("list"), Hex("length", length), Hex("revision", revision);
            Hex("status", (ULONG)RtlCreateAcl(Acl, length, revision)), Bytes("bytes", Acl, 12), End();
        }
    RtlCreateAcl(Acl, sizeof(Acl), 2);
    for (int time = 0; time < 3; time++) {
        Begin("add"), Hex("status", (ULONG)RtlAddAccessAllowedAce(Acl, 2, 0x12019F, time ? (PVOID)World : User));
        Bytes("bytes", Acl, sizeof(Acl)), End();
    }
    Begin("revision"), Hex("status", (ULONG)RtlAddAccessAllowedAce(Acl, 9, 1, World)), End();
    for (int dacl = 0; dacl < 3; dacl++)
        for (int owner = 0; owner < 4; owner++) {
            ULONG length = 0;
            RtlCreateSecurityDescriptor(&descriptor, 1);
            RtlSetDaclSecurityDescriptor(&descriptor, dacl != 0, dacl == 1 ? Acl : 0, owner == 1);
            RtlSetOwnerSecurityDescriptor(&descriptor, owner & 1 ? User : 0, dacl == 1);
            RtlSetGroupSecurityDescriptor(&descriptor, owner & 2 ? World : 0, dacl == 2);
            Describe(&descriptor);
            memset(Relative, 0xEE, sizeof(Relative));
            Begin("relative");
            Hex("short", (ULONG)RtlAbsoluteToSelfRelativeSD(&descriptor, Relative, &length));
            Hex("length", length);
            Hex("status", (ULONG)RtlAbsoluteToSelfRelativeSD(&descriptor, Relative, &length));
            /* The order of the parts is unspecified. */
            Bytes("bytes", Relative, 4), Hex("length", RtlLengthSecurityDescriptor(Relative));
            Hex("again", (ULONG)RtlAbsoluteToSelfRelativeSD(Relative, Relative, &length)), End();
            Describe(Relative);
            Begin("fixed"), Hex("status", (ULONG)RtlSetOwnerSecurityDescriptor((PVOID)Relative, User, 0)), End();
        }
}

static void Seconds(void)
{
    static const LONG64 VALUES[] = { 0, 116444735999999999, 116444736000000000, 119600063999999999,
                                     119600064000000000, 134117966450000001, 159394408959999999,
                                     159394408960000000, 162549736949999999, 162549736960000000,
                                     0x7FFFFFFFFFFFFFFF };
    static const ULONG SECONDS[] = { 0, 1, 315532800, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF };

    for (SIZE_T at = 0; at < COUNT(VALUES); at++) {
        ULONG since_1970 = 77, since_1980 = 77;

        Begin("seconds"), Hex("1970", RtlTimeToSecondsSince1970(&VALUES[at], &since_1970));
        Hex("seconds", since_1970);
        Hex("1980", RtlTimeToSecondsSince1980(&VALUES[at], &since_1980)), Hex("seconds", since_1980);
        End();
    }
    for (SIZE_T at = 0; at < COUNT(SECONDS); at++) {
        LONG64 since_1970 = 0, since_1980 = 0;

        RtlSecondsSince1970ToTime(SECONDS[at], &since_1970);
        RtlSecondsSince1980ToTime(SECONDS[at], &since_1980);
        Begin("time"), Hex("1970", (ULONG64)since_1970), Hex("1980", (ULONG64)since_1980), End();
    }
}

static ULONG Succeed(PVOID *once, PVOID parameter, PVOID *context)
{
    *context = parameter;
    return once != 0;
}

static ULONG Fail(PVOID *once, PVOID parameter, PVOID *context)
{
    return (once == 0) + (parameter == 0) + (context == 0);
}

/* Every call in each state: not begun, begun, begun by several, and done with a context. */
static void Once(void)
{
    for (ULONG state = 0; state < 4; state++)
        for (ULONG flags = 0; flags < 4; flags++) {
            PVOID once, context = (PVOID)99;

            RtlRunOnceInitialize(&once);
            if (state)
                RtlRunOnceBeginInitialize(&once, state == 2 ? 2 : 0, 0);
            if (state == 3)
                RtlRunOnceComplete(&once, 0, (PVOID)64);
            /* A call that waits for another one never returns. */
            if (state == 1 && flags == 0)
                continue;
            Begin("begin"), Hex("state", state), Hex("flags", flags);
            Hex("status", (ULONG)RtlRunOnceBeginInitialize(&once, flags, &context));
            Hex("context", (ULONG64)context), End();
        }
    for (ULONG state = 0; state < 4; state++)
        for (ULONG flags = 0; flags < 8; flags++)
            for (ULONG64 context = 0; context < 9; context += 4) {
                PVOID once, after = (PVOID)99;

                /* No document specifies the effect of contradictory flags and contexts, or of the
                 * completion by several threads of what one thread has begun. */
                if ((flags & 1) || ((flags & 4) && (context || (flags & 2))) || (state == 1 && flags == 2))
                    continue;
                RtlRunOnceInitialize(&once);
                if (state)
                    RtlRunOnceBeginInitialize(&once, state == 2 ? 2 : 0, 0);
                if (state == 3)
                    RtlRunOnceComplete(&once, 0, (PVOID)64);
                Begin("complete"), Hex("state", state), Hex("flags", flags), Hex("context", context);
                Hex("status", (ULONG)RtlRunOnceComplete(&once, flags, (PVOID)context));
                Hex("then", (ULONG)RtlRunOnceBeginInitialize(&once, 1, &after));
                Hex("context", (ULONG64)after), End();
            }
    for (int time = 0; time < 4; time++) {
        static PVOID once;
        PVOID context = 0;

        Begin("execute");
        Hex("status", (ULONG)RtlRunOnceExecuteOnce(&once, time ? Succeed : Fail, (PVOID)(ULONG64)(time * 16),
                                                   &context));
        Hex("context", (ULONG64)context), End();
    }
}

static void Rights(void)
{
    static const ULONG MAPPING[] = { 0x120089, 0x120116, 0x1200A0, 0x1F01FF };

    for (ULONG generic = 0; generic < 16; generic++) {
        ULONG mask = generic << 28 | 0x02100004;

        RtlMapGenericMask(&mask, MAPPING);
        Begin("RtlMapGenericMask"), Hex("generic", generic), Hex("mask", mask), End();
    }
}

static void SidTexts(void)
{
    static UCHAR Sids[][16] = {
        { 1, 1, 0, 0, 0, 0, 0, 5, 18 },
        { 1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2 },
        { 1, 0, 0, 0, 0, 0, 0, 0 },
        { 1, 1, 0, 0, 0xFF, 0xFE, 0xFD, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF },
    };

    for (SIZE_T at = 0; at < COUNT(Sids); at++) {
        UNICODE_STRING string = { 0, 0, 0 };
        NTSTATUS status = RtlConvertSidToUnicodeString(&string, Sids[at], 1);

        Begin("sid text"), Hex("status", (ULONG)status);
        if (status >= 0) {
            Unicode("string", &string);
            RtlFreeUnicodeString(&string);
        }
        End();
    }
    for (USHORT room = 14; room < 20; room++) {
        UNICODE_STRING string = { 2, room, Broad };

        Fill();
        Begin("sid text"), Hex("room", room);
        Hex("status", (ULONG)RtlConvertSidToUnicodeString(&string, Sids[0], 0));
        Units("text", Broad, 10), End();
    }
}

static void PlainTexts(void)
{
    static const char *const NUMBERS[] = { "", "0", "12", " \t12x", "-5", "+7", "- 5", "0x1F", "0X1f",
                                           "0b101", "0o17", "017", "99999999999", "-0x10", "ff", "z" };
    static const ULONG BASES[] = { 0, 2, 8, 10, 16, 3 };

    for (SIZE_T a = 0; a < COUNT(WIDE); a++)
        for (SIZE_T b = 0; b < COUNT(WIDE); b++) {
            SIZE_T a_length = wcslen(WIDE[a]), b_length = wcslen(WIDE[b]);

            Begin("RtlCompareUnicodeStrings");
            Hex("exact", Sign(RtlCompareUnicodeStrings(WIDE[a], a_length, WIDE[b], b_length, 0)));
            Hex("folded", Sign(RtlCompareUnicodeStrings(WIDE[a], a_length, WIDE[b], b_length, 1)));
            End();
        }
    for (SIZE_T text = 0; text < COUNT(NUMBERS); text++)
        for (SIZE_T base = 0; base < COUNT(BASES); base++) {
            ULONG value = 77;

            Begin("RtlCharToInteger"), Hex("base", BASES[base]);
            Hex("status", (ULONG)RtlCharToInteger(NUMBERS[text], BASES[base], &value));
            Hex("value", value), End();
        }
    for (SIZE_T at = 0; at < COUNT(ASCII); at++) {
        ULONG length = 0, size = 0;

        while (ASCII[at][length])
            length++;
        Begin("sizes"), Hex("status", (ULONG)RtlMultiByteToUnicodeSize(&size, ASCII[at], length));
        Hex("unicode", size), End();
    }
    for (SIZE_T at = 0; at < COUNT(WIDE); at++) {
        UNICODE_STRING string = { 0, 0, 0 };
        ULONG size = 0;

        Begin("sizes");
        Hex("status", (ULONG)RtlUnicodeToMultiByteSize(&size, WIDE[at], 2 * (ULONG)wcslen(WIDE[at])));
        Hex("ansi", size), Hex("created", RtlCreateUnicodeString(&string, WIDE[at]));
        Unicode("string", &string), End();
        RtlFreeUnicodeString(&string);
    }
}

void Routines(void)
{
    Seconds();
    Once();
    Rights();
    SidTexts();
    PlainTexts();
    Versions();
    Descriptors();
    Initialization();
    Comparisons();
    Copies();
    Cases();
    Conversions();
    Numbers();
    Identifiers();
    Times();
    Memory();
    Texts();
    Printing();
}
