#include "harness/measure/nvtx.hpp"

#ifdef INFEROMETER_WITH_CUDA

#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>

namespace inferometer {
namespace {

// The domain and the names registered in it; both live as long as the process, as NVTX handles do.
class Domain {
 public:
  static Domain& instance() {
    static Domain domain;
    return domain;
  }

  void push(std::string_view name) {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = registered(name);
    nvtxDomainRangePushEx(domain_, &attributes);
  }

  void pop() { nvtxDomainRangePop(domain_); }

 private:
  Domain() : domain_(nvtxDomainCreateA("inferometer")) {}

  nvtxStringHandle_t registered(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = strings_.find(name);
    if (found != strings_.end()) return found->second;
    std::string key(name);
    auto* const handle = nvtxDomainRegisterStringA(domain_, key.c_str());
    strings_.emplace(std::move(key), handle);
    return handle;
  }

  nvtxDomainHandle_t domain_;
  std::mutex mutex_;
  std::map<std::string, nvtxStringHandle_t, std::less<>> strings_;
};

}  // namespace

NvtxRange::NvtxRange(std::string_view name) { Domain::instance().push(name); }
NvtxRange::~NvtxRange() { Domain::instance().pop(); }

}  // namespace inferometer

#else

namespace inferometer {

NvtxRange::NvtxRange(std::string_view /*name*/) {}
NvtxRange::~NvtxRange() = default;

}  // namespace inferometer

#endif
