#include <algorithm>
#include <numeric>
#include <set>

#include "kernels/kv_cache/block_pool.hpp"

namespace inferometer {

std::vector<BlockStates::Holders> BlockPool::holders(std::vector<std::string>& broken) const {
  std::vector<BlockStates::Holders> holders(static_cast<std::size_t>(config_.num_blocks));
  BlockStates::Holders outside;  // for what is no block
  const auto of = [&](std::int32_t block, const std::string& holder) -> BlockStates::Holders& {
    if (is_block(block)) return holders[static_cast<std::size_t>(block)];
    broken.push_back(holder + " names block " + std::to_string(block) + " of " + std::to_string(config_.num_blocks));
    return outside;
  };
  for (const auto& [id, s] : sequences_)
    for (const std::int32_t block : s.table) ++of(block, "sequence " + std::to_string(id)).tables;
  for (const BlockCopy& copy : copies_) {
    ++of(copy.source, "a pending copy").reading_copies;
    ++of(copy.destination, "a pending copy").writing_copies;
  }
  return holders;
}

void BlockPool::check_sequences(std::vector<std::string>& broken) const {
  for (const auto& [id, s] : sequences_) {
    const std::string name = "sequence " + std::to_string(id);
    if (std::ssize(s.table) != blocks_of(s.length) || s.length > s.capacity)
      broken.push_back(name + " has " + std::to_string(s.table.size()) + " blocks for " + std::to_string(s.length) +
                       " of at most " + std::to_string(s.capacity) + " tokens");
    if (std::set(s.table.begin(), s.table.end()).size() != s.table.size())
      broken.push_back(name + " holds a block twice");
    if (s.published * config_.block_size > s.known || s.known > s.length)
      broken.push_back(name + " has published " + std::to_string(s.published) + " blocks of " +
                       std::to_string(s.known) + " known tokens of " + std::to_string(s.length));
    const std::int64_t computed = this->computed(s);
    if (s.published * config_.block_size > computed || s.before_append > s.length || s.append_step > step_)
      broken.push_back(name + " has published " + std::to_string(s.published) + " blocks of " +
                       std::to_string(computed) + " computed tokens, its last append behind " +
                       std::to_string(s.before_append) + " of " + std::to_string(s.length) + " tokens in step " +
                       std::to_string(s.append_step) + " of " + std::to_string(step_));
    for (std::int64_t i = computed / config_.block_size; computed < s.length && i < std::ssize(s.table); ++i)
      if (const std::int32_t block = s.table[static_cast<std::size_t>(i)];
          is_block(block) && states_.references(block) > 1)
        broken.push_back(name + " shares block " + std::to_string(block) + ", of which it has uncomputed tokens");
    for (std::int64_t i = 0; i < std::min<std::int64_t>(s.published, std::ssize(s.table)); ++i)
      if (const std::int32_t block = s.table[static_cast<std::size_t>(i)]; is_block(block) && !is_published(block))
        broken.push_back(name + " has block " + std::to_string(block) +
                         " published, the prefix index does not have it");
  }
}

std::vector<std::string> BlockPool::check_invariants() const {
  std::vector<std::string> broken;
  const auto equal = [&](const std::string& what, std::int64_t counted, std::int64_t found) {
    if (counted != found)
      broken.push_back(what + " are counted as " + std::to_string(counted) + ", there are " + std::to_string(found));
  };
  check_sequences(broken);
  const std::vector<BlockStates::Holders> holders = this->holders(broken);
  const std::vector<bool> cached = states_.check(holders, broken);
  if (config_.prefix_reuse) index_.check(broken);

  // Of a block that several tables hold, all have the same slots filled, or they would have copied it.
  std::vector<std::int64_t> fill(holders.size());
  std::int64_t entries = 0;
  std::int64_t tokens = 0;
  for (const auto& [id, s] : sequences_) {
    entries += std::ssize(s.table);
    tokens += s.length;
    for (std::int64_t i = 0; i < std::ssize(s.table); ++i) {
      if (!is_block(s.table[static_cast<std::size_t>(i)])) continue;  // said above
      const auto block = static_cast<std::size_t>(s.table[static_cast<std::size_t>(i)]);
      const std::int64_t slots = std::min<std::int64_t>(config_.block_size, s.length - i * config_.block_size);
      if (fill[block] != 0 && fill[block] != slots)
        broken.push_back("block " + std::to_string(block) + " has " + std::to_string(fill[block]) +
                         " slots filled for one sequence and " + std::to_string(slots) + " for sequence " +
                         std::to_string(id));
      fill[block] = slots;
    }
  }
  equal("table entries", table_entries_, entries);
  equal("tokens", tokens_, tokens);
  equal("filled slots", filled_slots_, std::accumulate(fill.begin(), fill.end(), std::int64_t{0}));

  const BlockPoolUsage usage = this->usage();
  const auto is_owned = [](const BlockStates::Holders& h) {
    return h.tables + h.reading_copies + h.writing_copies > 0;
  };
  equal("owned blocks", usage.owned_blocks, std::ranges::count_if(holders, is_owned));
  for (std::int32_t block = 0; block < config_.num_blocks; ++block) {
    const auto i = static_cast<std::size_t>(block);
    if (!is_owned(holders[i]) && cached[i] != is_published(block))
      broken.push_back("block " + std::to_string(block) + " is cached " + std::to_string(cached[i]) +
                       " and in the prefix index " + std::to_string(is_published(block)));
  }
  return broken;
}

}  // namespace inferometer
