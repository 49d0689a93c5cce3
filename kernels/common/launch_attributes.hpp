// The attributes of a launch, and the rules of one that begins early (programmatic stream serialization).
//
// A kernel of a chain lets the next one begin at once, so that several may wait on the chip for the one that works.
// What makes that safe, whichever of them have begun:
//  - Before griddepcontrol_wait a kernel reads only what no kernel of the chain writes (weights, the inputs of a step,
//    keys of earlier steps) and writes nothing but its own shared memory. Plain loads, not __ldg, read the rest.
//  - Every block waits before it ends. So a kernel ends only after all in front of it, and what waits for the kernel in
//    front waits for all of them: buffers and workspaces may be used again.
//  - The first kernel of a chain waits before it lets others begin: what was in front of the chain is over for all.
//  - A kernel begins when all blocks of the one in front are on the chip; so the oldest that has not ended always has
//    what it needs to go on.
#pragma once

#include <cuda_runtime_api.h>

namespace inferometer {

class LaunchAttributes {
 public:
  // Blocks of a cluster along x; 1: none.
  void add_cluster(unsigned blocks) {
    if (blocks == 1) return;
    cudaLaunchAttribute& attribute = add(cudaLaunchAttributeClusterDimension);
    attribute.val.clusterDim = {blocks, 1, 1};
  }

  // The kernel may begin before the one in front has ended. Compute capability 9.0 and later.
  void add_early(bool early) {
    if (early) add(cudaLaunchAttributeProgrammaticStreamSerialization).val.programmaticStreamSerializationAllowed = 1;
  }

  // For as long as these attributes live.
  void give_to(cudaLaunchConfig_t& config) {
    config.attrs = attributes_;
    config.numAttrs = count_;
  }

 private:
  cudaLaunchAttribute& add(cudaLaunchAttributeID id) {
    attributes_[count_].id = id;
    return attributes_[count_++];
  }

  cudaLaunchAttribute attributes_[2] = {};
  unsigned count_ = 0;
};

}  // namespace inferometer
