#include "harness/run/journal.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "harness/results/record_json.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

JournalHeader header() {
  JournalHeader header;
  header.config_sha256 = "c";
  header.binary_sha256 = "b";
  header.device = "GPU-1 NVIDIA H200";
  header.driver = "580";
  header.seed = 7;
  header.started_at = "2026-11-29T14:00:00Z";
  return header;
}

Record record(const std::string& id) {
  Record record = sample_record();
  record.id = id;
  return record;
}

}  // namespace

TEST_CASE("journal: a last record cut at any byte is left out, the ones before it stay", "[run][journal]") {
  const ScratchFolder folder;
  const std::string path = folder / "r.jsonl";
  std::size_t before_last = 0;
  {
    Journal journal(path);
    journal.begin(header());
    journal.append(record("000000000001"));
    before_last = read_text(path).size();
    journal.append(record("000000000002"));
  }
  const std::string whole = read_text(path);
  CHECK(Journal(path).read()->records.size() == 2);
  for (std::size_t bytes = before_last; bytes < whole.size(); ++bytes) {
    write_text(path, whole.substr(0, bytes));
    Journal journal(path);
    const auto content = journal.read();
    INFO("cut after " << bytes << " of " << whole.size() << " bytes");
    REQUIRE(content);
    REQUIRE(content->records.size() == 1);
    REQUIRE(content->bytes == before_last);
    REQUIRE(difference(header(), content->header) == "");
    if (bytes % 97 != 0) continue;  // going on after the cut: a sample of them, each is flushed to the disk
    journal.continue_after(*content);
    journal.append(record("000000000002"));
    REQUIRE(read_text(path) == whole);
  }
}

TEST_CASE("journal: cut at any byte at all, it gives the whole records before the cut", "[run][journal]") {
  const ScratchFolder folder;
  const std::string path = folder / "r.jsonl";
  std::vector<std::size_t> ends;  // of the header and of each record
  {
    Journal journal(path);
    journal.begin(header());
    ends.push_back(read_text(path).size());
    for (const char* id : {"000000000001", "000000000002", "000000000003"}) {
      journal.append(record(id));
      ends.push_back(read_text(path).size());
    }
  }
  const std::string whole = read_text(path);
  for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    write_text(path, whole.substr(0, bytes));
    const auto content = Journal(path).read();
    INFO("cut after " << bytes << " of " << whole.size() << " bytes");
    const auto lines = static_cast<std::size_t>(
        std::count_if(ends.begin(), ends.end(), [&](std::size_t end) { return end <= bytes; }));
    REQUIRE(content.has_value() == (lines > 0));
    if (!content) continue;
    REQUIRE(content->records.size() == lines - 1);
    REQUIRE(content->bytes == ends[lines - 1]);
  }
}

TEST_CASE("journal: cut in its header it holds nothing", "[run][journal]") {
  const ScratchFolder folder;
  const std::string path = folder / "r.jsonl";
  {
    Journal journal(path);
    journal.begin(header());
  }
  const std::string whole = read_text(path);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write_text(path, whole.substr(0, bytes));
    REQUIRE_FALSE(Journal(path).read());
  }
}

TEST_CASE("journal: a broken line in the middle is an error with its number", "[run][journal]") {
  const ScratchFolder folder;
  const std::string path = folder / "r.jsonl";
  {
    Journal journal(path);
    journal.begin(header());
    journal.append(record("000000000001"));
  }
  const std::string whole = read_text(path);
  write_text(path, whole + "{\"id\": 3}\n" + whole.substr(whole.find('\n') + 1));
  CHECK_THROWS_WITH(Journal(path).read(), test::contains_text(path + ":3: not a journal"));
}

TEST_CASE("journal: names everything in which two runs differ", "[run][journal]") {
  JournalHeader other = header();
  other.driver = "";
  other.seed = 8;
  other.devices.threads_used = 2;
  CHECK(difference(other, header()) ==
        "driver is none, the journal's is 580; seed is 8, the journal's is 7; threads_used is 2, the journal's is 1");
}

TEST_CASE("journal: is held by one process, and an untouched new file is removed", "[run][journal]") {
  const ScratchFolder folder;
  {
    const Journal first(folder / "r.jsonl");
    CHECK_THROWS_WITH(Journal(folder / "r.jsonl"), test::contains_text("another run is writing this file"));
  }
  CHECK(folder.empty());
}

TEST_CASE("journal: a full disk is an error, and what was written before stays readable", "[run][journal]") {
  const ScratchFolder folder;
  const std::string path = folder / "r.jsonl";
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    Journal journal(path);
    journal.begin(header());
    journal.append(record("000000000001"));
    const rlim_t room = read_text(path).size() + 100;  // less than a record
    const rlimit limit{room, room};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      journal.append(record("000000000002"));
    } catch (const JournalError&) {
      _exit(42);
    }
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 42);
  const std::string text = read_text(path);
  CHECK(text.back() == '\n');
  CHECK(Journal(path).read()->records.size() == 1);
}
