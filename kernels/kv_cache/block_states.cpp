#include "kernels/kv_cache/block_states.hpp"

#include <utility>

namespace inferometer {

BlockStates::BlockStates(std::int32_t num_blocks, std::pmr::memory_resource* memory)
    : blocks_(static_cast<std::size_t>(num_blocks), memory) {
  for (std::int32_t block = 0; block < num_blocks; ++block) push_back(free_, block);
}

std::int32_t BlockStates::take_free() { return take_first(free_); }

std::int32_t BlockStates::take_cached() { return take_first(cached_); }

void BlockStates::add_reference(std::int32_t block) {
  if (is_unheld(at(block))) remove(cached_, block);
  if (at(block).references++ == 0) ++referenced_;
}

bool BlockStates::drop_reference(std::int32_t block) {
  if (--at(block).references == 0) --referenced_;
  return is_unheld(at(block));
}

void BlockStates::put_free(std::int32_t block) { push_front(free_, block); }

void BlockStates::put_cached(std::int32_t block) { push_back(cached_, block); }

void BlockStates::hold_for_copy(std::int32_t source, std::int32_t destination) {
  ++at(source).holds;
  at(destination).holds = kDestination;
}

bool BlockStates::drop_source(std::int32_t block) {
  --at(block).holds;
  return is_unheld(at(block));
}

bool BlockStates::drop_destination(std::int32_t block) {
  at(block).holds = 0;
  return is_unheld(at(block));
}

void BlockStates::push_front(List& list, std::int32_t block) {
  at(block).previous = kNoBlock;
  at(block).next = list.first;
  (list.first == kNoBlock ? list.last : at(list.first).previous) = block;
  list.first = block;
  ++list.size;
}

void BlockStates::push_back(List& list, std::int32_t block) {
  at(block).previous = list.last;
  at(block).next = kNoBlock;
  (list.last == kNoBlock ? list.first : at(list.last).next) = block;
  list.last = block;
  ++list.size;
}

void BlockStates::remove(List& list, std::int32_t block) {
  const auto [previous, next] = std::pair(at(block).previous, at(block).next);
  (previous == kNoBlock ? list.first : at(previous).next) = next;
  (next == kNoBlock ? list.last : at(next).previous) = previous;
  at(block).previous = at(block).next = kNoBlock;
  --list.size;
}

std::int32_t BlockStates::take_first(List& list) {
  const std::int32_t block = list.first;
  if (block == kNoBlock) return kNoBlock;
  remove(list, block);
  at(block).references = 1;
  ++referenced_;
  return block;
}

std::vector<bool> BlockStates::check_list(const List& list, const std::string& name,
                                          std::vector<std::string>& broken) const {
  std::vector<bool> members(blocks_.size());
  std::int32_t size = 0;
  std::int32_t previous = kNoBlock;
  for (std::int32_t block = list.first; block != kNoBlock; block = at(block).next) {
    if (block < 0 || block >= num_blocks() || members[static_cast<std::size_t>(block)]) {
      broken.push_back("the " + name + " list leads to block " + std::to_string(block) + " after " +
                       std::to_string(size) + " blocks");
      return members;
    }
    if (at(block).previous != previous)
      broken.push_back("block " + std::to_string(block) + " of the " + name + " list does not point back to " +
                       std::to_string(previous));
    members[static_cast<std::size_t>(block)] = true;
    previous = block;
    ++size;
  }
  if (size != list.size || previous != list.last)
    broken.push_back("the " + name + " list has " + std::to_string(size) + " blocks, the last " +
                     std::to_string(previous) + ", but says " + std::to_string(list.size) + " and " +
                     std::to_string(list.last));
  return members;
}

std::vector<bool> BlockStates::check(const std::vector<Holders>& holders, std::vector<std::string>& broken) const {
  const std::vector<bool> is_free = check_list(free_, "free", broken);
  std::vector<bool> is_cached = check_list(cached_, "cached", broken);
  std::int32_t referenced = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const Holders& expected = holders[i];
    const std::string name = "block " + std::to_string(i);
    if (block.references != expected.tables)
      broken.push_back(name + " counts " + std::to_string(block.references) + " tables, " +
                       std::to_string(expected.tables) + " hold it");
    if (expected.writing_copies > 1 || (expected.writing_copies == 1 && expected.reading_copies > 0))
      broken.push_back(name + " is written by " + std::to_string(expected.writing_copies) +
                       " pending copies and read by " + std::to_string(expected.reading_copies));
    const std::int32_t holds = expected.writing_copies > 0 ? kDestination : expected.reading_copies;
    if (block.holds != holds)
      broken.push_back(name + " is held by copies as " + std::to_string(block.holds) + ", should be " +
                       std::to_string(holds));
    const bool is_owned = expected.tables > 0 || holds != 0;
    if (int{is_free[i]} + int{is_cached[i]} + int{is_owned} != 1)
      broken.push_back(name + " is not in exactly one state: free " + std::to_string(is_free[i]) + ", cached " +
                       std::to_string(is_cached[i]) + ", owned " + std::to_string(is_owned));
    referenced += expected.tables > 0 ? 1 : 0;
  }
  if (referenced != referenced_)
    broken.push_back(std::to_string(referenced_) + " blocks are said to be in tables, " + std::to_string(referenced) +
                     " are");
  return is_cached;
}

}  // namespace inferometer
