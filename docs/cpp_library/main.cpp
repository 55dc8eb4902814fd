// Places buffers with modelplan's solver: `place_buffers` three of them, `place_buffers N` a chain of N drawn ones.
#include <modelplan.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

struct Table {
  std::vector<std::int64_t> size, start, end;

  void add(std::int64_t bytes, std::int64_t first, std::int64_t last) {
    size.push_back(bytes);
    start.push_back(first);
    end.push_back(last);  // the first step without the buffer
  }
};

Table drawn(std::int64_t count) {
  Table table;
  std::mt19937_64 random(1);
  for (std::int64_t step = 0; step < count; ++step) {
    const std::int64_t life = random() % 50 == 0 ? 40 : 2;
    table.add(static_cast<std::int64_t>(64 * (1 + random() % 256)), step, step + life);
  }
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  Table table;
  if (argc > 1) {
    table = drawn(std::atoll(argv[1]));
  } else {
    table.add(64, 0, 2);
    table.add(32, 1, 3);
    table.add(64, 2, 4);
  }
  modelplan_buffers buffers{};
  buffers.count = table.size.size();
  buffers.size = table.size.data();
  buffers.start = table.start.data();
  buffers.end = table.end.data();

  std::vector<std::int64_t> offsets(buffers.count);
  modelplan_result result{};
  char message[200] = "";
  const auto began = std::chrono::steady_clock::now();
  if (modelplan_place(&buffers, nullptr, offsets.data(), &result, message, sizeof message) != MODELPLAN_OK) {
    std::fprintf(stderr, "%s\n", message);
    return 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::printf("%zu buffers in %lld bytes, no placement needs less than %lld: %s\n", buffers.count,
              static_cast<long long>(result.height), static_cast<long long>(result.bound),
              modelplan_ended_name(result.ended));
  if (argc > 1) std::printf("%.3f s\n", seconds.count());
  for (std::size_t k = 0; argc == 1 && k < offsets.size(); ++k)
    std::printf("buffer %zu at %lld\n", k, static_cast<long long>(offsets[k]));
  return 0;
}
