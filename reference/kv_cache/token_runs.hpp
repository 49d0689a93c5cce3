// Which stretches of memory hold the tokens of a sequence: what CPU variants walk along.
#pragma once

#include <cstdint>
#include <vector>

namespace inferometer {

// Where one sequence lies in a cache.
struct SequencePages {
  const std::int32_t* blocks = nullptr;  // paged: its row of the block table; contiguous: null
  std::int64_t page = 0;                 // contiguous: its reservation
  std::int64_t slots_of_page = 0;        // tokens of a block, or of a reservation
};

// Consecutive tokens of one sequence that lie one after the other in the cache.
struct TokenRun {
  std::int64_t token;   // of the sequence
  std::int64_t page;    // block of the pool, or the reservation
  std::int64_t within;  // first slot of it
  std::int64_t count;
};

// Tokens [begin, end) of a sequence in runs of at most `most` tokens.
std::vector<TokenRun> token_runs(const SequencePages& pages, std::int64_t begin, std::int64_t end, std::int64_t most);

}  // namespace inferometer
