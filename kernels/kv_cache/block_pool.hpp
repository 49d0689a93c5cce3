// The block pool of a paged KV cache, host side (Kwon et al., "Efficient Memory Management for LLM Serving with
// PagedAttention", SOSP 2023): which block holds which tokens of which sequence. It stores no keys or values.
//
// A sequence has a table of blocks; its token t stands in slot t % block_size of block table[t / block_size]. Tables
// only grow: an entry changes only when the block behind it is copied on write. A block is
//   owned   held by one table or several (or by a copy that is still to be made),
//   cached  held by none, but full of known tokens, so that a later prompt with the same prefix can take it up, or
//   free    without content;   free + owned + cached = total.
//
// One step of a scheduler:
//   submit, append, fork, abort      decide what the step computes; of a sequence at most one append
//   pending_copies, copies_made      the copies go to the device, before anything is written
//   the device computes the step     it writes every appended token
//   step_done                        every appended token is computed
//   free                             sequences that have ended
// Tokens that an append has made room for are uncomputed until step_done(); a sequence that has such tokens cannot be
// forked, and of the blocks of a sequence only computed ones are offered for reuse, from its next append or its end on.
// With explicit_steps it can neither be appended to nor freed; without, the caller who does so says by it that they are
// computed, which the pool cannot check: a second append in one step then offers what the first has not filled yet.
//
// Costs: append, and taking, evicting or giving back a block, O(1) each; submit and fork as long as the table;
// publishing a block for reuse, one hash over its tokens. append allocates no memory.
//
// For one thread by design: a scheduler owns the pool and nothing in it is atomic. A pool is a value; a copy of it is a
// snapshot. Every member function that throws leaves the pool as it was.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/kv_cache/block_pool_error.hpp"
#include "kernels/kv_cache/block_states.hpp"
#include "kernels/kv_cache/prefix_index.hpp"

namespace inferometer {

using SequenceId = std::int64_t;  // the caller's name of a sequence: free to be used again after its end

struct BlockPoolConfig {
  std::int32_t num_blocks = 1;
  std::int32_t block_size = 16;               // tokens
  bool prefix_reuse = false;                  // keep tokens, and the blocks of ended sequences for prompts like theirs
  BlockHash block_hash = &hash_block_tokens;  // replaced in tests, to force collisions
  bool explicit_steps = false;                // refuse to append to, or free, what has uncomputed tokens: see above
  bool operator==(const BlockPoolConfig&) const = default;
};

// The block at `source` is to be copied to `destination` as a whole.
struct BlockCopy {
  std::int32_t source;
  std::int32_t destination;
  bool operator==(const BlockCopy&) const = default;
};

struct BlockPoolUsage {
  std::int64_t total_blocks = 0;
  std::int64_t free_blocks = 0;
  std::int64_t owned_blocks = 0;
  std::int64_t cached_blocks = 0;
  std::int64_t table_entries = 0;  // over all tables
  std::int64_t saved_blocks = 0;   // entries that needed no block of their own: each further holder of a block
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;        // over all sequences: the sum of their lengths
  std::int64_t filled_slots = 0;  // of owned blocks; a shared slot once: tokens - filled_slots are saved by sharing
  // Since the pool was made:
  std::int64_t reused_tokens = 0;   // found by submit, not to be computed again
  std::int64_t copied_blocks = 0;   // on write
  std::int64_t evicted_blocks = 0;  // cached ones, taken for something else
  bool operator==(const BlockPoolUsage&) const = default;
};

class BlockPool {
 public:
  // Throws ProblemError naming the field for a size below 1. `memory` serves everything the pool allocates.
  explicit BlockPool(const BlockPoolConfig& config,
                     std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Announces a sequence of at most prompt + max_new - 1 tokens (the last new token is never stored) and gives it the
  // cached or owned blocks that hold the beginning of its prompt. Returns their tokens, a multiple of block_size and
  // less than the prompt, since at least one token must be computed to have an output; the caller appends the rest, at
  // once or in chunks. With max_new 0 the sequence holds nothing, ever.
  // Throws BlockPoolError (empty_prompt, wrong_size, live_sequence, never_fits). Never full: it takes no new block.
  std::int64_t submit(SequenceId id, std::span<const TokenId> prompt, std::int64_t max_new);
  // The same for a prompt of which only the length is known; it is not looked up and reuses nothing.
  void submit(SequenceId id, std::int64_t prompt_tokens, std::int64_t max_new);

  // Makes room for the next tokens of the sequence: for all of them or for none. A last block with free slots that
  // another table holds too is copied first, see pending_copies().
  // Throws BlockPoolError (unknown_sequence, wrong_size, past_capacity, full; uncomputed with explicit_steps).
  void append(SequenceId id, std::span<const TokenId> tokens);
  // The same for tokens of unknown content; neither they nor what follows them in the sequence is ever reused.
  void append(SequenceId id, std::int64_t tokens = 1);

  // A new sequence with the tokens and the capacity of `parent`; it holds the same blocks.
  // Throws BlockPoolError (unknown_sequence, live_sequence, uncomputed).
  void fork(SequenceId parent, SequenceId child);

  // Ends a sequence, all of whose tokens have been computed. Its full blocks stay cached, the first ones longest.
  // Throws BlockPoolError (unknown_sequence; uncomputed with explicit_steps).
  void free(SequenceId id);
  // The same for a sequence whose last append may not have been computed: what is not is not offered for reuse.
  // Throws BlockPoolError (unknown_sequence).
  // A scheduler that takes the blocks of a running sequence (preemption) ends it in one of these ways, and submits it
  // again later with the tokens it had as its prompt.
  void abort(SequenceId id);

  // Copies on write since the last copies_made(). They are independent of each other: no destination occurs twice or
  // is a source, so that one kernel makes them all, in any order. Until copies_made() their blocks stay owned.
  std::span<const BlockCopy> pending_copies() const { return copies_; }
  void copies_made();

  // The device has computed all that was appended. O(1).
  // Throws BlockPoolError (copies_pending): made after the step's writes, a copy would overwrite them.
  void step_done();

  bool contains(SequenceId id) const { return sequences_.contains(id); }
  // Throw BlockPoolError (unknown_sequence). The table is valid until the sequence's next append or its end.
  std::span<const std::int32_t> table(SequenceId id) const { return sequence(id).table; }
  std::int64_t length(SequenceId id) const { return sequence(id).length; }       // tokens
  std::int64_t computed(SequenceId id) const { return computed(sequence(id)); }  // tokens
  std::int64_t capacity(SequenceId id) const { return sequence(id).capacity; }   // tokens, as submitted
  std::int32_t last_block_fill(SequenceId id) const;                             // tokens; 0 without blocks

  // What an append of so many tokens would take: new blocks, a copy included. It succeeds when that is at most
  // available_blocks(). Throws as append does, except full.
  std::int64_t blocks_to_append(SequenceId id, std::int64_t tokens) const;
  std::int64_t available_blocks() const { return states_.free_blocks() + states_.cached_blocks(); }
  std::int64_t blocks_of(std::int64_t tokens) const {  // that so many tokens fill, from 0 up
    return tokens / config_.block_size + (tokens % config_.block_size != 0 ? 1 : 0);
  }
  // What submit would return now, for max_new > 0.
  std::int64_t reusable_tokens(std::span<const TokenId> prompt) const;
  // For a queue in front of the pool: refuses at once what can never run.
  // Throws BlockPoolError (empty_prompt, wrong_size, never_fits).
  void check_fits(std::int64_t prompt_tokens, std::int64_t max_new) const;

  std::int32_t references(std::int32_t block) const;  // tables that hold it; throws BlockPoolError (unknown_block)
  std::int32_t num_blocks() const { return config_.num_blocks; }
  std::int32_t block_size() const { return config_.block_size; }
  BlockPoolUsage usage() const;  // O(1)

  // Bookkeeping of one block, in bytes: below 64. Besides, a pool with prefix_reuse keeps the tokens to compare, 4
  // bytes a slot, and a sequence its table, 4 bytes for each block that it may come to hold.
  static double bytes_per_block(const BlockPoolConfig& config);

  // A sentence for everything that does not hold: the counts against the tables, each block in exactly one state, the
  // lists and the prefix index whole. Empty when all is well. Reads everything; meant for tests and debugging.
  std::vector<std::string> check_invariants() const;

  bool operator==(const BlockPool& other) const;  // the whole state, the order of the lists included

 private:
  friend struct BlockPoolCorruption;  // a test breaks a pool to see check_invariants find it

  struct Sequence {
    std::pmr::vector<std::int32_t> table;  // reserved for the capacity, so that append allocates nothing
    std::int64_t length = 0;               // tokens
    std::int64_t before_append = 0;        // tokens in front of the last append
    std::uint64_t append_step = 0;         // in which it was; 0: none
    std::int64_t capacity = 0;             // tokens
    std::int64_t known = 0;                // tokens in front whose content the pool knows
    std::int64_t published = 0;            // blocks in front that the prefix index has
    Prefix prefix = {};                    // of those blocks
    bool operator==(const Sequence&) const = default;
  };

  const Sequence& sequence(SequenceId id) const;
  Sequence& sequence(SequenceId id);
  std::int64_t computed(const Sequence& s) const { return s.append_step == step_ ? s.before_append : s.length; }
  void check_unused(SequenceId id) const;
  void check_computed(SequenceId id, const Sequence& s, const char* action) const;
  Sequence& insert(SequenceId id, std::int64_t capacity);
  // Free slots of the last block.
  std::int64_t room(const Sequence& s) const { return std::ssize(s.table) * config_.block_size - s.length; }
  bool must_copy(const Sequence& s) const;
  std::int64_t checked_new_blocks(SequenceId id, const Sequence& s, std::int64_t tokens) const;
  void check_append(SequenceId id, const Sequence& s, std::int64_t tokens) const;
  void grow(Sequence& s, std::int64_t tokens);
  void copy_last_block(Sequence& s);
  std::int32_t take_block();
  bool is_block(std::int32_t number) const { return number >= 0 && number < config_.num_blocks; }
  bool is_published(std::int32_t block) const { return config_.prefix_reuse && index_.contains(block); }
  void publish(Sequence& s, std::int64_t computed);
  void end(Sequence& s, SequenceId id);
  void put_away(std::int32_t block);
  std::vector<BlockStates::Holders> holders(std::vector<std::string>& broken) const;
  void check_sequences(std::vector<std::string>& broken) const;

  BlockPoolConfig config_;
  BlockStates states_;
  PrefixIndex index_;  // empty without prefix_reuse
  std::pmr::unordered_map<SequenceId, Sequence> sequences_;
  std::pmr::vector<std::pmr::vector<std::int32_t>> spare_tables_;  // of ended sequences, to be used again
  std::pmr::vector<BlockCopy> copies_;
  std::uint64_t step_ = 1;
  std::int64_t table_entries_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t filled_slots_ = 0;
  std::int64_t reused_tokens_ = 0;
  std::int64_t copied_blocks_ = 0;
  std::int64_t evicted_blocks_ = 0;
};

}  // namespace inferometer
