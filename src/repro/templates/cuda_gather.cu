// Gathers out of a table with one index far outside it: ./repro pass|fail
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

namespace repro {
constexpr int blocks = {{ sizes.blocks.value }}, threads = {{ program.threads }};
constexpr int count = blocks * threads;
constexpr int position = {{ program.position }}; // whose index is wrong
constexpr int bad_index = {{ program.bad_index }};
constexpr int cannot_run = 3;

__global__ void {{ program.kernel | ident("gather") }}(const float *table, const int *index, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = table[index[i]]; // nothing checks index[i] against the table
}
} // namespace repro

// Prints a status as CUDA's own samples do; the program ends with `code`.
static void check(cudaError_t status, const char *call, int code) {
  if (status != cudaSuccess) {
    std::fprintf(stderr, "CUDA error %d (%s) in %s: %s\n", static_cast<int>(status), cudaGetErrorName(status), call,
                 cudaGetErrorString(status));
    std::exit(code);
  }
}

int main(int argument_count, char **arguments) {
  const bool fail = argument_count > 1 && std::strcmp(arguments[1], "fail") == 0;
  std::vector<int> host(repro::count);
  for (int i = 0; i < repro::count; i++) {
    host[i] = i;
  }
  if (fail) {
    host[repro::position] = repro::bad_index;
  }
  float *table = nullptr, *out = nullptr;
  int *index = nullptr;
  const size_t bytes = repro::count * sizeof(float);
  check(cudaMalloc(&table, bytes), "cudaMalloc", repro::cannot_run);
  check(cudaMalloc(&index, bytes), "cudaMalloc", repro::cannot_run);
  check(cudaMalloc(&out, bytes), "cudaMalloc", repro::cannot_run);
  check(cudaMemset(table, 0, bytes), "cudaMemset", 1);
  check(cudaMemcpy(index, host.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy", 1);
  repro::{{ program.kernel | ident("gather") }}<<<repro::blocks, repro::threads>>>(table, index, out);
  check(cudaGetLastError(), "launch", 1);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize()", 1);
  std::printf("%d elements passed\n", repro::count);
  return 0;
}
