#include "cli/cluster/measurements.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;

class MeasurementsTest : public testing::Test {
 protected:
  MeasurementsTest() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    directory_.emplace(mkdtemp(name.data()));
  }
  ~MeasurementsTest() override { fs::remove_all(directory_->path()); }

  void write(const std::string& text) { std::ofstream(file()) << text; }
  fs::path file() const { return directory_->path() / "measured.json"; }
  Measurements read(const std::string& cluster = "here") const {
    return Measurements::read(*directory_, cluster);
  }

  std::optional<control::RunDirectory> directory_;
};

TEST_F(MeasurementsTest, AreThoseThatWereNotedLast) {
  Measurements measured = read();
  measured.note("bml", 1000, 0.5);
  measured.note("bml", 1000, 0.25);
  measured.note("ring", 1000, 1);
  measured.write(*directory_);
  EXPECT_EQ(read().seconds("bml", 1000), 0.25);
  EXPECT_EQ(read().seconds("ring", 1000), 1);
  EXPECT_EQ(read().seconds("bml", 1001), std::nullopt);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_->path()), {}), 1) << "no other file";
}

TEST_F(MeasurementsTest, OfAnotherClusterDoNotCount) {
  Measurements measured = read("there");
  measured.note("bml", 1000, 0.5);
  measured.write(*directory_);
  EXPECT_EQ(read("here").seconds("bml", 1000), std::nullopt);
  read("here").write(*directory_);
  EXPECT_EQ(read("there").seconds("bml", 1000), std::nullopt);
}

TEST_F(MeasurementsTest, NoteNoTimeThatIsNone) {
  Measurements measured = read();
  for (const double seconds : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    measured.note("bml", 1000, seconds);
    EXPECT_EQ(measured.seconds("bml", 1000), std::nullopt);
  }
}

TEST_F(MeasurementsTest, AreNoneInAFileOfAnotherForm) {
  for (const char* text :
       {"", "nonsense", "[]", "null", "7", R"({"cluster":7,"all_reduce":[]})",
        R"({"cluster":"here","all_reduce":7})", R"({"cluster":"here","all_reduce":{"a":1}})",
        R"({"cluster":"here","all_reduce":[7,null,{},{"algorithm":1,"bytes":1000,"seconds":1},)"
        R"({"algorithm":"bml","bytes":-1,"seconds":1},{"algorithm":"bml","bytes":1000}]})",
        "{\"cluster\":\"here\",\"all_reduce\":[{\"algorithm\":\"\xff\",\"bytes\":1000}]}"}) {
    write(text);
    EXPECT_EQ(read().seconds("bml", 1000), std::nullopt) << text;
  }
  fs::remove(file());
  fs::create_directory(file());
  EXPECT_EQ(read().seconds("bml", 1000), std::nullopt);
  EXPECT_THROW(read().write(*directory_), control::SetupError);
}

TEST_F(MeasurementsTest, AreNoneInAFileThatIsTooLarge) {
  Measurements measured = read();
  measured.note("bml", 1000, 1);
  measured.write(*directory_);
  ASSERT_EQ(read().seconds("bml", 1000), 1);
  std::ofstream(file(), std::ios::app) << std::string(5 << 20, ' ');
  EXPECT_EQ(read().seconds("bml", 1000), std::nullopt);
}

TEST_F(MeasurementsTest, AreLimitedInNumber) {
  Measurements measured = read();
  for (std::uint64_t i = 0; i <= Measurements::kMostEntries; ++i) measured.note("bml", i, 1);
  EXPECT_EQ(measured.seconds("bml", 0), 1);
  EXPECT_EQ(measured.seconds("bml", Measurements::kMostEntries), std::nullopt);
}

}  // namespace
}  // namespace gradcube::cli
