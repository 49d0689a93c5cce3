#include "reference/checkpoint/output_folder.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "harness/results/file_write.hpp"
#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/checkpoint_error.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kJournal = "model.safetensors.journal";
constexpr const char* kReport = "quantization_report.json";

// Weights in other forms are left out.
constexpr std::array<const char*, 6> kCopiedEndings{".json", ".txt", ".model", ".jinja", ".tiktoken", ".py"};

bool is_copied(const fs::path& file, const std::vector<TextFile>& configs) {
  const std::string name = file.filename().string();
  const auto has_name = [&](const TextFile& config) { return config.name == name; };
  if (name.ends_with(".index.json") || name == kReport || std::any_of(configs.begin(), configs.end(), has_name))
    return false;
  return std::find(kCopiedEndings.begin(), kCopiedEndings.end(), file.extension().string()) != kCopiedEndings.end();
}

}  // namespace

std::string OutputFolder::in_folder(const std::string& name) const { return (fs::path(path_) / name).string(); }

std::string OutputFolder::weights_path() const { return in_folder(kWeights); }
std::string OutputFolder::journal_path() const { return in_folder(kJournal); }
std::string OutputFolder::report_path() const { return in_folder(kReport); }

void OutputFolder::check(const std::string& model_folder, bool resume) const {
  std::error_code absent;  // a folder that is not there yet is made later
  if (fs::exists(path_, absent) && !fs::is_directory(path_, absent))
    throw ConfigError("quantize: " + path_ + " is no folder; give another with -o");
  if (fs::equivalent(path_, model_folder, absent))
    throw ConfigError("quantize: " + path_ + " holds the model itself; give another folder with -o");
  if (fs::exists(weights_path(), absent))
    throw ConfigError("quantize: " + weights_path() + " is there already; remove it, or give another folder with -o");
  const bool begun = fs::exists(journal_path(), absent);
  if (resume && !begun)
    throw ConfigError("quantize: there is nothing to resume in " + path_ + ": " + kJournal + " is missing");
  if (!resume && begun)
    throw ConfigError("quantize: " + path_ +
                      " holds a quantisation that was interrupted; --resume goes on with it, removing " + kJournal +
                      " gives it up");
}

bool OutputFolder::make() const {
  std::error_code error;
  const bool made = fs::create_directories(path_, error);
  if (error) throw_io_error(path_, "cannot be made", error.value());
  return made;
}

void OutputFolder::write_files(const std::vector<TextFile>& configs, const std::string& input) const {
  for (const TextFile& file : configs) write_file_atomically(in_folder(file.name), file.text);
  if (!fs::is_directory(input)) return;
  for (const auto& entry : fs::directory_iterator(input))
    if (entry.is_regular_file() && is_copied(entry.path(), configs))
      fs::copy_file(entry.path(), in_folder(entry.path().filename().string()), fs::copy_options::overwrite_existing);
}

LeftBehind::~LeftBehind() {
  if (kept_) return;
  if (journal_ != nullptr) journal_->remove();
  std::error_code not_empty;  // others' files stay, and so does the folder then
  if (!folder_.empty()) fs::remove(folder_, not_empty);
}

}  // namespace inferometer
