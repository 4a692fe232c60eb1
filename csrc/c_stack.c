/* How far the calling thread's C stack reaches. The one file of the core that knows the platform. */

#if defined(__linux__)
#define _GNU_SOURCE
#endif

#include "runtime.h"

#if defined(_WIN32)
#include <windows.h>
#elif defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#endif

/* What CPython and C extensions may need below the last frame that we let in. */
#define RESERVE ((size_t)256 * 1024)

/* Lowest usable address of the stack, and its size; 0 when the platform does not say. */
static size_t
find_stack(char **low)
{
#if defined(_WIN32)
    ULONG_PTR bottom, top;
    GetCurrentThreadStackLimits(&bottom, &top);
    *low = (char *)bottom;
    return (size_t)(top - bottom);
#elif defined(__APPLE__)
    pthread_t self = pthread_self();
    size_t size = pthread_get_stacksize_np(self);
    *low = (char *)pthread_get_stackaddr_np(self) - size;
    return size;
#elif defined(__linux__)
    pthread_attr_t attributes;
    void *address = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return 0;
    }
    int failed = pthread_attr_getstack(&attributes, &address, &size);
    pthread_attr_destroy(&attributes);
    *low = failed ? NULL : address;
    return failed ? 0 : size;
#else
    *low = NULL;
    return 0;
#endif
}

void
gl_stack_find(GlThread *thread)
{
    char *low = NULL;
    size_t size = find_stack(&low);
    thread->stack_low = (uintptr_t)low;
    /* Where nothing is known, one byte that nobody's stack is at. */
    thread->stack_reserve = size == 0 ? 1 : size / 4 < RESERVE ? size / 4 : RESERVE;
}

int
gl_stack_exhausted(void)
{
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is nearly used up");
    return -1;
}
