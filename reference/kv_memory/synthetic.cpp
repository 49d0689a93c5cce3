#include "reference/kv_memory/synthetic.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numbers>

#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

// Number of tokens, at least 1. Where a source gives the mean alone: geometric, the distribution with that mean that
// assumes least (greatest entropy). Where it gives two quantiles: log-normal through both.
struct LengthDistribution {
  double mean = 0;    // geometric; 0: log-normal
  double median = 0;  // log-normal
  double p90 = 0;
};

struct Synthetic {
  std::string_view name;
  LengthDistribution prompt;
  LengthDistribution output;
  double shared = 0;  // of a prompt's blocks of kHashBlockTokens: its first ones, from one of kDocuments
};

constexpr Synthetic kSynthetics[] = {
    // Kwon et al., SOSP 2023, section 6.1 and figure 11: means.
    {.name = "synthetic_sharegpt", .prompt = {.mean = 161.31}, .output = {.mean = 337.99}},
    {.name = "synthetic_alpaca", .prompt = {.mean = 19.31}, .output = {.mean = 58.45}},
    // Agrawal et al. (Sarathi-Serve), OSDI 2024, openchat_sharegpt4: medians and 90th percentiles.
    {.name = "synthetic_sharegpt4", .prompt = {.median = 1730, .p90 = 5696}, .output = {.median = 415, .p90 = 834}},
    // Azure LLM inference traces of 2023 (Patel et al., Splitwise, ISCA 2024): quantiles of the published files.
    {.name = "synthetic_azure_code", .prompt = {.median = 1469, .p90 = 5188}, .output = {.median = 13, .p90 = 55}},
    {.name = "synthetic_azure_conv", .prompt = {.median = 1020, .p90 = 2734}, .output = {.median = 129, .p90 = 424}},
    // Mooncake's synthetic trace (Qin et al., FAST 2025): quantiles of the published file, of whose prompt blocks an
    // endless cache finds 64 %. How its prompts share them is not copied: here each begins with one of few documents.
    {.name = "synthetic_mooncake",
     .prompt = {.median = 11587, .p90 = 38611},
     .output = {.median = 69, .p90 = 389},
     .shared = 0.65},
};

constexpr std::int64_t kDocuments = 32;
constexpr std::int64_t kIdsOfOne = std::int64_t{1} << 21;  // more blocks than a prompt of a billion tokens has
constexpr int kMostTries = 1000;
constexpr double kNormalP90 = 1.2815515655446004;  // 90th percentile of the standard normal distribution

// Numbers in (0, 1), the same on every machine.
class Uniforms {
 public:
  Uniforms(std::uint64_t seed, std::int64_t request) : key_(stream_key(seed, static_cast<std::uint64_t>(request))) {}
  double next() { return (static_cast<double>(mix_bits(key_ + count_++) >> 11) + 0.5) * 0x1p-53; }

 private:
  std::uint64_t key_;
  std::uint64_t count_ = 0;
};

std::int64_t draw(const LengthDistribution& length, Uniforms& uniforms) {
  if (length.mean > 0) return 1 + static_cast<std::int64_t>(std::log(uniforms.next()) / std::log1p(-1 / length.mean));
  const double sigma = std::log(length.p90 / length.median) / kNormalP90;
  const double radius = std::sqrt(-2 * std::log(uniforms.next()));  // Box and Muller
  const double normal = radius * std::cos(2 * std::numbers::pi * uniforms.next());
  return std::max<std::int64_t>(1, std::llround(length.median * std::exp(sigma * normal)));
}

class SyntheticSource : public RequestSource {
 public:
  SyntheticSource(const Synthetic& synthetic, std::int64_t max_length, std::uint64_t seed)
      : synthetic_(synthetic), max_length_(max_length), seed_(seed) {}

  bool next(KvRequest& request) override {
    Uniforms uniforms(seed_, rows_);
    request = {.id = rows_++};
    int tries = 0;
    do {  // too long ones are drawn again, as benchmarks leave them out
      request.prompt = draw(synthetic_.prompt, uniforms);
      request.output = draw(synthetic_.output, uniforms);
    } while (request.stored() > max_length_ && ++tries < kMostTries);
    if (synthetic_.shared > 0) add_hash_ids(request, uniforms);
    return true;
  }

 private:
  void add_hash_ids(KvRequest& request, Uniforms& uniforms) const {
    const std::int64_t blocks = (request.prompt + kHashBlockTokens - 1) / kHashBlockTokens;
    const auto shared = static_cast<std::int64_t>(synthetic_.shared * static_cast<double>(blocks));
    const auto document = static_cast<std::int64_t>(static_cast<double>(kDocuments) * uniforms.next());
    for (std::int64_t block = 0; block < blocks; ++block)
      request.hash_ids.push_back((block < shared ? document : kDocuments + request.id) * kIdsOfOne + block);
  }

  const Synthetic& synthetic_;
  std::int64_t max_length_;
  std::uint64_t seed_;
  std::int64_t rows_ = 0;
};

const Synthetic* find(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kSynthetics), std::end(kSynthetics),
                                         [&](const Synthetic& synthetic) { return synthetic.name == name; });
  return found != std::end(kSynthetics) ? found : nullptr;
}

}  // namespace

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names;
  for (const Synthetic& synthetic : kSynthetics) names.emplace_back(synthetic.name);
  return names;
}

bool is_synthetic(std::string_view trace) { return find(trace) != nullptr; }

std::unique_ptr<RequestSource> make_synthetic(std::string_view name, std::int64_t max_length, std::uint64_t seed) {
  const Synthetic* const synthetic = find(name);
  if (synthetic == nullptr) throw TraceError("no synthetic distribution '" + std::string(name) + "'");
  return std::make_unique<SyntheticSource>(*synthetic, max_length, seed);
}

}  // namespace inferometer
