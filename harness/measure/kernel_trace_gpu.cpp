#include "harness/measure/kernel_trace.hpp"

#if __has_include(<cupti.h>)

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace inferometer {
namespace {

// Records are laid out by the toolkit's major version.
constexpr int kMajor = CUDART_VERSION / 1000;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr auto kLaunch = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

// The last tells which API calls belong to a launch, and writes its records beside those of the calls.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

void* open_library() {
  const std::string name = "libcupti.so." + std::to_string(kMajor);
  std::vector<std::string> paths = {name};  // where the system's linker looks
  std::vector<std::string> toolkits = {"/usr/local/cuda"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(variable)) toolkits.emplace_back(folder);  // NOLINT(concurrency-mt-unsafe)
  for (const std::string& toolkit : toolkits)
    for (const char* folder : {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"}) paths.push_back(toolkit + folder + name);
  for (const std::string& path : paths)
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  std::string places = "the library path";
  for (const std::string& toolkit : toolkits) places += ", " + toolkit;
  throw ProfilerError("no " + name + " was found in any of " + places +
                      ": it comes with the CUDA Toolkit; name its folder in LD_LIBRARY_PATH");
}

// Stays as long as the process, as CUPTI's own threads may.
struct Library {
  void* handle = open_library();
  decltype(&cuptiGetVersion) get_version = find<decltype(&cuptiGetVersion)>("cuptiGetVersion");
  decltype(&cuptiGetResultString) get_result_string = find<decltype(&cuptiGetResultString)>("cuptiGetResultString");
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks =
      find<decltype(&cuptiActivityRegisterCallbacks)>("cuptiActivityRegisterCallbacks");
  decltype(&cuptiActivityEnable) enable = find<decltype(&cuptiActivityEnable)>("cuptiActivityEnable");
  decltype(&cuptiActivityDisable) disable = find<decltype(&cuptiActivityDisable)>("cuptiActivityDisable");
  decltype(&cuptiActivityFlushAll) flush = find<decltype(&cuptiActivityFlushAll)>("cuptiActivityFlushAll");
  decltype(&cuptiActivityGetNextRecord) next_record =
      find<decltype(&cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord");
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records =
      find<decltype(&cuptiActivityGetNumDroppedRecords)>("cuptiActivityGetNumDroppedRecords");
  decltype(&cuptiActivityPushExternalCorrelationId) push =
      find<decltype(&cuptiActivityPushExternalCorrelationId)>("cuptiActivityPushExternalCorrelationId");
  decltype(&cuptiActivityPopExternalCorrelationId) pop =
      find<decltype(&cuptiActivityPopExternalCorrelationId)>("cuptiActivityPopExternalCorrelationId");

  template <class Function>
  Function find(const char* name) const {
    void* const symbol = dlsym(handle, name);
    if (symbol == nullptr) throw ProfilerError("this CUPTI has no " + std::string(name));
    return reinterpret_cast<Function>(symbol);
  }

  void check(CUptiResult result, const char* call) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    get_result_string(result, &text);
    throw ProfilerError(std::string(call) + " failed: " + (text == nullptr ? "unknown error" : text));
  }
};

const Library& library() {
  static const auto* const only = new Library;
  return *only;
}

struct Store {
  std::mutex mutex;  // CUPTI hands buffers over from a thread of its own
  TraceRecords records;
};

Store& store() {
  static auto* const only = new Store;
  return *only;
}

template <class Record>
void add_activity(TraceRecords& records, const CUpti_Activity* record, std::string name) {
  const auto* const activity = reinterpret_cast<const Record*>(record);
  records.activities.push_back(
      {.call = activity->correlationId, .start_ns = activity->start, .end_ns = activity->end, .name = std::move(name)});
}

// The fields that are read have the same places in all versions of a record since 12.4.
void add(TraceRecords& records, const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const char* const name = reinterpret_cast<const CUpti_ActivityKernel9*>(record)->name;
    add_activity<CUpti_ActivityKernel9>(records, record, kernel_name(name == nullptr ? "" : name));
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    add_activity<CUpti_ActivityMemcpy5>(records, record, "memcpy");
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    add_activity<CUpti_ActivityMemset4>(records, record, "memset");
  } else if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto* const call = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
    if (call->externalKind == kLaunch)
      records.calls.push_back({.call = call->correlationId, .launch = call->externalId});
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::malloc(kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t /*bytes*/,
                          std::size_t used_bytes) {
  const Library& cupti = library();
  std::size_t dropped = 0;
  CUpti_Activity* record = nullptr;
  const std::lock_guard lock(store().mutex);
  while (cupti.next_record(buffer, used_bytes, &record) == CUPTI_SUCCESS) add(store().records, record);
  if (cupti.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) store().records.dropped += dropped;
  std::free(buffer);
}

std::string version_of(const Library& cupti) {
  std::uint32_t version = 0;
  cupti.check(cupti.get_version(&version), "cuptiGetVersion");
  constexpr std::uint32_t kNumberedAsToolkit = 100'000;  // 130001 is of 13.0; before 13 CUPTI counted from 1
  if (version < kNumberedAsToolkit) return std::to_string(kMajor) + " (API " + std::to_string(version) + ")";
  return std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100);
}

}  // namespace

KernelTrace::KernelTrace() {
  const Library& cupti = library();
  tool_ = "CUPTI " + version_of(cupti);
  cupti.check(cupti.register_callbacks(&give_buffer, &take_buffer), "cuptiActivityRegisterCallbacks");
  for (const CUpti_ActivityKind kind : kKinds) {
    const CUptiResult result = cupti.enable(kind);
    if (result == CUPTI_SUCCESS) continue;
    for (const CUpti_ActivityKind enabled : kKinds) cupti.disable(enabled);
    cupti.check(result, "cuptiActivityEnable");
  }
}

KernelTrace::~KernelTrace() {
  for (const CUpti_ActivityKind kind : kKinds) library().disable(kind);
  library().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard lock(store().mutex);
  store().records = {};
}

KernelTrace::Launch::Launch(int number) {
  library().check(library().push(kLaunch, static_cast<std::uint64_t>(number)),
                  "cuptiActivityPushExternalCorrelationId");
}

KernelTrace::Launch::~Launch() {
  std::uint64_t number = 0;
  library().pop(kLaunch, &number);
}

TraceRecords KernelTrace::take() const {
  library().check(library().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  const std::lock_guard lock(store().mutex);
  return std::exchange(store().records, {});
}

}  // namespace inferometer

#else

namespace inferometer {

KernelTrace::KernelTrace() {
  throw ProfilerError("this build has no CUPTI: the CUDA Toolkit that it was made with lacks cupti.h");
}
KernelTrace::~KernelTrace() = default;
KernelTrace::Launch::Launch(int /*number*/) {}
KernelTrace::Launch::~Launch() = default;
TraceRecords KernelTrace::take() const { return {}; }

}  // namespace inferometer

#endif
