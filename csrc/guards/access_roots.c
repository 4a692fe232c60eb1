/* Accessors that start from what a call is handed: parameters, the function object, modules of the process; and
 * what hangs on function objects. */

#include "node.h"

#include <stddef.h>
#include <string.h>

static int run_param(const GlNode *node, GlRun *run)
{
    return node->number < run->nparams && gl_put(node, run, run->params[node->number]);
}

static int build_param(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->number = PyLong_AsSsize_t(operands[0]);
    if (node->number < 0 && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "a parameter's index is not negative");
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int run_function(const GlNode *node, GlRun *run) { return gl_put(node, run, run->function); }

/* The exception that is being handled where the frame is called, or None; whoever handles it holds it. */
static int run_handled(const GlNode *node, GlRun *run)
{
    PyObject *handled = PyErr_GetHandledException();
    Py_XDECREF(handled);
    return gl_put(node, run, handled ? handled : Py_None);
}

/* operand: the name of a module */
static int run_module(const GlNode *node, GlRun *run)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = NULL;
    if (modules == NULL || !PyDict_Check(modules) || gl_dict_find(modules, node->data, &module) != GL_FOUND) {
        return 0;
    }
    return gl_put(node, run, module);
}

static int module_rests(const GlNode *node, GlRecording *recording)
{
    return gl_rests_on_lasting_dict(recording, PyImport_GetModuleDict());
}

static int build_module(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    GlKey *key = PyMem_New(GlKey, 1);
    if (key == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    node->data = key;
    key->held = NULL;
    return gl_key_init(key, operands[0]);
}

static void clear_module(GlNode *node) { Py_XDECREF(((GlKey *)node->data)->held); }

/* operand: an object, or a weak reference to it */
static int run_anchor(const GlNode *node, GlRun *run) { return gl_put(node, run, gl_held(node->object)); }

static int build_anchor(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->object = Py_NewRef(operands[0]);
    return 0;
}

/* --- fields of a function object: one that is not set shows None, and `__dict__` is made when asked for --- */

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
    {"__globals__", offsetof(PyFunctionObject, func_globals)},
    {"__builtins__", offsetof(PyFunctionObject, func_builtins)},
    {"__closure__", offsetof(PyFunctionObject, func_closure)},
    {"__defaults__", offsetof(PyFunctionObject, func_defaults)},
    {"__kwdefaults__", offsetof(PyFunctionObject, func_kwdefaults)},
    {"__code__", offsetof(PyFunctionObject, func_code)},
};

static int run_function_field(const GlNode *node, GlRun *run)
{
    PyObject *function = gl_parent(node, run);
    if (!PyFunction_Check(function)) {
        return 0;
    }
    PyObject *value = *(PyObject **)((char *)function + node->number);
    return gl_put(node, run, value ? value : Py_None);
}

/* These two are set when a function is made, and never again; so is the closure, but its cells are asked for. */
static int function_field_rests(const GlNode *node, GlRecording *recording)
{
    return node->number == offsetof(PyFunctionObject, func_globals) ||
           node->number == offsetof(PyFunctionObject, func_builtins) ||
           node->number == offsetof(PyFunctionObject, func_closure);
}

static int build_function_field(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    const char *name = PyUnicode_AsUTF8(operands[0]);
    for (size_t i = 0; name != NULL && i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            node->number = (Py_ssize_t)fields[i].offset;
            return 0;
        }
    }
    if (name != NULL) {
        PyErr_Format(PyExc_ValueError, "no field of a function: %s", name);
    }
    return -1;
}

static int run_cell(const GlNode *node, GlRun *run)
{
    PyObject *cell = gl_parent(node, run);
    return PyCell_Check(cell) && gl_put(node, run, PyCell_GET(cell));
}

static int run_cell_empty(const GlNode *node, GlRun *run)
{
    PyObject *cell = gl_parent(node, run);
    return PyCell_Check(cell) && PyCell_GET(cell) == NULL;
}

const GlOp gl_root_ops[] = {
    {"param", GL_ROOT | GL_ACCESSOR, 1, run_param, build_param, NULL, NULL},
    {"function", GL_ROOT | GL_ACCESSOR, 0, run_function, NULL, NULL, NULL},
    {"handled", GL_ROOT | GL_ACCESSOR, 0, run_handled, NULL, NULL, NULL},
    {"module", GL_ROOT | GL_ACCESSOR, 1, run_module, build_module, clear_module, module_rests},
    {"anchor", GL_ROOT | GL_ACCESSOR, 1, run_anchor, build_anchor, NULL, NULL},
    {"function_field", GL_ACCESSOR, 1, run_function_field, build_function_field, NULL, function_field_rests},
    {"cell", GL_ACCESSOR, 0, run_cell, NULL, NULL, NULL},
    {"cell_empty", GL_ALONE, 0, run_cell_empty, NULL, NULL, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
