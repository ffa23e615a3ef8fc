// The memory of a call's tensors, as bytes: what may share some.
//
// Elements of a tensor may lie between those of others, as those of a column do: such tensors are
// taken where one step shows that they are columns side by side. Other layouts are refused, though
// they may share no element.
//
// Threads: any. Errors: std::runtime_error, with a sentence that says what is expected.
#ifndef GRADCUBE_TRAINER_TORCH_SPANS_H_
#define GRADCUBE_TRAINER_TORCH_SPANS_H_

#include <ATen/core/Tensor.h>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <vector>

namespace gradcube::pytorch {

// Bytes that a call reads or writes.
struct Span {
  struct Dimension {
    std::size_t count = 0;
    std::size_t step = 0;  // bytes
  };
  const char* begin = nullptr;
  std::size_t bytes = 0;
  bool is_written = false;
  // Where others may lie between its elements: the bytes of a run that has no gap, and how runs
  // follow each other, the longest steps first. No runs: the span has all bytes, and `run` means
  // nothing.
  std::size_t run = 0;
  std::vector<Dimension> runs = {};
};

// Of the spans from end to end.
bool overlap(const Span& one, const Span& other);

// From the tensor's first element to behind its last one, whatever is between them.
Span extent_of(const at::Tensor& tensor);

// Of a tensor that is written by copies; one without elements has none. One whose elements share
// memory is refused, as is one whose rows lie among each other.
std::optional<Span> written_span(const at::Tensor& tensor);

// None that is written shares a byte with another one, as far as that shows.
void check_apart(const std::vector<Span>& spans);

// Of tensors that do, though one is written.
std::runtime_error shared_memory();

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_SPANS_H_
