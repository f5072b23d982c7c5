/* Growing regression trees over a finite table, and inserting one more observation into a grown tree.
 *
 * The setting. A look-ahead imagines thousands of situations: the n real observations, and one to three imagined ones.
 * Each wants the predictions of an ensemble at all q candidates. Training each ensemble anew would cost n log n per
 * tree and situation, yet a new observation mostly changes one leaf. So a tree is defined such that insertion and
 * training from scratch give the same tree, and the kernel inserts:
 *
 *   - The draws of a node are a hash of its place in the tree (seed at the root, parent's draw and side below), not of
 *     how many draws were made before. What happens in one subtree leaves the other alone.
 *   - A node's split depends on its own observations only. Sums over observations run in the order of their slots and
 *     an imagined observation has the last slot: the sums, too, are the same bits either way.
 *   - A split replaces the best one so far only if better by TIE of the node's sum of squares. Rounding cannot decide
 *     between equals; the first attribute tried and its lowest threshold do.
 *
 * Insertion walks down from the root. Where the split with the new observation is the old one, only the child in which
 * it falls changes; where it is another one, the subtree is grown anew. Nodes are immutable and new ones are made along
 * the path only, so a tree with one more observation shares most nodes with the tree before it, and siblings (situations
 * that differ in their last imagined observation) start from the same parent tree. See batch.c for these levels.
 *
 * One condition reaches across subtrees: min_variance compares a node with the whole bag, whose variance the new
 * observation changes. Every node therefore knows between which thresholds its subtree stays as it is (stopped, kept).
 *
 * Candidates. A tree's predictions are a row of q doubles. A set of candidates is a bit set; that of a child is the
 * parent's AND the table's set "code below cut". A new leaf writes its value at the bits of its set, nothing else moves.
 *
 * Split search. Only the order of feature values matters, so observations carry ranks. The sums of a node are binned by
 * rank, one set of bins per attribute; a bit set of touched bins gives their order without sorting and without a pass
 * over empty ones, which serves 3 distinct values and 50,000 alike.
 */
#include <math.h>
#include <string.h>

#include "forest.h"

static const double TIE = 1e-12; /* as in twin.py */

typedef struct {
    double gain;
    int32_t feature, low, high; /* codes on either side of the cut */
    int32_t cut;
} Split;

/* Draw number `index` of a node (splitmix64): 1, 2 keys of the children; 3, 5, ... order; 4, 6, ... thresholds. */
static inline uint64_t hashed(uint64_t key, uint64_t index) {
    uint64_t z = key + index * 0xD1B54A32D192ED03u + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline int lowest_bit(uint64_t word) { return __builtin_ctzll(word); }

static inline int holds(const uint64_t *set, int i) { return (int)(set[i >> 6] >> (i & 63) & 1); }

/* First code at or above the threshold, within low+1..high. */
static int32_t cut_between(const Table *t, int feature, double threshold, int32_t low, int32_t high) {
    const double *values = t->values + t->starts[feature];
    int32_t from = low + 1, to = high;
    while (from < to) {
        int32_t middle = from + (to - from) / 2;
        if (values[middle] < threshold)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Position j of the Fisher-Yates permutation of attributes, drawn when it is needed. */
static int32_t next_attribute(Grower *g, uint64_t key, int j) {
    uint64_t left = (uint64_t)(g->table->d - j);
    int other = j + (int)(((hashed(key, 3 + 2 * (uint64_t)j) >> 32) * left) >> 32);
    int32_t attribute = g->order[other];
    g->order[other] = g->order[j];
    g->order[j] = attribute;
    return attribute;
}

/* Sum the node's observations into the bins of `count` attributes. */
static void fill_bins(Grower *g, const uint64_t *members, const int32_t *attributes, int count) {
    int d = g->table->d;
    for (int word = 0; word < g->member_words; word++)
        for (uint64_t rest = members[word]; rest; rest &= rest - 1) {
            int slot = word * 64 + lowest_bit(rest);
            const int32_t *codes = g->slot_codes + (size_t)slot * d;
            Point point = g->points[slot];
            for (int k = 0; k < count; k++) {
                int32_t code = codes[attributes[k]];
                Bin *bin = g->bins + (size_t)k * g->table->widest + code;
                bin->w += point.w;
                bin->s += point.wy;
                g->touched[(size_t)k * g->touched_words + (code >> 6)] |= (uint64_t)1 << (code & 63);
            }
        }
}

/* Reduction of the sum of squared deviations, given the left side's weight and sum; -1 if a side is too light. */
static inline double reduction(const Grower *g, const Node *node, double wl, double sl, double whole) {
    double wr = node->w - wl, sr = node->s - sl, min_leaf = g->growth->min_leaf;
    if (wl < min_leaf || wr < min_leaf) return -1;
    return sl * sl * g->inverse[(int)wl] + sr * sr * g->inverse[(int)wr] - whole;
}

static inline void consider(Split *best, double gain, double tie, int32_t feature, int32_t low, int32_t high) {
    if (gain > best->gain + tie) *best = (Split){gain, feature, low, high, 0};
}

/* Best midpoint of one attribute; empties its bins. */
static void scan_best(Grower *g, int k, int32_t feature, const Node *node, Split *best) {
    Bin *bins = g->bins + (size_t)k * g->table->widest;
    uint64_t *touched = g->touched + (size_t)k * g->touched_words;
    double wl = 0, sl = 0, whole = node->s * node->s * g->inverse[(int)node->w], tie = TIE * node->ss;
    int32_t low = -1;
    for (int word = 0; word < g->touched_words; word++) {
        for (uint64_t rest = touched[word]; rest; rest &= rest - 1) {
            int32_t code = word * 64 + lowest_bit(rest);
            if (low >= 0) consider(best, reduction(g, node, wl, sl, whole), tie, feature, low, code);
            wl += bins[code].w;
            sl += bins[code].s;
            bins[code] = (Bin){0, 0};
            low = code;
        }
        touched[word] = 0;
    }
}

/* One random threshold between the node's smallest and largest value of the attribute; empties its bins. */
static void scan_random(Grower *g, int k, int32_t feature, const Node *node, double u, Split *best) {
    Bin *bins = g->bins + (size_t)k * g->table->widest;
    uint64_t *touched = g->touched + (size_t)k * g->touched_words;
    const double *values = g->table->values + g->table->starts[feature];
    int first = 0, last = g->touched_words - 1;
    while (!touched[first]) first++;
    while (!touched[last]) last--;
    int32_t low = first * 64 + lowest_bit(touched[first]), high = last * 64 + 63 - __builtin_clzll(touched[last]);
    int32_t cut = low < high ? cut_between(g->table, feature, values[low] + u * (values[high] - values[low]), low, high)
                             : high + 1;
    double wl = 0, sl = 0, whole = node->s * node->s * g->inverse[(int)node->w];
    for (int word = first; word <= last; word++) {
        for (uint64_t rest = touched[word]; rest; rest &= rest - 1) {
            int32_t code = word * 64 + lowest_bit(rest);
            if (code < cut) {
                wl += bins[code].w;
                sl += bins[code].s;
            }
            bins[code] = (Bin){0, 0};
        }
        touched[word] = 0;
    }
    if (low < high)
        consider(best, reduction(g, node, wl, sl, whole), TIE * node->ss, feature, cut - 1, cut);
}

static inline void scan(Grower *g, uint64_t key, int tried, int k, const Node *node, Split *best) {
    int32_t feature = g->order[tried];
    if (g->growth->random_splits) {
        double u = (double)(hashed(key, 4 + 2 * (uint64_t)tried) >> 11) * 0x1p-53;
        scan_random(g, k, feature, node, u, best);
    } else
        scan_best(g, k, feature, node, best);
}

/* How many observations: 0, 1, 2, or 3 for more; the first two of them into slots. */
static int few_members(const Grower *g, const uint64_t *members, int slots[2]) {
    int count = 0;
    for (int word = 0; word < g->member_words; word++)
        for (uint64_t rest = members[word]; rest; rest &= rest - 1) {
            if (count == 2) return 3;
            slots[count++] = word * 64 + lowest_bit(rest);
        }
    return count;
}

/* Most nodes hold two observations. Any attribute that tells them apart gives the same two leaves: the first does. */
static Split split_pair(Grower *g, uint64_t key, const Node *node, const int slots[2]) {
    const int32_t *codes[2] = {g->slot_codes + (size_t)slots[0] * g->table->d, g->slot_codes + (size_t)slots[1] * g->table->d};
    Split best = {g->growth->min_gain, -1, 0, 0, 0};
    const Point *first = &g->points[slots[0]];
    double gain = reduction(g, node, first->w, first->wy, node->s * node->s * g->inverse[(int)node->w]);
    if (!(gain > best.gain + TIE * node->ss)) return best;
    for (int j = 0; j < g->table->d; j++) {
        int32_t feature = next_attribute(g, key, j), a = codes[0][feature], b = codes[1][feature];
        if (a == b) continue;
        consider(&best, gain, TIE * node->ss, feature, a < b ? a : b, a < b ? b : a);
        if (g->growth->random_splits) {
            const double *values = g->table->values + g->table->starts[feature];
            double low = values[best.low], high = values[best.high];
            double u = (double)(hashed(key, 4 + 2 * (uint64_t)j) >> 11) * 0x1p-53;
            best.high = cut_between(g->table, feature, low + u * (high - low), best.low, best.high);
        }
        return best;
    }
    return best;
}

static Split search(Grower *g, uint64_t key, const Node *node) {
    int first = g->growth->attributes < g->table->d ? g->growth->attributes : g->table->d;
    Split best = {g->growth->min_gain, -1, 0, 0, 0};
    for (int j = 0; j < first; j++) next_attribute(g, key, j);
    fill_bins(g, node->members, g->order, first);
    for (int j = 0; j < first; j++) scan(g, key, j, j, node, &best);
    for (int j = first; j < g->table->d && best.feature < 0; j++) {
        int32_t attribute = next_attribute(g, key, j);
        fill_bins(g, node->members, &attribute, 1);
        scan(g, key, j, 0, node, &best);
    }
    return best;
}

/* The node's split: `attributes` of them at once, then one by one until something is gained. feature -1: none. */
static Split find_split(Grower *g, uint64_t key, const Node *node) {
    const Table *t = g->table;
    Split best = {g->growth->min_gain, -1, 0, 0, 0};
    int slots[2] = {0}, count = few_members(g, node->members, slots);
    if (count < 2) return best;
    for (int f = 0; f < t->d; f++) g->order[f] = f;
    best = count == 2 ? split_pair(g, key, node, slots) : search(g, key, node);
    if (best.feature >= 0) {
        const double *values = t->values + t->starts[best.feature];
        double middle = 0.5 * values[best.low] + 0.5 * values[best.high];
        best.cut = g->growth->random_splits ? best.high : cut_between(t, best.feature, middle, best.low, best.high);
    }
    return best;
}

static Node *new_node(Grower *g) {
    Node *node = (Node *)g->free_node;
    g->free_node += g->node_bytes;
    return node;
}

static inline double variance_of(double w, double s, double ss) { return ss / w - (s / w) * (s / w); }

/* The candidates on one side of a split, into the next depth's set. */
static void restrict_candidates(Grower *g, int depth, const Split *split, int side) {
    const Table *t = g->table;
    const uint64_t *from = g->candidates + (size_t)depth * t->words;
    uint64_t *to = g->candidates + (size_t)(depth + 1) * t->words, flip = side ? ~(uint64_t)0 : 0;
    if (t->below) {
        const uint64_t *below = t->below + (size_t)(t->starts[split->feature] + split->cut) * t->words;
        for (int word = 0; word < t->words; word++) to[word] = from[word] & (below[word] ^ flip);
        return;
    }
    const int32_t *codes = t->codes + (size_t)split->feature * t->q;
    for (int word = 0; word < t->words; word++) {
        uint64_t below = 0;
        if (from[word])
            for (int i = word * 64; i < t->q && i < word * 64 + 64; i++)
                below |= (uint64_t)(codes[i] < split->cut) << (i & 63);
        to[word] = from[word] & (below ^ flip);
    }
}

static void write_at(double *row, const uint64_t *set, int words, double value) {
    for (int word = 0; word < words; word++)
        for (uint64_t rest = set[word]; rest; rest &= rest - 1) row[word * 64 + lowest_bit(rest)] = value;
}

/* Make the node a leaf and spread its value over its candidates. */
static const Node *close_leaf(Grower *g, Node *leaf, int depth, double stopped) {
    const uint64_t *set = g->candidates + (size_t)depth * g->table->words;
    double mean = leaf->s / leaf->w, squares = 0;
    leaf->child[0] = leaf->child[1] = NULL;
    leaf->feature = -1;
    leaf->stopped = stopped;
    leaf->kept = INFINITY;
    write_at(g->mean, set, g->table->words, mean);
    if (!g->variance) return leaf;
    for (int word = 0; word < g->member_words; word++) /* around the mean: a sum of squares would cancel */
        for (uint64_t rest = leaf->members[word]; rest; rest &= rest - 1) {
            const Point *point = &g->points[word * 64 + lowest_bit(rest)];
            double away = point->wy / point->w - mean;
            squares += point->w * away * away;
        }
    write_at(g->variance, set, g->table->words, squares / leaf->w);
    return leaf;
}

static void join(Node *node, const Split *split, double variance, const Node *left, const Node *right) {
    node->feature = split->feature;
    node->cut = split->cut;
    node->child[0] = left;
    node->child[1] = right;
    node->stopped = left->stopped > right->stopped ? left->stopped : right->stopped;
    node->kept = fmin(variance, fmin(left->kept, right->kept));
}

/* The members on one side of a split as a node to be grown. */
static Node *side_of(Grower *g, const Node *node, const Split *split, int side) {
    const int32_t *codes = g->slot_codes + split->feature;
    Node *child = new_node(g);
    double w = 0, s = 0, ss = 0;
    for (int word = 0; word < g->member_words; word++) {
        uint64_t set = 0;
        for (uint64_t rest = node->members[word]; rest; rest &= rest - 1) {
            uint64_t above = codes[(size_t)(word * 64 + lowest_bit(rest)) * g->table->d] >= split->cut;
            set |= (rest & -rest) & -(uint64_t)(above == (uint64_t)side);
        }
        child->members[word] = set;
        for (uint64_t rest = set; rest; rest &= rest - 1) {
            const Point *point = &g->points[word * 64 + lowest_bit(rest)];
            w += point->w;
            s += point->wy;
            ss += point->wyy;
        }
    }
    child->w = w;
    child->s = s;
    child->ss = ss;
    return child;
}

/* The rules that end a tree before a split is looked for. Fills `variance`; *stopped tells the variance rule's case. */
static int ends(const Grower *g, const Node *node, double *variance, double *stopped) {
    *stopped = -INFINITY;
    *variance = INFINITY;
    if (node->w < 2.0 * g->growth->min_leaf) return 1;
    if (g->growth->min_variance <= 0) return 0;
    *variance = variance_of(node->w, node->s, node->ss);
    if (*variance >= g->least_variance) return 0;
    *stopped = *variance;
    return 1;
}

/* Grow the subtree of a node whose sums and members are set and whose candidates are those of this depth. */
static const Node *grow(Grower *g, Node *node, uint64_t key, int depth) {
    double variance, stopped;
    if (ends(g, node, &variance, &stopped)) return close_leaf(g, node, depth, stopped);
    Split split = find_split(g, key, node);
    if (split.feature < 0) return close_leaf(g, node, depth, stopped);
    const Node *child[2];
    for (int side = 0; side < 2; side++) {
        restrict_candidates(g, depth, &split, side);
        child[side] = grow(g, side_of(g, node, &split, side), hashed(key, 1 + (uint64_t)side), depth + 1);
    }
    join(node, &split, variance, child[0], child[1]);
    return node;
}

static void copy_members(const Grower *g, Node *node, const Node *old) {
    memcpy(node->members, old->members, (size_t)g->member_words * sizeof(uint64_t));
    node->w = old->w;
    node->s = old->s;
    node->ss = old->ss;
}

/* A subtree that the new observation does not enter: the same, unless the bag's variance moved a leaf. */
static const Node *revise(Grower *g, const Node *old, uint64_t key, int depth) {
    if (g->growth->min_variance <= 0 || (old->stopped < g->least_variance && g->least_variance <= old->kept)) return old;
    Node *node = new_node(g);
    copy_members(g, node, old);
    return grow(g, node, key, depth);
}

static const Node *insert(Grower *g, const Node *old, uint64_t key, int depth, int slot) {
    const Point *point = &g->points[slot];
    Node *node = new_node(g);
    copy_members(g, node, old);
    node->members[slot >> 6] |= (uint64_t)1 << (slot & 63);
    node->w += point->w;
    node->s += point->wy;
    node->ss += point->wyy;

    double variance, stopped;
    if (ends(g, node, &variance, &stopped)) return close_leaf(g, node, depth, stopped);
    Split split = find_split(g, key, node);
    if (split.feature < 0) return close_leaf(g, node, depth, stopped);
    int same = old->feature == split.feature && old->cut == split.cut;
    int entered = g->slot_codes[(size_t)slot * g->table->d + split.feature] >= split.cut;
    const Node *child[2];
    for (int side = 0; side < 2; side++) {
        uint64_t child_key = hashed(key, 1 + (uint64_t)side);
        if (same && side != entered && g->growth->min_variance <= 0) {
            child[side] = old->child[side];
            continue;
        }
        restrict_candidates(g, depth, &split, side);
        if (!same)
            child[side] = grow(g, side_of(g, node, &split, side), child_key, depth + 1);
        else if (side == entered)
            child[side] = insert(g, old->child[side], child_key, depth + 1, slot);
        else
            child[side] = revise(g, old->child[side], child_key, depth + 1);
    }
    join(node, &split, variance, child[0], child[1]);
    return node;
}

static void set_bag_variance(Grower *g, double w, double s, double ss) {
    g->least_variance = g->growth->min_variance * variance_of(w, s, ss);
}

/* Grow a tree on all slots with a weight. An empty bag gives a leaf of weight 0, whose row is left to the caller. */
const Node *grow_tree(Grower *g, uint64_t seed) {
    Node *root = new_node(g);
    memset(root, 0, g->node_bytes);
    for (int slot = 0; slot < g->slots; slot++) {
        if (g->points[slot].w <= 0) continue;
        root->members[slot >> 6] |= (uint64_t)1 << (slot & 63);
        root->w += g->points[slot].w;
        root->s += g->points[slot].wy;
        root->ss += g->points[slot].wyy;
    }
    if (root->w <= 0) {
        root->feature = -1;
        root->stopped = -INFINITY;
        root->kept = INFINITY;
        return root;
    }
    set_bag_variance(g, root->w, root->s, root->ss);
    return grow(g, root, seed, 0);
}

/* The tree with one more observation, whose weight is positive; g->mean holds the old tree's row. */
const Node *insert_observation(Grower *g, const Node *root, uint64_t seed, int slot) {
    const Point *point = &g->points[slot];
    set_bag_variance(g, root->w + point->w, root->s + point->wy, root->ss + point->wyy);
    return insert(g, root, seed, 0, slot);
}
