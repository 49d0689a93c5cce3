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

// Of an unsigned integer with the bits of a value: those beside the sign, and what they are in an infinity. `flip`
// turns the poison into all bits set, as which it lies above infinity.
template <class Bits>
struct Format {
  Bits magnitude;
  Bits infinity;
  Bits flip = 0;
};

template <class Bits>
void look_at(Bits bits, std::int64_t element, Format<Bits> format, Scan& scan) {
  const Bits magnitude = bits & format.magnitude;
  if (magnitude < format.infinity) return;
  if (bits == static_cast<Bits>(~Bits{0})) {
    note(scan.unwritten, element);
  } else {
    note(magnitude == format.infinity ? scan.infinite : scan.nan, element);
  }
}

template <class Bits>
Scan scan_chunk(const Bits* bits, std::int64_t begin, std::int64_t end, Format<Bits> format) {
  Scan scan;
  Bits largest = 0;
  for (std::int64_t i = begin; i < end; ++i)
    largest = std::max<Bits>(largest, (bits[i] ^ format.flip) & format.magnitude);
  if (largest < format.infinity) return scan;
  for (std::int64_t i = begin; i < end; ++i) look_at<Bits>(bits[i] ^ format.flip, i, format, scan);
  return scan;
}

// A chunk in which some elements, perhaps, are unused.
template <class Bits>
Scan scan_chunk(const Bits* bits, std::int64_t begin, std::int64_t end, Format<Bits> format,
                const std::vector<const ElementRange*>& ranges) {
  std::vector<char> unused(static_cast<std::size_t>(end - begin));
  for (const ElementRange* range : ranges)
    for_each_part(*range, begin, end, [&](std::int64_t first, std::int64_t last) {
      std::fill(unused.begin() + (first - begin), unused.begin() + (last - begin), char{1});
    });
  Scan scan;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto value = static_cast<Bits>(bits[i] ^ format.flip);
    if (unused[static_cast<std::size_t>(i - begin)] == 0) {
      look_at<Bits>(value, i, format, scan);
    } else if (value != static_cast<Bits>(~Bits{0})) {
      note(scan.overwritten, i);
    }
  }
  return scan;
}

// Of each chunk: the unused ranges that may reach into it.
std::vector<std::vector<const ElementRange*>> ranges_of_chunks(const TensorSpec& spec, std::int64_t chunks) {
  std::vector<std::vector<const ElementRange*>> ranges(static_cast<std::size_t>(chunks));
  for (const ElementRange& range : spec.unused)
    for (std::int64_t chunk = range.begin / kChunk; chunk * kChunk < range.last_end(); ++chunk)
      ranges[static_cast<std::size_t>(chunk)].push_back(&range);
  return ranges;
}

template <class Bits>
Scan scan_bits(const TensorSpec& spec, const void* data, int threads, Format<Bits> format) {
  const auto* bits = static_cast<const Bits*>(data);
  const std::int64_t elements = spec.elements();
  const std::int64_t chunks = (elements + kChunk - 1) / kChunk;
  const std::vector<std::vector<const ElementRange*>> ranges = ranges_of_chunks(spec, chunks);
  std::vector<Scan> scans(static_cast<std::size_t>(chunks));
#pragma omp parallel for num_threads(threads) if (chunks > 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    const std::int64_t begin = chunk * kChunk;
    const std::int64_t end = std::min(elements, begin + kChunk);
    scans[c] =
        ranges[c].empty() ? scan_chunk(bits, begin, end, format) : scan_chunk(bits, begin, end, format, ranges[c]);
  }
  Scan all;
  for (const Scan& scan : scans) {
    merge(all.unwritten, scan.unwritten);
    merge(all.nan, scan.nan);
    merge(all.infinite, scan.infinite);
    merge(all.overwritten, scan.overwritten);
  }
  return all;
}

}  // namespace

Scan scan_output(const TensorSpec& spec, const void* data, int threads) {
  switch (spec.dtype) {
    case Dtype::f16: return scan_bits<std::uint16_t>(spec, data, threads, {0x7fff, 0x7c00});
    case Dtype::bf16: return scan_bits<std::uint16_t>(spec, data, threads, {0x7fff, 0x7f80});
    case Dtype::f32: return scan_bits<std::uint32_t>(spec, data, threads, {0x7fffffff, 0x7f800000});
    case Dtype::i32: return scan_bits<std::uint32_t>(spec, data, threads, {0xffffffff, 0xffffffff});
    case Dtype::u8: {
      const auto flip = static_cast<std::uint8_t>(~spec.poison);
      return scan_bits<std::uint8_t>(spec, data, threads, {0xff, 0xff, flip});
    }
  }
  return {};
}

}  // namespace inferometer
