// Places buffers with modelplan's solver: `place_buffers` three of them, `place_buffers N` a chain of N drawn ones.
#include <modelplan.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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
  std::uint64_t state = 1;
  const auto below = [&state](std::uint64_t limit) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((state >> 33U) % limit);
  };
  for (std::int64_t step = 0; step < count; ++step) {
    const std::int64_t life = below(50) == 0 ? 40 : 2;
    table.add(64 * (1 + below(256)), step, step + life);
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
  const std::clock_t began = std::clock();
  if (modelplan_place(&buffers, nullptr, offsets.data(), &result, message, sizeof message) != MODELPLAN_OK) {
    std::fprintf(stderr, "%s\n", message);
    return 1;
  }
  const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  std::printf("%zu buffers in %lld bytes, no placement needs less than %lld: %s\n", buffers.count,
              static_cast<long long>(result.height), static_cast<long long>(result.bound),
              modelplan_ended_name(result.ended));
  if (argc > 1) std::printf("%.3f s of processor time\n", seconds);
  for (std::size_t k = 0; argc == 1 && k < offsets.size(); ++k)
    std::printf("buffer %zu at %lld\n", k, static_cast<long long>(offsets[k]));
  return 0;
}
