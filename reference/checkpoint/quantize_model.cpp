#include "reference/checkpoint/quantize_model.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "harness/results/file_write.hpp"
#include "harness/results/sha256.hpp"
#include "harness/sweep/json_reader.hpp"
#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/quantization_report.hpp"
#include "reference/weight_quantization/quantizer.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

std::string config_text(const std::string& folder) {
  const std::string path = (fs::path(folder) / "config.json").string();
  std::error_code absent;  // reading says what is wrong with one that is there
  return fs::exists(path, absent) ? read_text_file(path, kMaxConfigBytes, "config") : "";
}

// Models whose norms multiply by their weight and nothing else: (1 + weight), as Gemma has it, cannot take 1 / s by a
// division.
bool has_plain_norms(const std::string& config, const std::string& path) {
  if (config.empty()) return true;
  const Json json = read_json(config, path);
  const std::string type = json.is_object() ? text_from(json.value("model_type", Json(nullptr))) : "";
  constexpr std::array<const char*, 6> kPlain{"", "llama", "mistral", "qwen2", "qwen3", "mixtral"};
  return std::find(kPlain.begin(), kPlain.end(), type) != kPlain.end();
}

std::uint64_t bytes_of(const std::vector<TensorPlan>& tensors) {
  std::uint64_t bytes = 0;
  for (const TensorPlan& tensor : tensors) bytes += tensor_bits(tensor.type, tensor.shape).value_or(0) / 8;
  return bytes;
}

}  // namespace

ModelQuantization::ModelQuantization(QuantizeRequest request)
    : request_(std::move(request)), folder_(request_.output), model_(request_.input) {
  check_request();
  folder_.check(model_.folder(), request_.resume);
  if (!request_.calibration.empty()) calibration_.emplace(request_.calibration);
  layers_ = choose_layers(model_, request_.layers);
  groups_ = group_layers(model_, layers_.chosen);
  const std::string config = config_text(model_.folder());
  const std::string config_path = (fs::path(model_.folder()) / "config.json").string();
  configs_ = quantization_config_files({.format = request_.format, .settings = request_.settings, .kept = layers_.kept},
                                       config, config_path);
  if (!has_plain_norms(config, config_path))
    for (LayerGroup& group : groups_) group.norm.clear();

  quantizer_ = std::make_unique<LayerQuantizer>(model_, calibration_ ? &*calibration_ : nullptr, request_.method,
                                                request_.settings, *request_.format, request_.threads);
  std::set<std::string> replaced;
  for (const LayerGroup& group : groups_) {
    quantizer_->check(group);
    for (const std::string& layer : group.layers) replaced.insert(layer + ".weight");
    if (quantizer_->scales_norm(group)) replaced.insert(group.norm);
  }
  for (const std::string& name : model_.names())
    if (!replaced.contains(name)) copied_.push_back(name);
}

void ModelQuantization::check_request() const {
  if (request_.calibration.empty() && request_.method != QuantizationMethod::rtn)
    throw ConfigError("quantize: --method " + std::string(method_name(request_.method)) +
                      " needs --calibration FILE, the activations that layers see: a safetensors file with a tensor "
                      "[tokens, in_features] under each layer's name; --method rtn needs none");
}

std::vector<TensorPlan> ModelQuantization::plan() const {
  std::vector<TensorPlan> tensors;
  const auto add_as_it_is = [&](const std::string& name) {
    const TensorView tensor = model_.tensor(name);
    tensors.push_back({name, tensor.type, {tensor.shape.begin(), tensor.shape.end()}});
  };
  for (const std::string& name : copied_) add_as_it_is(name);
  for (const LayerGroup& group : groups_) {
    for (const std::string& layer : group.layers) {
      const auto planned = request_.format->plan(layer, quantizer_->shape(layer));
      tensors.insert(tensors.end(), planned.begin(), planned.end());
    }
    if (quantizer_->scales_norm(group)) add_as_it_is(group.norm);
  }
  return tensors;
}

// Of everything that decides about a byte of the result. Files are known by place, size and time: reading a model only
// to compare it would take as long as quantising it.
std::string ModelQuantization::fingerprint() const {
  std::string text = std::string(method_name(request_.method)) + " " + std::string(request_.format->name) + " " +
                     std::to_string(request_.settings.bits) + " " + std::to_string(request_.settings.group_size) + " " +
                     (request_.settings.symmetric ? "symmetric" : "asymmetric") + "\n";
  const auto add_file = [&](const std::string& file) {
    text += fs::absolute(file).string() + " " + std::to_string(fs::file_size(file)) + " " +
            std::to_string(fs::last_write_time(file).time_since_epoch().count()) + "\n";
  };
  std::set<std::string> files;
  for (const std::string& name : model_.names()) files.insert(model_.file_of(name).path());
  for (const std::string& file : files) add_file(file);
  if (calibration_) add_file(calibration_->path());
  for (const LayerGroup& group : groups_) {
    for (const std::string& layer : group.layers) text += layer + " ";
    text += group.norm + "\n";
  }
  return sha256_hex(text);
}

Json ModelQuantization::run(const Progress& progress) {
  const QuantizerClock clock;
  const bool made_folder = folder_.make();
  QuantizeJournal journal(folder_.journal_path());
  LeftBehind left(made_folder ? request_.output : "");
  SafetensorsWriter writer(folder_.weights_path(), plan(), {{"format", "pt"}},
                           request_.resume ? SafetensorsWriter::Start::resume : SafetensorsWriter::Start::fresh);
  std::map<std::size_t, Json> done;
  if (request_.resume) {
    writer.keep();  // what an earlier run did stays, whatever happens to this one
    done = journal.go_on(fingerprint());
  } else {
    left.owns(journal);  // not before: until the writer holds its lock, it may be another run's
    journal.begin(fingerprint());
  }
  for (const std::string& name : copied_) {
    const TensorView tensor = model_.tensor(name);
    writer.write(name, tensor.data);
    model_.release(tensor);
  }
  std::vector<Json> reports;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto earlier = done.find(i);
    const std::vector<Json> made =
        earlier == done.end() ? quantize(i, writer, journal) : take(i, earlier->second, writer);
    reports.insert(reports.end(), made.begin(), made.end());
    if (!progress(made) && i + 1 < groups_.size()) {
      writer.keep();
      left.keep();
      return nullptr;
    }
  }
  Json json = report(reports, clock.seconds());
  folder_.write_files(configs_, request_.input);
  write_file_atomically(folder_.report_path(), json.dump(2) + "\n");
  writer.finish();
  journal.remove();
  left.keep();
  return json;
}

std::vector<Json> ModelQuantization::quantize(std::size_t group, SafetensorsWriter& writer,
                                              QuantizeJournal& journal) const {
  const GroupResult result = quantizer_->quantize(groups_[group]);
  for (const StoredTensor& tensor : result.tensors) writer.write(tensor.plan.name, tensor.data);
  writer.flush();  // before the journal says so
  std::vector<Json> reports;
  for (const LayerReport& layer : result.layers) reports.push_back(to_json(layer));
  journal.append(group, reports);
  return reports;
}

std::vector<Json> ModelQuantization::take(std::size_t group, const Json& reports, SafetensorsWriter& writer) const {
  for (const std::string& layer : groups_[group].layers)
    for (const TensorPlan& tensor : request_.format->plan(layer, quantizer_->shape(layer)))
      writer.assume_written(tensor.name);
  if (quantizer_->scales_norm(groups_[group])) writer.assume_written(groups_[group].norm);
  return reports.get<std::vector<Json>>();
}

Json ModelQuantization::report(const std::vector<Json>& layer_reports, double seconds) const {
  ModelFigures figures{.method = request_.method,
                       .format = std::string(request_.format->name),
                       .settings = request_.settings,
                       .bytes_after = bytes_of(plan()),
                       .seconds = seconds,
                       .threads = request_.threads,
                       .kept_layers = layers_.kept};
  for (const std::string& name : model_.names()) figures.bytes_before += model_.tensor(name).data.size();
  return quantization_report(figures, layer_reports);
}

}  // namespace inferometer
