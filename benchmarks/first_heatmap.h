/* What both sources share: the sizes of the workload, and random numbers that depend on (seed, step) alone. */
#include <stdint.h>

#ifdef __CUDACC__
#define HERE __device__
#else
#define HERE static
#endif

struct size {
    int num_f, num_seeds, num_mu, num_steps, samples, tail;
    float eta, amplitude;
};

/* splitmix64 */
HERE uint64_t next(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform on (0, 1]. */
HERE float uniform(uint64_t *state) { return ((next(state) >> 40) + 1) * 0x1p-24f; }

HERE uint64_t stream(uint64_t seed, uint64_t step) {
    uint64_t state = seed << 32 | step;
    return next(&state);
}
