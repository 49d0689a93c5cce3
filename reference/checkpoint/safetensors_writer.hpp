// A safetensors file written tensor by tensor: the header first, then each tensor at its place, in any order. The file
// appears under its name when it is whole, by a rename; until then it is PATH.partial.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reference/checkpoint/safetensors_header.hpp"

namespace inferometer {

struct TensorPlan {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::uint64_t> shape;
};

class SafetensorsWriter {
 public:
  enum class Start : std::uint8_t {
    fresh,   // an earlier PATH.partial is overwritten
    resume,  // goes on in PATH.partial, whose header must be the same
  };

  // Takes the space on the disk at once, and PATH.partial for itself: a second writer of the same path is refused.
  // Throws CheckpointError: names given twice, shapes that overflow, what the system refused, another header (resume).
  SafetensorsWriter(const std::string& path, const std::vector<TensorPlan>& tensors,
                    const std::map<std::string, std::string>& metadata, Start start = Start::fresh);
  ~SafetensorsWriter();  // unless finished or kept, removes PATH.partial
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // All bytes of a tensor; again for the same name overwrites them.
  void write(std::string_view name, std::span<const std::byte> data);
  // A tensor that an earlier writer has written to the file that this one goes on with.
  void assume_written(std::string_view name);
  void flush();  // to the disk

  void keep() { kept_ = true; }  // PATH.partial stays, for Start::resume
  void finish();                 // every tensor has been written; flushes and renames

 private:
  const TensorEntry& entry(std::string_view name) const;
  [[noreturn]] void fail(const std::string& what_failed) const;
  void put(std::span<const std::byte> bytes, std::uint64_t at) const;
  void lock() const;
  void begin(const std::string& header);
  void go_on(const std::string& header) const;

  std::string path_;
  std::string partial_;
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::unordered_set<std::string_view> written_;
  std::uint64_t data_start_ = 0;
  int fd_ = -1;
  bool kept_ = false;
  bool finished_ = false;
};

}  // namespace inferometer
