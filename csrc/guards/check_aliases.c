/* Checks over several objects at once: which are one object, which are not, and whose storages overlap. */

#include "node.h"

#include "../tensor_reader.h"

#include <stdlib.h>
#include <string.h>

/* operands of `same` and `distinct`: node indices */
static int build_many(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->number = count;
    node->data = gl_registers(build, operands, count);
    return node->data == NULL ? -1 : 0;
}

/* Objects that are fixed stay the same, and different ones stay different. */
static int many_rest(const GlNode *node, GlRecording *recording)
{
    const int32_t *registers = node->data;
    for (Py_ssize_t i = 0; i < node->number; i++) {
        if (!gl_is_fixed(recording, registers[i])) {
            return 0;
        }
    }
    return 1;
}

static int run_same(const GlNode *node, GlRun *run)
{
    const int32_t *registers = node->data;
    for (Py_ssize_t i = 1; i < node->number; i++) {
        if (run->values[registers[i]] != run->values[registers[0]]) {
            return 0;
        }
    }
    return 1;
}

/* --- distinct --- */

enum { PAIRWISE = 12, SMALL_TABLE = 1024 };

static int distinct_pairwise(const int32_t *registers, Py_ssize_t count, PyObject *const *values)
{
    for (Py_ssize_t i = 1; i < count; i++) {
        PyObject *value = values[registers[i]];
        for (Py_ssize_t j = 0; j < i; j++) {
            if (values[registers[j]] == value) {
                return 0;
            }
        }
    }
    return 1;
}

/* Open addressing over addresses; `table` is zeroed and at least twice as large as `count`. */
static int distinct_hashed(const int32_t *registers, Py_ssize_t count, PyObject *const *values, PyObject **table,
                           size_t mask)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = values[registers[i]];
        size_t at = (size_t)(((uintptr_t)value >> 4) * 0x9E3779B97F4A7C15u >> 20) & mask;
        while (table[at] != NULL) {
            if (table[at] == value) {
                return 0;
            }
            at = (at + 1) & mask;
        }
        table[at] = value;
    }
    return 1;
}

static int run_distinct(const GlNode *node, GlRun *run)
{
    PyObject *small[SMALL_TABLE], **table = small;
    size_t size = 32;
    if (node->number <= PAIRWISE) {
        return distinct_pairwise(node->data, node->number, run->values);
    }
    while (size < (size_t)node->number * 2) {
        size *= 2;
    }
    if (size > SMALL_TABLE) {
        table = PyMem_New(PyObject *, size);
        if (table == NULL) {
            return 0;
        }
    }
    memset(table, 0, size * sizeof *table);
    int distinct = distinct_hashed(node->data, node->number, run->values, table, size - 1);
    if (table != small) {
        PyMem_Free(table);
    }
    return distinct;
}

/* --- storages --- */

typedef struct {
    int32_t value; /* register */
    int32_t group; /* number of the group, in order of first appearance */
    int64_t itemsize;
    int64_t ahead; /* bytes from the start of the group's first tensor to the start of this one */
} Member;

typedef struct {
    Py_ssize_t count, groups;
    Member members[];
} Pattern;

static int by_address(const void *left, const void *right)
{
    const GlPlace *a = left, *b = right;
    if (a->data != b->data) {
        return a->data < b->data ? -1 : 1;
    }
    return a->storage < b->storage ? -1 : a->storage > b->storage;
}

/* Whether the storages are all different and no two lie over each other. */
static int apart(GlPlace *places, Py_ssize_t count)
{
    qsort(places, (size_t)count, sizeof *places, by_address);
    for (Py_ssize_t i = 1; i < count; i++) {
        const GlPlace *before = &places[i - 1];
        if (before->storage == places[i].storage) {
            return 0;
        }
        if (before->data != 0 && before->bytes > 0 && places[i].bytes > 0 &&
            before->data + (uintptr_t)before->bytes > places[i].data) {
            return 0;
        }
    }
    return 1;
}

static int pattern_holds(const Pattern *pattern, const GlRun *run, GlPlace *first)
{
    Py_ssize_t seen = 0;
    for (Py_ssize_t i = 0; i < pattern->count; i++) {
        const Member *member = &pattern->members[i];
        PyObject *tensor = run->values[member->value];
        GlPlace place;
        if (!gl_is_tensor(tensor) || !gl_tensor_place(tensor, &place)) {
            return 0;
        }
        place.offset *= member->itemsize;
        if (member->group == seen) {
            first[seen++] = place;
        } else if (place.storage != first[member->group].storage ||
                   place.offset - first[member->group].offset != member->ahead) {
            return 0;
        }
    }
    return apart(first, pattern->groups);
}

static int run_overlap(const GlNode *node, GlRun *run)
{
    const Pattern *pattern = node->data;
    GlPlace small[32], *first = small;
    if (pattern->groups > 32) {
        first = PyMem_New(GlPlace, pattern->groups);
        if (first == NULL) {
            return 0;
        }
    }
    int holds = pattern_holds(pattern, run, first);
    if (first != small) {
        PyMem_Free(first);
    }
    return holds;
}

static int take_member(Member *member, const GlBuild *build, PyObject *row, Py_ssize_t *groups)
{
    PyObject *index;
    long long itemsize, ahead;
    if (!PyArg_ParseTuple(row, "OiLL", &index, &member->group, &itemsize, &ahead)) {
        return -1;
    }
    member->itemsize = itemsize;
    member->ahead = ahead;
    member->value = gl_register(build, index);
    if (member->value >= 0 && (member->group < 0 || member->group > *groups)) {
        PyErr_SetString(PyExc_ValueError, "groups are numbered in the order in which they appear");
        return -1;
    }
    *groups += member->group == *groups;
    return member->value < 0 ? -1 : 0;
}

/* operands: for each tensor (node index, group, item size, bytes ahead of the group's first) */
static int build_overlap(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    Pattern *pattern = PyMem_Calloc(1, sizeof(Pattern) + (size_t)count * sizeof(Member));
    if (pattern == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    node->data = pattern;
    pattern->count = count;
    build->calls_out |= gl_tensor_api.storage < 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!PyTuple_Check(operands[i]) ||
            take_member(&pattern->members[i], build, operands[i], &pattern->groups) < 0) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "a member of a storage pattern is a tuple of four");
            }
            return -1;
        }
    }
    return 0;
}

/* --- memory that Python's own objects show --- */

/* Whether no tensor's storage lies over the memory of a buffer, the first register. */
static int run_outside(const GlNode *node, GlRun *run)
{
    const int32_t *registers = node->data;
    Py_buffer view;
    if (PyObject_GetBuffer(run->values[registers[0]], &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return 0;
    }
    uintptr_t start = (uintptr_t)view.buf, end = start + (uintptr_t)view.len;
    PyBuffer_Release(&view);
    for (Py_ssize_t i = 1; i < node->number; i++) {
        PyObject *tensor = run->values[registers[i]];
        GlPlace place;
        if (!gl_is_tensor(tensor) || !gl_tensor_place(tensor, &place)) {
            return 0;
        }
        if (place.data < end && start < place.data + (uintptr_t)place.bytes) {
            return 0;
        }
    }
    return 1;
}

static int build_outside(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    build->calls_out |= gl_tensor_api.storage < 0;
    return build_many(node, build, operands, count);
}

const GlOp gl_alias_ops[] = {
    {"same", GL_ROOT, -1, run_same, build_many, NULL, many_rest},
    {"distinct", GL_ROOT, -1, run_distinct, build_many, NULL, many_rest},
    {"overlap", GL_ROOT, -1, run_overlap, build_overlap, NULL, NULL},
    {"outside", GL_ROOT, -1, run_outside, build_outside, NULL, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
