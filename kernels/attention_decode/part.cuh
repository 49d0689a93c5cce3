// What one thread block of the decode kernel works on.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/partition.hpp"

namespace inferometer::decode {

// A part of the keys of one sequence, for one block of the query rows of one KV head.
struct Part {
  std::int64_t unit;  // the sequence, KV head and row block that it is a part of
  int sequence;
  int kv_head;
  int first_row;  // query rows [first_row, end_row) of the KV head: row r is new token r / group, query head r % group
  int end_row;
  int index;      // of this part
  int first_key;  // keys [first_key, end_key)

  int end_key;  // until the length is known: what copies may take

  // Known once the length is.
  int length = 0;  // of the sequence
  int count = 0;   // parts of this sequence that hold keys; blocks of further parts have nothing to do
};

// The grid is (KV heads, parts, row blocks and sequences): KV heads vary fastest, since their rows are neighbours in
// memory and are read at the same time; then parts. Where the parts of a unit are a cluster, they change places with
// the KV heads.
template <class Shape>
__device__ __forceinline__ Part part_of_block(const DecodeArgs& args) {
  Part part;
  part.kv_head = args.cluster ? blockIdx.y : blockIdx.x;
  part.index = args.cluster ? blockIdx.x : blockIdx.y;
  part.sequence = blockIdx.z;
  int row_block = 0;
  if (args.row_blocks > 1) {  // neighbours, so that the second one finds K and V in the L2
    part.sequence = blockIdx.z / args.row_blocks;
    row_block = blockIdx.z % args.row_blocks;
  }
  part.unit = std::int64_t{blockIdx.z} * args.kv_heads + part.kv_head;
  part.first_row = row_block * Shape::kBlockRows;
  part.end_row = min(part.first_row + Shape::kBlockRows, static_cast<int>(args.group.divisor()) * args.q_len);
  part.first_key = part.index * args.keys_per_part;
  part.end_key = min(part.first_key + args.keys_per_part, args.early_keys);
  return part;
}

// Parts that start at the same keys whatever the length is, so that loads can begin before it is known.
__device__ __forceinline__ bool starts_are_fixed(const DecodeArgs& args) {
  return args.keys_per_part > 0 && args.window_left < 0;
}

__device__ __forceinline__ void set_length(Part& part, const DecodeArgs& args, int length) {
  const int parts = static_cast<int>(args.parts.divisor());
  part.length = length;
  if (starts_are_fixed(args) && parts == 1) {  // the common case, without a division
    part.count = 1;
    part.end_key = min(part.first_key + args.keys_per_part, length);
    return;
  }
  const int first = first_part_key(length, args.q_len, args.window_left);
  const int keys = args.keys_per_part > 0 ? args.keys_per_part : part_keys(length - first, parts);
  part.count = nonempty_parts(length - first, keys);
  part.first_key = first + part.index * keys;
  part.end_key = min(part.first_key + keys, length);
}

// A query row as the problem counts: which new token, and which query head of the KV head.
struct QueryRow {
  int token;
  int head;
};
__device__ __forceinline__ QueryRow query_row(const DecodeArgs& args, int row) {
  const int token = static_cast<int>(args.group.quotient(row));
  return {token, row - token * static_cast<int>(args.group.divisor())};
}

// Element of Q and O at which a query row begins.
template <class Shape>
__device__ __forceinline__ std::int64_t query_offset(const DecodeArgs& args, const Part& part, QueryRow row) {
  const std::int64_t token = std::int64_t{part.sequence} * args.q_len + row.token;
  return ((token * args.kv_heads + part.kv_head) * args.group.divisor() + row.head) * Shape::kHeadDim;
}

}  // namespace inferometer::decode
