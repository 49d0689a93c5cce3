#include "kernels/kv_cache/block_pool.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "harness/operator/fields.hpp"

namespace inferometer {
namespace {

const BlockPoolConfig& checked(const BlockPoolConfig& config) {
  const auto positive = [](const char* field, std::int64_t value) {
    if (value < 1) throw ProblemError(field, std::string(field) + " must be at least 1, got " + std::to_string(value));
  };
  positive("num_blocks", config.num_blocks);
  positive("block_size", config.block_size);
  if (config.prefix_reuse && config.block_hash == nullptr)
    throw ProblemError("block_hash", "block_hash must be a function where prefix_reuse is on, got null");
  return config;
}

[[noreturn]] void refuse(BlockPoolFault fault, const std::string& sentence) { throw BlockPoolError(fault, sentence); }

std::string name(SequenceId id) { return "sequence " + std::to_string(id); }

// Room for one more without giving up the geometric growth that reserve() alone would.
template <class Vector>
void reserve_at_least(Vector& vector, std::size_t size) {
  if (size > vector.capacity()) vector.reserve(std::max(size, 2 * vector.capacity()));
}

// What a sequence of prompt + max_new tokens stores; unsigned, since two of the largest prompts still add up.
std::uint64_t stored_tokens(std::int64_t prompt_tokens, std::int64_t max_new) {
  return max_new == 0 ? 0 : static_cast<std::uint64_t>(prompt_tokens) + static_cast<std::uint64_t>(max_new) - 1;
}

// Hands the published blocks that hold the beginning of the prompt to `take`, one after the other, and returns their
// tokens. The prompt's last token is never among them: its output is asked for.
template <class Take>
std::int64_t match_prefix(const PrefixIndex& index, std::int64_t block_size, std::span<const TokenId> prompt,
                          const Take& take) {
  Prefix prefix;
  std::int64_t matched = 0;
  while (matched + block_size < std::ssize(prompt)) {
    const std::int32_t block =
        index.find(prefix, prompt.subspan(static_cast<std::size_t>(matched), static_cast<std::size_t>(block_size)));
    if (block == kNoBlock) break;
    prefix = index.prefix(block);
    take(block);
    matched += block_size;
  }
  return matched;
}

}  // namespace

BlockPool::BlockPool(const BlockPoolConfig& config, std::pmr::memory_resource* memory)
    : config_(checked(config)),
      states_(config.num_blocks, memory),
      index_(config.prefix_reuse ? config.num_blocks : 0, config.block_size, config.block_hash, memory),
      sequences_(memory),
      spare_tables_(memory),
      copies_(memory) {}

std::int64_t BlockPool::submit(SequenceId id, std::span<const TokenId> prompt, std::int64_t max_new) {
  submit(id, std::ssize(prompt), max_new);
  if (!config_.prefix_reuse || max_new == 0) return 0;
  Sequence& s = sequence(id);
  s.length = match_prefix(index_, config_.block_size, prompt, [&](std::int32_t block) {
    if (states_.references(block) == 0) filled_slots_ += config_.block_size;
    states_.add_reference(block);
    s.table.push_back(block);
    s.prefix = index_.prefix(block);
  });
  s.known = s.length;
  s.published = std::ssize(s.table);
  table_entries_ += s.published;
  tokens_ += s.length;
  reused_tokens_ += s.length;
  return s.length;
}

void BlockPool::submit(SequenceId id, std::int64_t prompt_tokens, std::int64_t max_new) {
  check_fits(prompt_tokens, max_new);
  check_unused(id);
  insert(id, static_cast<std::int64_t>(stored_tokens(prompt_tokens, max_new)));
}

void BlockPool::append(SequenceId id, std::span<const TokenId> tokens) {
  Sequence& s = sequence(id);
  check_append(id, s, std::ssize(tokens));
  const std::int64_t begin = s.length;
  grow(s, std::ssize(tokens));
  if (!config_.prefix_reuse || s.known != begin) return;
  for (std::int64_t t = begin; t < s.length;) {
    const std::int64_t slot = t % config_.block_size;
    const std::int64_t count = std::min(config_.block_size - slot, s.length - t);
    index_.write(s.table[static_cast<std::size_t>(t / config_.block_size)], slot,
                 tokens.subspan(static_cast<std::size_t>(t - begin), static_cast<std::size_t>(count)));
    t += count;
  }
  s.known = s.length;
}

void BlockPool::append(SequenceId id, std::int64_t tokens) {
  Sequence& s = sequence(id);
  check_append(id, s, tokens);
  grow(s, tokens);
}

void BlockPool::fork(SequenceId parent, SequenceId child) {
  const Sequence& from = sequence(parent);
  check_unused(child);
  check_computed(parent, from, "forked");
  // Until the next fork no sequence copies more than once, so that append finds room for its copies.
  reserve_at_least(copies_, copies_.size() + sequences_.size() + 1);
  Sequence& to = insert(child, from.capacity);  // moves no other sequence: nodes of a map stay where they are
  to.table.assign(from.table.begin(), from.table.end());
  std::tie(to.length, to.known, to.published, to.prefix) =
      std::tie(from.length, from.known, from.published, from.prefix);
  for (const std::int32_t block : to.table) states_.add_reference(block);
  table_entries_ += std::ssize(to.table);
  tokens_ += to.length;
}

void BlockPool::free(SequenceId id) {
  Sequence& s = sequence(id);
  if (config_.explicit_steps) check_computed(id, s, "freed");
  publish(s, s.length);
  end(s, id);
}

void BlockPool::abort(SequenceId id) {
  Sequence& s = sequence(id);
  publish(s, computed(s));
  end(s, id);
}

void BlockPool::copies_made() {
  for (const BlockCopy& copy : copies_) {
    if (states_.drop_source(copy.source)) put_away(copy.source);
    if (states_.drop_destination(copy.destination)) put_away(copy.destination);
  }
  copies_.clear();
}

void BlockPool::step_done() {
  if (!copies_.empty())
    refuse(BlockPoolFault::copies_pending, "the step cannot be done before its copies: " +
                                               std::to_string(copies_.size()) + " are pending, make them first");
  ++step_;
}

std::int32_t BlockPool::last_block_fill(SequenceId id) const {
  const Sequence& s = sequence(id);
  return s.table.empty() ? 0 : static_cast<std::int32_t>(config_.block_size - room(s));
}

std::int64_t BlockPool::blocks_to_append(SequenceId id, std::int64_t tokens) const {
  return checked_new_blocks(id, sequence(id), tokens);
}

std::int64_t BlockPool::reusable_tokens(std::span<const TokenId> prompt) const {
  return config_.prefix_reuse ? match_prefix(index_, config_.block_size, prompt, [](std::int32_t) {}) : 0;
}

void BlockPool::check_fits(std::int64_t prompt_tokens, std::int64_t max_new) const {
  if (prompt_tokens < 0 || max_new < 0)
    refuse(BlockPoolFault::wrong_size, "the tokens of a prompt and its max_new must not be negative, got " +
                                           std::to_string(prompt_tokens) + " and " + std::to_string(max_new));
  if (prompt_tokens == 0) refuse(BlockPoolFault::empty_prompt, "a prompt must have at least 1 token, got 0");
  const auto block_size = static_cast<std::uint64_t>(config_.block_size);
  const std::uint64_t stored = stored_tokens(prompt_tokens, max_new);
  const std::uint64_t blocks = stored / block_size + (stored % block_size != 0 ? 1 : 0);
  if (blocks > static_cast<std::uint64_t>(config_.num_blocks))
    refuse(BlockPoolFault::never_fits,
           "a prompt of " + std::to_string(prompt_tokens) + " tokens and max_new " + std::to_string(max_new) +
               " store " + std::to_string(stored) + " tokens, which need " + std::to_string(blocks) + " blocks of " +
               std::to_string(block_size) + "; the pool has " + std::to_string(config_.num_blocks));
}

std::int32_t BlockPool::references(std::int32_t block) const {
  if (!is_block(block))
    refuse(BlockPoolFault::unknown_block,
           "block must be from 0 to " + std::to_string(config_.num_blocks - 1) + ", got " + std::to_string(block));
  return states_.references(block);
}

BlockPoolUsage BlockPool::usage() const {
  const std::int64_t free_blocks = states_.free_blocks();
  const std::int64_t cached_blocks = states_.cached_blocks();
  return {.total_blocks = config_.num_blocks,
          .free_blocks = free_blocks,
          .owned_blocks = config_.num_blocks - free_blocks - cached_blocks,
          .cached_blocks = cached_blocks,
          .table_entries = table_entries_,
          .saved_blocks = table_entries_ - states_.referenced_blocks(),
          .sequences = std::ssize(sequences_),
          .tokens = tokens_,
          .filled_slots = filled_slots_,
          .reused_tokens = reused_tokens_,
          .copied_blocks = copied_blocks_,
          .evicted_blocks = evicted_blocks_};
}

double BlockPool::bytes_per_block(const BlockPoolConfig& config) {
  checked(config);
  return static_cast<double>(BlockStates::bytes_per_block()) +
         (config.prefix_reuse ? PrefixIndex::bytes_per_block(config.num_blocks) : 0.0);
}

bool BlockPool::operator==(const BlockPool& other) const {
  const auto state = [](const BlockPool& pool) {
    return std::tie(pool.config_, pool.states_, pool.index_, pool.sequences_, pool.copies_, pool.step_,
                    pool.table_entries_, pool.tokens_, pool.filled_slots_, pool.reused_tokens_, pool.copied_blocks_,
                    pool.evicted_blocks_);
  };
  return state(*this) == state(other);
}

const BlockPool::Sequence& BlockPool::sequence(SequenceId id) const {
  const auto found = sequences_.find(id);
  if (found == sequences_.end())
    refuse(BlockPoolFault::unknown_sequence, name(id) + " is not in the pool: never submitted, or ended already");
  return found->second;
}

BlockPool::Sequence& BlockPool::sequence(SequenceId id) {
  return const_cast<Sequence&>(std::as_const(*this).sequence(id));
}

void BlockPool::check_unused(SequenceId id) const {
  if (contains(id)) refuse(BlockPoolFault::live_sequence, name(id) + " is in the pool already and has not ended");
}

void BlockPool::check_computed(SequenceId id, const Sequence& s, const char* action) const {
  if (computed(s) < s.length)
    refuse(BlockPoolFault::uncomputed, name(id) + " cannot be " + action + " before step_done(): only " +
                                           std::to_string(computed(s)) + " of its " + std::to_string(s.length) +
                                           " tokens are computed");
}

BlockPool::Sequence& BlockPool::insert(SequenceId id, std::int64_t capacity) {
  // Room for every table among the spare ones, so that the end of a sequence allocates nothing.
  reserve_at_least(spare_tables_, spare_tables_.size() + sequences_.size() + 1);
  if (spare_tables_.empty()) spare_tables_.emplace_back();
  spare_tables_.back().reserve(static_cast<std::size_t>(blocks_of(capacity)));
  Sequence s{.table = std::move(spare_tables_.back()), .capacity = capacity};
  spare_tables_.pop_back();
  return sequences_.emplace(id, std::move(s)).first->second;
}

bool BlockPool::must_copy(const Sequence& s) const { return room(s) > 0 && states_.references(s.table.back()) > 1; }

std::int64_t BlockPool::checked_new_blocks(SequenceId id, const Sequence& s, std::int64_t tokens) const {
  if (tokens < 0)
    refuse(BlockPoolFault::wrong_size,
           "tokens to append must not be negative, got " + std::to_string(tokens) + " for " + name(id));
  if (tokens > s.capacity - s.length)
    refuse(BlockPoolFault::past_capacity, name(id) + " holds " + std::to_string(s.length) + " of the " +
                                              std::to_string(s.capacity) + " tokens that it announced, " +
                                              std::to_string(tokens) + " more do not fit");
  if (tokens == 0) return 0;
  if (config_.explicit_steps) check_computed(id, s, "appended to");
  const std::int64_t missing = tokens - room(s);
  return (must_copy(s) ? 1 : 0) + (missing > 0 ? blocks_of(missing) : 0);
}

void BlockPool::check_append(SequenceId id, const Sequence& s, std::int64_t tokens) const {
  const std::int64_t needed = checked_new_blocks(id, s, tokens);
  if (needed > available_blocks())
    refuse(BlockPoolFault::full, std::to_string(tokens) + " more tokens of " + name(id) + " need " +
                                     std::to_string(needed) + " blocks; " + std::to_string(states_.free_blocks()) +
                                     " of " + std::to_string(config_.num_blocks) + " are free and " +
                                     std::to_string(states_.cached_blocks()) + " cached");
}

void BlockPool::grow(Sequence& s, std::int64_t tokens) {
  if (tokens == 0) return;
  const bool copy = must_copy(s);
  std::int64_t missing = tokens - room(s);  // slots
  // Reserved since submit and fork, except in a copy of a pool.
  if (missing > 0) s.table.reserve(static_cast<std::size_t>(blocks_of(s.capacity)));
  if (copy) reserve_at_least(copies_, copies_.size() + 1);
  publish(s, s.length);
  if (copy) copy_last_block(s);
  for (; missing > 0; missing -= config_.block_size) {
    s.table.push_back(take_block());
    ++table_entries_;
  }
  s.before_append = s.length;
  s.append_step = step_;
  s.length += tokens;
  tokens_ += tokens;
  filled_slots_ += tokens;
}

void BlockPool::copy_last_block(Sequence& s) {
  const std::int32_t source = s.table.back();
  const std::int32_t destination = take_block();
  copies_.push_back({.source = source, .destination = destination});
  states_.hold_for_copy(source, destination);
  states_.drop_reference(source);  // never the last one: another table holds it
  if (config_.prefix_reuse) index_.copy(source, destination);
  s.table.back() = destination;
  filled_slots_ += config_.block_size - room(s);
  ++copied_blocks_;
}

std::int32_t BlockPool::take_block() {
  if (const std::int32_t block = states_.take_free(); block != kNoBlock) return block;
  const std::int32_t block = states_.take_cached();
  index_.erase(block);
  ++evicted_blocks_;
  return block;
}

void BlockPool::publish(Sequence& s, std::int64_t computed) {
  if (!config_.prefix_reuse) return;
  while ((s.published + 1) * config_.block_size <= std::min(s.known, computed)) {
    s.prefix = index_.insert(s.prefix, s.table[static_cast<std::size_t>(s.published)]);
    ++s.published;
  }
}

void BlockPool::end(Sequence& s, SequenceId id) {
  table_entries_ -= std::ssize(s.table);
  tokens_ -= s.length;
  // From the end, so that of a cached prefix the last block, useless without the others, is evicted first.
  for (std::int64_t fill = config_.block_size - room(s); !s.table.empty(); s.table.pop_back()) {
    const std::int32_t block = s.table.back();
    const bool unheld = states_.drop_reference(block);
    if (states_.references(block) == 0) filled_slots_ -= fill;
    if (unheld) put_away(block);
    fill = config_.block_size;
  }
  spare_tables_.push_back(std::move(s.table));
  sequences_.erase(id);
}

void BlockPool::put_away(std::int32_t block) {
  if (is_published(block))
    states_.put_cached(block);
  else
    states_.put_free(block);
}

}  // namespace inferometer
