#include "harness/sweep/json_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "harness/operator/nearest_word.hpp"
#include "harness/results/json_error_words.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kMaxDepth = 16;  // a config needs 4

// "3:14": where the byte before `position` stands. Columns count characters, not bytes.
std::string line_and_column(const std::string& text, std::size_t position) {
  const std::size_t at = std::min(text.size(), position == 0 ? 0 : position - 1);
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i < at; ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U) {  // not a UTF-8 continuation
      ++column;
    }
  }
  return std::to_string(line) + ":" + std::to_string(column);
}

// The library's sentence without what it puts in front, "parse error at line 1, column 2: ".
std::string plain_sentence(const char* what) {
  std::string sentence = without_json_tags(what);
  if (sentence.starts_with("parse error"))
    if (const std::size_t colon = sentence.find(": "); colon != std::string::npos) sentence.erase(0, colon + 2);
  return printable(sentence);
}

class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(const std::string& text, const std::string& source) : text_(text), source_(source) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string& /*digits*/) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t /*elements*/) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*elements*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    Level& level = levels_.back();
    if (!level.keys.insert(name).second)
      throw ConfigError(source_ + ": " + pointer() + ": the key " + in_quotes(name) + " is given twice");
    level.key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& error) override {
    throw ConfigError(source_ + ":" + line_and_column(text_, position) + ": " + plain_sentence(error.what()));
  }

 private:
  struct Level {
    Json* node;  // stays in place: its parent does not grow while it is open
    std::unordered_set<std::string> keys;
    std::string key;
  };

  Json* place(Json value) {
    if (levels_.empty()) return &(root_ = std::move(value));
    const Level& level = levels_.back();
    if (level.node->is_array()) return &level.node->emplace_back(std::move(value));
    // Not through operator[]: that looks through all members each time, and `keys` has done so already.
    return &level.node->get_ref<Json::object_t&>().emplace_back(level.key, std::move(value)).second;
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (levels_.size() == kMaxDepth)
      throw ConfigError(source_ + ": " + pointer() + ": nested deeper than " + std::to_string(kMaxDepth) + " levels");
    levels_.push_back({.node = place(std::move(value)), .keys = {}, .key = {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  // Of the innermost open object or array.
  std::string pointer() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
      path = json_pointer(path,
                          levels_[i].node->is_array() ? std::to_string(levels_[i].node->size() - 1) : levels_[i].key);
    }
    return path.empty() ? "/" : path;
  }

  const std::string& text_;
  const std::string& source_;
  Json root_;
  std::vector<Level> levels_;
};

}  // namespace

std::string json_pointer(const std::string& parent, const std::string& token) {
  std::string path = parent + "/";
  for (const char c : token) {
    if (c == '~') {
      path += "~0";
    } else if (c == '/') {
      path += "~1";
    } else {
      path += c;
    }
  }
  return printable(path);
}

Json read_json(const std::string& text, const std::string& source) {
  TreeBuilder builder(text, source);
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string read_text_file(const std::string& path, std::size_t max_bytes, const std::string& kind) {
  // C streams: they say why an open or a read failed, a folder and a pipe included.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) throw ConfigError(path + ": cannot be opened: " + std::strerror(errno));
  const std::string too_large = ": larger than " + std::to_string(max_bytes >> 20) + " MiB, which no " + kind + " is";
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16);
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), count);
    if (text.size() > max_bytes) throw ConfigError(path + too_large);
  }
  if (std::ferror(file.get()) != 0) throw ConfigError(path + ": cannot be read: " + std::strerror(errno));
  return text;
}

}  // namespace inferometer
