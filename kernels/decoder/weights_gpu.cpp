#include "kernels/decoder/weights_gpu.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "kernels/matmul/product_ends.hpp"

namespace inferometer::decoder {
namespace {

constexpr std::int64_t kUploadElements = std::int64_t{1} << 24;  // 32 MB of host memory at a time

class Loader {
 public:
  Loader(const DecoderWeights& from, Stream stream, Allocator& allocator)
      : from_(from), stream_(stream), allocator_(allocator) {}

  // Matrices of equal width, or vectors, one behind the other.
  std::shared_ptr<void> rows_of(std::initializer_list<DecoderWeight> tensors, std::int64_t layer) {
    std::int64_t elements = 0;
    for (const DecoderWeight tensor : tensors) elements += size_of(tensor).elements();
    auto memory = allocate(elements);
    auto* to = static_cast<std::uint16_t*>(memory.get());
    for (const DecoderWeight tensor : tensors) {
      fill({tensor, layer}, to);
      to += size_of(tensor).elements();
    }
    return memory;
  }

  Matrix matrix(std::initializer_list<DecoderWeight> tensors, std::int64_t layer, std::int64_t bits) {
    Matrix matrix{.k = size_of(*tensors.begin()).columns, .weights = rows_of(tensors, layer)};
    for (const DecoderWeight tensor : tensors) matrix.n += size_of(tensor).rows;
    return of_bits(std::move(matrix), bits);
  }

  // Two matrices of one size, kGatedRows rows of each in turns.
  Matrix gated(DecoderWeight gate, DecoderWeight up, std::int64_t layer, std::int64_t bits) {
    const WeightSize size = size_of(gate);
    if (whole_ == nullptr) whole_ = allocate(size.elements());
    const std::size_t run_bytes = static_cast<std::size_t>(kGatedRows * size.columns) * sizeof(std::uint16_t);
    Matrix matrix{.n = 2 * size.rows, .k = size.columns, .weights = allocate(2 * size.elements())};
    auto* to = static_cast<std::byte*>(matrix.weights.get());
    for (const DecoderWeight tensor : {gate, up}) {
      fill({tensor, layer}, static_cast<std::uint16_t*>(whole_.get()));
      INFEROMETER_CUDA_CHECK(cudaMemcpy2DAsync(to, 2 * run_bytes, whole_.get(), run_bytes, run_bytes,
                                               static_cast<std::size_t>(size.rows / kGatedRows),
                                               cudaMemcpyDeviceToDevice, stream_));
      to += run_bytes;
    }
    return of_bits(std::move(matrix), bits);
  }

  LayerWeights layer(std::int64_t number, std::int64_t bits) {
    LayerWeights weights;
    weights.attention_norm = rows_of({DecoderWeight::attention_norm}, number);
    weights.mlp_norm = rows_of({DecoderWeight::mlp_norm}, number);
    if (from_.shape().qkv_bias)
      weights.qkv_bias = rows_of({DecoderWeight::q_bias, DecoderWeight::k_bias, DecoderWeight::v_bias}, number);
    if (from_.shape().qk_norm) {
      weights.q_norm = rows_of({DecoderWeight::q_norm}, number);
      weights.k_norm = rows_of({DecoderWeight::k_norm}, number);
    }
    weights.qkv = matrix({DecoderWeight::q, DecoderWeight::k, DecoderWeight::v}, number, bits);
    weights.o = matrix({DecoderWeight::o}, number, bits);
    weights.gate_up = gated(DecoderWeight::gate, DecoderWeight::up, number, bits);
    weights.down = matrix({DecoderWeight::down}, number, bits);
    return weights;
  }

 private:
  std::shared_ptr<void> allocate(std::int64_t elements) {
    return allocator_.allocate(static_cast<std::size_t>(elements) * sizeof(std::uint16_t), "weights");
  }

  Matrix of_bits(Matrix matrix, std::int64_t bits) {
    matrix.bits = bits;
    if (bits != 16)
      matrix.weights = quantize_matrix(matrix.weights.get(), matrix.n, matrix.k, bits, stream_, allocator_);
    return matrix;
  }

  WeightSize size_of(DecoderWeight tensor) const { return weight_size(from_.shape(), tensor); }

  void fill(const PlacedWeight& tensor, std::uint16_t* to) {
    const WeightSize size = size_of(tensor.weight);
    if (const auto seed = from_.seed()) {
      const SeededValues values = seeded_values(from_.shape(), *seed, tensor);
      launch_fill_normal(Dtype::f16, to, size.elements(), values.key, values.scale, values.offset, stream_);
      return;
    }
    const std::int64_t step = std::max<std::int64_t>(1, kUploadElements / size.columns);
    for (std::int64_t row = 0; row < size.rows; row += step) {
      const std::int64_t rows = std::min(step, size.rows - row);
      host_.resize(static_cast<std::size_t>(rows * size.columns));
      from_.read(tensor, row, rows, host_);
      INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(to + row * size.columns, host_.data(), host_.size() * sizeof(host_[0]),
                                             cudaMemcpyHostToDevice, stream_));
      INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream_));  // `host_` is filled again
    }
  }

  const DecoderWeights& from_;
  Stream stream_;
  Allocator& allocator_;
  std::vector<std::uint16_t> host_;
  std::shared_ptr<void> whole_;  // one of two matrices on its way into their rows in turns
};

std::size_t bytes_of(const DecoderShape& shape, const GpuWeights& weights) {
  std::int64_t bytes = weights.head.bytes();
  for (const LayerWeights& layer : weights.layers)
    for (const Matrix* m : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) bytes += m->bytes();
  for (const PlacedWeight& tensor : all_weights(shape)) {
    const WeightSize size = weight_size(shape, tensor.weight);
    const bool beside_the_head = tensor.weight == DecoderWeight::embedding && !shape.tied_head;
    if (size.rows == 1 || beside_the_head) bytes += 2 * size.elements();
  }
  return static_cast<std::size_t>(bytes);
}

}  // namespace

GpuWeights load_weights(const DecoderWeights& from, std::int64_t bits, Stream stream, Allocator& allocator) {
  const DecoderShape& shape = from.shape();
  Loader loader(from, stream, allocator);
  GpuWeights weights;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) weights.layers.push_back(loader.layer(layer, bits));
  weights.embedding = loader.rows_of({DecoderWeight::embedding}, 0);
  weights.final_norm = loader.rows_of({DecoderWeight::final_norm}, 0);
  weights.head = shape.tied_head ? Matrix{.n = shape.vocabulary, .k = shape.hidden, .weights = weights.embedding}
                                 : loader.matrix({DecoderWeight::head}, 0, 16);
  weights.bytes = bytes_of(shape, weights);
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream));
  return weights;
}

}  // namespace inferometer::decoder
