/* Many small normal systems at once: C = K + diag(variance) for h members, each K a packed lower triangle.
 *
 * Members are taken WIDTH at a time and interleaved, so that every step of the factorisation is the same arithmetic on WIDTH
 * neighbouring numbers: it fills vector registers at any size, which a library that factors one matrix after the other cannot do for
 * small ones. No sum is reordered and nothing is contracted, so the results do not depend on the width of a register. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdlib.h>

enum { WIDTH = 8 };
typedef double Members __attribute__((vector_size(WIDTH * sizeof(double)))); /* one number of each of WIDTH members */

/* The same code for wider registers, chosen when the module is loaded. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif
#define INLINE static inline __attribute__((always_inline))

/* What one call reads and writes; `diagonal` and `solved` are NULL where only the evidence is asked for. */
typedef struct {
    Py_ssize_t h, n;
    const double *packed, *mean, *variance; /* [h, n (n + 1) / 2], [h, n], [h, n] */
    double *log_size, *squares;             /* sum of ln L_ii and |L^-1 mean|^2, [h] each */
    double *diagonal, *solved;              /* of C^-1, and C^-1 mean, [h, n] each */
} Systems;

/* Row i of a packed triangle. */
#define ROW(matrix, i) ((matrix) + (i) * ((i) + 1) / 2)

/* L of C in place of C, by rows; the reciprocals of its diagonal. Returns 0 where a matrix is not positive definite. */
INLINE int factor(Members *restrict matrix, Members *restrict reciprocal, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        Members *row = ROW(matrix, i), pivot = row[i];
        Py_ssize_t j = 0;
        for (; j + 4 <= i; j += 4) { /* four columns at a time share the loads of the row */
            const Members *c0 = ROW(matrix, j), *c1 = ROW(matrix, j + 1), *c2 = ROW(matrix, j + 2), *c3 = ROW(matrix, j + 3);
            Members s0 = row[j], s1 = row[j + 1], s2 = row[j + 2], s3 = row[j + 3];
            for (Py_ssize_t k = 0; k < j; k++) {
                Members x = row[k];
                s0 -= x * c0[k], s1 -= x * c1[k], s2 -= x * c2[k], s3 -= x * c3[k];
            }
            s0 *= reciprocal[j];
            s1 = (s1 - s0 * c1[j]) * reciprocal[j + 1];
            s2 = (s2 - s0 * c2[j] - s1 * c2[j + 1]) * reciprocal[j + 2];
            s3 = (s3 - s0 * c3[j] - s1 * c3[j + 1] - s2 * c3[j + 2]) * reciprocal[j + 3];
            row[j] = s0, row[j + 1] = s1, row[j + 2] = s2, row[j + 3] = s3;
            pivot = pivot - s0 * s0 - s1 * s1 - s2 * s2 - s3 * s3;
        }
        for (; j < i; j++) {
            const Members *other = ROW(matrix, j);
            Members s = row[j];
            for (Py_ssize_t k = 0; k < j; k++) s -= row[k] * other[k];
            row[j] = s * reciprocal[j];
            pivot -= row[j] * row[j];
        }
        for (int w = 0; w < WIDTH; w++) {
            if (!(pivot[w] > 0.0 && pivot[w] < INFINITY)) return 0; /* also for NaN */
            row[i][w] = sqrt(pivot[w]);
        }
        reciprocal[i] = 1.0 / row[i];
    }
    return 1;
}

/* Four columns of L^-1 from `column` on, x[4 i + c] in row i, and their share of C^-1. */
INLINE void invert(const Members *restrict matrix, const Members *restrict reciprocal, const Members *restrict whitened,
                   Members *restrict x, Py_ssize_t column, Py_ssize_t n, Members *restrict diagonal, Members *restrict solved) {
    const Members zero = {0}, one = zero + 1.0;
    Members d0 = zero, d1 = zero, d2 = zero, d3 = zero, p0 = zero, p1 = zero, p2 = zero, p3 = zero;
    for (Py_ssize_t i = column; i < n; i++) {
        const Members *row = ROW(matrix, i), scale = reciprocal[i], a = whitened[i];
        Py_ssize_t place = i - column;
        Members s0 = place == 0 ? one : zero, s1 = place == 1 ? one : zero;
        Members s2 = place == 2 ? one : zero, s3 = place == 3 ? one : zero;
        for (Py_ssize_t k = column; k < i; k++) {
            Members l = row[k];
            s0 -= l * x[4 * k], s1 -= l * x[4 * k + 1], s2 -= l * x[4 * k + 2], s3 -= l * x[4 * k + 3];
        }
        s0 *= scale, s1 *= scale, s2 *= scale, s3 *= scale;
        x[4 * i] = s0, x[4 * i + 1] = s1, x[4 * i + 2] = s2, x[4 * i + 3] = s3;
        d0 += s0 * s0, d1 += s1 * s1, d2 += s2 * s2, d3 += s3 * s3;
        p0 += s0 * a, p1 += s1 * a, p2 += s2 * a, p3 += s3 * a;
    }
    const Members diagonals[4] = {d0, d1, d2, d3}, products[4] = {p0, p1, p2, p3};
    for (Py_ssize_t c = 0; c < 4 && column + c < n; c++) diagonal[column + c] = diagonals[c], solved[column + c] = products[c];
}

/* The vectors that WIDTH interleaved members need, [n] each but for `x [4 n]`. */
typedef struct {
    Members *mean, *reciprocal, *whitened, *diagonal, *solved, *x;
    Members log_size, squares;
} Work;
enum { VECTORS = 9 };

WIDE static int solve_block(Members *restrict matrix, Work *work, Py_ssize_t n, int invert_too) {
    const Members zero = {0};
    if (!factor(matrix, work->reciprocal, n)) return 0;
    work->log_size = work->squares = zero;
    for (Py_ssize_t i = 0; i < n; i++) {
        const Members *row = ROW(matrix, i);
        Members a = work->mean[i];
        for (Py_ssize_t k = 0; k < i; k++) a -= row[k] * work->whitened[k];
        a *= work->reciprocal[i];
        work->whitened[i] = a;
        work->squares += a * a;
        for (int w = 0; w < WIDTH; w++) work->log_size[w] += log(row[i][w]);
    }
    if (invert_too)
        for (Py_ssize_t column = 0; column < n; column += 4)
            invert(matrix, work->reciprocal, work->whitened, work->x, column, n, work->diagonal, work->solved);
    return 1;
}

/* 1: done, 0: some matrix is not positive definite, -1: no memory. */
static int solve(const Systems *all) {
    Py_ssize_t n = all->n, size = n * (n + 1) / 2;
    Members *matrix = aligned_alloc(sizeof(Members), (size_t)(size + VECTORS * n) * sizeof(Members));
    if (!matrix) return -1;
    Members *v = matrix + size;
    Work work = {v, v + n, v + 2 * n, v + 3 * n, v + 4 * n, v + 5 * n, {0}, {0}};
    int good = 1;
    for (Py_ssize_t first = 0; good && first < all->h; first += WIDTH) {
        Py_ssize_t members = all->h - first < WIDTH ? all->h - first : WIDTH;
        for (Py_ssize_t w = 0; w < WIDTH; w++) { /* the last member fills up the last block */
            Py_ssize_t member = first + (w < members ? w : members - 1);
            const double *packed = all->packed + member * size, *variance = all->variance + member * n;
            for (Py_ssize_t i = 0; i < size; i++) matrix[i][w] = packed[i];
            for (Py_ssize_t i = 0; i < n; i++) {
                ROW(matrix, i)[i][w] += variance[i];
                work.mean[i][w] = all->mean[member * n + i];
            }
        }
        good = solve_block(matrix, &work, n, all->diagonal != NULL);
        for (Py_ssize_t w = 0; good && w < members; w++) {
            all->log_size[first + w] = work.log_size[w];
            all->squares[first + w] = work.squares[w];
            for (Py_ssize_t i = 0; all->diagonal && i < n; i++) {
                all->diagonal[(first + w) * n + i] = work.diagonal[i][w];
                all->solved[(first + w) * n + i] = work.solved[i][w];
            }
        }
    }
    free(matrix);
    return good;
}

/* (h, n), (packed, mean, variance), (log_size, squares, diagonal or None, solved or None) -> whether every matrix had a factor */
static PyObject *py_solve(PyObject *self, PyObject *args) {
    Systems all = {0};
    PyObject *objects[7];
    Py_buffer views[7];
    (void)self;
    if (!PyArg_ParseTuple(args, "(nn)(OOO)(OOOO)", &all.h, &all.n, &objects[0], &objects[1], &objects[2], &objects[3],
                          &objects[4], &objects[5], &objects[6]))
        return NULL;
    const Py_ssize_t triangle = all.h * (all.n * (all.n + 1) / 2) * 8, vector = all.h * all.n * 8;
    const Py_ssize_t bytes[7] = {triangle, vector, vector, all.h * 8, all.h * 8, vector, vector};
    void *found[7] = {NULL};
    int count = 0, wrong = all.h < 1 || all.n < 1, done = -1;
    for (; !wrong && count < (objects[5] == Py_None ? 5 : 7); count++) {
        if (PyObject_GetBuffer(objects[count], &views[count], count < 3 ? PyBUF_SIMPLE : PyBUF_WRITABLE)) break;
        found[count] = views[count].buf;
        wrong = views[count].len != bytes[count];
    }
    if (wrong) PyErr_SetString(PyExc_ValueError, "an array of the call has another size than its systems.");
    if (!PyErr_Occurred()) {
        all.packed = found[0], all.mean = found[1], all.variance = found[2];
        all.log_size = found[3], all.squares = found[4], all.diagonal = found[5], all.solved = found[6];
        Py_BEGIN_ALLOW_THREADS
        done = solve(&all);
        Py_END_ALLOW_THREADS
        if (done < 0) PyErr_NoMemory();
    }
    for (int i = 0; i < count; i++) PyBuffer_Release(&views[i]);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyMethodDef methods[] = {
    {"solve", py_solve, METH_VARARGS, "solve((h, n), (packed, mean, variance), (log_size, squares, diagonal, solved)) -> bool"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_packed", "Many small normal systems at once.", -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__packed(void) { return PyModule_Create(&module); }
