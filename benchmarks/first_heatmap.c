/* The first heatmap by hand: one task per (f, seed), steps inside, the momenta innermost so that they fill vectors.
 * Float32 without rescaling: a run that diverges overflows. Noise depends on (seed, step), so its moments are drawn once.
 */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "first_heatmap.h"

#define TURN 6.283185307179586

/* Mean of z and of z^2 over the samples of a step, z normal by Box and Muller. */
static void moments(struct size size, int seed, int step, float *z_mean, float *zz_mean) {
    uint64_t state = stream(seed, step);
    float sum = 0, squares = 0;
    for (int i = 0; i < size.samples; i += 2) {
        float radius = sqrtf(-2 * logf(uniform(&state))), angle = (float)TURN * uniform(&state);
        float z = radius * cosf(angle), other = i + 1 < size.samples ? radius * sinf(angle) : 0;
        sum += z + other;
        squares += z * z + other * other;
    }
    *z_mean = sum / size.samples;
    *zz_mean = squares / size.samples;
}

/* All momenta of one (f, seed). `lanes` is room for four times num_mu; `total` gets the sum of the tail's distances. */
static void run(struct size size, int seed, const float *means, const float *z_means, const float *zz_means,
                const float *restrict mu, float *restrict lanes, float *restrict total) {
    int n = size.num_mu;
    float *restrict slope = lanes, *restrict offset = lanes + n;
    float *restrict slope_velocity = lanes + 2 * n, *restrict offset_velocity = lanes + 3 * n;
    uint64_t state = stream(seed, UINT32_MAX);
    float slope_0 = 2 * uniform(&state), offset_0 = 2 * uniform(&state); /* theta_0 - theta*, both on [-1, 1] */
    slope_0 -= 2 * uniform(&state), offset_0 -= 2 * uniform(&state);
    for (int j = 0; j < n; j++) {
        slope[j] = slope_0, offset[j] = offset_0;
        slope_velocity[j] = offset_velocity[j] = total[j] = 0;
    }
    for (int k = 0; k < size.num_steps; k++) {
        float mean = means[k], z = z_means[k];
        float rate = 2 * size.eta;
        float x = rate * (mean + z), xx = rate * (mean * mean + 2 * mean * z + zz_means[k]);
#pragma omp simd
        for (int j = 0; j < n; j++) {
            slope_velocity[j] = mu[j] * slope_velocity[j] - xx * slope[j] - x * offset[j];
            offset_velocity[j] = mu[j] * offset_velocity[j] - x * slope[j] - rate * offset[j];
            slope[j] += slope_velocity[j];
            offset[j] += offset_velocity[j];
        }
        if (k >= size.num_steps - size.tail)
            for (int j = 0; j < n; j++) total[j] += sqrtf(slope[j] * slope[j] + offset[j] * offset[j]);
    }
}

/* result: (f, seed, mu), log10 of the mean distance of the last `tail` steps. Returns NULL, or what went wrong. */
const char *first_heatmap(struct size size, const float *f, const float *mu, float *result) {
    size_t steps = size.num_steps, lanes = size.num_mu;
    size_t drawn = (size.num_f + 2 * size.num_seeds) * steps;
    float *memory = malloc((drawn + 4 * lanes * omp_get_max_threads()) * sizeof *memory);
    if (!memory) return "out of memory";
    float *means = memory;                              /* (f, step) */
    float *z_means = means + size.num_f * steps;        /* (seed, step) */
    float *zz_means = z_means + size.num_seeds * steps; /* (seed, step) */

#pragma omp parallel
    {
        float *state = memory + drawn + 4 * lanes * omp_get_thread_num();
#ifdef __SSE__
        unsigned mode = _mm_getcsr();
        _mm_setcsr(mode | 0x8040); /* denormals are zero, as in XLA: a run that converges reaches them */
#endif
#pragma omp for collapse(2)
        for (int i = 0; i < size.num_f; i++)
            for (int k = 0; k < size.num_steps; k++)
                means[i * steps + k] = size.amplitude * sinf((float)TURN * (float)fmod((double)f[i] * k, 1));
#pragma omp for collapse(2)
        for (int seed = 0; seed < size.num_seeds; seed++)
            for (int k = 0; k < size.num_steps; k++)
                moments(size, seed, k, z_means + seed * steps + k, zz_means + seed * steps + k);
#pragma omp for collapse(2) schedule(dynamic)
        for (int i = 0; i < size.num_f; i++)
            for (int seed = 0; seed < size.num_seeds; seed++) {
                float *total = result + (i * size.num_seeds + seed) * lanes;
                run(size, seed, means + i * steps, z_means + seed * steps, zz_means + seed * steps, mu, state, total);
                for (size_t j = 0; j < lanes; j++) total[j] = log10f(total[j] / size.tail);
            }
#ifdef __SSE__
        _mm_setcsr(mode);
#endif
    }
    free(memory);
    return NULL;
}
