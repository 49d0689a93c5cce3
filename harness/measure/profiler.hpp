// The part of a program that profilers are to look at.
#pragma once

namespace inferometer {

// cudaProfilerStart on construction, cudaProfilerStop on destruction. Does nothing in a build without CUDA, or where
// `on_gpu` is false: a CPU row needs no GPU, and no profiler's permission. Without a profiler both calls are harmless.
class ProfiledPart {
 public:
  explicit ProfiledPart(bool on_gpu);
  ~ProfiledPart();
  ProfiledPart(const ProfiledPart&) = delete;
  ProfiledPart& operator=(const ProfiledPart&) = delete;

 private:
  bool on_gpu_;
};

}  // namespace inferometer
