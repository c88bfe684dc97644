// Attention: its products, one for every row and head of a batch, and the causal softmax.
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/launch.h"

namespace stave::cuda {

namespace {

// A block makes a tile of kTile x kTile values, each thread those kSide apart, kPart x kPart of them, over kDepth inner
// indices at once.
constexpr unsigned kTile = 64;
constexpr unsigned kSide = 16;
constexpr unsigned kPart = kTile / kSide;
constexpr unsigned kDepth = 16;
static_assert(kSide * kSide == kThreads);

// tile[k][i] = op(f)(first + i, inner + k), or 0 outside: i is the index that the product keeps. `along` says that
// values next to each other in memory differ in k; threads next to each other read those.
__device__ void load(float (*tile)[kTile + 1], const float* f, std::size_t stride, bool along, unsigned first,
                     unsigned inner, unsigned kept, unsigned k) {
  for (unsigned e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
    const unsigned at_k = along ? e % kDepth : e / kTile;
    const unsigned at_i = along ? e / kDepth : e % kTile;
    const bool inside = first + at_i < kept && inner + at_k < k;
    const std::size_t i = first + at_i;
    const std::size_t l = inner + at_k;
    tile[at_k][at_i] = inside ? f[along ? i * stride + l : l * stride + i] : 0.0f;
  }
}

}  // namespace

extern "C" __global__ void stave_batched_product(ProductShape shape, Factor a, Factor b, Product c) {
  __shared__ float a_tile[kDepth][kTile + 1];
  __shared__ float b_tile[kDepth][kTile + 1];
  const std::size_t row = blockIdx.x / shape.heads;
  const std::size_t head = blockIdx.x % shape.heads;
  const float* a_at = a.at + row * a.row_stride + head * a.head_stride;
  const float* b_at = b.at + row * b.row_stride + head * b.head_stride;
  float* c_at = c.at + row * c.row_stride + head * c.head_stride;
  const unsigned first_m = blockIdx.y * kTile;
  const unsigned first_n = blockIdx.z * kTile;
  const unsigned x = threadIdx.x % kSide;
  const unsigned y = threadIdx.x / kSide;
  float sums[kPart][kPart] = {};
  for (unsigned inner = 0; inner < shape.k; inner += kDepth) {
    load(a_tile, a_at, a.stride, !a.transposed, first_m, inner, shape.m, shape.k);
    load(b_tile, b_at, b.stride, b.transposed, first_n, inner, shape.n, shape.k);
    __syncthreads();
    for (unsigned l = 0; l < kDepth; ++l)
      for (unsigned i = 0; i < kPart; ++i)
        for (unsigned j = 0; j < kPart; ++j) sums[i][j] += a_tile[l][y + i * kSide] * b_tile[l][x + j * kSide];
    __syncthreads();
  }
  for (unsigned i = 0; i < kPart; ++i) {
    for (unsigned j = 0; j < kPart; ++j) {
      const unsigned at_m = first_m + y + i * kSide;
      const unsigned at_n = first_n + x + j * kSide;
      if (at_m >= shape.m || at_n >= shape.n) continue;
      float& to = c_at[at_m * c.stride + at_n];
      // What lay there counts for nothing if beta is 0, even if it is no number.
      to = c.beta == 0 ? sums[i][j] : c.beta * to + sums[i][j];
    }
  }
}

extern "C" __global__ void stave_causal_softmax(float* scores, std::size_t t, std::size_t before, float scale) {
  __shared__ float shared[kThreads];
  const std::size_t context = before + t;
  const std::size_t seen = before + blockIdx.x % t + 1;
  float* row = scores + blockIdx.x * context;
  float largest = row[0];
  for (std::size_t j = threadIdx.x; j < seen; j += blockDim.x) largest = row[j] > largest ? row[j] : largest;
  largest = block_max(largest, shared);
  float sum = 0;
  for (std::size_t j = threadIdx.x; j < seen; j += blockDim.x) {
    const float e = expf(scale * (row[j] - largest));
    row[j] = e;
    sum += e;
  }
  const float inverse = 1.0f / block_sum(sum, shared);
  for (std::size_t j = threadIdx.x; j < context; j += blockDim.x) row[j] = j < seen ? row[j] * inverse : 0.0f;
}

extern "C" __global__ void stave_causal_softmax_gradient(const float* p, float* dp, std::size_t t, std::size_t before,
                                                         float scale) {
  __shared__ float shared[kThreads];
  const std::size_t context = before + t;
  const std::size_t seen = before + blockIdx.x % t + 1;
  const float* p_row = p + blockIdx.x * context;
  float* row = dp + blockIdx.x * context;
  float sum = 0;
  for (std::size_t j = threadIdx.x; j < seen; j += blockDim.x) sum += row[j] * p_row[j];
  sum = block_sum(sum, shared);
  for (std::size_t j = threadIdx.x; j < context; j += blockDim.x)
    row[j] = j < seen ? scale * p_row[j] * (row[j] - sum) : 0.0f;
}

void batched_product(ProductShape shape, Factor a, Factor b, Product c, cudaStream_t stream) {
  const dim3 grid(shape.rows * shape.heads, blocks_for(shape.m, kTile), blocks_for(shape.n, kTile));
  STAVE_LAUNCH(stave_batched_product, grid, kThreads, stream, shape, a, b, c);
}

void causal_softmax(float* scores, std::size_t batch, std::size_t t, std::size_t before, float scale,
                    cudaStream_t stream) {
  STAVE_LAUNCH(stave_causal_softmax, static_cast<unsigned>(batch * t), kThreads, stream, scores, t, before, scale);
}

void causal_softmax_gradient(const float* p, float* dp, std::size_t batch, std::size_t t, std::size_t before,
                             float scale, cudaStream_t stream) {
  STAVE_LAUNCH(stave_causal_softmax_gradient, static_cast<unsigned>(batch * t), kThreads, stream, p, dp, t, before,
               scale);
}

}  // namespace stave::cuda
