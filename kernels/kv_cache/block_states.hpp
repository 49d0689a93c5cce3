// The state of every block of a pool: who holds it, or the list it waits in. Flat arrays and intrusive lists: 16 bytes
// a block, every operation O(1).
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

namespace inferometer {

inline constexpr std::int32_t kNoBlock = -1;

class BlockStates {
 public:
  BlockStates(std::int32_t num_blocks, std::pmr::memory_resource* memory);

  // Gives a table a block without content: the one freed last, at first the lowest; kNoBlock when none is free.
  std::int32_t take_free();
  // Gives a table the cached block that was released longest ago; kNoBlock when none is cached.
  std::int32_t take_cached();
  // One more table holds the block, which is owned or cached.
  void add_reference(std::int32_t block);
  // One table less holds it. Returns whether that was the last holder; then the caller puts it into a list.
  bool drop_reference(std::int32_t block);
  void put_free(std::int32_t block);
  void put_cached(std::int32_t block);  // to be taken after all that are cached now

  // A copy that is to be made reads the source and writes the destination: neither may be given away until then.
  void hold_for_copy(std::int32_t source, std::int32_t destination);
  // The copy was made. Each returns whether nothing holds the block any more, as drop_reference.
  bool drop_source(std::int32_t block);
  bool drop_destination(std::int32_t block);

  std::int32_t references(std::int32_t block) const { return at(block).references; }
  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t free_blocks() const { return free_.size; }
  std::int32_t cached_blocks() const { return cached_.size; }
  std::int32_t referenced_blocks() const { return referenced_; }  // owned by a table, not only held for a copy

  static constexpr std::int64_t bytes_per_block() { return sizeof(Block); }

  struct Holders {
    std::int32_t tables = 0;
    std::int32_t reading_copies = 0;
    std::int32_t writing_copies = 0;
  };
  // Adds a sentence for everything that does not hold, given who holds each block. Returns which ones are cached.
  std::vector<bool> check(const std::vector<Holders>& holders, std::vector<std::string>& broken) const;

  bool operator==(const BlockStates&) const = default;

 private:
  friend struct BlockPoolCorruption;

  static constexpr std::int32_t kDestination = -1;

  struct Block {
    std::int32_t references = 0;  // tables
    std::int32_t holds = 0;       // pending copies that read it, or kDestination
    std::int32_t previous = kNoBlock;
    std::int32_t next = kNoBlock;  // in the free or the cached list
    bool operator==(const Block&) const = default;
  };
  struct List {
    std::int32_t first = kNoBlock;
    std::int32_t last = kNoBlock;
    std::int32_t size = 0;
    bool operator==(const List&) const = default;
  };

  Block& at(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }
  const Block& at(std::int32_t block) const { return blocks_[static_cast<std::size_t>(block)]; }
  static bool is_unheld(const Block& block) { return block.references == 0 && block.holds == 0; }
  void push_front(List& list, std::int32_t block);
  void push_back(List& list, std::int32_t block);
  void remove(List& list, std::int32_t block);
  std::int32_t take_first(List& list);
  std::vector<bool> check_list(const List& list, const std::string& name, std::vector<std::string>& broken) const;

  std::pmr::vector<Block> blocks_;
  List free_;
  List cached_;  // first: released longest ago
  std::int32_t referenced_ = 0;
};

}  // namespace inferometer
