// What is wrong with a checkpoint: which rule, in which file, about which tensor, at which byte.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace inferometer {

enum class CheckpointFault : std::uint8_t {
  io,             // the system refused: absent, no permission, disk full
  too_short,      // fewer than the 8 bytes of the header's length
  header_length,  // 0, above 100,000,000, or past the end of the file
  header_text,    // not UTF-8, not JSON
  header_form,    // JSON, but not a map of tensors
  duplicate,      // a name or key given twice
  unknown_type,
  shape_overflow,  // more bits than 64 bits count
  offsets,         // begin > end, or not as many bytes as type and shape need
  overlap,
  hole,
  trailing_bytes,
  truncated,  // a tensor ends past the end of the file
  missing,    // a tensor or file that another one names
  content,    // tensors that do not fit each other, or values that cannot be used
};

std::string_view fault_name(CheckpointFault fault);

// what(): "model.safetensors: tensor 'a.weight': at byte 4711: overlaps ...".
class CheckpointError : public std::runtime_error {
 public:
  // `tensor` empty: about the file. `offset`: from the start of the file.
  CheckpointError(CheckpointFault fault, std::string file, std::string tensor, std::optional<std::uint64_t> offset,
                  const std::string& sentence);

  CheckpointFault fault() const { return fault_; }
  const std::string& file() const { return file_; }
  const std::string& tensor() const { return tensor_; }
  std::optional<std::uint64_t> offset() const { return offset_; }

 private:
  CheckpointFault fault_;
  std::string file_;
  std::string tensor_;
  std::optional<std::uint64_t> offset_;
};

// A refusal by the system, with its reason from `error_number`.
[[noreturn]] void throw_io_error(const std::string& file, const std::string& what_failed, int error_number);

}  // namespace inferometer
