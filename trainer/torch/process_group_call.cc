// What the calls of the process group have in common: memory and copies for their tensors, and how
// they begin.

#include <ATen/ATen.h>
#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "trainer/torch/process_group.h"
#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {
namespace {

using c10d::OpType;

// Of a tensor on a device. A smaller one would take longer for its request than for its copies.
constexpr std::size_t kPart = std::size_t{1} << 22;

}  // namespace

void ProcessGroupGradcube::check_rank(const char* role, std::int64_t rank) const {
  if (rank >= 0 && rank < size_) return;
  throw std::runtime_error(std::string("invalid ") + role + ' ' + std::to_string(rank) +
                           ": expected a rank of the group, 0 to " + std::to_string(size_ - 1));
}

ProcessGroupGradcube::Milliseconds ProcessGroupGradcube::limit_of(Milliseconds timeout) const {
  return timeout == c10d::kUnsetTimeout ? timeout_.load() : timeout;
}

std::shared_ptr<DeviceLink> ProcessGroupGradcube::link_to(const at::Device& device) {
  const std::lock_guard<std::mutex> lock(links_mutex_);
  std::shared_ptr<DeviceLink>& link = links_[device.str()];
  if (link == nullptr) link = std::make_shared<DeviceLink>(session_, device);
  return link;
}

// Makes a call and submits it, as a whole. What our rules refuse is a std::runtime_error, and takes
// no place among collectives. With anything else this rank alone has failed, and others' collective
// would meet its next one: the group ends.
c10::intrusive_ptr<GradcubeWork> ProcessGroupGradcube::in_step(
    OpType type, c10::function_ref<c10::intrusive_ptr<GradcubeWork>()> make) {
  try {
    return make();
  } catch (const std::exception& error) {
    const bool is_refused = dynamic_cast<const std::runtime_error*>(&error) != nullptr &&
                            dynamic_cast<const std::system_error*>(&error) == nullptr;
    const bool is_collective = type != OpType::SEND && type != OpType::RECV;
    if (!is_refused && is_collective && progress_ != nullptr) progress_->lose_order(error.what());
    throw;
  }
}

ProcessGroupGradcube::WorkPointer ProcessGroupGradcube::perform(
    OpType type, const char* title, const Tensors& inputs, const Tensors& outputs,
    Milliseconds timeout, c10::function_ref<void(Call& call)> fill) {
  const auto work = in_step(type, [&] {
    Call call{type, title, inputs, outputs};
    fill(call);
    return begin(call, timeout);
  });
  work->look_for_signals();
  return work;
}

// Memory of the CPU for a copy of tensors.
at::Tensor ProcessGroupGradcube::workspace(Call& call, const at::Tensor& like,
                                           std::int64_t elements, std::size_t kind) {
  at::Tensor memory;
  if (like.device().is_cpu()) {
    const Sharing scope(session_);
    memory = at::empty({elements}, like.options().requires_grad(false));
    call.workspaces.push_back(memory);
  } else {
    if (call.stage == nullptr) common_device(call.inputs, call.outputs);  // before any is copied
    if (call.stage == nullptr) call.stage = std::make_shared<Stage>(link_to(like.device()));
    memory = call.stage->memory(like, elements);
  }
  // Elsewhere it is counted as any memory that the library has to copy.
  if (is_shared(memory.data_ptr(), memory.nbytes())) counters_[kind].staged += memory.nbytes();
  return memory;
}

// The tensor, or a copy of it that is contiguous, and is copied back in the end if it is written.
at::Tensor ProcessGroupGradcube::plain(Call& call, const at::Tensor& tensor, Use use,
                                       std::size_t kind) {
  if (is_plain(tensor)) return tensor;
  if (is_dense(tensor)) {  // on a device
    call.device_uses.push_back(
        {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes(), use != Use::read});
  }
  const at::Tensor copy = workspace(call, tensor, tensor.numel(), kind).view(tensor.sizes());
  if (use != Use::write) copy_in(call, copy, tensor);
  if (use == Use::read) return copy;
  if (is_dense(tensor)) {
    call.copies.push_back({tensor, copy});
  } else {
    copy_out(call, {tensor, copy});
  }
  return copy;
}

// When the requests have ended. Nothing else of the call may lie there.
void ProcessGroupGradcube::copy_out(Call& call, const Copy& copy) {
  add_written(call, copy.to);
  call.copies.push_back(copy);
}

void ProcessGroupGradcube::add_written(Call& call, const at::Tensor& tensor) {
  std::vector<Span>& uses = tensor.device().is_cpu() ? call.uses : call.device_uses;
  const std::optional<Span> span = written_span(tensor);
  if (span.has_value()) uses.push_back(*span);
}

// Before the requests that are added later.
void ProcessGroupGradcube::copy_in(Call& call, const at::Tensor& to, const at::Tensor& from) {
  if (call.stage == nullptr) {
    to.copy_(from);
  } else {
    call.stage->copy(to, from);
  }
}

// What this rank gives itself: not before the call is known to be right, but for memory of the
// stage, which requests use.
void ProcessGroupGradcube::copy_own(Call& call, const at::Tensor& to, const at::Tensor& given) {
  // What goes to another rank has no shape either.
  const bool has_other_shape = to.numel() == given.numel() && to.sizes() != given.sizes();
  const at::Tensor from = has_other_shape ? given.reshape(to.sizes()) : given;
  if (call.stage == nullptr || !to.device().is_cpu()) {
    call.own.push_back({to, from});
  } else {
    copy_in(call, to, from);
  }
}

bool ProcessGroupGradcube::is_copy_of(const Call& call, const at::Tensor& memory) {
  return call.stage != nullptr ||
         std::any_of(call.workspaces.begin(), call.workspaces.end(),
                     [&memory](const at::Tensor& one) { return memory.is_alias_of(one); });
}

// `bytes` from the tensor's first element on, whose address it gives; null if it is undefined.
void* ProcessGroupGradcube::use(Call& call, const at::Tensor& memory, std::size_t bytes,
                                bool is_written, std::size_t kind, bool is_carried) {
  void* begin = nullptr;
  const bool is_copy = memory.defined() && is_copy_of(call, memory);
  if (memory.defined()) {
    call.memory.emplace_back(memory.storage(), is_written && !is_copy && bytes != 0);
    check_memory(memory);  // it may have had another size before it was held
    begin = memory.data_ptr();
    call.uses.push_back({static_cast<const char*>(begin), bytes, is_written});
    if (!is_copy) call.lent.push_back(call.uses.back());
  }
  if (call.stage != nullptr) call.stage->mark(call.requests.size());
  Counters& counters = counters_[kind];
  ++counters.requests;
  counters.bytes += bytes;
  const bool is_copied = !is_shared(begin, bytes) || (is_carried && !is_copy);
  if (is_copied && kind != GRADCUBE_COMPARE) counters.staged += bytes;
  return begin;
}

bool ProcessGroupGradcube::is_shared(const void* memory, std::size_t bytes) const {
  return session_ == nullptr || session_->is_shared(memory, bytes);
}

// Whether the library copies the elements wherever they lie, to add others in their place:
// reproducible jobs have such carriers of floats, and for averages.
bool ProcessGroupGradcube::is_carried(const at::Tensor& memory,
                                      const gradcube_collective& asked) const {
  const bool is_reduced = asked.kind == GRADCUBE_ALL_REDUCE || asked.kind == GRADCUBE_REDUCE ||
                          asked.kind == GRADCUBE_REDUCE_SCATTER;
  return wanted_.reproducible && session_ != nullptr && is_reduced &&
         (asked.op == GRADCUBE_AVERAGE || memory.is_floating_point() || memory.is_complex());
}

// On `bytes` from the tensor's first element on.
void ProcessGroupGradcube::add_collective(Call& call, const at::Tensor& memory, std::size_t bytes,
                                          gradcube_collective asked, bool has_result) {
  asked.buffer = use(call, memory, bytes, true, static_cast<std::size_t>(asked.kind),
                     is_carried(memory, asked));
  if (!has_result) call.memory.back().expect_no_result();
  call.requests.emplace_back(asked);
}

// What the call reads or writes of the caller's own memory, by requests and by copies.
std::vector<Span> ProcessGroupGradcube::touched_by(const Call& call) {
  std::vector<Span> touched;
  touched.reserve(call.lent.size() + call.copies.size() + call.inputs.size() + call.outputs.size());
  touched = call.lent;
  for (const Copy& copy : call.copies) {
    touched.push_back(extent_of(copy.to));
    touched.back().is_written = true;
  }
  for (const at::Tensor& tensor : call.inputs) touched.push_back(extent_of(tensor));
  for (const at::Tensor& tensor : call.outputs) {
    touched.push_back(extent_of(tensor));
    touched.back().is_written = call.any_source != nullptr;  // by no copy of the call's
  }
  return touched;
}

c10::intrusive_ptr<GradcubeWork> ProcessGroupGradcube::begin(Call& call, Milliseconds timeout) {
  const Clock::time_point deadline = deadline_after(limit_of(timeout));
  common_device(call.inputs, call.outputs);
  check_apart(call.uses);
  check_apart(call.device_uses);
  check_order(call.own);
  const bool is_collective = std::any_of(
      call.requests.begin(), call.requests.end(),
      [](const Request& one) { return std::holds_alternative<gradcube_collective>(one); });
  std::vector<Span> touched = touched_by(call);
  if (progress_ != nullptr) progress_->refuse_late(touched, is_collective);
  // The caller's tensor may be given other memory while the call goes on.
  for (Copy& copy : call.copies) {
    call.memory.emplace_back(copy.to.storage(), copy.to.numel() != 0);
    check_memory(copy.to);
    copy.to = as_it_lies(copy.to);
  }
  for (const Copy& copy : call.own) copy_in(call, copy.to, copy.from);
  if (call.type != OpType::SEND && call.type != OpType::RECV) ++collectives_;
  if (call.stage != nullptr) call.stage->seal(std::move(call.copies));
  if (progress_ == nullptr) {  // nobody has anything to add
    call.as_values.reset();
    if (call.stage != nullptr) call.stage->wait_for_copies(deadline);
    call.requests.clear();
  }
  const auto work = c10::make_intrusive<GradcubeWork>(
      rank_, call.type, call.title, std::move(call.inputs), std::move(call.outputs),
      std::move(call.memory), std::move(call.copies), call.stage, call.any_source, call.source);
  GradcubeWork::start(work, progress_, std::move(call.requests), std::move(call.lent),
                      std::move(touched), deadline);
  call.as_values.reset();
  return work;
}

// Each element of it by itself: what is asked of one part is asked of all. The parts are the same
// on all ranks, however their tensors lie.
void ProcessGroupGradcube::add_whole(Call& call, const at::Tensor& tensor, Use use,
                                     gradcube_collective asked) {
  const auto kind = static_cast<std::size_t>(asked.kind);
  if (tensor.device().is_cpu() || tensor.nbytes() <= kPart) {
    const at::Tensor memory = plain(call, tensor, use, kind);
    return add_collective(call, memory, tensor.nbytes(), asked, use != Use::read);
  }
  const at::Tensor whole = (is_dense(tensor) ? tensor : plain(call, tensor, use, kind)).view({-1});
  const auto step = static_cast<std::int64_t>(kPart / tensor.element_size());
  for (std::int64_t first = 0; first < whole.numel(); first += step) {
    const at::Tensor part = whole.narrow(0, first, std::min(step, whole.numel() - first));
    asked.count = static_cast<std::size_t>(part.numel());
    const std::size_t copies = call.copies.size();
    const at::Tensor memory = plain(call, part, use, kind);
    if (call.copies.size() > copies) call.copies.back().after = call.requests.size();
    add_collective(call, memory, part.nbytes(), asked);
  }
}

}  // namespace gradcube::pytorch
