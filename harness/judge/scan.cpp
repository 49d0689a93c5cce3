#include "harness/judge/scan.hpp"

#include <algorithm>
#include <vector>

namespace inferometer {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 16;  // elements: one comparison decides for all of them

void note(Findings& findings, std::int64_t element) {
  findings.first = std::min(findings.first, element);
  ++findings.count;
}

void merge(Findings& into, const Findings& from) {
  into.first = std::min(into.first, from.first);
  into.count += from.count;
}

// Of an unsigned integer with the bits of a value: those beside the sign, and what they are in an infinity.
template <class Bits>
struct Format {
  Bits magnitude;
  Bits infinity;
};

template <class Bits>
Scan scan_chunk(const Bits* bits, std::int64_t begin, std::int64_t end, Format<Bits> format) {
  Scan scan;
  Bits largest = 0;  // NaN and the poison lie above infinity
  for (std::int64_t i = begin; i < end; ++i) largest = std::max<Bits>(largest, bits[i] & format.magnitude);
  if (largest < format.infinity) return scan;
  for (std::int64_t i = begin; i < end; ++i) {
    const Bits magnitude = bits[i] & format.magnitude;
    if (magnitude < format.infinity) continue;
    if (bits[i] == static_cast<Bits>(~Bits{0})) {
      note(scan.unwritten, i);
    } else {
      note(magnitude == format.infinity ? scan.infinite : scan.nan, i);
    }
  }
  return scan;
}

template <class Bits>
Scan scan_bits(const void* data, std::int64_t elements, int threads, Format<Bits> format) {
  const auto* bits = static_cast<const Bits*>(data);
  const std::int64_t chunks = (elements + kChunk - 1) / kChunk;
  std::vector<Scan> scans(static_cast<std::size_t>(chunks));
#pragma omp parallel for num_threads(threads) if (chunks > 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    scans[static_cast<std::size_t>(chunk)] =
        scan_chunk(bits, chunk * kChunk, std::min(elements, (chunk + 1) * kChunk), format);
  Scan all;
  for (const Scan& scan : scans) {
    merge(all.unwritten, scan.unwritten);
    merge(all.nan, scan.nan);
    merge(all.infinite, scan.infinite);
  }
  return all;
}

}  // namespace

Scan scan_output(Dtype dtype, const void* data, std::int64_t elements, int threads) {
  switch (dtype) {
    case Dtype::f16: return scan_bits<std::uint16_t>(data, elements, threads, {0x7fff, 0x7c00});
    case Dtype::bf16: return scan_bits<std::uint16_t>(data, elements, threads, {0x7fff, 0x7f80});
    case Dtype::f32: return scan_bits<std::uint32_t>(data, elements, threads, {0x7fffffff, 0x7f800000});
    case Dtype::i32: return scan_bits<std::uint32_t>(data, elements, threads, {0xffffffff, 0xffffffff});
  }
  return {};
}

}  // namespace inferometer
