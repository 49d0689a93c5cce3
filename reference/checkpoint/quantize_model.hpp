// A whole model through a quantiser, group of layers by group: DIR/model.safetensors, the config files that loaders
// read, the other files of the model's folder, and DIR/quantization_report.json. Until all is done there are only
// DIR/model.safetensors.partial and its journal. docs/quantize.md says what users see.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/json.hpp"
#include "reference/checkpoint/layer_quantizer.hpp"
#include "reference/checkpoint/output_folder.hpp"
#include "reference/checkpoint/quantization_config.hpp"
#include "reference/checkpoint/quantize_journal.hpp"

namespace inferometer {

struct QuantizeRequest {
  std::string input;   // a safetensors file, or a model's folder
  std::string output;  // a folder, made when it is not there
  QuantizationMethod method = QuantizationMethod::rtn;
  QuantizationSettings settings;
  const WeightFormat* format = nullptr;
  std::string calibration;          // a safetensors file; empty: none
  std::vector<std::string> layers;  // globs; empty: the usual ones
  bool resume = false;
  int threads = 1;
};

class ModelQuantization {
 public:
  // Finds everything that is wrong with the request, the model and the calibration, and writes nothing. Throws
  // ConfigError, CheckpointError or QuantizationError.
  explicit ModelQuantization(QuantizeRequest request);

  ModelQuantization(const ModelQuantization&) = delete;  // its parts refer to each other
  ModelQuantization& operator=(const ModelQuantization&) = delete;

  std::size_t layers() const { return layers_.chosen.size(); }

  // Called after each group with its layers, of a resumed run with those done before as well; false stops: what was
  // done stays for `resume`.
  using Progress = std::function<bool(const std::vector<Json>& layer_reports)>;

  // The report, which is in the folder too; null when `progress` stopped it. Throws CheckpointError or
  // QuantizationError; then the folder is as it was before.
  Json run(const Progress& progress);

 private:
  void check_request() const;
  std::vector<TensorPlan> plan() const;
  std::string fingerprint() const;
  std::vector<Json> quantize(std::size_t group, SafetensorsWriter& writer, QuantizeJournal& journal) const;
  std::vector<Json> take(std::size_t group, const Json& reports, SafetensorsWriter& writer) const;  // done earlier
  Json report(const std::vector<Json>& layer_reports, double seconds) const;

  QuantizeRequest request_;
  OutputFolder folder_;
  ModelFiles model_;
  std::optional<SafetensorsFile> calibration_;
  LinearLayers layers_;
  std::vector<LayerGroup> groups_;
  std::unique_ptr<LayerQuantizer> quantizer_;
  std::vector<std::string> copied_;  // tensors that stay as they are
  std::vector<TextFile> configs_;
};

}  // namespace inferometer
