#include "harness/run/output_path.hpp"

#include <filesystem>
#include <system_error>

#include "harness/results/file_write.hpp"
#include "harness/run/journal.hpp"

namespace inferometer {
namespace fs = std::filesystem;

std::string resolve_output(const std::string& output) {
  if (output.empty()) throw OutputError("the output file has no name; give one with -o FILE.json");
  std::error_code absent;  // a file that is not there yet is no error
  std::error_code error;
  const fs::path path = fs::is_symlink(output, absent) ? fs::weakly_canonical(output, error) : fs::path(output);
  if (error) throw OutputError("cannot write " + output + ": " + error.message());
  const fs::file_status status = fs::status(path, absent);
  if (fs::is_directory(status) || !path.has_filename())
    throw OutputError("cannot write " + output + ": it is a folder; give a file in it, " +
                      (path / "results.json").lexically_normal().string());
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw OutputError("cannot write " + output + ": it is no regular file");
  if (const fs::path folder = path.parent_path(); !folder.empty()) {
    fs::create_directories(folder, error);
    if (error)
      throw OutputError("cannot write " + output + ": cannot make folder " + folder.string() + ": " + error.message());
  }
  return path.string();
}

void check_room(const std::string& path, std::size_t rows) {
  constexpr std::size_t kBase = 64 << 10;
  constexpr std::size_t kBytesPerRow = 8 << 10;  // a row takes 2 KiB in the journal and 3 in the results file, indented
  try {
    check_writable(path, kBase + rows * kBytesPerRow);
  } catch (const std::system_error& error) {
    throw OutputError(error.what());
  }
}

}  // namespace inferometer
