/* The first heatmap by hand on a GPU: one kernel, one thread per cell, the state in registers.
 * Float32 without rescaling: a run that diverges overflows, some 7.5% of the pixels. What a step draws depends on
 * (seed, step) and its mean on (f, step): two small kernels write them to memory, and all cells read them.
 */
#include <cuda_runtime.h>

#include "first_heatmap.h"

constexpr int THREADS = 128; /* per block: many small blocks even out over the multiprocessors */

/* Mean of z and of z^2 over the samples of a step, z normal by Box and Muller; (seed, step). */
__global__ void draw_moments(size size, float2 *moments) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= size.num_seeds * size.num_steps) return;
    uint64_t state = stream(index / size.num_steps, index % size.num_steps);
    float sum = 0, squares = 0;
    for (int i = 0; i < size.samples; i += 2) {
        float radius = sqrtf(-2 * logf(uniform(&state))), z, other;
        sincospif(2 * uniform(&state), &other, &z);
        z *= radius;
        other *= i + 1 < size.samples ? radius : 0;
        sum += z + other;
        squares += z * z + other * other;
    }
    moments[index] = make_float2(sum / size.samples, squares / size.samples);
}

/* Mean of the inputs, (f, step). */
__global__ void shift(size size, const float *f, float *means) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= size.num_f * size.num_steps) return;
    double phase = (double)f[index / size.num_steps] * (index % size.num_steps);
    means[index] = size.amplitude * sinpif(2 * (float)(phase - floor(phase)));
}

/* Errors and velocities of both weights. */
struct Run {
    float slope, offset, slope_velocity, offset_velocity;

    __device__ void step(float mu, float rate, float mean, float2 moments) {
        float x = rate * (mean + moments.x);
        float xx = rate * (mean * (mean + 2 * moments.x) + moments.y);
        slope_velocity = mu * slope_velocity - xx * slope - x * offset;
        offset_velocity = mu * offset_velocity - x * slope - rate * offset;
        slope += slope_velocity;
        offset += offset_velocity;
    }
};

/* log10 of the mean distance of the last `tail` steps; (f, seed, mu), neighbours share f and seed. */
__global__ void runs(size size, const float *mus, const float *__restrict__ all_means,
                     const float2 *__restrict__ all_moments, float *result) {
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= size.num_f * size.num_seeds * size.num_mu) return;
    int seed = cell / size.num_mu % size.num_seeds, num_steps = size.num_steps;
    const float *means = all_means + (size_t)(cell / size.num_mu / size.num_seeds) * num_steps;
    const float2 *moments = all_moments + (size_t)seed * num_steps;
    float mu = mus[cell % size.num_mu], rate = 2 * size.eta;

    uint64_t state = stream(seed, UINT32_MAX);
    float slope = 2 * uniform(&state), offset = 2 * uniform(&state); /* theta_0 - theta*, both on [-1, 1] */
    slope -= 2 * uniform(&state);
    offset -= 2 * uniform(&state);
    Run run = {slope, offset, 0, 0};
    int k = 0;
#pragma unroll 10
    for (; k < num_steps - size.tail; k++) run.step(mu, rate, means[k], moments[k]);
    float total = 0;
#pragma unroll 4
    for (; k < num_steps; k++) {
        run.step(mu, rate, means[k], moments[k]);
        total += sqrtf(run.slope * run.slope + run.offset * run.offset);
    }
    result[cell] = log10f(total / size.tail);
}

/* Memory on the device, kept from call to call. */
struct Memory {
    size_t bytes = 0;
    void *start = nullptr;

    template <class T> T *take(size_t count) {
        if (count * sizeof(T) > bytes) {
            cudaFree(start);
            cudaMalloc(&start, count * sizeof(T));
            bytes = count * sizeof(T);
        }
        return (T *)start;
    }
};

static int blocks(int threads) { return (threads + THREADS - 1) / THREADS; }

/* f, mu and result are on the host. Returns NULL, or what went wrong. */
extern "C" const char *first_heatmap(size size, const float *f, const float *mu, float *result) {
    static Memory f_memory, mu_memory, means_memory, moments_memory, result_memory;
    int shifts = size.num_f * size.num_steps, draws = size.num_seeds * size.num_steps;
    int cells = size.num_f * size.num_seeds * size.num_mu;
    float *device_f = f_memory.take<float>(size.num_f), *device_mu = mu_memory.take<float>(size.num_mu);
    float *means = means_memory.take<float>(shifts), *device_result = result_memory.take<float>(cells);
    float2 *moments = moments_memory.take<float2>(draws);

    cudaMemcpy(device_f, f, size.num_f * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(device_mu, mu, size.num_mu * sizeof(float), cudaMemcpyHostToDevice);
    shift<<<blocks(shifts), THREADS>>>(size, device_f, means);
    draw_moments<<<blocks(draws), THREADS>>>(size, moments);
    runs<<<blocks(cells), THREADS>>>(size, device_mu, means, moments, device_result);
    cudaMemcpy(result, device_result, cells * sizeof(float), cudaMemcpyDeviceToHost); /* waits for the kernels */
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
