/* Who watches what runs, from CPython 3.12 on: `sys.monitoring` beside trace functions. */

#ifndef GRAPHLIFT_MONITORING_H
#define GRAPHLIFT_MONITORING_H

/* Whether somebody watches what runs line by line: a trace function of this thread, or a tool of `sys.monitoring`
 * that has a callback for lines or instructions (whatever it has asked for up to now). */
static inline int
gl_is_watched(PyThreadState *tstate)
{
    enum { USER_TOOLS = 6 };
    if (tstate->c_tracefunc != NULL) {
        return 1;
    }
    PyInterpreterState *interp = tstate->interp;
    uintptr_t tools = 0;
    for (int tool = 0; tool < USER_TOOLS; tool++) {
        tools |= (uintptr_t)interp->monitoring_tool_names[tool];
    }
    for (int tool = 0; tools != 0 && tool < USER_TOOLS; tool++) {
        PyObject **callbacks = interp->monitoring_callables[tool];
        if (interp->monitoring_tool_names[tool] != NULL && (callbacks[PY_MONITORING_EVENT_LINE] != NULL ||
                                                            callbacks[PY_MONITORING_EVENT_INSTRUCTION] != NULL)) {
            return 1;
        }
    }
    return 0;
}

#endif
