#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/sm90_only.hpp"
#include "kernels/common/tensor_map.hpp"
#include "kernels/decoder/wide_chain.cuh"
#include "kernels/decoder/wide_chain_gpu.hpp"

namespace inferometer::decoder {
namespace {

constexpr std::size_t kCounterBytes = kChainProducts * kWideCounterStride * sizeof(std::uint32_t);

// What the host needs to know of a kernel.
struct WideKernel {
  void (*kernel)(WideArgs, WideMaps);
  int tokens;
  int bytes;  // of shared memory
  int unit_slices;
  int most_ways;

  template <class Format, int kTokens>
  static WideKernel of() {
    using C = Wide<Format, kTokens>;
    return {&wide_chain_kernel<Format, kTokens>, kTokens, C::kBytes, Format::kUnitSlices, C::kMostWays};
  }

  WideProduct cut(const ChainShape& shape, int p, int blocks) const {
    const auto product = static_cast<ChainProduct>(p);
    return cut_wide_product(chain_rows(shape, product), chain_k(shape, product), unit_slices, most_ways, blocks);
  }
  std::size_t sums_bytes(const WideProduct& product) const {
    return static_cast<std::size_t>(product.items / product.parts) * static_cast<std::size_t>(tokens / 8) *
           static_cast<std::size_t>((product.parts - 1) * product.bands) * 128 * sizeof(float4);
  }
};

template <class Format>
std::array<WideKernel, 4> kernels_of() {
  return {WideKernel::of<Format, 8>(), WideKernel::of<Format, 16>(), WideKernel::of<Format, 32>(),
          WideKernel::of<Format, 64>()};
}

std::array<WideKernel, 4> kernels_for(std::int64_t bits) {
  return bits == 16 ? kernels_of<WideHalves>() : kernels_of<WideInt4>();
}

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

int multiprocessors() { return device_attribute(cudaDevAttrMultiProcessorCount); }

// Of a matrix [rows, columns] of f16 in boxes of a slice of some rows.
CUtensorMap slice_map(const void* base, std::int64_t rows, std::int64_t columns, std::int64_t box_rows) {
  return make_tensor_map(
      Dtype::f16, base,
      TensorMapShape<2>{.sizes = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)},
                        .stride_bytes = {static_cast<std::uint64_t>(columns) * 2},
                        .box = {kWideSliceK, static_cast<std::uint32_t>(box_rows)}});
}

}  // namespace

std::optional<std::string> wide_chain_unsupported(const ChainShape& shape, std::int64_t bits, std::int64_t layers) {
  if (!on_sm90()) return "the GPU is not of compute capability 9.0";
  if (device_attribute(cudaDevAttrMpsEnabled) != 0) return "the GPU is shared by processes through MPS";
  if (bits != 16 && bits != 4) return "weights must have 16 or 4 bits, got " + std::to_string(bits);
  if (layers < 2) return "layers must be at least 2, got " + std::to_string(layers);
  if (device_attribute(cudaDevAttrCooperativeLaunch) == 0) return "the GPU has no room for all blocks at once";
  for (const WideKernel& kernel : kernels_for(bits)) {
    for (int p = 0; p < kChainProducts; ++p)
      if (kernel.cut(shape, p, multiprocessors()).items == 0)
        return "a product's rows are not whole bands, or its k not whole stages";
    INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel.kernel),
                                                cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.bytes));
    int resident = 0;
    INFEROMETER_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &resident, kernel.kernel, Wide<WideInt4, 8>::kThreads, static_cast<std::size_t>(kernel.bytes)));
    if (resident < 1) return "the GPU has no room for all blocks at once";
  }
  return std::nullopt;
}

WideChain::WideChain(const ChainShape& shape, std::int64_t bits, std::int64_t layers, float eps, Stream stream,
                     Allocator& allocator)
    : shape_(shape), bits_(bits), layers_(layers), eps_(eps) {
  if (const auto sentence = wide_chain_unsupported(shape, bits, layers))
    throw std::runtime_error("wide chain of products: " + *sentence);
  for (const WideKernel& kernel : kernels_for(bits)) {
    require_sm90_code(reinterpret_cast<const void*>(kernel.kernel), "the wide chain of products");
    std::size_t bytes = kCounterBytes;
    for (int p = 0; p < kChainProducts; ++p) bytes += kernel.sums_bytes(kernel.cut(shape, p, multiprocessors()));
    exchange_bytes_ = std::max(exchange_bytes_, bytes);
  }
  const auto allocate = [&](std::int64_t elements, std::size_t bytes) {
    workspace_bytes_ += static_cast<std::size_t>(elements) * bytes;
    return allocator.allocate(static_cast<std::size_t>(elements) * bytes, "workspace");
  };
  for (std::shared_ptr<void>& exchange : exchanges_) {
    exchange = allocate(static_cast<std::int64_t>(exchange_bytes_), 1);
    INFEROMETER_CUDA_CHECK(cudaMemsetAsync(exchange.get(), 0xff, exchange_bytes_, stream));
  }
  for (std::shared_ptr<void>& squares : squares_)
    squares = allocate(kMostWideTokens * shape.hidden / 16, sizeof(float));
  for (int p = 1; p < kChainProducts; ++p)
    x_[p] = allocate(kMostWideTokens * chain_k(shape, static_cast<ChainProduct>(p)), sizeof(__half));
}

void WideChain::reset(Stream stream) const noexcept {
  for (const std::shared_ptr<void>& exchange : exchanges_)
    INFEROMETER_CUDA_REPORT(cudaMemsetAsync(exchange.get(), 0xff, exchange_bytes_, stream));
}

// Neighbours have different ones, the last layer and the first one too.
std::uint8_t* WideChain::exchange(std::int64_t layer) const {
  const std::int64_t number = layer == layers_ - 1 ? 2 : layer % 2;
  return static_cast<std::uint8_t*>(exchanges_[number].get());
}

// Cooperative: refused where not all blocks can be resident at once, and begun when they can.
void WideChain::run(std::int64_t layer, const ChainLayer& weights, const ChainVectors& vectors, std::int64_t tokens,
                    Stream stream) const {
  const std::array kernels = kernels_for(bits_);
  const auto* const kernel =
      std::find_if(kernels.begin(), kernels.end(), [&](const WideKernel& k) { return tokens <= k.tokens; });
  if (tokens < 1 || kernel == kernels.end())
    throw std::invalid_argument("wide chain of products: of 1 to " + std::to_string(kMostWideTokens) + " tokens, got " +
                                std::to_string(tokens));
  const int blocks = multiprocessors();
  std::uint8_t* const memory = exchange(layer);
  WideArgs args{.shape = shape_,
                .layer = weights,
                .products = {},
                .product_count = weights.weights[kChainProducts - 1] == nullptr ? kChainProducts - 1 : kChainProducts,
                .tokens = static_cast<int>(tokens),
                .eps = eps_,
                .h = vectors.h,
                .qkv = vectors.qkv,
                .inverse = vectors.inverse,
                .exchange = {.counters = reinterpret_cast<std::uint32_t*>(memory), .sums = {}, .squares = {}, .x = {}},
                .used = exchange((layer + layers_ - 1) % layers_),
                .used_bytes = static_cast<int>(exchange_bytes_)};
  for (int i = 0; i < 2; ++i) args.exchange.squares[i] = static_cast<float*>(squares_[i].get());
  WideMaps maps{};
  std::size_t sums = kCounterBytes;
  for (int p = 0; p < args.product_count; ++p) {
    const auto product = static_cast<ChainProduct>(p);
    const int k = chain_k(shape_, product);
    args.products[p] = kernel->cut(shape_, p, blocks);
    args.exchange.sums[p] = reinterpret_cast<float*>(memory + sums);
    sums += kernel->sums_bytes(args.products[p]);
    args.exchange.x[p] = static_cast<__half*>(x_[p].get());
    maps.x[p] = slice_map(p == 0 ? vectors.attention : args.exchange.x[p], tokens, k, tokens);
    if (bits_ == 16)
      maps.w[p] = slice_map(weights.weights[p], chain_rows(shape_, product), k,
                            std::int64_t{args.products[p].bands} * kWideBandRows);
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(Wide<WideInt4, 8>::kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(kernel->bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel->kernel, args, maps));
}

}  // namespace inferometer::decoder
