// A driver that isn't one: FAKE_CUDA says how it misbehaves. Without it, it has one device, keeps no memory, and runs two
// kernels, fill_rows(out, rows, cols, stride) and fused_lora_xw_kernel(x, w, y, M, N, K, stride_xm, stride_ym, …), which
// fault where their 32-bit indices would wrap, and fused_lora_xw_kernel_i64, which never does.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char *mode) {
  const char *set = getenv("FAKE_CUDA");
  return set && !strcmp(set, mode);
}

static unsigned long long next = 0x7f0000000000ull;
static int status;

int cuInit(unsigned flags) {
  (void)flags;
  if (is("no-device")) return 100;
  if (is("stub")) return 34;
  if (is("newer")) return 9999;
  if (is("hang")) for (;;) pause();
  if (is("abort")) abort();
  if (is("segv")) *(volatile int *)0 = 0;
  if (is("exit")) _exit(7);
  if (is("babble")) for (int i = 0; i < 100000; i++) puts("{\"warpfault_probe\":1,\"reply\":");
  return 0;
}
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int n) { *d = n; return n == 0 ? 0 : 101; }
int cuDeviceGetName(char *s, int n, int d) { (void)d; snprintf(s, n, "Fake \033[31mGPU"); return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) {
  (void)d;
  *v = a == 75 ? 9 : a == 76 ? 0 : a == 97 ? 232448 : a == 102 ? !is("no-mapping") : 0;
  return 0;
}
int cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = 1ull << 37; return 0; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { (void)d; snprintf(s, n, "0000:00:06.0"); return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { (void)d; *c = &status; return 0; }
int cuCtxSetCurrent(void *c) { (void)c; return 0; }
int cuCtxSynchronize(void) { int s = status; status = 0; return s; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *f = 1ull << 36; *t = 1ull << 37; return 0; }
int cuModuleLoadDataEx(void **m, const void *p, unsigned n, const int *o, void *const *v) {
  (void)p; (void)n; (void)o; (void)v;
  *m = &status;
  return is("no-image") ? 209 : 0;
}
static char kernel[64];
static int is_lora(void) { return !strncmp(kernel, "fused_lora_xw_kernel", 20); }
int cuModuleGetFunction(void **f, void *m, const char *name) {
  (void)m;
  snprintf(kernel, sizeof kernel, "%s", name);
  *f = &status;
  return strlen(name) ? 0 : 500;
}
int cuFuncSetAttribute(void *f, int a, int v) { (void)f; (void)a; (void)v; return 0; }
int cuFuncGetParamInfo(void *f, size_t i, size_t *offset, size_t *size) {
  (void)f;
  if (is_lora()) {
    if (i > 9) return 1;
    *size = i >= 3 && i <= 7 ? 4 : 8;
    *offset = i <= 3 ? 8 * i : i <= 7 ? 24 + 4 * (i - 3) : 48 + 8 * (i - 8);
    return 0;
  }
  if (i > 3) return 1;
  *offset = i ? 4 + 4 * i : 0;
  *size = i ? 4 : 8;
  return 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **params, void **extra) {
  (void)f; (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)shared; (void)stream; (void)extra;
  int64_t last;
  if (is_lora()) {
    int64_t rows = *(int32_t *)params[3], stride = *(int32_t *)params[7];
    last = strlen(kernel) > 20 ? 0 : (rows - 1) * stride;
  } else {
    int64_t cols = *(int32_t *)params[2], stride = *(int32_t *)params[3];
    last = ((int64_t)gx - 1) * stride + cols - 1;
  }
  if (is("hang-in-kernel")) for (;;) pause();
  printf("printf of the kernel without a line end");
  fflush(stdout);
  status = is("always") || last > INT32_MAX ? 700 : 0;
  if (is("never")) status = 0;
  if (is("ecc")) status = 214;
  return is("refuse") ? 701 : 0;
}
int cuMemAlloc_v2(unsigned long long *p, size_t n) { *p = next; next += (n + 511) / 512 * 512; return 0; }
int cuMemFree_v2(unsigned long long p) { (void)p; return 0; }
int cuMemcpyHtoD_v2(unsigned long long d, const void *s, size_t n) { (void)d; (void)s; (void)n; return 0; }
int cuMemsetD8_v2(unsigned long long d, unsigned char c, size_t n) { (void)d; (void)c; (void)n; return 0; }
#ifndef OLD
int cuMemGetAllocationGranularity(size_t *n, const void *p, int f) { (void)p; (void)f; *n = 2 << 20; return 0; }
int cuMemAddressReserve(unsigned long long *p, size_t n, size_t a, unsigned long long at, unsigned long long f) {
  (void)a; (void)at; (void)f;
  *p = next;
  next += n;
  return 0;
}
int cuMemCreate(unsigned long long *h, size_t n, const void *p, unsigned long long f) {
  (void)n; (void)p; (void)f;
  *h = 1;
  return 0;
}
int cuMemMap(unsigned long long p, size_t n, size_t o, unsigned long long h, unsigned long long f) {
  (void)p; (void)n; (void)o; (void)h; (void)f;
  return 0;
}
int cuMemSetAccess(unsigned long long p, size_t n, const void *d, size_t c) { (void)p; (void)n; (void)d; (void)c; return 0; }
#endif
