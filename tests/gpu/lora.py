"""A kernel's file as a user has it: importing it whole would start the job."""
import sys

import torch
import triton
import triton.language as tl

rows = int(sys.argv[1])


@triton.jit
def fused_lora_xw_kernel(
    x_ptr, w_ptr, y_ptr, M, N, K, stride_xm, stride_ym,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + (k + offs_k)[None, :], mask=offs_m[:, None] < M, other=0.0)
        w = tl.load(w_ptr + (k + offs_k)[:, None] * N + offs_n[None, :], mask=offs_n[None, :] < N, other=0.0)
        acc += tl.dot(x, w)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :], acc.to(tl.bfloat16), mask=mask)


@triton.jit
def fused_lora_xw_bwd_kernel(
    dx_ptr, w_ptr, dy_ptr, M, N, K, stride_xm, stride_ym,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for n in range(0, N, BLOCK_N):
        mask = (offs_m[:, None] < M) & ((n + offs_n)[None, :] < N)
        dy = tl.load(dy_ptr + offs_m[:, None] * stride_ym + (n + offs_n)[None, :], mask=mask, other=0.0)
        w_mask = (offs_k[:, None] < K) & ((n + offs_n)[None, :] < N)
        w = tl.load(w_ptr + offs_k[:, None] * N + (n + offs_n)[None, :], mask=w_mask, other=0.0)
        acc += tl.dot(dy, tl.trans(w))
    mask = (offs_m[:, None] < M) & (offs_k[None, :] < K)
    tl.store(dx_ptr + offs_m[:, None] * stride_xm + offs_k[None, :], acc.to(tl.bfloat16), mask=mask)


def forward(x, w):
    y = torch.empty((x.shape[0], w.shape[1]), device=x.device, dtype=torch.bfloat16)
    grid = (triton.cdiv(x.shape[0], 128), triton.cdiv(w.shape[1], 128))
    fused_lora_xw_kernel[grid](
        x, w, y, x.shape[0], w.shape[1], x.shape[1], x.stride(0), y.stride(0), BLOCK_M=128, BLOCK_N=128, BLOCK_K=32
    )
    return y


def backward(dy, w):
    dx = torch.empty((dy.shape[0], w.shape[0]), device=dy.device, dtype=torch.bfloat16)
    fused_lora_xw_bwd_kernel[(triton.cdiv(dy.shape[0], 128),)](
        dx, w, dy, dy.shape[0], w.shape[1], w.shape[0], dx.stride(0), dy.stride(0), BLOCK_M=128, BLOCK_N=128, BLOCK_K=32
    )
    return dx


x = torch.randn(rows, 32, device="cuda", dtype=torch.bfloat16)
w = torch.randn(32, 9216, device="cuda", dtype=torch.bfloat16)
y = forward(x, w)
print(y.float().sum().item(), backward(y, w).float().sum().item())
