// An NVTX tool for tests: loaded through NVTX_INJECTION64_PATH, it writes what the program marks, one event a line, to
// the file that INFEROMETER_NVTX_LOG names. The protocol is that of nvtx3/nvtxDetail/nvtxTypes.h.
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <fstream>
#include <list>
#include <map>
#include <string>

namespace {

struct Recorder {
  std::ofstream log{std::getenv("INFEROMETER_NVTX_LOG")};
  std::list<std::string> texts;              // their addresses are the handles: opaque to the program, and distinct
  std::map<const void*, std::string> names;  // of domains and registered strings, by handle

  template <class Handle>
  Handle give_handle(const char* name) {
    auto* const handle = reinterpret_cast<Handle>(&texts.emplace_back(name));
    names[handle] = name;
    return handle;
  }
};

Recorder& recorder() {
  static Recorder instance;
  return instance;
}

nvtxDomainHandle_t NVTX_API domain_create(const char* name) {
  recorder().log << "domain " << name << std::endl;
  return recorder().give_handle<nvtxDomainHandle_t>(name);
}

nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char* text) {
  recorder().log << "register " << recorder().names[domain] << ' ' << text << std::endl;
  return recorder().give_handle<nvtxStringHandle_t>(text);
}

int NVTX_API range_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const bool registered = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  recorder().log << "push " << recorder().names[domain] << ' '
                 << (registered ? recorder().names[attributes->message.registered] : "(not registered)") << std::endl;
  return 0;
}

int NVTX_API range_pop(nvtxDomainHandle_t domain) {
  recorder().log << "pop " << recorder().names[domain] << std::endl;
  return 0;
}

template <class Function>
NvtxFunctionPointer as_pointer(Function* function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
      size <= NVTX_CBID_CORE2_DomainCreateA)
    return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = as_pointer(&domain_create);
  *table[NVTX_CBID_CORE2_DomainRegisterStringA] = as_pointer(&register_string);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = as_pointer(&range_push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = as_pointer(&range_pop);
  return 1;
}
