#include "reference/checkpoint/header_parser.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "harness/operator/nearest_word.hpp"

namespace inferometer {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

class HeaderEvents final : public nlohmann::json_sax<Json> {
 public:
  HeaderEvents(const std::string& path, std::uint64_t json_start, std::vector<TensorEntry>& tensors,
               std::map<std::string, std::string>& metadata)
      : path_(path), json_start_(json_start), tensors_(tensors), metadata_(metadata) {}

  bool start_object(std::size_t /*elements*/) override {
    if (place_ == Place::outside) {
      place_ = Place::names;
    } else if (place_ == Place::name_value && name_ == kMetadata) {
      place_ = Place::metadata;
    } else if (place_ == Place::name_value) {
      place_ = Place::entry;
      has_type_ = has_shape_ = has_offsets_ = false;
      tensors_.push_back({.name = name_, .type = {}, .shape = {}});
      offsets_.clear();
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& text) override {
    if (place_ == Place::names) {
      if (!names_.insert(text).second) fail(CheckpointFault::duplicate, text, "the name is given twice");
      name_ = std::move(text);
      place_ = Place::name_value;
    } else if (place_ == Place::metadata) {
      if (!metadata_.try_emplace(text).second)
        fail(CheckpointFault::duplicate, kMetadata, "the key " + in_quotes(text) + " is given twice");
      key_ = std::move(text);
      place_ = Place::metadata_value;
    } else {
      entry_key(text);
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      if (!has_type_ || !has_shape_ || !has_offsets_)
        fail(CheckpointFault::header_form, name_,
             std::string("lacks ") + (!has_type_    ? "dtype"
                                      : !has_shape_ ? "shape"
                                                    : "data_offsets"));
      tensors_.back().begin = offsets_[0];
      tensors_.back().end = offsets_[1];
    }
    place_ = place_ == Place::names ? Place::outside : Place::names;
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    if (place_ == Place::shape_value) {
      place_ = Place::shape;
    } else if (place_ == Place::offsets_value) {
      place_ = Place::offsets;
    } else {
      refuse("a list");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_.size() != 2)
      fail(CheckpointFault::header_form, name_,
           "data_offsets must be two numbers, got " + std::to_string(offsets_.size()));
    place_ = Place::entry;
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata_value) {
      metadata_[key_] = std::move(text);
      place_ = Place::metadata;
    } else if (place_ == Place::type_value) {
      const std::optional<TensorType> type = parse_type(text);
      if (!type) fail(CheckpointFault::unknown_type, name_, "the dtype " + in_quotes(text) + " is unknown");
      tensors_.back().type = *type;
      place_ = Place::entry;
    } else {
      refuse("text");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::shape) {
      std::vector<std::uint64_t>& shape = tensors_.back().shape;
      if (shape.size() == kMaxRank)
        fail(CheckpointFault::header_form, name_, "has more than " + std::to_string(kMaxRank) + " dimensions");
      shape.push_back(value);
    } else if (place_ == Place::offsets) {
      if (offsets_.size() == 2) fail(CheckpointFault::header_form, name_, "data_offsets must be two numbers, got more");
      offsets_.push_back(value);
    } else {
      refuse("a number");
    }
    return true;
  }

  bool null() override {
    if (place_ != Place::name_value || name_ != kMetadata) refuse("null");
    place_ = Place::names;
    return true;
  }

  bool number_integer(std::int64_t /*value*/) override { return refuse("a negative number"); }
  bool number_float(double /*value*/, const std::string& /*digits*/) override {
    return refuse("a number that no 64-bit integer is");
  }
  bool boolean(bool /*value*/) override { return refuse("true or false"); }
  bool binary(Json::binary_t& /*value*/) override { return refuse("binary data"); }

  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& error) override {
    throw CheckpointError(CheckpointFault::header_text, path_, "", json_start_ + (position == 0 ? 0 : position - 1),
                          printable(error.what()));
  }

 private:
  // Where in the header the next event happens.
  enum class Place : std::uint8_t {
    outside,
    names,
    name_value,
    metadata,
    metadata_value,
    entry,
    type_value,
    shape_value,
    shape,
    offsets_value,
    offsets,
  };

  void entry_key(const std::string& text) {
    const auto enter = [&](bool& seen, Place value) {
      if (std::exchange(seen, true))
        fail(CheckpointFault::duplicate, name_, "the key " + in_quotes(text) + " is given twice");
      place_ = value;
    };
    if (text == "dtype") {
      enter(has_type_, Place::type_value);
    } else if (text == "shape") {
      enter(has_shape_, Place::shape_value);
    } else if (text == "data_offsets") {
      enter(has_offsets_, Place::offsets_value);
    } else {
      fail(CheckpointFault::header_form, name_,
           "the key " + in_quotes(text) + " is none of dtype, shape, data_offsets");
    }
  }

  const char* wanted() const {
    switch (place_) {
      case Place::outside:
      case Place::names: return "the header must be one object";
      case Place::name_value:
        return name_ == kMetadata ? "the metadata must be an object of texts, or null" : "must be an object";
      case Place::metadata:
      case Place::metadata_value: return "metadata must be texts";
      case Place::entry:
      case Place::type_value: return "dtype must be text";
      case Place::shape_value:
      case Place::shape: return "shape must be a list of integers that are not negative";
      case Place::offsets_value:
      case Place::offsets: return "data_offsets must be a list of two integers that are not negative";
    }
    return "";
  }

  bool refuse(const char* came) {
    fail(CheckpointFault::header_form, name_, std::string(wanted()) + ", got " + came);
    return false;
  }

  [[noreturn]] void fail(CheckpointFault fault, const std::string& tensor, const std::string& sentence) const {
    throw CheckpointError(fault, path_, tensor, std::nullopt, sentence);
  }

  const std::string& path_;
  std::uint64_t json_start_;
  std::vector<TensorEntry>& tensors_;
  std::map<std::string, std::string>& metadata_;
  Place place_ = Place::outside;
  std::unordered_set<std::string> names_;
  std::string name_;  // of the tensor whose value is being read
  std::string key_;   // the same for metadata
  bool has_type_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace

void parse_header_json(std::string_view json, const std::string& path, std::uint64_t json_start,
                       std::vector<TensorEntry>& tensors, std::map<std::string, std::string>& metadata) {
  // The library takes a zero byte for the end of the text, and skips a byte order mark; JSON allows neither.
  if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos)
    throw CheckpointError(CheckpointFault::header_text, path, "", json_start + zero, "a zero byte in the header");
  if (json.starts_with("\xef\xbb\xbf"))
    throw CheckpointError(CheckpointFault::header_text, path, "", json_start, "a byte order mark before the header");
  HeaderEvents events(path, json_start, tensors, metadata);
  Json::sax_parse(json.begin(), json.end(), &events);
}

}  // namespace inferometer
