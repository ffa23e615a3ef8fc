// allreduce.cc: the smallest trainer in C++. Start one per server; each prints the same sum.
//
//     g++ -std=c++20 allreduce.cc -o allreduce $(pkg-config --cflags --libs gradcube)
//     gradcube run -- ./allreduce
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <gradcube/gradcube.hpp>

int main(int argc, char** argv) {
  try {
    gradcube::Session session("example", argc > 1 ? argv[1] : "");
    auto numbers = session.buffer<double>(1000);
    std::fill(numbers.begin(), numbers.end(), session.rank());
    session.all_reduce(numbers.span(), gradcube::Op::sum).wait(std::chrono::minutes(1));
    std::printf("rank %d of %d: the sum of all ranks is %g\n", session.rank(), session.size(),
                numbers[0]);
    return 0;
  } catch (const gradcube::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
