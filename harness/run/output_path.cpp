#include "harness/run/output_path.hpp"

#include <filesystem>
#include <system_error>

#include "harness/results/file_write.hpp"
#include "harness/results/results_file.hpp"
#include "harness/run/journal.hpp"

namespace inferometer {
namespace fs = std::filesystem;

namespace {

// Where a file written through `path` comes to lie. The standard's canonical() does not go to a file not there yet.
fs::path target_of_links(fs::path path, std::error_code& error) {
  constexpr int kMostLinks = 40;  // as Linux
  std::error_code absent;
  for (int links = 0; fs::is_symlink(path, absent); ++links) {
    if (links == kMostLinks) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    if (error) break;
    path = path.parent_path() / fs::read_symlink(path, error);  // an absolute target takes the place of both
  }
  return path;
}

}  // namespace

std::string resolve_output(const std::string& output) {
  if (output.empty()) throw OutputError("the output file has no name; give one with -o FILE.json");
  std::error_code absent;  // a file that is not there yet is no error
  const fs::file_status status = fs::status(output, absent);
  if (fs::is_directory(status) || !fs::path(output).has_filename())
    throw OutputError("cannot write " + output + ": it is a folder; give a file in it, " +
                      (fs::path(output) / "results.json").lexically_normal().string());
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw OutputError("cannot write " + output + ": it is no regular file");
  std::error_code error;
  const fs::path path = target_of_links(output, error);
  if (error) throw OutputError("cannot write " + output + ": " + error.message());
  if (fs::exists(status) && fs::file_size(path, absent) != 0 && !rows_in_results_file(path))
    throw OutputError(output +
                      " exists and cannot be read as a results file of this program; move it away, or choose another "
                      "-o");
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
