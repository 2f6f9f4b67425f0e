// Kernels that crash.cu lacks. They need no header, so that NVRTC compiles them as they stand.

// Reaches one element before its buffer.
extern "C" __global__ void shift_left(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i - 1] = 1.0f;
}

// Reaches one element past its buffer.
extern "C" __global__ void one_past(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = 1.0f;
}

// Row by row, the index in 32 bits.
extern "C" __global__ void fill_rows(float *out, int rows, int cols, int stride) {
  int row = blockIdx.x;
  for (int col = threadIdx.x; col < cols; col += blockDim.x) out[row * stride + col] = (float)row;
}

// Never ends where n is past 1000.
extern "C" __global__ void hang_past(int *p, int n) {
  while (n > 1000) atomicAdd(p, 1);
}
