// The child process of nvtx_test.cpp: two rows, the first with phases inside.
#include "harness/measure/nvtx.hpp"

int main() {
  using inferometer::NvtxRange;
  {
    const NvtxRange row("matmul/cpu.eigen/3f9a1c20b7de");
    { const NvtxRange phase("prepare"); }
    { const NvtxRange phase("measure"); }
  }
  const NvtxRange row("matmul/cpu.eigen/000000000001");
  const NvtxRange phase("measure");
  return 0;
}
