/* Takes the place of the header by which Wine's test drivers check and report. Each verdict is a line of the
 * debugger's output, which `cargo foreign --suite wine` reads:
 *
 *     @found NAME            a test function that this image leaves out
 *     @enter NAME, @leave    the chosen test function begins, and returns
 *     @check V LINE HASH     a check: + passed, - failed, ~ failed as marked, ! passed although marked;
 *                            the message of - and ! follows
 *     @skip LINE             checks that the driver leaves out by itself
 *
 * The hash is FNV-1a of the check's arguments as they are written. The checks of a function may run on any
 * thread and at any IRQL, so this uses nothing of the kernel but the routines that print. */
#ifndef SHIM_UTILS_H
#define SHIM_UTILS_H

#include "kernel.h"

/* The test function that this image runs; the command links an image for each. */
extern const char shim_chosen[];

static const char *winetest_platform = "windows";
static int winetest_platform_is_wine, running_under_wine, winetest_debug, winetest_report_success;

/* The calls of test functions that have not returned, from the chosen one on. */
static LONG volatile shim_depth;
/* The line of the check that is evaluated next, and the marks around it. */
static int volatile shim_line;
static unsigned int volatile shim_todo;

static inline NTSTATUS winetest_init(void) { return STATUS_SUCCESS; }
static inline void winetest_cleanup(void) {}
static inline int broken(int condition) { return condition; }

/* The command writes this at the beginning of each test function. */
#define SHIM_TEST(name) \
    if (!shim_enters(#name)) return; \
    int shim_call __attribute__((unused, cleanup(shim_leaves))) = 0;

static inline int shim_enters(const char *name)
{
    const char *chosen = shim_chosen, *letter = name;

    while (*letter && *letter == *chosen) letter++, chosen++;
    if (!shim_depth && *letter != *chosen)
    {
        DbgPrint("@found %s\n", name);
        return 0;
    }
    if (InterlockedIncrement(&shim_depth) == 1) DbgPrint("@enter %s\n", name);
    return 1;
}

static inline void shim_leaves(int *call)
{
    if (!InterlockedDecrement(&shim_depth)) DbgPrint("@leave\n");
}

static inline int shim_ok(int line, const char *text, int condition, const char *format, ...)
{
    char verdict = shim_todo & 1 ? (condition ? '!' : '~') : (condition ? '+' : '-');
    ULONGLONG hash = 0xcbf29ce484222325;
    va_list arguments;

    while (*text) hash = (hash ^ (unsigned char)*text++) * 0x100000001b3;
    DbgPrint("@check %c %d %016I64x\n", verdict, line, hash);
    if (verdict == '-' || verdict == '!')
    {
        va_start(arguments, format);
        vDbgPrintEx(0, 0, format, arguments);
        va_end(arguments);
    }
    return condition;
}

static inline void shim_skip(const char *format, ...)
{
    DbgPrint("@skip %d\n", shim_line);
}

static inline void shim_ignore(const char *format, ...) {}

/* The last word takes the arguments that follow in the driver. */
#define ok_(file, line) shim_line = (line), SHIM_OK
#define SHIM_OK(...) ({ int shim_here = shim_line; shim_ok(shim_here, #__VA_ARGS__, __VA_ARGS__); })
#define skip_(file, line) shim_line = (line), shim_skip
#define win_skip_ skip_
#define trace_(file, line) shim_ignore

#define ok ok_(__FILE__, __LINE__)
#define skip skip_(__FILE__, __LINE__)
#define win_skip skip
#define trace shim_ignore
#define subtest shim_ignore
#define winetest_push_context shim_ignore
#define winetest_pop_context() ((void)0)

/* A mark is pushed before the statement that follows, and popped after it. */
#define todo_if(is_todo) \
    for (int shim_once = (shim_todo = shim_todo << 1 | !!(is_todo), 1); shim_once; shim_todo >>= 1, shim_once = 0)
#define todo_wine todo_if(0)
#define todo_wine_if(is_todo) todo_if(0)
#define flaky_if(is_flaky)
#define flaky
#define flaky_wine
#define flaky_wine_if(is_flaky)

#endif
