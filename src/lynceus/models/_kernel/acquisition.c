/* The acquisition value of a row, and the row with the largest one. numpy_twin.py has the formulas and their derivation.
 *
 * Most rows of a state are far from the best one. Two cheap bounds show it without a normal integral, for z = x/s
 * and r = s^2 / (s^2 + x^2):
 *
 *     h(z) = z Phi(z) + phi(z) <= max(z, 0) + phi(0) r^2          Phi(z) <= r/2 for z < 0, 1 otherwise
 *
 * For lognormal times the first bound applies because a - T <= a (ln a - ln T): a - T is concave in ln T and lies under
 * its tangent at ln a. (h(z) = z + h(-z), and for t > 0: h(-t) (1 + t^2)^2 falls from phi(0), Phi(-t) (1 + t^2) from 1/2;
 * the tests check both over a grid.) A first vector pass bounds every row; the row with the largest bound is evaluated;
 * then only rows whose bound reaches that value are evaluated, in ascending order, so that the lowest row wins a tie.
 */
#include <math.h>
#include <string.h>

#include "forest.h"

static const double TIE = 1e-12; /* as in numpy_twin.py */
static const double HUGE_SPREAD = 1e100; /* as in numpy_twin.py */
static const double PHI_0 = 0.3989422804014327;
static const double SQRT_HALF = 0.7071067811865476;

/* ---- the normal distribution: values every 1/64 up to 8 deviations, Taylor steps between, libm beyond -------------- */

enum { STEPS = 64, REACH = 8 };
static double table_hinge[2 * REACH * STEPS + 1], table_cdf[2 * REACH * STEPS + 1], table_density[2 * REACH * STEPS + 1];

static double exact_cdf(double z) { return 0.5 * erfc(-z * SQRT_HALF); }

static double exact_hinge(double z) {
    double value = PHI_0 * exp(-0.5 * z * z) + z * exact_cdf(z);
    return value > 0 ? value : 0;
}

void prepare_normal_tables(void) {
    for (int i = 0; i <= 2 * REACH * STEPS; i++) {
        double z = (double)i / STEPS - REACH;
        table_cdf[i] = exact_cdf(z);
        table_density[i] = PHI_0 * exp(-0.5 * z * z);
        table_hinge[i] = exact_hinge(z);
    }
}

/* Both functions are Taylor series at the nearest table point z; Phi's derivatives are Hermite polynomials times phi. */
double normal_cdf(double x) {
    if (!(x > -REACH)) return exact_cdf(x);
    if (x >= REACH) return 1;
    int i = (int)((x + REACH) * STEPS + 0.5);
    double z = (double)i / STEPS - REACH, t = x - z, zz = z * z;
    double series = 1 + t * (-z / 2 + t * ((zz - 1) / 6 + t * (z * (3 - zz) / 24 + t * ((zz - 6) * zz + 3) / 120)));
    return table_cdf[i] + t * table_density[i] * series;
}

double normal_hinge(double x) {
    if (!(x > -REACH)) return exact_hinge(x);
    if (x >= REACH) return x;
    int i = (int)((x + REACH) * STEPS + 0.5);
    double z = (double)i / STEPS - REACH, t = x - z, zz = z * z;
    double series =
        1.0 / 2 + t * (-z / 6 + t * ((zz - 1) / 24 + t * (z * (3 - zz) / 120 + t * ((zz - 6) * zz + 3) / 720)));
    return table_hinge[i] + t * (table_cdf[i] + t * table_density[i] * series);
}

/* ---- the value of one row ----------------------------------------------------------------------------------------- */

static double probability(double margin, double std) {
    return std > 0 ? normal_cdf(margin / std) : margin >= 0 ? 1 : 0;
}

/* E[(best - C)+ ; C <= k], k <= best. */
static double normal_improvement(double best, double k, double mean, double std) {
    if (std <= 0) return mean <= k ? best - mean : 0;
    double z = (k - mean) / std, value = std * normal_hinge(z);
    if (k < best) value += (best - k) * normal_cdf(z);
    return value;
}

/* (1 - Phi(t)) / phi(t) for t >= 8, by its continued fraction. */
static double mills(double t) {
    double below = t;
    for (int i = 14; i > 0; i--) below = t + i / below;
    return 1 / below;
}

/* strike P(T <= x) - E[T; T <= x] for ln T ~ N(mean, std^2). E[T; T <= x] = exp(mean + std^2/2) Phi(z - std) is also
 * x phi(z) (1 - Phi(t))/phi(t), t = std - z: this form does not overflow where the other one would. */
static double lognormal_below(double strike, double x, double log_x, double mean, double std) {
    double z = (log_x - mean) / std, t = std - z;
    double part = t < REACH ? exp(mean + 0.5 * std * std) * normal_cdf(-t) : x * PHI_0 * exp(-0.5 * z * z) * mills(t);
    return strike * normal_cdf(z) - part;
}

static double lognormal_improvement(const Acquisition *acquisition, const Scene *scene, int i, double mean, double std) {
    double price = acquisition->price[i], a = scene->strike[i], f = acquisition->minimum[i] - acquisition->boot[i];
    double k = acquisition->ceiling && acquisition->ceiling[i] < a ? acquisition->ceiling[i] : a, value;
    if (k <= 0 || a <= 0 || a <= f) return 0;
    if (std <= 0) {
        double time = exp(mean);
        value = time <= k ? a - (time > f ? time : f) : 0;
    } else {
        double log_k = fmin(scene->log_strike[i], scene->log_ceiling[i]);
        value = lognormal_below(a, k, log_k, mean, std);
        if (f > 0) value -= lognormal_below(f, f < k ? f : k, f < k ? log(f) : log_k, mean, std);
    }
    return value > 0 ? price * value : 0;
}

static double value_of(const Problem *p, const Acquisition *acquisition, const Scene *scene, int i, double best) {
    const double *ceiling = acquisition->ceiling;
    double mean = scene->mean[i], std = scene->std[i], value;
    size_t q = (size_t)p->table.q, stride = padded(p->table.q);
    if (acquisition->form == LOGNORMAL)
        value = lognormal_improvement(acquisition, scene, i, mean, std);
    else
        value = normal_improvement(best, ceiling && ceiling[i] < best ? ceiling[i] : best, mean, std);
    for (int l = 0; l < acquisition->constraints && value > 0; l++) {
        size_t at = (size_t)acquisition->constraint_metric[l] * stride + (size_t)i;
        double bound = acquisition->constraint_bound[(size_t)l * q + (size_t)i];
        double margin = (double)acquisition->constraint_sign[l] * (bound - scene->mean[at]);
        value *= probability(margin, scene->std[at]);
    }
    return value;
}

/* ---- which rows may be picked ------------------------------------------------------------------------------------- */

/* Whether a run fits into the remaining budget. An exponential is expensive, so only promising rows are tested. */
static int affordable(const Acquisition *acquisition, const Scene *scene, int i, double left) {
    if (acquisition->confidence_z == -INFINITY || left == INFINITY) return 1;
    double std = scene->std[i], high = scene->mean[i] + (std > 0 ? acquisition->confidence_z * std : 0);
    if (acquisition->form != LOGNORMAL) return high <= left;
    double seconds = exp(high) + acquisition->boot[i];
    if (seconds < acquisition->minimum[i]) seconds = acquisition->minimum[i];
    return acquisition->price[i] * seconds <= left;
}

/* The objective to improve on; without a feasible observation, worst + 3 max sigma over the open rows, in dollars. */
static double value_to_beat(const Problem *p, const Acquisition *acquisition, const Scene *scene, int64_t state) {
    double best = acquisition->best[state], largest = 0;
    if (!isnan(best)) return best;
    for (int i = 0; i < p->table.q; i++) {
        if (!scene->allowed[i]) continue;
        double std = scene->std[i];
        if (acquisition->form == LOGNORMAL)
            std = acquisition->price[i] * exp(scene->mean[i] + 0.5 * std * std) * sqrt(expm1(std * std));
        if (std > largest) largest = std;
    }
    if (largest > HUGE_SPREAD) largest = HUGE_SPREAD;
    return acquisition->worst[state] + 3 * largest;
}

/* ---- bounds ------------------------------------------------------------------------------------------------------- */

/* Upper bounds of the normal forms; a deviation of 0 is taken as tiny. */
WIDE static void bound_normal(int q, const double *mean, const double *std, const double *ceiling, double best,
                              double *bound) {
    for (int i = 0; i < q; i++) {
        double s = std[i];
        double k = ceiling && ceiling[i] < best ? ceiling[i] : best;
        double x = k - mean[i], v = s * s + 1e-300, r = v / (v + x * x);
        double chance = x < 0 ? 0.5 * r : 1;
        bound[i] = (x > 0 ? x : 0) + PHI_0 * s * r * r + (best - k) * chance;
    }
}

WIDE static void bound_constraint(int q, const double *mean, const double *std, const double *limit, double sign,
                             double *bound) {
    for (int i = 0; i < q; i++) {
        double s = std[i];
        double x = sign * (limit[i] - mean[i]), v = s * s + 1e-300, r = v / (v + x * x);
        bound[i] *= x < 0 ? 0.5 * r : 1;
    }
}

/* The times at which the cost equals the best one, with their logarithms: the same for all states with one best. */
static void set_strikes(const Problem *p, const Acquisition *acquisition, Scene *scene, double best) {
    if (best == scene->held_best) return;
    for (int i = 0; i < p->table.q; i++) {
        double a = best / acquisition->price[i] - acquisition->boot[i];
        double c = acquisition->ceiling ? acquisition->ceiling[i] : INFINITY;
        scene->strike[i] = a;
        scene->log_strike[i] = a > 0 ? log(a) : -1e3;
        if (isnan(scene->held_best)) scene->log_ceiling[i] = c > 0 ? log(c) : -1e3;
    }
    scene->held_best = best;
}

/* The smaller of E[price a (ln a - ln T)+] and price (a - f) P(T <= k). */
WIDE static void bound_lognormal(int q, const Acquisition *acquisition, const Scene *scene, double *bound) {
    const double *mean = scene->mean, *std = scene->std, *log_a = scene->log_strike, *log_c = scene->log_ceiling;
    const double *a = scene->strike, *price = acquisition->price, *boot = acquisition->boot, *minimum = acquisition->minimum;
    for (int i = 0; i < q; i++) {
        double s = std[i], v = s * s + 1e-300;
        double x = log_a[i] - mean[i], r = v / (v + x * x);
        double tangent = a[i] * ((x > 0 ? x : 0) + PHI_0 * s * r * r);
        double y = (log_a[i] < log_c[i] ? log_a[i] : log_c[i]) - mean[i];
        double f = minimum[i] > boot[i] ? minimum[i] - boot[i] : 0, most = a[i] > f ? a[i] - f : 0;
        most *= y < 0 ? 0.5 * v / (v + y * y) : 1;
        bound[i] = a[i] > 0 ? price[i] * (tangent < most ? tangent : most) : 0;
    }
}

static void bound_rows(const Problem *p, const Acquisition *acquisition, Scene *scene, double best) {
    size_t q = (size_t)p->table.q;
    if (acquisition->form == LOGNORMAL) {
        set_strikes(p, acquisition, scene, best);
        bound_lognormal((int)q, acquisition, scene, scene->bound);
    } else
        bound_normal((int)q, scene->mean, scene->std, acquisition->ceiling, best, scene->bound);
    for (int l = 0; l < acquisition->constraints; l++) {
        size_t at = (size_t)acquisition->constraint_metric[l] * padded(p->table.q);
        bound_constraint((int)q, scene->mean + at, scene->std + at, acquisition->constraint_bound + (size_t)l * q,
                    (double)acquisition->constraint_sign[l], scene->bound);
    }
}

/* ---- the pick ----------------------------------------------------------------------------------------------------- */

static void write_pick(const Problem *p, const Scene *scene, int64_t state, int row, double value, Answer *out) {
    out->row[state] = row;
    out->value[state] = row < 0 ? NAN : value;
    for (int j = 0; j < p->m; j++) {
        size_t to = (size_t)state * p->m + (size_t)j, at = (size_t)j * padded(p->table.q) + (size_t)(row < 0 ? 0 : row);
        out->mean[to] = row < 0 ? NAN : scene->mean[at];
        out->std[to] = row < 0 ? NAN : scene->std[at];
    }
}

/* Closed rows get the bound -1. The largest bound of every block lets the search skip most blocks. */
WIDE static void close_rows(size_t q, const uint8_t *allowed, double *bound, double *highest) {
    for (size_t at = 0; at < q; at += BLOCK) {
        double top[4] = {-1, -1, -1, -1};
        for (int i = 0; i < BLOCK; i++) {
            double value = allowed[at + i] ? bound[at + i] : -1;
            bound[at + i] = value;
            top[i & 3] = value > top[i & 3] ? value : top[i & 3];
        }
        double low = top[0] > top[1] ? top[0] : top[1], high = top[2] > top[3] ? top[2] : top[3];
        highest[at / BLOCK] = low > high ? low : high;
    }
}

/* The value of the affordable row with the largest bound, slightly reduced: rows bounded below it need no evaluation. */
static double first_floor(const Problem *p, const Acquisition *acquisition, const Scene *scene, int64_t state, double best) {
    size_t blocks = padded(p->table.q) / BLOCK, top = 0;
    for (size_t block = 1; block < blocks; block++)
        if (scene->highest[block] > scene->highest[top]) top = block;
    if (scene->highest[top] < 0) return 0;
    int row = (int)(top * BLOCK);
    while (scene->bound[row] < scene->highest[top]) row++;
    if (!affordable(acquisition, scene, row, acquisition->left[state])) return 0;
    return value_of(p, acquisition, scene, row, best) * (1 - 1e-9);
}

void pick_row(const Problem *p, const Acquisition *acquisition, Scene *scene, int64_t state, Answer *out) {
    int row = -1;
    size_t q = padded(p->table.q);
    double value = 0;
    memcpy(scene->allowed, acquisition->open, (size_t)p->table.q);
    for (int l = 0; l < p->e; l++) scene->allowed[scene->closed[l]] = 0;
    double best = value_to_beat(p, acquisition, scene, state);
    bound_rows(p, acquisition, scene, best);
    close_rows(q, scene->allowed, scene->bound, scene->highest);

    double floor = first_floor(p, acquisition, scene, state, best);
    for (size_t at = 0; at < q; at += BLOCK) {
        if (scene->highest[at / BLOCK] < floor) continue;
        for (int i = (int)at; i < (int)at + BLOCK; i++) {
            if (scene->bound[i] < floor || !affordable(acquisition, scene, i, acquisition->left[state])) continue;
            double other = value_of(p, acquisition, scene, i, best);
            if (row >= 0 && !(other > value * (1 + TIE))) continue;
            row = i;
            value = other;
            if (value * (1 - 1e-9) > floor) floor = value * (1 - 1e-9);
        }
    }
    write_pick(p, scene, state, row, value, out);
}
