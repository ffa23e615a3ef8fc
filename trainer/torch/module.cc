// The Python module _gradcube_torch: the process group, its statistics, and the scope in which
// tensors are allocated in its shared memory, side by side if that is wanted. gradcube/torch.py is
// what users import.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <string>
#include <string_view>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>
#include <vector>

#include "trainer/torch/compatibility.h"
#include "trainer/torch/interpreter.h"
#include "trainer/torch/memory.h"
#include "trainer/torch/of_process.h"
#include "trainer/torch/process_group.h"
#include "trainer/torch/progress.h"
#include "trainer/torch/tensors.h"
#include "trainer/torch/unseen_works.h"
#include "trainer/torch/work.h"

namespace gradcube::pytorch {
namespace {

// Which PyTorch this is built for (gradcube/_torch_identity.py): gradcube/_torch_extension.py reads
// it in the file before it loads that.
constexpr char kBuiltFor[] = "gradcube-torch-identity:" GRADCUBE_TORCH_IDENTITY;
static_assert(std::string_view(GRADCUBE_TORCH_IDENTITY).find(TORCH_VERSION) == 0,
              "PyTorch's headers are of another version than its Python package");

constexpr const char* kPinning = "gradcube._torch_pinning";

// What expect_exit() was given; null: the interpreter goes on. Threads look at it to the very end.
std::atomic<const std::vector<pid_t>*> awaited_at_exit{nullptr};

bool has_interpreter() { return Py_IsInitialized() != 0 && awaited_at_exit == nullptr; }

constexpr std::array<const char*, kKinds> kKindNames = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast",
    "reduce",     "barrier",        "compare",    "messages"};

py::dict statistics_of(const ProcessGroupGradcube& group) {
  py::dict result;
  const auto usage = group.statistics();
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    py::dict row;
    row["requests"] = usage[kind].requests;
    row["bytes"] = usage[kind].bytes;
    row["staged_bytes"] = usage[kind].staged;
    result[kKindNames[kind]] = row;
  }
  return result;
}

// A context manager.
class SharingScope {
 public:
  SharingScope(const ProcessGroupGradcube& group, std::size_t side_by_side)
      : session_(group.session()), side_by_side_(side_by_side) {}

  void enter() {
    if (scope_ != nullptr) throw std::runtime_error("this scope was entered: expected another one");
    scope_ = std::make_unique<Sharing>(session_, side_by_side_);
  }
  void exit(const py::args& /*exception*/) { scope_.reset(); }

 private:
  std::shared_ptr<Session> session_;
  const std::size_t side_by_side_;
  std::unique_ptr<Sharing> scope_;
};

// How this process leaves a group's job, also where PyTorch alone has the group, or nobody.
class Departure {
 public:
  explicit Departure(const ProcessGroupGradcube& group) : progress_(group.progress()) {}

  void leave() const {
    if (const auto progress = progress_.lock()) progress->stop();
  }
  // As the interpreter is about to end: threads that wait for a call sleep on.
  void leave_at_exit() const {
    if (const auto progress = progress_.lock()) progress->stop_at_exit();
  }
  bool is_over() const {
    const auto progress = progress_.lock();
    return progress == nullptr || progress->has_stopped();
  }

 private:
  const std::weak_ptr<Progress> progress_;
};

// One tensor over all of them in the memory that is shared; none if they do not lie so.
std::optional<at::Tensor> joined_in(const ProcessGroupGradcube& group,
                                    const std::vector<at::Tensor>& tensors) {
  const std::shared_ptr<Session> session = group.session();
  const at::Tensor whole = joined(tensors, Session::kAlignment);
  if (session == nullptr || !whole.defined()) return std::nullopt;
  if (!session->is_shared(whole.data_ptr(), whole.nbytes())) return std::nullopt;
  return whole;
}

c10::intrusive_ptr<ProcessGroupGradcube> create(const std::string& socket, const std::string& job,
                                                int rank, int size,
                                                const std::vector<std::uint32_t>& servers,
                                                unsigned trainers_per_server,
                                                const std::string& algorithm, bool reproducible,
                                                unsigned weight, unsigned lanes,
                                                std::chrono::milliseconds timeout) {
  const Membership wanted{socket,    job,          rank,   servers, trainers_per_server,
                          algorithm, reproducible, weight, lanes};
  return c10::make_intrusive<ProcessGroupGradcube>(wanted, size, timeout);
}

}  // namespace

c10::intrusive_ptr<GroupBase> split_off(const Membership& like,
                                        const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                        int size, const std::string& name,
                                        std::chrono::milliseconds timeout) {
  const py::gil_scoped_acquire lock;
  return py::module_::import("gradcube.torch")
      .attr("split_off")(store, rank, size, name, timeout, like.algorithm, like.reproducible,
                         like.weight, like.lanes)
      .cast<c10::intrusive_ptr<ProcessGroupGradcube>>();
}

bool is_main_thread() {
  thread_local pid_t asked_in = 0;  // a forked child's only thread is its main one
  thread_local bool is_main = false;
  if (asked_in != process_number()) {
    asked_in = process_number();
    is_main = ::gettid() == asked_in;
  }
  return is_main;
}

void sleep_until_exit() {
  for (;;) ::pause();
}

bool is_awaited_at_exit() {
  const std::vector<pid_t>* const awaited = awaited_at_exit;
  return is_main_thread() || (awaited != nullptr && std::find(awaited->begin(), awaited->end(),
                                                              ::gettid()) != awaited->end());
}

void expect_exit(const std::vector<pid_t>& awaited) {
  awaited_at_exit = new std::vector<pid_t>(awaited);
  static const std::terminate_handler before = std::get_terminate();
  std::set_terminate([] {
    // No exception: this thread is being unwound.
    if (!is_main_thread() && std::current_exception() == nullptr) sleep_until_exit();
    before();
  });
}

void handle_signals() {
  if (Py_IsInitialized() == 0 || !is_main_thread()) return;
  const py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

bool pin_memory(const std::string& device, void* begin, std::size_t bytes) {
  if (!has_interpreter()) return false;
  const py::gil_scoped_acquire lock;
  try {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    return py::module_::import(kPinning).attr("pin")(device, address, bytes).cast<bool>();
  } catch (const py::error_already_set&) {
    return false;
  }
}

void unpin_memory(const std::string& device, void* begin) {
  if (!has_interpreter()) return;
  const py::gil_scoped_acquire lock;
  try {
    py::module_::import(kPinning).attr("unpin")(device, reinterpret_cast<std::uintptr_t>(begin));
  } catch (const py::error_already_set&) {
    // It stays pinned until the process ends.
  }
}

WithoutInterpreterLock::WithoutInterpreterLock() {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) state_ = PyEval_SaveThread();
}

WithoutInterpreterLock::~WithoutInterpreterLock() {
  if (state_ != nullptr) PyEval_RestoreThread(static_cast<PyThreadState*>(state_));
}

}  // namespace gradcube::pytorch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using gradcube::pytorch::Departure;
  using gradcube::pytorch::GradcubeWork;
  using gradcube::pytorch::ProcessGroupGradcube;
  using gradcube::pytorch::SharingScope;
  using Released = py::call_guard<py::gil_scoped_release>;
  const py::object base =
      py::module_::import("torch._C._distributed_c10d").attr(gradcube::pytorch::kGroupBase);

  py::class_<ProcessGroupGradcube, c10::intrusive_ptr<ProcessGroupGradcube>>(
      module, "ProcessGroupGradcube", base)
      .def(py::init(&gradcube::pytorch::create), Released(), py::kw_only(), py::arg("socket"),
           py::arg("job"), py::arg("rank"), py::arg("size"), py::arg("servers"),
           py::arg("trainers_per_server"), py::arg("algorithm"), py::arg("reproducible"),
           py::arg("weight"), py::arg("lanes"), py::arg("timeout"))
      .def("close", &ProcessGroupGradcube::close, Released())
      .def("all_reduce_on", &ProcessGroupGradcube::all_reduce_on, Released(), py::arg("tensor"),
           py::arg("lane"))
      .def_property_readonly("lanes", &ProcessGroupGradcube::lanes)
      .def("compare", &ProcessGroupGradcube::compare, Released(), py::arg("tensor"))
      .def("_get_sequence_number_for_group", &ProcessGroupGradcube::getSequenceNumberForGroup)
      .def("joined", &gradcube::pytorch::joined_in, py::arg("tensors"))
      .def("statistics", &gradcube::pytorch::statistics_of);

  py::class_<GradcubeWork, c10d::Work, c10::intrusive_ptr<GradcubeWork>>(
      module, "Work", py::is_final(), py::custom_type_setup(&gradcube::pytorch::lose_unseen_works));

  py::class_<Departure>(module, "Departure")
      .def(py::init<const ProcessGroupGradcube&>(), py::arg("group"))
      .def("leave", &Departure::leave, Released())
      .def("leave_at_exit", &Departure::leave_at_exit, Released())
      .def("is_over", &Departure::is_over, Released());

  module.attr("built_for") = gradcube::pytorch::kBuiltFor;
  module.def("expect_exit", &gradcube::pytorch::expect_exit, py::arg("awaited"));

  py::class_<SharingScope>(module, "SharingScope")
      .def(py::init<const ProcessGroupGradcube&, std::size_t>(), py::arg("group"),
           py::arg("side_by_side") = 0)
      .def("__enter__", &SharingScope::enter)
      .def("__exit__", &SharingScope::exit);
}
