/* Accessors and checks on dictionaries: namespaces of objects and modules, values by key, keys by position. */

#include "node.h"

#include "../compat/layouts.h"

static int run_instance_dict(const GlNode *node, GlRun *run)
{
    return gl_put(node, run, gl_instance_dict(gl_parent(node, run), 1));
}

static int instance_dict_rests(const GlNode *node, GlRecording *recording)
{
    PyObject **slot = gl_instance_dict_slot(gl_recorded_parent(node, recording));
    return slot != NULL && gl_rests_on_word(recording, slot) && gl_rests_on_being(recording, node->to, *slot);
}

/* A module has one dictionary all its life. */
static int module_dict_rests(const GlNode *node, GlRecording *recording) { return 1; }

static int run_module_dict(const GlNode *node, GlRun *run)
{
    PyObject *module = gl_parent(node, run);
    return PyModule_Check(module) && gl_put(node, run, PyModule_GetDict(module));
}

/* --- by key --- */

static int build_key(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
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

static void clear_key(GlNode *node) { Py_XDECREF(((GlKey *)node->data)->held); }

static int run_dict_value(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_parent(node, run), *value = NULL;
    if (!PyDict_Check(dict) || gl_dict_find(dict, node->data, &value) != GL_FOUND) {
        return 0;
    }
    return gl_put(node, run, value);
}

static int run_key_present(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_parent(node, run), *value;
    return PyDict_Check(dict) && gl_dict_find(dict, node->data, &value) == GL_FOUND;
}

static int run_key_absent(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_parent(node, run), *value;
    return PyDict_Check(dict) && gl_dict_find(dict, node->data, &value) == GL_ABSENT;
}

static int dict_rests(const GlNode *node, GlRecording *recording) { return gl_rests_on_dict(recording, node->from); }

static int dict_value_rests(const GlNode *node, GlRecording *recording)
{
    return gl_rests_on_dict_value(recording, node->from, node->data, gl_recorded(recording, node->to));
}

/* Once a key that is held weakly is gone nobody can say that it is absent. */
static int absence_rests(const GlNode *node, GlRecording *recording)
{
    return !gl_is_weak(((GlKey *)node->data)->held) && gl_rests_on_absence(recording, node->from, node->data);
}

/* An object without an instance dictionary lacks every attribute. */
static int run_attr_absent(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_instance_dict(gl_parent(node, run), 0), *value;
    return dict == NULL || gl_dict_find(dict, node->data, &value) == GL_ABSENT;
}

static int run_attrs_empty(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_instance_dict(gl_parent(node, run), 0);
    return dict == NULL || PyDict_GET_SIZE(dict) == 0;
}

/* --- by position --- */

/* Whether the order of a dictionary may be read in this run; if not, the program runs again, owning what it reads. */
static int may_read_order(PyObject *dict, GlRun *run)
{
    if (run->owning || gl_is_quiet_order(dict)) {
        return 1;
    }
    run->again = 1;
    return 0;
}

typedef struct {
    Py_ssize_t left;
    PyObject *key;
} Position;

static int at_position(PyObject *key, void *context)
{
    Position *position = context;
    if (position->left-- > 0) {
        return 1;
    }
    position->key = key;
    return 0;
}

static int run_key_at(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_parent(node, run);
    Position position = {node->number, NULL};
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) <= node->number || !may_read_order(dict, run)) {
        return 0;
    }
    gl_dict_each_key(dict, at_position, &position);
    return gl_put(node, run, position.key);
}

/* The value under a key found by its place is the one whose key is that very object. */
static int run_value_at(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_parent(node, run), *key, *value;
    Position position = {node->number, NULL};
    Py_ssize_t at = 0;
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) <= node->number || !may_read_order(dict, run)) {
        return 0;
    }
    gl_dict_each_key(dict, at_position, &position);
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (key == position.key) {
            return gl_put(node, run, value);
        }
    }
    return 0;
}

static int build_position(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->number = PyLong_AsSsize_t(operands[0]);
    if (node->number < 0 && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "a position is not negative");
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* --- all keys, in order --- */

typedef struct {
    PyObject *const *expected;
    Py_ssize_t at;
} Keys;

static int is_next_key(PyObject *key, void *context)
{
    Keys *keys = context;
    PyObject *held = keys->expected[keys->at++];
    if (held == key) {
        return !gl_is_weak(held);
    }
    PyObject *expected = gl_held(held);
    return expected == key || (expected == held && gl_same_constant(expected, key));
}

static int run_dict_keys(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_parent(node, run);
    Keys keys = {((PyTupleObject *)node->object)->ob_item, 0};
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(node->object) ||
        !may_read_order(dict, run)) {
        return 0;
    }
    return gl_dict_each_key(dict, is_next_key, &keys);
}

/* --- all global names, in order, but those under which compiled code stands in its module --- */

typedef struct {
    Keys keys;
    Py_ssize_t count;
} Names;

/* Whether a name is `prefix`, digits, an underscore, and more. */
static int is_numbered(PyObject *name, const char *prefix)
{
    const Py_UCS1 *text = PyUnicode_1BYTE_DATA(name); /* ends with a zero */
    size_t at = strlen(prefix);
    if ((size_t)PyUnicode_GET_LENGTH(name) <= at || memcmp(text, prefix, at) != 0) {
        return 0;
    }
    size_t first = at;
    while (text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    return at > first && text[at] == '_';
}

static int is_own_name(PyObject *name)
{
    return PyUnicode_CheckExact(name) && PyUnicode_KIND(name) == PyUnicode_1BYTE_KIND &&
           (is_numbered(name, "__compiled_fn_") || is_numbered(name, "__resume_"));
}

static int is_next_name(PyObject *name, void *context)
{
    Names *names = context;
    return is_own_name(name) || (names->keys.at < names->count && is_next_key(name, &names->keys));
}

static int run_dict_names(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_parent(node, run);
    Names names = {{((PyTupleObject *)node->object)->ob_item, 0}, PyTuple_GET_SIZE(node->object)};
    return PyDict_Check(dict) && may_read_order(dict, run) && gl_dict_each_key(dict, is_next_name, &names) &&
           names.keys.at == names.count;
}

static int build_dict_keys(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!PyTuple_Check(operands[0])) {
        PyErr_SetString(PyExc_TypeError, "the keys of a dictionary are given as a tuple");
        return -1;
    }
    node->object = Py_NewRef(operands[0]);
    return 0;
}

const GlOp gl_dict_access_ops[] = {
    {"instance_dict", GL_ACCESSOR, 0, run_instance_dict, NULL, NULL, instance_dict_rests},
    {"module_dict", GL_ACCESSOR, 0, run_module_dict, NULL, NULL, module_dict_rests},
    {"dict_value", GL_ACCESSOR, 1, run_dict_value, build_key, clear_key, dict_value_rests},
    {"key_at", GL_ACCESSOR, 1, run_key_at, build_position, NULL, dict_rests},
    {"value_at", GL_ACCESSOR, 1, run_value_at, build_position, NULL, NULL},
    {"key_present", GL_ALONE, 1, run_key_present, build_key, clear_key, dict_rests},
    {"key_absent", GL_ALONE, 1, run_key_absent, build_key, clear_key, absence_rests},
    {"attr_absent", GL_ALONE, 1, run_attr_absent, build_key, clear_key, NULL},
    {"attrs_empty", GL_ALONE, 0, run_attrs_empty, NULL, NULL, NULL},
    {"dict_keys", GL_ALONE, 1, run_dict_keys, build_dict_keys, NULL, dict_rests},
    {"dict_names", 0, 1, run_dict_names, build_dict_keys, NULL, dict_rests},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
