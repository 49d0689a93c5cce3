#include "kernels/kv_cache/prefix_index.hpp"

#include <algorithm>
#include <bit>

#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

std::size_t bucket_count(std::int64_t num_blocks) { return std::bit_ceil(static_cast<std::size_t>(num_blocks)); }

}  // namespace

std::uint64_t hash_block_tokens(std::uint64_t prefix, std::span<const TokenId> tokens) {
  // A multiplication carries a token into the bits above it, the shift brings it down again; the end mixes for good.
  std::uint64_t hash = prefix;
  for (const TokenId token : tokens) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return mix_bits(hash);
}

PrefixIndex::PrefixIndex(std::int32_t num_blocks, std::int32_t block_size, BlockHash hash,
                         std::pmr::memory_resource* memory)
    : block_size_(block_size),
      hash_(hash),
      entries_(static_cast<std::size_t>(num_blocks), memory),
      buckets_(bucket_count(num_blocks), kNoBlock, memory),
      tokens_(static_cast<std::size_t>(num_blocks) * static_cast<std::size_t>(block_size), memory) {}

double PrefixIndex::bytes_per_block(std::int64_t num_blocks) {
  const auto bucket_bytes = static_cast<double>(bucket_count(num_blocks) * sizeof(std::int32_t));
  return sizeof(Entry) + bucket_bytes / static_cast<double>(num_blocks);
}

void PrefixIndex::write(std::int32_t block, std::int64_t slot, std::span<const TokenId> tokens) {
  std::ranges::copy(tokens, tokens_.begin() + block * block_size_ + slot);
}

void PrefixIndex::copy(std::int32_t source, std::int32_t destination) { write(destination, 0, tokens(source)); }

std::int32_t PrefixIndex::find(const Prefix& prefix, std::span<const TokenId> tokens) const {
  return find(prefix.number, hash_(prefix.hash, tokens), tokens);
}

Prefix PrefixIndex::insert(const Prefix& prefix, std::int32_t block) {
  Entry& entry = at(block);
  if (contains(block)) return entry.prefix;
  const std::uint64_t hash = hash_(prefix.hash, tokens(block));
  const std::int32_t twin = find(prefix.number, hash, tokens(block));
  std::int32_t& first = bucket(hash);
  entry = {.prefix = {.number = twin == kNoBlock ? next_number_++ : at(twin).prefix.number, .hash = hash},
           .parent = prefix.number,
           .next = first};
  if (first != kNoBlock) at(first).previous = block;
  first = block;
  ++size_;
  return entry.prefix;
}

void PrefixIndex::erase(std::int32_t block) {
  const Entry& entry = at(block);
  (entry.previous == kNoBlock ? bucket(entry.prefix.hash) : at(entry.previous).next) = entry.next;
  if (entry.next != kNoBlock) at(entry.next).previous = entry.previous;
  at(block) = {};
  --size_;
}

std::span<const TokenId> PrefixIndex::tokens(std::int32_t block) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(block * block_size_),
                                    static_cast<std::size_t>(block_size_));
}

std::int32_t PrefixIndex::find(std::uint64_t parent, std::uint64_t hash, std::span<const TokenId> tokens) const {
  std::int32_t block = buckets_[hash & (buckets_.size() - 1)];
  while (block != kNoBlock && !(at(block).prefix.hash == hash && at(block).parent == parent &&
                                std::ranges::equal(this->tokens(block), tokens)))
    block = at(block).next;
  return block;
}

void PrefixIndex::check(std::vector<std::string>& broken) const {
  std::vector<std::int32_t> chained;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    std::int32_t previous = kNoBlock;
    for (std::int32_t block = buckets_[b]; block != kNoBlock; previous = block, block = at(block).next) {
      // More links than blocks: a ring.
      if (block < 0 || block >= std::ssize(entries_) || chained.size() == entries_.size()) {
        broken.push_back("bucket " + std::to_string(b) + " of the prefix index leads to block " +
                         std::to_string(block) + " after " + std::to_string(chained.size()) + " blocks in all");
        return;
      }
      const Entry& entry = at(block);
      const std::string name = "block " + std::to_string(block) + " in the prefix index";
      if (entry.previous != previous) broken.push_back(name + " does not point back to " + std::to_string(previous));
      if ((entry.prefix.hash & (buckets_.size() - 1)) != b)
        broken.push_back(name + " is in the bucket of another hash");
      if (entry.prefix.number == 0 || entry.prefix.number >= next_number_ || entry.parent >= entry.prefix.number)
        broken.push_back(name + " continues prefix " + std::to_string(entry.parent) + " to prefix " +
                         std::to_string(entry.prefix.number) + " of " + std::to_string(next_number_));
      chained.push_back(block);
    }
  }
  // The block that is found by some content stands for all that have it.
  for (const std::int32_t block : chained) {
    const std::int32_t found = find(at(block).parent, at(block).prefix.hash, tokens(block));
    if (found == kNoBlock || at(found).prefix != at(block).prefix)
      broken.push_back("block " + std::to_string(block) + " in the prefix index has another prefix than block " +
                       std::to_string(found) + " with the same content");
  }
  const auto marked = std::ranges::count_if(entries_, [](const Entry& entry) { return entry.prefix.number != 0; });
  if (std::ssize(chained) != size_ || marked != size_)
    broken.push_back("the prefix index says " + std::to_string(size_) + " blocks, its buckets have " +
                     std::to_string(chained.size()) + ", its entries " + std::to_string(marked));
}

}  // namespace inferometer
