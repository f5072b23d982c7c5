/* The batch: states one after the other; work that several states share is done once.
 *
 * Level l holds the ensembles of the real observations and the first l imagined ones. For the next state only those
 * levels are made again that differ from the state before, so a run of siblings costs one insertion each at the last
 * level. A tree whose bag leaves the new observation out is the tree of the level below, and so is its row of
 * predictions: levels point to rows, and own those that changed.
 *
 * Each thread takes a contiguous part of the states and has its own memory. The arithmetic of a state does not depend on
 * the states before it, so the result has the same bits for every number of threads.
 */
#include <math.h>
#include <string.h>
#ifndef _WIN32
#include <pthread.h>
#endif

#include "forest.h"

enum { MOST_KEPT = 1 << 15 };

typedef struct {
    char *nodes;             /* bump arena of this level's own nodes */
    const Node **roots;      /* [m*trees] */
    const double **mean;     /* [m*trees] rows [q], own or of a level below */
    const double **variance; /* the same for the variance in the leaves; only for the total spread */
    double *own_mean;        /* [m*trees,q] */
    double *own_variance;
    double *sums;            /* [m] of the centred targets, for empty bags */
} Level;

typedef struct {
    const Problem *p;
    Grower grower;
    Point *points;        /* [m*trees,slots] */
    double *centre;       /* [m] */
    Level *levels;        /* [e+1] */
    int64_t held;         /* state that the levels hold, -1: none */
    double *mean, *std;   /* [m,q] */
    Scene scene;
    void **blocks;        /* everything allocated */
    int block_count, failed;
} Worker;

static void *take(Worker *w, size_t bytes) {
    void *block = w->failed ? NULL : calloc(bytes ? bytes : 1, 1);
    if (block) {
        void **longer = realloc(w->blocks, (size_t)(w->block_count + 1) * sizeof(void *));
        if (longer) {
            w->blocks = longer;
            w->blocks[w->block_count++] = block;
            return block;
        }
        free(block);
    }
    w->failed = 1;
    return NULL;
}

static void close_worker(Worker *w) {
    for (int i = 0; i < w->block_count; i++) free(w->blocks[i]);
    free(w->blocks);
}

/* A level's arena is enough for trees that are all grown anew: under two nodes per observation, and the path. */
static void open_levels(Worker *w) {
    const Problem *p = w->p;
    size_t ensembles = (size_t)p->m * p->trees, rows = ensembles * padded(p->table.q) * sizeof(double);
    w->levels = take(w, (size_t)(p->e + 1) * sizeof(Level));
    for (int l = 0; l <= p->e && !w->failed; l++) {
        Level *level = &w->levels[l];
        level->nodes = take(w, ensembles * (size_t)(2 * w->grower.slots + 2) * w->grower.node_bytes);
        level->roots = take(w, ensembles * sizeof(*level->roots));
        level->mean = take(w, ensembles * sizeof(*level->mean));
        level->variance = take(w, ensembles * sizeof(*level->variance));
        level->own_mean = take(w, rows);
        level->own_variance = p->growth.total_spread ? take(w, rows) : NULL;
        level->sums = take(w, (size_t)p->m * sizeof(double));
    }
}

/* Reciprocals of all weights that a node can have. */
static double *open_inverse(Worker *w) {
    const Problem *p = w->p;
    size_t heaviest = 0;
    for (int tree = 0; tree < p->m * p->trees; tree++) {
        size_t weight = 0;
        for (int i = 0; i < p->n; i++) weight += (size_t)p->bags[(size_t)tree * p->n + i];
        for (int l = 0; l < p->e; l++) weight += (size_t)p->extra_bags[(size_t)tree * p->e + l];
        if (weight > heaviest) heaviest = weight;
    }
    double *inverse = take(w, (heaviest + 1) * sizeof(double));
    for (size_t weight = 1; inverse && weight <= heaviest; weight++) inverse[weight] = 1.0 / (double)weight;
    return inverse;
}

/* Room for the subtrees that states may share; none if there is only one state. */
static void open_memo(Worker *w) {
    Memo *memo = &w->grower.memo;
    if (w->p->e == 0 || w->p->b < 2) return;
    size_t capacity = 256, nodes;
    while (capacity < MOST_KEPT && capacity < 16 * (size_t)w->p->b) capacity *= 2;
    nodes = 4 * capacity;
    memo->entries = take(w, capacity * sizeof(Kept));
    memo->next = take(w, nodes * w->grower.node_bytes);
    if (w->failed) return;
    memo->end = memo->next + nodes * w->grower.node_bytes;
    memo->capacity = capacity;
}

static void open_grower(Worker *w) {
    const Problem *p = w->p;
    Grower *g = &w->grower;
    g->table = &p->table;
    g->growth = &p->growth;
    g->slots = p->n + p->e;
    g->real = p->n;
    g->member_words = (g->slots + 63) / 64;
    g->node_bytes = sizeof(Node) + (size_t)g->member_words * sizeof(uint64_t);
    g->touched_words = (p->table.widest + 63) / 64;
    g->slot_codes = take(w, (size_t)g->slots * p->table.d * sizeof(int32_t));
    g->target = take(w, (size_t)g->slots * p->m * sizeof(double));
    g->inverse = open_inverse(w);
    g->candidates = take(w, (size_t)(g->slots + 2) * p->table.words * sizeof(uint64_t));
    g->order = take(w, (size_t)p->table.d * sizeof(int32_t));
    g->list = take(w, (size_t)g->slots * sizeof(int32_t));
    g->bins = take(w, (size_t)GROUP * p->table.widest * sizeof(Sums));
    g->touched = take(w, (size_t)GROUP * g->touched_words * sizeof(uint64_t));
    if (w->failed) return;
    for (int i = 0; i < p->table.q; i++) g->candidates[i >> 6] |= (uint64_t)1 << (i & 63);
}

static void set_slot(Worker *w, int slot, int64_t row) {
    const Table *t = &w->p->table;
    for (int f = 0; f < t->d; f++)
        w->grower.slot_codes[(size_t)f * w->grower.slots + slot] = t->codes[(size_t)f * t->q + row];
}

static Point point_of(double weight, double target) {
    return (Point){{weight, weight * target}, weight * target * target, target};
}

static void set_tree(Worker *w, Level *level, int tree, int own) {
    size_t q = padded(w->p->table.q);
    Grower *g = &w->grower;
    g->tree = tree;
    g->points = w->points + (size_t)tree * g->slots;
    g->mean = level->own_mean + tree * q;
    g->variance = level->own_variance ? level->own_variance + tree * q : NULL;
    if (own) {
        level->mean[tree] = g->mean;
        level->variance[tree] = g->variance;
    }
}

/* A tree with an empty bag predicts the plain mean of all observations. */
static void fill_empty(Worker *w, Level *level, int tree, int observations) {
    double mean = level->sums[tree / w->p->trees] / observations;
    for (int i = 0; i < w->p->table.q; i++) w->grower.mean[i] = mean;
    if (w->grower.variance) memset(w->grower.variance, 0, (size_t)w->p->table.q * sizeof(double));
}

/* Level 0: the real observations. */
static void grow_real(Worker *w) {
    const Problem *p = w->p;
    Grower *g = &w->grower;
    Level *level = &w->levels[0];
    for (int i = 0; i < p->n; i++) set_slot(w, i, p->rows[i]);
    for (int j = 0; j < p->m; j++) {
        const double *target = p->target + (size_t)j * p->n;
        double sum = 0;
        for (int i = 0; i < p->n; i++) sum += target[i];
        w->centre[j] = sum / p->n;
        for (int i = 0; i < p->n; i++) {
            g->target[(size_t)j * g->slots + i] = target[i] - w->centre[j];
            level->sums[j] += target[i] - w->centre[j];
        }
    }
    g->free_node = level->nodes;
    g->lasting = 1;
    for (int tree = 0; tree < p->m * p->trees; tree++) {
        const double *target = g->target + (size_t)(tree / p->trees) * g->slots;
        for (int i = 0; i < p->n; i++)
            w->points[(size_t)tree * g->slots + i] = point_of(p->bags[(size_t)tree * p->n + i], target[i]);
        set_tree(w, level, tree, 1);
        level->roots[tree] = grow_tree(g, p->seeds[tree]);
        if (level->roots[tree]->w <= 0) fill_empty(w, level, tree, p->n);
    }
    g->lasting = 0;
}

/* Level l of a state from level l - 1: insert its imagined observation l - 1. */
static void insert_imagined(Worker *w, int64_t state, int l) {
    const Problem *p = w->p;
    Grower *g = &w->grower;
    Level *level = &w->levels[l], *before = &w->levels[l - 1];
    size_t item = (size_t)state * p->e + (size_t)(l - 1), bytes = (size_t)p->table.q * sizeof(double);
    int slot = p->n + l - 1;
    set_slot(w, slot, p->extra_rows[item]);
    for (int j = 0; j < p->m; j++) {
        g->target[(size_t)j * g->slots + slot] = p->extra_target[item * p->m + j] - w->centre[j];
        level->sums[j] = before->sums[j] + g->target[(size_t)j * g->slots + slot];
    }
    g->free_node = level->nodes;
    for (int tree = 0; tree < p->m * p->trees; tree++) {
        int weight = p->extra_bags[(size_t)tree * p->e + l - 1];
        int own = weight > 0 || before->roots[tree]->w <= 0;
        set_tree(w, level, tree, own);
        level->roots[tree] = before->roots[tree];
        if (!own) {
            level->mean[tree] = before->mean[tree];
            level->variance[tree] = before->variance[tree];
        } else if (weight == 0)
            fill_empty(w, level, tree, p->n + l);
        else {
            w->points[(size_t)tree * g->slots + slot] =
                point_of(weight, g->target[(size_t)(tree / p->trees) * g->slots + slot]);
            memcpy(g->mean, before->mean[tree], bytes);
            if (g->variance) memcpy(g->variance, before->variance[tree], bytes);
            level->roots[tree] = insert_observation(g, before->roots[tree], p->seeds[tree], slot);
        }
    }
}

/* How many leading imagined observations two states share. */
static int shared_beginning(const Problem *p, int64_t a, int64_t b) {
    for (int l = 0; l < p->e; l++) {
        size_t ia = (size_t)a * p->e + l, ib = (size_t)b * p->e + l;
        if (p->extra_rows[ia] != p->extra_rows[ib] ||
            memcmp(p->extra_target + ia * p->m, p->extra_target + ib * p->m, (size_t)p->m * sizeof(double)))
            return l;
    }
    return p->e;
}

/* Mean and deviation of one metric over its trees. Sums are taken around the first tree: trees that agree give a
 * deviation of exactly 0, and nothing cancels. BLOCK candidates at a time stay in registers. */
WIDE static void between_trees(const double **rows, int trees, size_t q, double centre, double *mean, double *spread) {
    double share = 1.0 / trees;
    for (size_t at = 0; at < q; at += BLOCK) {
        Lanes first[2], sum[2] = {{0}}, squares[2] = {{0}};
        for (int half = 0; half < 2; half++) first[half] = *(const Lanes *)(rows[0] + at + 8 * half);
        for (int tree = 1; tree < trees; tree++)
            for (int half = 0; half < 2; half++) {
                Lanes away = *(const Lanes *)(rows[tree] + at + 8 * half) - first[half];
                sum[half] += away;
                squares[half] += away * away;
            }
        for (int half = 0; half < 2; half++) {
            *(Lanes *)(mean + at + 8 * half) = centre + (first[half] + sum[half] * share);
            *(Lanes *)(spread + at + 8 * half) = squares[half] - sum[half] * sum[half] * share;
        }
    }
}

WIDE static void deviations(const double *first, size_t q, double share, double *std) {
    for (size_t i = 0; i < q; i++) {
        double value = sqrt(std[i] > 0 ? std[i] * share : 0), rounding = 1e-13 * fabs(first[i]);
        std[i] = value <= rounding ? 0 : value;
    }
}

WIDE static void add_row(double *to, const double *row, size_t q) {
    for (size_t i = 0; i < q; i++) to[i] += row[i];
}

static void moments(Worker *w) {
    const Problem *p = w->p;
    Level *level = &w->levels[p->e];
    int total = p->growth.total_spread;
    size_t q = padded(p->table.q);
    for (int j = 0; j < p->m; j++) {
        const double **rows = level->mean + (size_t)j * p->trees;
        double *mean = w->mean + j * q, *std = w->std + j * q;
        double share = total ? 1.0 / p->trees : p->trees > 1 ? 1.0 / (p->trees - 1) : 0.0;
        between_trees(rows, p->trees, q, w->centre[j], mean, std);
        if (total)
            for (int tree = 0; tree < p->trees; tree++) add_row(std, level->variance[(size_t)j * p->trees + tree], q);
        deviations(rows[0], q, share, std);
    }
}

static void write_prediction(const Worker *w, int64_t state, const Answer *out) {
    size_t q = (size_t)w->p->table.q, m = (size_t)w->p->m, stride = padded(w->p->table.q);
    for (size_t j = 0; j < m; j++)
        for (size_t i = 0; i < q; i++) {
            out->mean[((size_t)state * q + i) * m + j] = w->mean[j * stride + i];
            out->std[((size_t)state * q + i) * m + j] = w->std[j * stride + i];
        }
}

static void open_worker(Worker *w, const Problem *p) {
    size_t trees = (size_t)p->m * p->trees, cells = (size_t)p->m * padded(p->table.q);
    w->p = p;
    w->held = -1;
    open_grower(w);
    open_memo(w);
    open_levels(w);
    w->points = take(w, trees * (size_t)w->grower.slots * sizeof(Point));
    w->centre = take(w, (size_t)p->m * sizeof(double));
    w->mean = take(w, cells * sizeof(double));
    w->std = take(w, cells * sizeof(double));
    w->scene.bound = take(w, padded(p->table.q) * sizeof(double));
    w->scene.strike = take(w, padded(p->table.q) * sizeof(double));
    w->scene.log_strike = take(w, padded(p->table.q) * sizeof(double));
    w->scene.log_ceiling = take(w, padded(p->table.q) * sizeof(double));
    w->scene.held_best = NAN;
    w->scene.highest = take(w, padded(p->table.q) / BLOCK * sizeof(double));
    w->scene.allowed = take(w, padded(p->table.q));
}

typedef struct {
    const Problem *p;
    const Acquisition *acquisition;
    Answer out;
    int64_t from, to;
    int failed;
} Part;

static void *run_part(void *argument) {
    Part *part = argument;
    const Problem *p = part->p;
    Worker w = {0};
    open_worker(&w, p);
    if (!w.failed) {
        grow_real(&w);
        for (int64_t state = part->from; state < part->to; state++) {
            int shared = w.held < 0 ? 0 : shared_beginning(p, w.held, state);
            for (int l = shared + 1; l <= p->e; l++) insert_imagined(&w, state, l);
            if (w.held < 0 || shared < p->e) moments(&w);
            w.held = state;
            if (!part->acquisition) {
                write_prediction(&w, state, &part->out);
                continue;
            }
            w.scene.mean = w.mean;
            w.scene.std = w.std;
            w.scene.closed = p->extra_rows + (size_t)state * p->e;
            pick_row(p, part->acquisition, &w.scene, state, &part->out);
        }
    }
    part->failed = w.failed;
    close_worker(&w);
    return NULL;
}

int run_batch(const Problem *p, const Acquisition *acquisition, const Answer *out, int threads) {
    enum { MOST = 256 };
    Part parts[MOST];
    if (threads > MOST) threads = MOST;
    if (threads > p->b) threads = (int)p->b;
    if (threads < 1) threads = 1;
#ifdef _WIN32
    threads = 1;
#else
    pthread_t ids[MOST];
    int started[MOST] = {0};
#endif
    for (int i = 0; i < threads; i++)
        parts[i] = (Part){p, acquisition, *out, p->b * i / threads, p->b * (i + 1) / threads, 0};
#ifndef _WIN32
    for (int i = 1; i < threads; i++) started[i] = !pthread_create(&ids[i], NULL, run_part, &parts[i]);
#endif
    run_part(&parts[0]);
    int failed = parts[0].failed;
#ifndef _WIN32
    for (int i = 1; i < threads; i++) {
        if (started[i])
            pthread_join(ids[i], NULL);
        else
            run_part(&parts[i]);
        failed |= parts[i].failed;
    }
#endif
    return failed ? -1 : 0;
}
