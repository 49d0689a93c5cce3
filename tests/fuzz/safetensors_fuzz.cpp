// Whatever bytes a file holds: its header is either refused with a CheckpointError, or describes tensors that lie
// inside the file, and comes back the same when written anew. libFuzzer (llvm.org/docs/LibFuzzer.html) looks for bytes
// for which that fails, or that make the reader crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "reference/checkpoint/safetensors_header.hpp"

namespace {

using inferometer::SafetensorsHeader;
using inferometer::TensorEntry;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_places(const SafetensorsHeader& header, std::size_t file_bytes) {
  std::uint64_t end = 0;
  for (const TensorEntry& tensor : header.tensors) {
    require(tensor.begin == end && tensor.begin <= tensor.end);
    end = tensor.end;
  }
  require(header.data_start + end == file_bytes);
}

void check_written_anew(const SafetensorsHeader& header, std::span<const std::byte> data) {
  std::string file = inferometer::safetensors_header_bytes(header.tensors, header.metadata);
  file.append(reinterpret_cast<const char*>(data.data()), data.size());
  const SafetensorsHeader again = inferometer::read_safetensors_header(std::as_bytes(std::span(file)), "again");
  require(again.metadata == header.metadata && again.tensors.size() == header.tensors.size());
  for (std::size_t i = 0; i < again.tensors.size(); ++i) {
    const TensorEntry& a = again.tensors[i];
    const TensorEntry& b = header.tensors[i];
    require(a.name == b.name && a.type == b.type && a.shape == b.shape && a.begin == b.begin && a.end == b.end);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(bytes, size));
  try {
    const SafetensorsHeader header = inferometer::read_safetensors_header(file, "fuzz");
    check_places(header, size);
    check_written_anew(header, file.subspan(header.data_start));
  } catch (const inferometer::CheckpointError& error) {
    require(error.what()[0] != '\0' && error.file() == "fuzz");
  }
  return 0;
}
