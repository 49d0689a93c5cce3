#include "reference/checkpoint/checkpoint_error.hpp"

#include <system_error>
#include <utility>

#include "harness/operator/nearest_word.hpp"

namespace inferometer {
namespace {

std::string sentence_of(const std::string& file, const std::string& tensor, std::optional<std::uint64_t> offset,
                        const std::string& sentence) {
  std::string text = printable(file) + ": ";
  if (!tensor.empty()) text += "tensor " + in_quotes(tensor) + ": ";
  if (offset) text += "at byte " + std::to_string(*offset) + ": ";
  return text + sentence;
}

}  // namespace

std::string_view fault_name(CheckpointFault fault) {
  switch (fault) {
    case CheckpointFault::io: return "io";
    case CheckpointFault::too_short: return "too_short";
    case CheckpointFault::header_length: return "header_length";
    case CheckpointFault::header_text: return "header_text";
    case CheckpointFault::header_form: return "header_form";
    case CheckpointFault::duplicate: return "duplicate";
    case CheckpointFault::unknown_type: return "unknown_type";
    case CheckpointFault::shape_overflow: return "shape_overflow";
    case CheckpointFault::offsets: return "offsets";
    case CheckpointFault::overlap: return "overlap";
    case CheckpointFault::hole: return "hole";
    case CheckpointFault::trailing_bytes: return "trailing_bytes";
    case CheckpointFault::truncated: return "truncated";
    case CheckpointFault::missing: return "missing";
    case CheckpointFault::content: return "content";
  }
  return "?";
}

CheckpointError::CheckpointError(CheckpointFault fault, std::string file, std::string tensor,
                                 std::optional<std::uint64_t> offset, const std::string& sentence)
    : std::runtime_error(sentence_of(file, tensor, offset, sentence)),
      fault_(fault),
      file_(std::move(file)),
      tensor_(std::move(tensor)),
      offset_(offset) {}

void throw_io_error(const std::string& file, const std::string& what_failed, int error_number) {
  throw CheckpointError(CheckpointFault::io, file, "", std::nullopt,
                        what_failed + ": " + std::generic_category().message(error_number));
}

}  // namespace inferometer
