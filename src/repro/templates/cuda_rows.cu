// Fills rows with a flat index of 32 bits: ./repro ROWS
//
// Past 2^31-1 the product row * stride wraps, and the store leaves the buffer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

namespace repro {
using Element = uint{{ program.element_bytes * 8 }}_t;
constexpr int columns = {{ program.columns }};
constexpr int cannot_run = 3;

__global__ void {{ program.kernel | ident("fill") }}(Element *out, int stride) {
  int row = blockIdx.x;
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    out[row * stride + column] = static_cast<Element>(row); // wraps in 32 bits
  }
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

int main(int count, char **arguments) {
  const long long rows = count > 1 ? std::atoll(arguments[1]) : 0;
  const size_t bytes = static_cast<size_t>(rows) * repro::columns * sizeof(repro::Element);
  repro::Element *out = nullptr;
  check(cudaMalloc(&out, bytes), "cudaMalloc", repro::cannot_run);
  repro::{{ program.kernel | ident("fill") }}<<<static_cast<unsigned>(rows), 256>>>(out, repro::columns);
  check(cudaGetLastError(), "launch", 1);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize()", 1);
  std::printf("%lld rows passed\n", rows);
  return 0;
}
