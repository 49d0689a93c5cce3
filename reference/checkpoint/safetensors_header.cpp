#include "reference/checkpoint/safetensors_header.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "harness/operator/nearest_word.hpp"
#include "reference/checkpoint/header_parser.hpp"

namespace inferometer {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data are little endian, and are read in place");

std::uint64_t header_length(std::span<const std::byte> file, const std::string& path) {
  const auto fail = [&](CheckpointFault fault, const std::string& sentence) {
    throw CheckpointError(fault, path, "", 0, sentence);
  };
  if (file.size() < kHeaderLengthBytes)
    fail(CheckpointFault::too_short,
         "the file has " + std::to_string(file.size()) + " bytes; a header takes 8 or more");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kHeaderLengthBytes);
  if (length == 0) fail(CheckpointFault::header_length, "the header has no bytes; the least is {}");
  if (length > kMaxHeaderBytes)
    fail(CheckpointFault::header_length, "the header claims " + std::to_string(length) + " bytes; at most " +
                                             std::to_string(kMaxHeaderBytes) + " are allowed");
  if (length > file.size() - kHeaderLengthBytes)
    fail(CheckpointFault::header_length, "the header claims " + std::to_string(length) + " bytes; the file has " +
                                             std::to_string(file.size() - kHeaderLengthBytes) + " after its length");
  return length;
}

// Type and shape against the bytes between the offsets.
void check_size(const TensorEntry& tensor, const std::string& path, std::uint64_t data_start) {
  const auto fail = [&](CheckpointFault fault, const std::string& sentence) {
    throw CheckpointError(fault, path, tensor.name, data_start + tensor.begin, sentence);
  };
  if (tensor.begin > tensor.end)
    fail(CheckpointFault::offsets,
         "data_offsets begin at " + std::to_string(tensor.begin) + " and end at " + std::to_string(tensor.end));
  const std::optional<std::uint64_t> bits = tensor_bits(tensor.type, tensor.shape);
  if (!bits) fail(CheckpointFault::shape_overflow, "the product of its shape passes 64 bits");
  if (*bits % 8 != 0)
    fail(CheckpointFault::offsets,
         std::to_string(*bits) + " bits of " + std::string(type_name(tensor.type)) + " are no whole number of bytes");
  if (*bits / 8 != tensor.end - tensor.begin)
    fail(CheckpointFault::offsets, "type and shape need " + std::to_string(*bits / 8) + " bytes, data_offsets hold " +
                                       std::to_string(tensor.end - tensor.begin));
}

// `tensors` by their places.
void check_cover(const std::vector<TensorEntry>& tensors, const std::string& path, std::uint64_t data_start,
                 std::uint64_t data_bytes) {
  std::uint64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    const auto fail = [&](CheckpointFault fault, std::uint64_t at, const std::string& sentence) {
      throw CheckpointError(fault, path, tensor.name, data_start + at, sentence);
    };
    if (tensor.begin < covered)
      fail(CheckpointFault::overlap, tensor.begin,
           "begins inside another tensor, which ends at offset " + std::to_string(covered));
    if (tensor.begin > covered)
      fail(CheckpointFault::hole, covered,
           std::to_string(tensor.begin - covered) + " bytes before it belong to no tensor");
    if (tensor.end > data_bytes)
      fail(CheckpointFault::truncated, data_bytes,
           "the file lacks " + std::to_string(tensor.end - data_bytes) + " of its bytes");
    covered = tensor.end;
  }
  if (covered != data_bytes)
    throw CheckpointError(CheckpointFault::trailing_bytes, path, "", data_start + covered,
                          std::to_string(data_bytes - covered) + " bytes after the last tensor");
}

}  // namespace

SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& path) {
  const std::uint64_t length = header_length(file, path);
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + kHeaderLengthBytes, length);
  SafetensorsHeader header;
  header.data_start = kHeaderLengthBytes + length;
  parse_header_json(json, path, kHeaderLengthBytes, header.tensors, header.metadata);
  for (const TensorEntry& tensor : header.tensors) check_size(tensor, path, header.data_start);
  // Empty tensors first: one that begins where another does is before it.
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_cover(header.tensors, path, header.data_start, file.size() - header.data_start);
  return header;
}

std::string safetensors_header_bytes(const std::vector<TensorEntry>& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  // Not through operator[], which looks through all members each time.
  auto& members = json.get_ref<nlohmann::ordered_json::object_t&>();
  if (!metadata.empty()) members.emplace_back("__metadata__", metadata);
  for (const TensorEntry& tensor : tensors)
    members.emplace_back(tensor.name, nlohmann::ordered_json{{"dtype", type_name(tensor.type)},
                                                             {"shape", tensor.shape},
                                                             {"data_offsets", {tensor.begin, tensor.end}}});
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(kHeaderLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kHeaderLengthBytes);
  return bytes + text;
}

}  // namespace inferometer
