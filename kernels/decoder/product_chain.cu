#include <cuda_runtime_api.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/sm90_only.hpp"
#include "kernels/decoder/product_chain.cuh"
#include "kernels/decoder/product_chain_f16.cuh"
#include "kernels/decoder/product_chain_gpu.hpp"
#include "kernels/decoder/product_chain_int4.cuh"

namespace inferometer::decoder {
namespace {

constexpr int kLeastStages = 4;

// What the host needs to know of a kernel.
struct ChainKernel {
  void (*kernel)(ChainArgs);
  int threads;
  int unit;
  int stage_bytes;
  int (*bytes)(const ChainShape& shape, int stages);  // of shared memory

  template <class Format>
  static ChainKernel of() {
    using C = Chain<Format>;
    return {&product_chain_kernel<Format>, C::kThreads, Format::kUnit, Format::kStageBytes, &C::bytes};
  }
};

ChainKernel kernel_of(std::int64_t bits) {
  return bits == 16 ? ChainKernel::of<ChainHalves>() : ChainKernel::of<ChainInt4>();
}

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

int multiprocessors() { return device_attribute(cudaDevAttrMultiProcessorCount); }

// As many as there is room for.
int stages_of(const ChainKernel& kernel, const ChainShape& shape) {
  const int room = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - kernel.bytes(shape, 0);
  return std::min(room / kernel.stage_bytes, kMostStages);
}

}  // namespace

std::optional<std::string> chain_unsupported(const ChainShape& shape, std::int64_t bits, std::int64_t layers) {
  if (!on_sm90()) return "the GPU is not of compute capability 9.0";
  if (device_attribute(cudaDevAttrMpsEnabled) != 0) return "the GPU is shared by processes through MPS";
  if (bits != 16 && bits != 4) return "weights must have 16 or 4 bits, got " + std::to_string(bits);
  if (layers < 2) return "layers must be at least 2, got " + std::to_string(layers);  // ProductChain::exchange
  for (const auto& [name, size] : {std::pair("hidden", shape.hidden),
                                   {"q_heads * head_dim", shape.attention},
                                   {"intermediate", shape.intermediate},
                                   {"rows of q, k and v", shape.qkv_rows}})
    if (size <= 0 || size % 64 != 0)
      return std::string(name) + " must be a multiple of 64, got " + std::to_string(size);
  const ChainKernel kernel = kernel_of(bits);
  const int blocks = multiprocessors();
  if (blocks > kMostBlocks) return "the GPU has more than " + std::to_string(kMostBlocks) + " multiprocessors";
  const int most_hidden = kMostOwnRows / kernel.unit * kernel.unit * blocks;
  if (shape.hidden > most_hidden)
    return "hidden must be at most " + std::to_string(most_hidden) + ", got " + std::to_string(shape.hidden);
  const int stages = stages_of(kernel, shape);
  if (stages < kLeastStages) return "the longest vector leaves no room in shared memory for weights";
  const int bytes = kernel.bytes(shape, stages);
  INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel.kernel),
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)));
  int resident = 0;
  INFEROMETER_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel.kernel, kernel.threads,
                                                                       static_cast<std::size_t>(bytes)));
  if (resident < 1 || device_attribute(cudaDevAttrCooperativeLaunch) == 0)
    return "the GPU has no room for all blocks at once";
  return std::nullopt;
}

ProductChain::ProductChain(const ChainShape& shape, std::int64_t bits, std::int64_t layers, float eps, Stream stream,
                           Allocator& allocator)
    : shape_(shape), bits_(bits), layers_(layers), eps_(eps) {
  if (const auto sentence = chain_unsupported(shape, bits, layers))
    throw std::runtime_error("product chain: " + *sentence);
  const ChainKernel kernel = kernel_of(bits);
  require_sm90_code(reinterpret_cast<const void*>(kernel.kernel), "the chain of products");
  stages_ = stages_of(kernel, shape);
  exchange_bytes_ = static_cast<std::size_t>(ChainExchange::bytes(shape, multiprocessors()));
  for (std::shared_ptr<void>& exchange : exchanges_) {
    exchange = allocator.allocate(exchange_bytes_, "workspace");
    INFEROMETER_CUDA_CHECK(cudaMemsetAsync(exchange.get(), 0xff, exchange_bytes_, stream));
  }
}

void ProductChain::reset(Stream stream) const noexcept {
  for (const std::shared_ptr<void>& exchange : exchanges_)
    INFEROMETER_CUDA_REPORT(cudaMemsetAsync(exchange.get(), 0xff, exchange_bytes_, stream));
}

// Neighbours have different ones, the last layer and the first one too.
ChainExchange ProductChain::exchange(std::int64_t layer) const {
  const std::int64_t number = layer == layers_ - 1 ? 2 : layer % 2;
  return {static_cast<std::uint8_t*>(exchanges_[number].get())};
}

// Cooperative: refused where not all blocks can be resident at once, and begun when they can.
void ProductChain::run(std::int64_t layer, const ChainLayer& weights, const ChainVectors& vectors,
                       Stream stream) const {
  const ChainKernel kernel = kernel_of(bits_);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(multiprocessors()));
  config.blockDim = dim3(static_cast<unsigned>(kernel.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(kernel.bytes(shape_, stages_));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel.kernel,
                                            ChainArgs{.shape = shape_,
                                                      .layer = weights,
                                                      .eps = eps_,
                                                      .stages = stages_,
                                                      .attention = vectors.attention,
                                                      .h = vectors.h,
                                                      .qkv = vectors.qkv,
                                                      .inverse = vectors.inverse,
                                                      .exchange = exchange(layer),
                                                      .used = exchange((layer + layers_ - 1) % layers_)}));
}

}  // namespace inferometer::decoder
