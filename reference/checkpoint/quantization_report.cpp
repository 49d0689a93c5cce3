#include "reference/checkpoint/quantization_report.hpp"

namespace inferometer {

Json to_json(const LayerReport& layer) {
  Json json{{"layer", layer.layer},
            {"out_features", layer.n},
            {"in_features", layer.k},
            {"weight_rel_error", layer.weight_rel_error},
            {"output_rel_error", or_null(layer.output_rel_error)},
            {"objective", or_null(layer.objective)},
            {"damping", or_null(layer.damping)},
            {"bits_effective", layer.bits_effective},
            {"seconds", layer.seconds},
            {"warnings", layer.warnings}};
  null_non_finite(json);
  return json;
}

Json quantization_report(const ModelFigures& figures, const std::vector<Json>& layer_reports) {
  Json json{{"schema", "inferometer.quantization/1"},
            {"method", method_name(figures.method)},
            {"format", figures.format},
            {"bits", figures.settings.bits},
            {"group_size", figures.settings.group_size},
            {"symmetric", figures.settings.symmetric},
            {"bytes_before", figures.bytes_before},
            {"bytes_after", figures.bytes_after},
            {"seconds", figures.seconds},
            {"threads", figures.threads}};
  json["layers"] = layer_reports;
  json["kept_layers"] = figures.kept_layers;
  return json;
}

}  // namespace inferometer
