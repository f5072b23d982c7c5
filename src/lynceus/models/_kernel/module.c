/* The Python side: unpacks buffers, compares their lengths with the sizes, and runs the batch without the lock.
 * native.py has checked shapes and types already; the lengths are compared again so that no call reads out of bounds. */
#include <Python.h>
#include <math.h>

#include "forest.h"

enum { MOST_BUFFERS = 26 }; /* 11 of the problem, 11 of the acquisition function, 4 results */

/* Buffers of one call, released together. */
typedef struct {
    Py_buffer views[MOST_BUFFERS];
    int count, wrong;
} Buffers;

static const void *next_buffer(Buffers *all, PyObject *tuple, Py_ssize_t index, size_t bytes, int writable) {
    PyObject *object = PyTuple_GetItem(tuple, index);
    if (!object || all->wrong || all->count == MOST_BUFFERS) {
        all->wrong = 1;
        return NULL;
    }
    if (object == Py_None) return NULL;
    Py_buffer *view = &all->views[all->count];
    if (PyObject_GetBuffer(object, view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE)) {
        all->wrong = 1;
        return NULL;
    }
    all->count++;
    if ((size_t)view->len != bytes) {
        PyErr_Format(PyExc_ValueError, "array %zd of the kernel call has %zd bytes; expected %zu.", index, view->len, bytes);
        all->wrong = 1;
    }
    return view->buf;
}

static void release(Buffers *all) {
    for (int i = 0; i < all->count; i++) PyBuffer_Release(&all->views[i]);
}

/* (q, d, words, values, kept sets, n, e, m, trees, b), (codes, values, starts, below, rows, target, bags, seeds,
 * extra rows, extra target, extra bags), (attributes, min_leaf, random, total, min_gain, min_variance) */
static int read_problem(PyObject *sizes, PyObject *arrays, PyObject *growth, Problem *p, Buffers *all) {
    int values, sets;
    long long b;
    Table *t = &p->table;
    Growth *g = &p->growth;
    if (!PyArg_ParseTuple(sizes, "iiiiiiiiiL", &t->q, &t->d, &t->words, &values, &sets, &p->n, &p->e, &p->m, &p->trees, &b))
        return -1;
    if (!PyArg_ParseTuple(growth, "iiiidd", &g->attributes, &g->min_leaf, &g->random_splits, &g->total_spread,
                          &g->min_gain, &g->min_variance))
        return -1;
    p->b = b;
    size_t q = (size_t)t->q, d = (size_t)t->d, n = (size_t)p->n, e = (size_t)p->e, m = (size_t)p->m;
    size_t trees = (size_t)p->trees, states = (size_t)b;
    t->codes = next_buffer(all, arrays, 0, d * q * 4, 0);
    t->values = next_buffer(all, arrays, 1, (size_t)values * 8, 0);
    t->starts = next_buffer(all, arrays, 2, (d + 1) * 8, 0);
    t->below = next_buffer(all, arrays, 3, (size_t)sets * (size_t)t->words * 8, 0);
    p->rows = next_buffer(all, arrays, 4, n * 8, 0);
    p->target = next_buffer(all, arrays, 5, m * n * 8, 0);
    p->bags = next_buffer(all, arrays, 6, m * trees * n * 4, 0);
    p->seeds = next_buffer(all, arrays, 7, m * trees * 8, 0);
    p->extra_rows = next_buffer(all, arrays, 8, states * e * 8, 0);
    p->extra_target = next_buffer(all, arrays, 9, states * e * m * 8, 0);
    p->extra_bags = next_buffer(all, arrays, 10, m * trees * e * 4, 0);
    if (all->wrong) return -1;
    if (!sets) t->below = NULL;
    for (size_t f = 0; f < d; f++)
        if (t->starts[f + 1] - t->starts[f] > t->widest) t->widest = (int)(t->starts[f + 1] - t->starts[f]);
    return 0;
}

/* (form, constraints, confidence_z), (open, best, worst, left, ceiling, price, boot, minimum, constraint metric,
 * constraint sign, constraint bound) */
static int read_acquisition(PyObject *numbers, PyObject *arrays, const Problem *p, Acquisition *g, Buffers *all) {
    if (!PyArg_ParseTuple(numbers, "iid", &g->form, &g->constraints, &g->confidence_z)) return -1;
    size_t q = (size_t)p->table.q, b = (size_t)p->b, constraints = (size_t)g->constraints;
    g->open = next_buffer(all, arrays, 0, q, 0);
    g->best = next_buffer(all, arrays, 1, b * 8, 0);
    g->worst = next_buffer(all, arrays, 2, b * 8, 0);
    g->left = next_buffer(all, arrays, 3, b * 8, 0);
    g->ceiling = next_buffer(all, arrays, 4, q * 8, 0);
    g->price = next_buffer(all, arrays, 5, q * 8, 0);
    g->boot = next_buffer(all, arrays, 6, q * 8, 0);
    g->minimum = next_buffer(all, arrays, 7, q * 8, 0);
    g->constraint_metric = next_buffer(all, arrays, 8, constraints * 8, 0);
    g->constraint_sign = next_buffer(all, arrays, 9, constraints * 8, 0);
    g->constraint_bound = next_buffer(all, arrays, 10, constraints * q * 8, 0);
    return all->wrong ? -1 : 0;
}

static PyObject *finish(const Problem *p, const Acquisition *acquisition, const Answer *out, int threads, Buffers *all) {
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = run_batch(p, acquisition, out, threads);
    Py_END_ALLOW_THREADS
    release(all);
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *py_predict(PyObject *self, PyObject *args) {
    PyObject *sizes, *arrays, *growth, *outputs;
    int threads;
    Problem p = {0};
    Answer out = {0};
    Buffers all = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!O!O!i", &PyTuple_Type, &sizes, &PyTuple_Type, &arrays, &PyTuple_Type, &growth,
                          &PyTuple_Type, &outputs, &threads))
        return NULL;
    if (!read_problem(sizes, arrays, growth, &p, &all)) {
        size_t bytes = (size_t)p.b * (size_t)p.table.q * (size_t)p.m * 8;
        out.mean = (double *)next_buffer(&all, outputs, 0, bytes, 1);
        out.std = (double *)next_buffer(&all, outputs, 1, bytes, 1);
        if (!all.wrong) return finish(&p, NULL, &out, threads, &all);
    }
    release(&all);
    return NULL;
}

static PyObject *py_pick(PyObject *self, PyObject *args) {
    PyObject *sizes, *arrays, *growth, *numbers, *more_arrays, *outputs;
    int threads;
    Problem p = {0};
    Acquisition acquisition = {0};
    Answer out = {0};
    Buffers all = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!i", &PyTuple_Type, &sizes, &PyTuple_Type, &arrays, &PyTuple_Type, &growth,
                          &PyTuple_Type, &numbers, &PyTuple_Type, &more_arrays, &PyTuple_Type, &outputs, &threads))
        return NULL;
    if (!read_problem(sizes, arrays, growth, &p, &all) && !read_acquisition(numbers, more_arrays, &p, &acquisition, &all)) {
        size_t b = (size_t)p.b, m = (size_t)p.m;
        out.row = (int64_t *)next_buffer(&all, outputs, 0, b * 8, 1);
        out.value = (double *)next_buffer(&all, outputs, 1, b * 8, 1);
        out.mean = (double *)next_buffer(&all, outputs, 2, b * m * 8, 1);
        out.std = (double *)next_buffer(&all, outputs, 3, b * m * 8, 1);
        if (!all.wrong) return finish(&p, &acquisition, &out, threads, &all);
    }
    release(&all);
    return NULL;
}

/* For the tests: Phi(z) and z Phi(z) + phi(z). */
static PyObject *py_normal(PyObject *self, PyObject *args) {
    double z;
    (void)self;
    if (!PyArg_ParseTuple(args, "d", &z)) return NULL;
    return Py_BuildValue("dd", normal_cdf(z), normal_hinge(z));
}

static PyMethodDef methods[] = {
    {"predict", py_predict, METH_VARARGS, "predict(sizes, arrays, growth, outputs, threads)"},
    {"pick", py_pick, METH_VARARGS, "pick(sizes, arrays, growth, numbers, arrays, outputs, threads)"},
    {"normal", py_normal, METH_VARARGS, "normal(z) -> (Phi(z), z Phi(z) + phi(z))"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_forest", "The compiled forest kernel.", -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__forest(void) {
    prepare_normal_tables();
    return PyModule_Create(&module);
}
