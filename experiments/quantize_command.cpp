// inferometer quantize: a model's weights through a quantiser, into files that other programs load (docs/quantize.md).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "experiments/command.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/results/terminal.hpp"
#include "harness/run/exit_code.hpp"
#include "harness/run/interrupt.hpp"
#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/quantize_model.hpp"

namespace inferometer {
namespace {

struct Typed {
  QuantizeRequest request;
  std::string method = "rtn";
  std::string format = "compressed-tensors";
  std::int64_t group_size = 128;
  bool asymmetric = false;
  bool quiet = false;
};

QuantizeRequest request_of(const Typed& typed) {
  QuantizeRequest request = typed.request;
  if (request.input.empty()) throw ConfigError("quantize: a model is missing: IN.safetensors or a model's folder");
  if (request.output.empty()) throw ConfigError("quantize: -o DIR is missing, the folder for the quantised model");
  const std::optional<QuantizationMethod> method = parse_method(typed.method);
  if (!method) throw ConfigError("quantize: --method: " + unknown_word("method", typed.method, {"rtn", "gptq", "awq"}));
  request.method = *method;
  request.format = find_weight_format(typed.format);
  if (request.format == nullptr) {
    std::vector<std::string> names;
    for (const WeightFormat* format : weight_formats()) names.emplace_back(format->name);
    throw ConfigError("quantize: --format: " + unknown_word("format", typed.format, names));
  }
  if (typed.group_size < -1)
    throw ConfigError("quantize: --group-size must be at least 1, or 0 or -1 for whole rows, got " +
                      std::to_string(typed.group_size));
  request.settings.group_size = std::max<std::int64_t>(typed.group_size, 0);
  request.settings.symmetric = !typed.asymmetric;
  return request;
}

// Layer by layer on standard error: a line that is overwritten on a terminal, one line each elsewhere.
class LayerProgress {
 public:
  LayerProgress(std::size_t layers, bool quiet) : layers_(layers), quiet_(quiet), bar_(!quiet && is_terminal(stderr)) {}
  ~LayerProgress() { wipe(); }
  LayerProgress(const LayerProgress&) = delete;
  LayerProgress& operator=(const LayerProgress&) = delete;

  void finished(const Json& layer) {
    ++finished_;
    for (const Json& warning : layer.at("warnings")) {
      wipe();
      const std::string line = layer.at("layer").get<std::string>() + ": " + warning.get<std::string>();
      std::fprintf(stderr, "inferometer: warning: %s\n", line.c_str());
    }
    if (quiet_) return;
    std::string line = "[" + std::to_string(finished_) + "/" + std::to_string(layers_) + "] " +
                       layer.at("layer").get<std::string>() + "  error " +
                       formatted("%.2e", real_from(layer.at("weight_rel_error")));
    if (!layer.at("output_rel_error").is_null())
      line += ", of outputs " + formatted("%.2e", real_from(layer.at("output_rel_error")));
    if (!bar_) {
      std::fprintf(stderr, "%s\n", line.c_str());
      return;
    }
    const auto columns = static_cast<std::size_t>(std::max(terminal_columns(stderr) - 1, 1));  // the last would wrap
    std::fprintf(stderr, "\r%s\x1b[K", shortened(line, columns).c_str());
    std::fflush(stderr);
  }

 private:
  void wipe() const {
    if (bar_) std::fputs("\r\x1b[K", stderr);
  }

  std::size_t layers_;
  bool quiet_;
  bool bar_;
  std::size_t finished_ = 0;
};

// The root of the mean square over layers: one figure for all, as each is relative to its own size.
double mean_error(const Json& layers, const char* name) {
  double sum = 0;
  for (const Json& layer : layers) sum += std::pow(real_from(layer.at(name)), 2);
  return std::sqrt(sum / static_cast<double>(layers.size()));
}

void print_summary(const Json& report, const std::string& folder) {
  const Json& layers = report.at("layers");
  const Json& first_output_error = layers.front().at("output_rel_error");
  std::cout << layers.size() << (layers.size() == 1 ? " layer, " : " layers, ")
            << shown_bytes(report.at("bytes_before").get<double>()) << " -> "
            << shown_bytes(report.at("bytes_after").get<double>()) << " in "
            << shown_time(report.at("seconds").get<double>() * 1e9) << "; relative error of weights "
            << formatted("%.2e", mean_error(layers, "weight_rel_error"));
  if (!first_output_error.is_null())
    std::cout << ", of outputs " << formatted("%.2e", mean_error(layers, "output_rel_error"));
  std::cout << "\n" << folder << ": model.safetensors, config.json, quantization_report.json\n";
}

int quantize(const Typed& typed) {
  const InterruptGuard interrupt;
  std::unique_ptr<ModelQuantization> quantization;
  try {
    quantization = std::make_unique<ModelQuantization>(request_of(typed));
  } catch (const CheckpointError& error) {
    throw ConfigError("quantize: " + std::string(error.what()));
  } catch (const QuantizationError& error) {
    throw ConfigError("quantize: " + std::string(error.what()));
  }
  Json report;
  {
    LayerProgress progress(quantization->layers(), typed.quiet);
    report = quantization->run([&](const std::vector<Json>& layers) {
      for (const Json& layer : layers) progress.finished(layer);
      return !interrupt.requested();
    });
  }
  if (report.is_null()) {
    std::cerr << "inferometer: interrupted; the same command with --resume goes on\n";
    return kInterrupted;
  }
  print_summary(report, typed.request.output);
  return 0;
}

}  // namespace

Command add_quantize_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  QuantizeRequest& request = typed->request;
  request.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  CLI::App* app = program.add_subcommand("quantize", "Quantise a model's weights into files that other programs load");
  app->add_option("IN", request.input, "A safetensors file, or a folder with model.safetensors or its index")
      ->check(not_empty());
  app->add_option("-o,--output", request.output, "Folder for the quantised model")->check(not_empty());
  app->add_option("--method", typed->method, "rtn (rounding to nearest), gptq or awq (default: rtn)");
  app->add_option("--bits", request.settings.bits, "4 or 8 (default: 4)")->check(CLI::IsMember({4, 8}));
  app->add_option("--group-size", typed->group_size,
                  "Neighbouring inputs that share a scale, 0 or -1: all of a row (default: 128)");
  app->add_option("--format", typed->format, "gptq, gptq_v2, awq or compressed-tensors (default: compressed-tensors)");
  app->add_flag("--asymmetric", typed->asymmetric, "Grids with a zero point of their own, instead of symmetric ones");
  app->add_option("--calibration", request.calibration,
                  "Activations for gptq and awq: a safetensors file with a tensor\n[tokens, in_features] under each "
                  "layer's name; an eighth of the tokens measures the error of outputs")
      ->check(not_empty());
  app->add_option("--layers", request.layers, "Only layers whose names match one of these globs, with commas between")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_flag("--resume", request.resume, "Go on with a quantisation into the same folder that was interrupted");
  app->add_option("--threads", request.threads, "Processors to use (default: all)")->check(CLI::Range(1, 1024));
  app->add_flag("--quiet", typed->quiet, "No progress on standard error");
  return {app, [typed](const Arguments&) { return quantize(*typed); }};
}

}  // namespace inferometer
