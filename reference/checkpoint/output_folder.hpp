// The folder that a quantised model goes into: what may be in it before, what is in it afterwards, and what a run that
// fails takes back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reference/checkpoint/quantization_config.hpp"
#include "reference/checkpoint/quantize_journal.hpp"

namespace inferometer {

class OutputFolder {
 public:
  explicit OutputFolder(std::string path) : path_(std::move(path)) {}

  std::string weights_path() const;  // model.safetensors
  std::string journal_path() const;
  std::string report_path() const;

  // Throws ConfigError: it is no folder, or holds the model itself, a finished quantisation or, unless `resume` asks to
  // go on with it, an interrupted one; with `resume`, when there is none.
  void check(const std::string& model_folder, bool resume) const;

  // Whether it was not there before. Throws CheckpointError (io).
  bool make() const;

  // The config files, and of a model's folder `input` what makes it a model beside its weights: tokenizer, templates,
  // settings for generation. Of an input that is a file alone, nothing more: what lies beside it need not be its own.
  void write_files(const std::vector<TextFile>& configs, const std::string& input) const;

 private:
  std::string in_folder(const std::string& name) const;

  std::string path_;
};

// Unless kept, removes a folder (empty: none) that a run has made, and its journal once that is the run's own. The
// writer of the weights does so for its own file.
class LeftBehind {
 public:
  explicit LeftBehind(std::string folder) : folder_(std::move(folder)) {}
  ~LeftBehind();
  LeftBehind(const LeftBehind&) = delete;
  LeftBehind& operator=(const LeftBehind&) = delete;

  void owns(QuantizeJournal& journal) { journal_ = &journal; }
  void keep() { kept_ = true; }

 private:
  QuantizeJournal* journal_ = nullptr;
  std::string folder_;
  bool kept_ = false;
};

}  // namespace inferometer
